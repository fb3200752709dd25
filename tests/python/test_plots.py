"""What charts of studies draw, and what their pages show."""
import itertools
import json
import math
import random
import re
import subprocess
import sys
import xml.dom.minidom

import concertina
import numpy
import pytest
from concertina import study_page, study_plot, study_report, study_series
from concertina.chart import Axis, Chart, Series, pareto_front
from concertina.charts import draw, save
from concertina.errors import InputError
from concertina.results import Claim, RunSummary, StudyResults
from concertina.statistic import summarize
from concertina.study_table import TableOptions, make_table
from conftest import write_lines

FACTS = {"version": "1", "commit": "c", "processor": "Zen"}


def depths(dice=None, folder=None):
    """Two schedules at depths 1, 2 and 4, three seeds; with logs of four steps in `folder`."""
    dice, results = dice or random.Random(1), StudyResults("depths", axes=["parallel.schedule", "parallel.pp", "run.seed"])
    for schedule, pp, seed in itertools.product(("1f1b", "zb-v"), (1, 2, 4), (1, 2, 3)):
        run = RunSummary(len(results.runs) + 1, {"parallel.schedule": schedule, "parallel.pp": str(pp), "run.seed": str(seed)}, "done", facts=dict(FACTS))
        run.figures = {"tokens_per_s": 100.0 * pp + dice.uniform(0, 9), "peak_bytes": float((8 << 20) / pp), "validation_loss": dice.uniform(2, 3),
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
    cells = {row.group.values: row.cells[0].figures() for row in table.rows}
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
    means = {key: sum(run.figures["tokens_per_s"] for run in runs) / 3 for key, runs in groups(results, "parallel.schedule", "parallel.pp").items()}
    plot = concertina.plot(results, x="parallel.schedule", y="tokens_per_s")
    axes = plot.figure().axes[0]
    heights = [bar.get_height() for bar in axes.containers[0]] + [bar.get_height() for bar in axes.containers[3]]
    assert plot.kind == "bars" and [series.name for series in plot.chart.series] == ["pp=1", "pp=2", "pp=4"]
    assert heights == pytest.approx([means[name, pp] for pp in "12" for name in ("1f1b", "zb-v")])
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1f1b", "zb-v"]
    assert plot.chart.series[0].points[1] == [run.figures["tokens_per_s"] for run in groups(results, "parallel.schedule", "parallel.pp")["zb-v", "1"]]
    heat = concertina.plot(results, x="parallel.schedule", y="tokens_per_s", kind="heatmap")
    cells = heat.figure().axes[0].collections[0].get_array()
    assert list(numpy.ravel(cells)) == pytest.approx([means[name, pp] for pp in "124" for name in ("1f1b", "zb-v")])


def test_points_have_a_front_in_the_unit_of_the_axis():
    plot = concertina.plot(depths(), kind="pareto", group=["parallel.schedule"])
    assert [series.x for series in plot.chart.series] == [[8, 4, 2]] * 2 and plot.chart.x.title == "peak memory (MiB)"
    assert (plot.chart.x.better, plot.chart.y.better) == ("lower", "higher")
    names = {text.get_text() for text in plot.figure().axes[0].texts}
    assert {"1f1b pp=4", "zb-v pp=4"} & names  # the front's


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
    results.runs[0].figures["tokens_per_s"] = math.nan
    results.runs[1].figures.pop("tokens_per_s")
    plot = concertina.plot(results, y="tokens_per_s")
    first = plot.chart.series[0]
    assert first.x == [1, 2, 4] and first.y[0] == results.runs[2].figures["tokens_per_s"] and math.isnan(first.y[1])
    assert plot.notes[:2] == ["15 of 18 trials are done; the others are not drawn", "tokens_per_s has no finite value in trials 1-2: not drawn"]
    logarithmic = Chart("bars", y=Axis("y", scale="log"), series=[Series("a", ["p", "q", "r"], [-1, 0, 3.0]), Series("b", ["p"], [math.inf])])
    assert [bar.get_height() for bar in draw(logarithmic).axes[0].containers[0]] == [3]
    assert [text.get_text() for text in draw(Chart("points", series=[Series("", [math.nan], [1], names=["x"])])).axes[0].texts] == ["no data"]


def test_unlike_measures_are_not_drawn_as_comparable():
    results = depths()
    for run in results.runs:
        run.facts |= {"validation_data": "d", "validation_measure": run.settings["parallel.schedule"]}
    pooled = concertina.plot(results, y="validation_loss", group=["run.seed"])
    assert all(math.isnan(y) for series in pooled.chart.series for y in series.y)  # a mean over both would be of neither
    assert "the tasks or the tokenizers differ" in pooled.chart.note and pooled.chart.note in pooled.notes
    assert concertina.plot(results, kind="pareto", x="peak_bytes", y="validation_loss").chart.x.better is None
    apart = concertina.plot(results, x="parallel.schedule", y="validation_loss", group=["parallel.pp"])
    assert all(map(math.isfinite, apart.chart.series[0].y)) and apart.chart.note
    by_schedule = concertina.plot(results, x="run.seed", y="validation_loss", group=["parallel.pp"], kind="lines")
    assert not by_schedule.chart.series[0].joined


def test_stopped_trials_are_other_lines():
    results = depths()
    for run in results.runs:
        run.state, run.figures["steps"] = ("stopped", 4.0) if run.settings["run.seed"] == "3" else ("done", 36.0)
    assert "--stopped draws those that the search stopped" in concertina.plot(results, y="tokens_per_s").notes[0]
    plot = concertina.plot(results, y="tokens_per_s", stopped=True)
    assert [series.name for series in plot.chart.series] == ["1f1b steps=36", "1f1b steps=4", "zb-v steps=36", "zb-v steps=4"]


@pytest.mark.parametrize("values,scale", [
    (["1e-3", "3e-3", "1e-2"], "log"), (["1", "5", "10"], "linear"), (["0.1", "0.2", "0.3"], "linear"), (["0", "0.001", "1"], "linear"),
    (["1", "2"], "log2"), (["-1", "8"], "linear")])
def test_values_that_are_spread_like_a_logarithm_have_one(values, scale):
    runs = [RunSummary(at, {"optimizer.lr": value}, "done", figures={"loss": 1.0}) for at, value in enumerate(values)]
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
    assert save(figure, ".svg") == svg
    xml.dom.minidom.parseString(svg.decode())
    assert save(figure, ".pdf")[:5] == b"%PDF-" and save(figure, ".png")[1:4] == b"PNG"
    assert overlaps(concertina.plot(results, **options, **title).figure()) == []


def overlaps(figure):
    """Pairs of words that lie on each other, and words that the figure cuts off."""
    renderer = figure.canvas.get_renderer()
    ticks = [text for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) for tick in axis._update_ticks() for text in (tick.label1, tick.label2)]
    texts = ticks + [*figure.texts, *(text for legend in figure.legends for text in legend.get_texts())]
    texts += [text for axes in figure.axes for text in (*axes.texts, axes.xaxis.label, axes.yaxis.label)]
    boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in texts
             if text.get_text() and text.get_visible() and text.get_rotation() in (0, 90)]
    found = [text for text, box in boxes if box.x0 < -2 or box.y0 < -2 or box.x1 > figure.bbox.width + 2 or box.y1 > figure.bbox.height + 2]
    for (name, one), (other_name, other) in itertools.combinations(boxes, 2):
        width, height = numpy.minimum(one.max, other.max) - numpy.maximum(one.min, other.min)
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
    assert "a heat map has one axis for its rows" in refused(kind="heatmap", group=["parallel.pp", "run.seed"])
    assert "is not a number in trial 1" in refused(kind="pareto", x="parallel.schedule")
    assert "not a kind of chart" in refused(kind="line") and "not a spread" in refused(spread="se")
    assert "no run has 'los' by step" in refused(x="step", y="los")
    assert "--y-scale has no effect with --kind heatmap" in refused(kind="heatmap", x="parallel.schedule", y_scale="log")
    assert "--confidence has no effect without --spread ci" in refused(confidence=0.9)
    results = depths()
    results.axes = ["run.seed"]
    with pytest.raises(InputError, match="nothing but the seed differs"):
        concertina.plot(results)
    results.runs[1].state = "stopped"
    with pytest.raises(InputError, match="try: --stopped"):
        concertina.plot(results)


class Given(dict):
    """Options as the program passes them, each as a list of words."""
    def all(self, name):
        return self.get(name, [])

    def text(self, name):
        return (self.all(name) or [""])[-1]

    def number(self, name):
        return float(self.text(name))


GRID = 'seeds = [1, 2, 3]\n[set]\nrun.steps = 36\n[grid]\nparallel.schedule = ["1f1b", "zb-v"]\n'
GROUPS = {"pair": ["run.seed"], "test": ["t"], "correction": ["holm"], "confidence": ["0.95"]}


def written(study):
    return study(GRID, [({"parallel.schedule": name, "run.seed": str(seed)}, {"loss": seed + 0.5, "trial_s": 100}) for seed in (1, 2, 3)
                        for name in ("1f1b", "zb-v")])


def test_the_command_writes_a_figure_and_refuses_options_without_effect(study, tmp_path, capsys):
    folder, out = str(written(study)), tmp_path / "a.pdf"
    given = Given({"study": [folder], "out": [str(out)], "width": ["3.25"], "height": ["0"]})
    assert study_plot.main(given) == 0 and out.read_bytes()[:5] == b"%PDF-"
    assert capsys.readouterr().out.splitlines() == ["circles: single trials", "mean and standard deviation over the trials of a point", str(out)]
    assert study_plot.main(Given(given, json=["true"])) == 0
    json_ = json.loads(capsys.readouterr().out)
    assert json_["kind"] == "bars" and json_["figure"] == str(out) and json_["series"][0]["y"] == [2.5, 2.5]
    for wrong in ({"x-scale": ["log"]}, {"baseline": ["a=b"]}, {"equivalent": ["loss=1"]}, {"confidence": ["0.9"]}, {"out": ["a.gif"]}, {"out": ["a"]},
                  {"kind": ["heatmap"], "spread": ["ci"], "group": ["run.seed"]}, {"out": [f"{tmp_path}/no/a.svg"]}):
        with pytest.raises(InputError):
            study_plot.main(Given(given | wrong))


def page_of(results, path="page.html", **options):
    page = study_report.load_page(results, TableOptions(**options), str(path))
    text = study_report.study_page(page)
    xml.dom.minidom.parseString(text[text.index("<html"):])
    return page, text


def part(text, head):
    return text.partition(f"<h2>{head}</h2>")[2].partition("<h2>")[0]


def test_a_page_has_table_curves_times_trials_and_errors(tmp_path):
    results = depths(folder=tmp_path)
    results.name, results.runs[3].settings["parallel.schedule"] = "a<b>&\"c\x01", "zb-v<x>"
    results.runs[5].state, results.runs[5].error = "failed", "error: <broken> & gone\n  at: rank 3"
    (tmp_path / "1" / "run" / "report.html").write_text("x")
    (tmp_path / "2" / "run" / "config.toml").write_text("[lr]\nwarmup = 5\n")
    (tmp_path / "1" / "run" / "config.toml").write_text("[lr]\nwarmup = 7\n")
    page, text = page_of(results, tmp_path / "pages" / "page.html", by=["parallel.schedule"])
    assert "<broken>" not in text and text == page_of(results, tmp_path / "pages" / "page.html", by=["parallel.schedule"])[1]
    assert '<a href="../1/run/report.html">1 (report)</a>' in part(text, "Trials") and '<a href="../2/run">2</a>' in part(text, "Trials")
    assert "error: &lt;broken&gt; &amp; gone\n  at: rank 3" in part(text, "What went wrong")
    assert "lr.warmup" in part(text, "Settings") and "5 (trial 2); 7 (trial 1)" in part(text, "Settings")
    assert "Zen (trials 1-18)" in part(text, "Where it is from")
    assert "Training loss by step" in part(text, "Curves") and "10 ms, bubble 25.0%" in part(text, "Where the time went")
    numbers = json.loads(re.search('id="numbers">(.*?)</script>', text)[1])
    assert numbers["table"]["groups"][0]["trials"] == [run.number for run in page.table.rows[0].group.done]
    assert numbers["steps"][0]["ms"] == pytest.approx({"computing and updating": 7.5, "schedule": 2, "transfer": 0.5})
    assert "bubble 25.0% of the recorded steps (20.0% of all)" in numbers["steps"][0]["text"]
    assert len(set(re.findall(r' id="([^"]*)"', text))) == len(re.findall(r' id="([^"]*)"', text))


def test_rows_of_a_table_that_is_too_wide_become_cards_that_name_their_columns():
    results = depths()
    for run, number in itertools.product(results.runs, range(12)):
        run.figures[f"a_long_name_of_metric_{number}"] = 1e6 * number
    _, text = page_of(results, metrics=[f"a_long_name_of_metric_{number}" for number in range(12)])
    assert '<table class="over-1190 study">' in text and '<td data-label="a_long_name_of_metric_7">7,000,000' in text
    _, text = page_of(results, metrics=["tokens_per_s"])
    assert '<table class=" study">' in text and text.count("<td ") == text.count("<td data-label=")


def test_a_page_without_runs_or_trials_is_whole():
    _, text = page_of(StudyResults("nothing"))
    assert "0 of 0" in text and "<h2>Curves" not in text and "<h2>Where the time went" not in text
    assert "No other key differs" not in text


def test_groups_with_the_same_curve_are_one_line_and_faint_runs_are_of_one_group(tmp_path):
    results = depths(folder=tmp_path)
    for run in results.runs:
        write_lines(tmp_path / str(run.number) / "run" / "metrics.jsonl", [{"step": step, "loss": 5 / step} for step in (1, 2, 3)])
    page, text = page_of(results, by=["parallel.schedule"])
    assert "1f1b, zb-v (the same values)" in part(text, "Curves")
    chart = study_page.curve_charts(page)["Training loss by step"]
    assert [one.faint for one in chart.series] == [True] * 9 + [False] and chart.series[-1].y == pytest.approx([5, 2.5, 5 / 3])


def test_the_headline_is_no_best_that_may_be_chance():
    results = depths()
    for run in results.runs:
        run.figures["tokens_per_s"] = 1000 + 7 * int(run.settings["run.seed"]) + (500 + run.number if run.settings["parallel.schedule"] == "zb-v" else 0)
    options = {"by": ["parallel.schedule"], "metrics": ["tokens_per_s"], "pair": "run.seed"}
    assert "<b>zb-v</b><span>the best mean Tokens/s: 1,5" in page_of(results, **options)[1]
    for run in results.runs:
        run.figures["tokens_per_s"] = 1000.0 + run.number % 5
    assert "<b>no clear best</b><span>Tokens/s: " in page_of(results, **options)[1]


def test_a_page_of_a_search_says_what_it_stopped():
    results = depths()
    results.metric, results.rung_steps = "loss", [2, 6]
    results.rungs = {number: [(2, 3.0 + number)] for number in range(1, 19)}
    results.rungs[2] = [(2, 5.0), (6, 2.5)]
    for run in results.runs:
        run.state = "done" if run.number == 2 else "stopped"
    _, text = page_of(results)
    assert "<b>trial 2</b><span>the best of 18, Training loss: 2.5000" in text
    assert f"<b>{100 * 40 / 108:.0f}%</b><span>of the whole grid: 40 of 108 steps" in text
    assert "trials done; the search stopped the others" in text


def test_a_page_of_a_comparison_begins_with_configs_and_bits(tmp_path):
    for name, rate in (("first", 0.1), ("second", 0.2)):
        write_lines(tmp_path / name / "metrics.jsonl", [{"step": step, "loss": rate / step} for step in (1, 2, 3)])
        (tmp_path / name / "config.toml").write_text(f"[optimizer]\nlr = {rate}\n")
    found = concertina.compare(tmp_path / "first", tmp_path / "second")
    text = study_report.comparison_page(found, str(tmp_path / "page.html"))
    xml.dom.minidom.parseString(text[text.index("<html"):])
    assert "optimizer.lr" in part(text, "Configs") and "0.2" in part(text, "Configs") and "Training loss by step" in text
    assert "loss differs from step 1 on" in part(text, "Bits") and '<a href="first">' in text


def test_a_long_curve_is_smoothed_and_small(tmp_path):
    series = Series("", list(range(1, 5001)), [1.0] * 2500 + [3.0] * 2500)
    for rates in (False, True):
        smooth = study_page._smoothed(series, rates)
        assert len(smooth.x) == 500 and smooth.y[0] == pytest.approx(1) and smooth.y[-1] == pytest.approx(3)
    short = Series("", [1, 2, 3], [1.0, math.nan, 2.0])
    assert study_page._smoothed(short, False).y == [1, 2]


def test_the_command_writes_the_page(study, tmp_path, capsys):
    folder = written(study)
    assert study_report.main(Given(GROUPS, study=[str(folder)])) == 0
    assert capsys.readouterr().out == f"{folder}/report.html\n"
    text = (folder / "report.html").read_text()
    assert "6 of 6" in text and "10 min" in text and "study.toml" in text
    assert study_report.main(Given(GROUPS, study=[str(folder)], out=[f"{tmp_path}/p.html"], json=["true"])) == 0
    assert json.loads(capsys.readouterr().out)["report"] == f"{tmp_path}/p.html"
    with pytest.raises(InputError, match="--alpha has no effect"):
        study_report.main(Given(GROUPS, study=[str(folder)], alpha=["0.1"]))


@pytest.mark.parametrize("library,module", [("matplotlib", "study_plot"), ("jinja2", "study_report")])
def test_a_missing_library_is_named_with_the_command_that_installs_it(library, module):
    code = f"import sys; sys.modules['{library}'] = None; from concertina.errors import library; library('concertina.{module}')"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"the library {library} is not installed for this Python\n  try: python3 -m pip install numpy" in said.stderr and "jinja2" in said.stderr
