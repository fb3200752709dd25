"""The report of `study scaling` for made-up predictions and measurements."""
import pytest
from concertina.commands.study_scaling import _gains, make_report
from concertina.results import RunSummary


def point(ranks, microbatches, trials, seconds=0.25):
    return {"ranks": ranks, "layout": f"pp1xdp{ranks}", "batch": 32, "microbatches": microbatches, "flops": 1e9, "predicted_from": "1/run",
            "predicted_parts": {"compute": 0.5, "bubble": seconds * microbatches}, "trials": trials}


def report(points, steps):
    runs = {trial: RunSummary(trial, metrics={"median_step_ms": step, "load": 0.5, "recorded.bubble": 0.25, "recorded.bubble_causes.schedule": 0.2,
                                              "recorded.bubble_causes.transfer": 0.05}) for trial, step in steps.items()}
    return make_report({"mode": "strong", "points": points}, runs)


def test_what_is_measured_is_over_the_first_measurement_and_what_is_predicted_over_its_prediction():
    results = report([point(2, 4, [1, 3, 5]), point(4, 4, [2]), point(8, 2, [])], {1: 90, 2: 70, 3: 100, 5: 400})["results"]
    assert results[0]["measured_ms"] == 100 and results[0]["rounds_ms"] == [90, 100, 400]
    assert results[0]["measured_parts"]["compute"] == pytest.approx(0.75) and results[0]["measured_parts"]["bubble"] == pytest.approx(0.2)
    assert results[1]["measured_speedup"] == pytest.approx(100 / 70) and results[1]["measured_efficiency"] == pytest.approx(100 / 70 / 2)
    assert results[2]["measured_ms"] is None and results[2]["error"] is None and "measured_speedup" not in results[2]
    assert results[2]["predicted_speedup"] == pytest.approx(1.5) and sum(results[2]["predicted_parts"].values()) == pytest.approx(1)
    assert results[2]["model_tflops_per_rank"] == pytest.approx(1e9 / 1.0 / 8 * 1e-12)


def test_a_line_is_fitted_and_says_how_far_off_it_is():
    fits = report([point(4, m, [m]) for m in (4, 8, 16)] + [point(8, 4, []), point(8, 8, [])], {4: 3000, 8: 5100, 16: 9000})["fits"]
    assert [(fit["ranks"], fit["measured"]) for fit in fits] == [(4, True), (4, False)], "a line passes through any two points"
    assert fits[1]["a_ms"] == pytest.approx(500) and fits[1]["b_ms"] == pytest.approx(250) and fits[1]["largest_residual"] < 1e-12
    assert 0.01 < fits[0]["largest_residual"] < 0.02, "5100 is 100 above the line"


def test_the_bars_of_one_round_have_no_length():
    for step in range(1, 200):
        results = report([point(1, 4, [1]), point(2, 4, [2])], {1: 7.0, 2: step / 7})["results"]
        series = _gains(results, "speedup").series[-1]
        assert series.low == series.y == series.high
