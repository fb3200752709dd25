"""What charts of studies show."""
import itertools
import json
import math
import random
import xml.dom.minidom

import concertina
import numpy
import pytest
from concertina import study_series
from concertina import commands
from concertina.chart import Axis, Chart, Series, draw, save
from concertina.names import pareto_front
from concertina.errors import InputError
from concertina.results import Claim, RunSummary, StudyResults
from concertina.statistic import summarize
from concertina.study_table import TableOptions, make_table
from concertina.commands import Options
from matplotlib.text import Text
from conftest import write_lines

FACTS = {"version": "1", "commit": "c", "processor": "Zen"}


def depths(dice=None, folder=None):
    """Two schedules at depths 1, 2 and 4 with three seeds; with logs of four steps in `folder`."""
    dice, results = dice or random.Random(1), StudyResults("depths", axes=["parallel.schedule", "parallel.pp", "run.seed"])
    for schedule, pp, seed in itertools.product(("1f1b", "zb-v"), (1, 2, 4), (1, 2, 3)):
        run = RunSummary(len(results.runs) + 1, {"parallel.schedule": schedule, "parallel.pp": str(pp), "run.seed": str(seed)}, "done", facts=dict(FACTS))
        run.metrics = {"tokens_per_s": 100.0 * pp + dice.uniform(0, 9), "peak_bytes": float((8 << 20) / pp), "validation_loss": dice.uniform(2, 3),
                       "train_s": dice.uniform(9, 10) / pp, "recorded.median_step_ms": 10.0, "recorded.bubble": 0.25, "bubble": 0.2,
                       "recorded.bubble_causes.schedule": 0.2, "recorded.bubble_causes.transfer": 0.05}
        if folder:
            run.directory = str(folder / str(run.number) / "run")
            write_lines(folder / str(run.number) / "run" / "metrics.jsonl",
                        [{"step": step, "loss": dice.uniform(2, 3), "tokens_per_s": 100, "step_ms": 10 * step} for step in range(1, 5)])
        results.runs.append(run)
    return results


def groups(results, *columns):
    found = {}
    for run in results.runs:
        found.setdefault(tuple(run.settings[column] for column in columns), []).append(run)
    return found


def lines_of(figure):
    return {line.get_label(): line for line in figure.axes[0].lines if not line.get_label().startswith("_")}


@pytest.mark.parametrize("spread", ["sd", "ci", "none"])
def test_lines_are_the_means_of_the_table(spread):
    results = depths()
    plot = concertina.plot(results, y="tokens_per_s", spread=spread)
    table = make_table(results, TableOptions(metrics=["tokens_per_s"]))
    cells = {row.group.values: row.cells[0].numbers() for row in table.rows}
    drawn = lines_of(plot.figure())
    assert list(drawn) == ["1f1b", "zb-v"] and plot.chart.x.scale == "log2"
    for series in plot.chart.series:
        wanted = [cells[series.name, str(pp)] for pp in (1, 2, 4)]
        assert drawn[series.name].get_xdata().tolist() == series.x == [1, 2, 4]
        assert drawn[series.name].get_ydata() == pytest.approx([cell["mean"] for cell in wanted], rel=1e-12)
        ends = {"sd": [cell["mean"] - cell["sd"] for cell in wanted], "ci": [cell["ci_low"] for cell in wanted], "none": []}
        assert series.low == pytest.approx(ends[spread], rel=1e-12)
    assert plot.frame().y.tolist() == [y for series in plot.chart.series for y in series.y]


def test_bars_and_heat_maps_have_the_means_and_single_trials():
    results = depths()
    means = {key: sum(run.metrics["tokens_per_s"] for run in runs) / 3 for key, runs in groups(results, "parallel.schedule", "parallel.pp").items()}
    plot = concertina.plot(results, x="parallel.schedule", y="tokens_per_s")
    axes = plot.figure().axes[0]
    heights = [bar.get_height() for bar in axes.containers[0]] + [bar.get_height() for bar in axes.containers[3]]
    assert plot.kind == "bars" and [series.name for series in plot.chart.series] == ["pp=1", "pp=2", "pp=4"]
    assert heights == pytest.approx([means[name, pp] for pp in "12" for name in ("1f1b", "zb-v")])
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1f1b", "zb-v"]
    assert plot.chart.series[0].points[1] == [run.metrics["tokens_per_s"] for run in groups(results, "parallel.schedule", "parallel.pp")["zb-v", "1"]]
    heat = concertina.plot(results, x="parallel.schedule", y="tokens_per_s", kind="heatmap")
    cells = heat.figure().axes[0].collections[0].get_array()
    assert list(numpy.ravel(cells)) == pytest.approx([means[name, pp] for pp in "124" for name in ("1f1b", "zb-v")])


def test_points_have_a_front_in_the_unit_of_the_axis():
    plot = concertina.plot(depths(), kind="pareto", group=["parallel.schedule"])
    assert [series.x for series in plot.chart.series] == [[8, 4, 2]] * 2 and plot.chart.x.title == "peak memory (MiB)"
    assert (plot.chart.x.better, plot.chart.y.better) == ("lower", "higher")
    names = {text.get_text() for text in plot.figure().axes[0].texts}
    assert {"1f1b pp=4", "zb-v pp=4"} & names  # on the front


def test_a_front_of_points_is_that_of_all_pairs():
    dice = random.Random(3)
    for x, y in itertools.product(("lower", "higher"), repeat=2):
        points = [(dice.randint(0, 9), dice.randint(0, 9)) for _ in range(30)] + [(math.nan, 1)]
        signed = [(a if x == "lower" else -a, b if y == "lower" else -b) for a, b in points]
        best = {points[i] for i, (a, b) in enumerate(signed) if not math.isnan(a)
                and not any(c <= a and d <= b and (c, d) != (a, b) for c, d in signed)}
        front = [points[at] for at in pareto_front(points, x, y)]
        assert set(front) == best and front == sorted(front) and len(front) == len(best)
    assert pareto_front([(1, 1)], None, "lower") == []


def test_a_claimed_front_is_the_tables():
    results, claim = depths(), Claim("validation_loss", 0.5)
    plot = concertina.plot(results, kind="front", baseline=["parallel.schedule=1f1b", "parallel.pp=1"], claim=claim)
    table = make_table(results, TableOptions(front=["train_s", "validation_loss"], metrics=["train_s", "validation_loss"], claim=claim,
                                             baseline=["parallel.schedule=1f1b", "parallel.pp=1"]))
    series = plot.chart.series[0]
    assert series.x == [point.gain for point in table.front.points] and series.y == [point.change for point in table.front.points]
    assert plot.chart.y.levels == [0, -0.5, 0.5] and "90% intervals" in plot.chart.y.label and len(plot.json()["series"]) == 6
    plot.figure()


@pytest.mark.parametrize("spread", ["sd", "ci"])
def test_curves_are_means_of_the_steps_that_all_runs_have(tmp_path, spread):
    results = depths(folder=tmp_path)
    plot = concertina.plot(results, x="step", y="loss", where=["parallel.pp=2"], spread=spread)
    logs = {run.number: [json.loads(line)["loss"] for line in (tmp_path / str(run.number) / "run" / "metrics.jsonl").read_text().splitlines()]
            for run in results.runs}
    for series, key in zip(plot.chart.series, [("1f1b", "2"), ("zb-v", "2")]):
        summaries = [summarize(values, 0.95) for values in zip(*(logs[run.number] for run in groups(results, "parallel.schedule", "parallel.pp")[key]))]
        half = [one.sd if spread == "sd" else one.half_width for one in summaries]
        assert lines_of(plot.figure())[series.name].get_ydata() == pytest.approx([one.mean for one in summaries])
        assert series.high == pytest.approx([one.mean + size for one, size in zip(summaries, half)])
    mean = study_series.mean_curve([{1: 4.0, 2: 5.0, 3: 6.0}, {2: 7.0, 3: math.nan, 4: 9.0}], 0.95)
    assert mean.x == [2, 3] and mean.y[0] == 6 and math.isnan(mean.y[1])
    assert study_series.mean_curve([], None).x == []


def test_missing_is_not_drawn():
    results = depths()
    for run in groups(results, "parallel.schedule", "parallel.pp")["1f1b", "2"]:
        run.state = "failed"
    results.runs[0].metrics["tokens_per_s"] = math.nan
    results.runs[1].metrics.pop("tokens_per_s")
    plot = concertina.plot(results, y="tokens_per_s")
    first = plot.chart.series[0]
    assert first.x == [1, 2, 4] and first.y[0] == results.runs[2].metrics["tokens_per_s"] and math.isnan(first.y[1])
    assert plot.notes[:2] == ["15 of 18 trials are done; the others are not drawn", "tokens_per_s has no finite value in trials 1-2: not drawn"]
    logarithmic = Chart("bars", y=Axis("y", scale="log"), series=[Series("a", ["p", "q", "r"], [-1, 0, 3.0]), Series("b", ["p"], [math.inf])])
    assert [bar.get_height() for bar in draw(logarithmic).axes[0].containers[0]] == [3]
    assert [text.get_text() for text in draw(Chart("points", series=[Series("", [math.nan], [1], names=["x"])])).axes[0].texts] == ["no data"]


def test_unlike_measures_are_not_drawn_as_comparable():
    results = depths()
    for run in results.runs:
        run.facts |= {"validation_data": "d", "validation_measure": run.settings["parallel.schedule"]}
    pooled = concertina.plot(results, y="validation_loss", group=["run.seed"])
    assert all(math.isnan(y) for series in pooled.chart.series for y in series.y)  # a mean over both would be meaningless
    assert "the tasks or the tokenizers differ" in pooled.chart.note and pooled.chart.note in pooled.notes
    assert concertina.plot(results, kind="pareto", x="peak_bytes", y="validation_loss").chart.x.better is None
    apart = concertina.plot(results, x="parallel.schedule", y="validation_loss", group=["parallel.pp"])
    assert all(map(math.isfinite, apart.chart.series[0].y)) and apart.chart.note
    by_schedule = concertina.plot(results, x="run.seed", y="validation_loss", group=["parallel.pp"], kind="lines")
    assert not by_schedule.chart.series[0].joined


def test_stopped_trials_are_other_lines():
    results = depths()
    for run in results.runs:
        run.state, run.metrics["steps"] = ("stopped", 4.0) if run.settings["run.seed"] == "3" else ("done", 36.0)
    assert "--stopped draws those that the search stopped" in concertina.plot(results, y="tokens_per_s").notes[0]
    plot = concertina.plot(results, y="tokens_per_s", stopped=True)
    assert [series.name for series in plot.chart.series] == ["1f1b steps=36", "1f1b steps=4", "zb-v steps=36", "zb-v steps=4"]


@pytest.mark.parametrize("values,scale", [
    (["1e-3", "3e-3", "1e-2"], "log"), (["1", "5", "10"], "linear"), (["0.1", "0.2", "0.3"], "linear"), (["0", "0.001", "1"], "linear"),
    (["1", "2"], "log2"), (["-1", "8"], "linear")])
def test_values_that_are_spread_like_a_logarithm_have_one(values, scale):
    runs = [RunSummary(at, {"optimizer.lr": value}, "done", metrics={"loss": 1.0}) for at, value in enumerate(values)]
    assert concertina.plot(StudyResults("x", axes=["optimizer.lr"], runs=runs)).chart.x.scale == scale


KINDS = [{"y": "tokens_per_s"}, {"y": "tokens_per_s", "y_scale": "log", "x_scale": "linear"}, {"kind": "bars", "y": "validation_loss"},
         {"kind": "heatmap", "y": "validation_loss"}, {"kind": "pareto"}, {"x": "step", "y": "loss", "group": ["parallel.schedule"]},
         {"kind": "front", "baseline": ["parallel.schedule=1f1b"]}]


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_charts_have_the_same_bytes_in_any_order_and_no_words_that_overlap(tmp_path, options):
    results = depths(folder=tmp_path)
    title = {"title": "$\\frac$ <b> & \x01 a title of many words that does not fit into one line of the chart"}
    svg = save(concertina.plot(results, **options, **title).figure(), ".svg")
    random.Random(4).shuffle(results.runs)
    figure = concertina.plot(results, **options, **title).figure()
    assert overlaps(figure) == []
    assert save(figure, ".svg") == svg
    xml.dom.minidom.parseString(svg.decode())
    assert save(figure, ".pdf")[:5] == b"%PDF-" and save(figure, ".png")[1:4] == b"PNG"


def overlaps(figure):
    """Returns pairs of texts that overlap, and texts that the figure cuts off."""
    renderer = figure.canvas.get_renderer()
    ticks = [text for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) for tick in axis._update_ticks() for text in (tick.label1, tick.label2)]
    texts = ticks + [*figure.texts, *(text for legend in figure.legends for text in legend.get_texts())]
    texts += [text for axes in figure.axes for text in (*axes.texts, axes.xaxis.label, axes.yaxis.label)]
    for text in texts:
        getattr(text, "update_positions", lambda _: None)(renderer)
    boxes = [(text.get_text(), Text.get_window_extent(text, renderer)) for text in texts
             if text.get_text() and text.get_visible() and text.get_rotation() in (0, 90)]
    found = [text for text, box in boxes if box.x0 < -2 or box.y0 < -2 or box.x1 > figure.bbox.width + 2 or box.y1 > figure.bbox.height + 2]
    for (name, one), (other_name, other) in itertools.combinations(boxes, 2):
        width, height = min(one.x1, other.x1) - max(one.x0, other.x0), min(one.y1, other.y1) - max(one.y0, other.y0)
        found += [(name, other_name)] if width > 2 and height > 2 else []
    return found


def test_what_cannot_be_drawn_is_refused():
    def refused(**options):
        with pytest.raises(InputError) as error:
            concertina.plot(depths(), **options)
        return str(error.value)

    assert "no trial has the column 'tokens'" in refused(y="tokens")
    assert "at: --x" in refused(x="pp") and "at: --group" in refused(group=["pp"])
    assert "values that are not numbers\n  at: --x" in refused(kind="lines", x="parallel.schedule")
    assert "a heat map needs one axis for its rows" in refused(kind="heatmap", group=["parallel.pp", "run.seed"])
    assert "is not a number in trial 1" in refused(kind="pareto", x="parallel.schedule")
    assert "not a kind of chart" in refused(kind="line") and "not a spread" in refused(spread="se")
    assert "no run has 'los' by step" in refused(x="step", y="los")
    assert "--y-scale has no effect with --kind heatmap" in refused(kind="heatmap", x="parallel.schedule", y_scale="log")
    assert "--confidence has no effect without --spread ci" in refused(confidence=0.9)
    results = depths()
    results.axes = ["run.seed"]
    with pytest.raises(InputError, match="only the seed differs"):
        concertina.plot(results)
    results.runs[1].state = "stopped"
    with pytest.raises(InputError, match="try: --stopped"):
        concertina.plot(results)


GRID = 'seeds = [1, 2, 3]\n[set]\nrun.steps = 36\n[grid]\nparallel.schedule = ["1f1b", "zb-v"]\n'


def written(study):
    return study(GRID, [({"parallel.schedule": name, "run.seed": str(seed)}, {"loss": seed + 0.5, "trial_s": 100}) for seed in (1, 2, 3)
                        for name in ("1f1b", "zb-v")])


def test_the_command_writes_a_figure_and_refuses_options_without_effect(study, tmp_path, capsys):
    folder, out = str(written(study)), tmp_path / "a.pdf"
    given = [f"--study={folder}", f"--out={out}", "--width=3.25"]
    assert commands.study_plot(Options(given)) == 0 and out.read_bytes()[:5] == b"%PDF-"
    assert capsys.readouterr().out.splitlines() == ["circles: single trials", "mean and standard deviation over the trials of a point", str(out)]
    assert commands.study_plot(Options([*given, "--json=true"])) == 0
    json_ = json.loads(capsys.readouterr().out)
    assert json_["kind"] == "bars" and json_["figure"] == str(out) and json_["series"][0]["y"] == [2.5, 2.5]
    for wrong in (["x-scale=log"], ["baseline=a=b"], ["equivalent=loss=1"], ["confidence=0.9"], ["out=a.gif"], ["out=a"],
                  ["kind=heatmap", "spread=ci", "group=run.seed"], [f"out={tmp_path}/no/a.svg"]):
        with pytest.raises(InputError):
            commands.study_plot(Options(given + [f"--{word}" for word in wrong]))
