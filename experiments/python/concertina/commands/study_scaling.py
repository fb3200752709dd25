"""Reports the measurements, fits and charts of `concertina study scaling`, which provides the predictions.

Measured and predicted values are always kept separate."""
import itertools
import json
import pathlib
import statistics
import sys
import typing

from ..chart import Axis, Chart, Series, draw, save
from ..files import replace_file
from ..names import counted
from ..results import RunSummary, study_results
from . import Options

Json = dict[str, typing.Any]

# parts of a step; variation (different durations of equal actions) is only measured, cores (core sharing by ranks) is only predicted
_PARTS = ["compute", "bubble", "imbalance", "transfer", "reduction", "update", "variation", "cores"]


def _shares(seconds: Json) -> Json:
    total = sum(seconds.values())
    return {part: seconds.get(part, 0.0) / total if total > 0 else 0 for part in _PARTS}


def _recorded_parts(run: RunSummary) -> Json:
    """The parts of a run's recorded steps, as shares of the step time."""
    if "recorded.bubble" not in run.metrics:
        return _shares({"compute": 1.0})
    causes = {name.rpartition(".")[2]: value for name, value in run.metrics.items() if name.startswith("recorded.bubble_causes.")}
    return _shares({"bubble": causes.get("schedule", 0.0), "update": causes.get("optimizer", 0.0) + causes.get("other", 0.0),
                    "compute": 1 - run.metrics["recorded.bubble"]} |
                   {part: causes.get(part, 0.0) for part in ("variation", "imbalance", "transfer", "reduction")})


def _measured(runs: list[RunSummary]) -> Json:
    """The measured rounds of a point; the point's parts are from the round whose step time is closest to the median."""
    steps = [run.metrics["median_step_ms"] for run in runs]
    median = statistics.median(steps)
    typical = min(runs, key=lambda run: abs(run.metrics["median_step_ms"] - median))
    return {"rounds_ms": steps, "load": max(run.metrics.get("load", 0.0) for run in runs), "measured_parts": _recorded_parts(typical)}


def _scaled(kind: str, one: Json, first: Json) -> Json:
    """Samples per second relative to the first point of the same kind, and this speed-up divided by the ratio of ranks."""
    speedup = one["batch"] / one[f"{kind}_ms"] / (first["batch"] / first[f"{kind}_ms"])
    return {f"{kind}_speedup": speedup, f"{kind}_efficiency": speedup * first["ranks"] / one["ranks"]}


def _result(point: Json, runs: list[RunSummary], first: Json | None) -> Json:
    predicted = 1e3 * sum(point["predicted_parts"].values())
    measured = statistics.median([run.metrics["median_step_ms"] for run in runs]) if runs else None
    one = {name: point[name] for name in ("ranks", "layout", "batch", "microbatches")}
    one |= {"measured_ms": measured, "predicted_ms": predicted, "error": predicted / measured - 1 if measured else None}
    first = first or one
    if runs:
        one |= _measured(runs) | (_scaled("measured", one, first) if first["measured_ms"] else {})
    one |= {"predicted_from": point["predicted_from"], "predicted_parts": _shares(point["predicted_parts"])}
    one |= _scaled("predicted", one, first)  # relative to the first point's prediction: systematic errors cancel
    flops = {"model_tflops_per_rank": point["flops"] / ((measured or predicted) * 1e-3) / point["ranks"] * 1e-12}
    return one | (flops if point["flops"] > 0 else {})


def _fits(results: list[Json]) -> list[Json]:
    """Linear fits of step time over microbatches, for each number of ranks with at least three points."""
    fits = []
    for kind in ("measured", "predicted"):
        for ranks, group in itertools.groupby(results, lambda one: one["ranks"]):
            points = [(one["microbatches"], one[f"{kind}_ms"]) for one in group if one[f"{kind}_ms"] is not None]
            if len(points) < 3:
                continue  # any two points are on a line
            slope, intercept = statistics.linear_regression(*zip(*points))
            fits.append({"ranks": ranks, "measured": kind == "measured", "a_ms": intercept, "b_ms": slope,
                         "largest_residual": max(abs(intercept + slope * m - step) / step for m, step in points)})
    return fits


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f}%"


def _row(one: Json) -> str:
    kind = "predicted" if one["measured_ms"] is None else "measured"
    measured = "" if one["measured_ms"] is None else f"{one['measured_ms']:.2f}"
    return (f"{one['ranks']:>6} {one['layout']:<12} {one['batch']:>6} {one['microbatches']:>5} {measured:>12} {one['predicted_ms']:>13.2f} "
            f"{_percent(one['error']):>7}  {kind:<9} {one.get(f'{kind}_speedup', 0):>9.2f} {_percent(one.get(f'{kind}_efficiency')):>10}"
            + "".join(f" {_percent(one[f'{kind}_parts'][part]):>10}" for part in _PARTS) + "\n")


def _spread(results: list[Json]) -> str:
    """The reliability of measurements."""
    measured = [one for one in results if "rounds_ms" in one]
    spread = max((max(one["rounds_ms"]) / min(one["rounds_ms"]) - 1 for one in measured), default=0)
    several = any(len(one["rounds_ms"]) > 1 for one in measured)
    differ = f"rounds of one row differ by up to {100 * spread:.0f}%" if several else "a single round: the spread is unknown"
    load = max((one["load"] for one in measured), default=0)
    return f"{differ}; host load before a launch up to {load:.1f}, including earlier launches\n"


def _text(report: Json) -> str:
    return "".join([
        f"{report['mode']} scaling\n", f"{'ranks':>6} {'layout':<12} {'batch':>6} {'m':>5} {'measured, ms':>12} {'predicted, ms':>13} {'error':>7}  "
        f"{'from here':<9} {'speed-up':>9} {'efficiency':>10}", *(f" {part:>10}" for part in _PARTS), "\n", *map(_row, report["results"]),
        "from here: whether speed-up, efficiency and shares of a step are measured, relative to the measured first row, or predicted,\n"
        "relative to its prediction; do not mix them. A prediction is based on the measurement of the next smaller number of ranks\n"
        f"each rank has {counted(report['threads'], 'thread')}; up to {report['measured_up_to']} ranks share a host with cores for "
        f"{report['cores']}; beyond that, each has its own core\n", _spread(report["results"]),
        *(f"{fit['ranks']} ranks, {'measured' if fit['measured'] else 'predicted'}: step = {fit['a_ms']:.3f} ms + {fit['b_ms']:.3f} ms x "
          f"microbatches, off by {_percent(fit['largest_residual'])} at most\n" for fit in report["fits"])])


def make_report(given: Json, runs: dict[int, RunSummary]) -> Json:
    """`given`: the predictions for all points, with the numbers of their trials; `runs`: the completed trials."""
    results: list[Json] = []
    for point in given["points"]:
        results.append(_result(point, [runs[trial] for trial in point["trials"] if trial in runs], results[0] if results else None))
    return {name: value for name, value in given.items() if name != "points"} | {"results": results, "fits": _fits(results)}


def _gains(points: list[Json], name: str) -> Chart:
    """Speed-up or efficiency over ranks: measured with the spread of rounds, predicted, and ideal."""
    percent = 100 if name == "efficiency" else 1
    series = []
    for kind in ("predicted", "measured"):
        known = [one for one in points if f"{kind}_{name}" in one]
        series.append(Series(kind, [one["ranks"] for one in known], [percent * one[f"{kind}_{name}"] for one in known]))
        if kind == "measured":
            series[-1].low, series[-1].high = ([value * (one["measured_ms"] / ends(one["rounds_ms"])) for value, one in zip(series[-1].y, known)]
                                               for ends in (max, min))
    ranks = [one["ranks"] for one in points]
    ideal = Series("ideal", ranks, [percent * (1 if name == "efficiency" else one / ranks[0]) for one in ranks], look=-1)
    y = Axis("efficiency", "%", from_zero=True) if name == "efficiency" else Axis("speed-up", scale="log2")
    return Chart("lines", Axis("ranks", scale="log2"), y, [ideal, *series])


def _parts(points: list[Json]) -> Chart:
    """Milliseconds per sample, summed over ranks, by activity: constant for perfect scaling."""
    bars = [(one, kind) for one in points for kind in ("measured", "predicted") if one.get(f"{kind}_ms") is not None]
    names = [f"{one['ranks']} ranks, {kind}" for one, kind in bars]
    series = [Series(part, names, [one[f"{kind}_parts"][part] * one[f"{kind}_ms"] * one["ranks"] / one["batch"] for one, kind in bars])
              for part in points[0]["predicted_parts"]]
    return Chart("stacks", Axis("rank time per sample", "ms"), series=series, width=6.75,
                 title="Time of all ranks by activity (equal bars: perfect scaling)")


def main(options: Options) -> int:
    """Draws no speed-up chart for weak scaling, since its batches differ."""
    folder = options.text("folder")
    done = {run.number: run for run in study_results(folder).runs if run.state == "done" and "median_step_ms" in run.metrics}
    report = make_report(json.load(sys.stdin), done)
    replace_file(pathlib.Path(folder, "scaling.json"), json.dumps(report, indent=2) + "\n")
    options.print_result(f"{_text(report)}{folder}/scaling.json\n", report)
    # The first result for each number of ranks, which has the config's microbatches.
    points = [next(same) for _, same in itertools.groupby(report["results"], lambda one: one["ranks"])]
    charts = {name: _gains(points, name) for name in ("speedup", "efficiency") if report["mode"] != "weak" or name == "efficiency"}
    for name, chart in (charts | {"parts": _parts(points)}).items():
        replace_file(pathlib.Path(folder, f"{name}.svg"), save(draw(chart), ".svg"))
    return 0
