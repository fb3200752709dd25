"""`concertina study plot`: a metric over an axis, a line or bar for each group, with mean and spread over the rest.

    plot = concertina.plot("studies/depths", y="tokens_per_s")
    plot.figure().axes[0].set_title("Throughput")   # matplotlib; plot.frame() has the numbers

The same results give the same chart, whatever order trials finished in. Trials that are not done, values that are missing or not finite,
and means over unlike measures are not drawn; `notes` say so.
"""
from __future__ import annotations

import dataclasses
import math
import pathlib
import typing

from .command import print_whole, replace_file, require_output
from .errors import InputError, library, require_word
from .measures import default_metrics, unlike_notes, why_unlike
from .names import Metric, metric_named
from .results import SEED, Cell, Claim, Group, RunSummary, Runs, StudyResults, cell_text, figures_of, group_label, groups_of
from .run_log import Curve, read_log
from .run_set import study_results
from .statistic import summarize
from .study_claims import claim_lines
from .study_folder import write_json
from .study_notes import provenance_notes
from .study_power import claim_of
from .study_table import StudyTable, TableOptions, make_table
from .texts import trials_text

from .charts import COLUMN_INCHES, FORMATS, Axis, Chart, Kind, Series, draw, save  # isort: skip  (needs matplotlib)

if typing.TYPE_CHECKING:
    import matplotlib.figure
    import pandas

    from .subcommands import Options

KINDS = ("lines", "bars", "heatmap", "pareto", "front")
SPREADS = ("sd", "ci", "none")
_CONFIDENCE = 0.95
_MOST_BARS = 36  # of one chart, before it is a heat map
_WIDE_RANGE = 8.0  # of values on a logarithmic axis, at least


@dataclasses.dataclass
class PlotOptions:
    """What a chart shows; columns and "COLUMN=VALUE"s are as on the command line."""
    kind: str = ""  # of KINDS; empty: by x
    x: str = ""  # a column, or "step" for curves of the runs; empty: the first axis of numbers, else the first axis
    y: str = ""  # empty: the first of default_metrics()
    group: list[str] = dataclasses.field(default_factory=list)  # none: all other axes but run.seed
    where: list[str] = dataclasses.field(default_factory=list)
    spread: str = ""  # around means: sd (empty), ci (interval of the mean) or none
    confidence: float | None = None  # of intervals; None: 0.95
    mixed: bool = False
    stopped: bool = False  # trials that a search stopped, too
    baseline: list[str] = dataclasses.field(default_factory=list)  # of a front
    claim: Claim | None = None  # of a front; none: that of the study's file
    title: str = ""
    width: float = COLUMN_INCHES
    height: float = 0  # inches; 0: what suits the width
    x_scale: str = ""  # linear, log or log2; empty: as the values of x are spread
    y_scale: str = ""


@dataclasses.dataclass
class StudyPlot:
    kind: str
    chart: Chart
    notes: list[str]

    def figure(self) -> matplotlib.figure.Figure:
        """A new matplotlib figure, to save or to restyle."""
        return draw(self.chart)

    def frame(self) -> pandas.DataFrame:
        """A row for each value that is drawn: series, x, y, and the ends of what surrounds it."""
        rows = []
        for series in self.chart.series:
            columns = {key: values for key, values in _json_of(series).items() if key not in ("name", "points") and values}
            rows += [{"series": series.name, **dict(zip(columns, values))} for values in zip(*columns.values())]
        frame: pandas.DataFrame = library("pandas").DataFrame(rows)
        return frame.rename(columns={"names": "name"})

    def json(self) -> dict[str, typing.Any]:
        if self.chart.kind != "points":
            return {"kind": self.kind, "series": [_json_of(series) for series in self.chart.series], "notes": self.notes}
        points: list[dict[str, typing.Any]] = []
        for series in self.chart.series:
            for at, name in enumerate(series.names):
                ends = {key: values[at] for key, values in (("x_low", series.x_low), ("x_high", series.x_high), ("y_low", series.low),
                                                            ("y_high", series.high)) if values and not math.isnan(values[at])}
                points.append({"name": name, "group": series.name, "x": series.x[at], "y": series.y[at], **ends})
        return {"kind": self.kind, "series": points, "notes": self.notes}

    def _repr_svg_(self) -> str:
        return save(self.figure(), ".svg").decode()


def _json_of(series: Series) -> dict[str, typing.Any]:
    json = {"name": series.name, "x": series.x, "y": series.y, "low": series.low, "high": series.high}
    more = {"x_low": series.x_low, "x_high": series.x_high, "points": series.points, "names": series.names}
    return json | {key: values for key, values in more.items() if values}


@dataclasses.dataclass
class _Shape:
    """The runs and columns that a chart draws, and how. `chosen` has those that are not done as well."""
    results: StudyResults
    options: PlotOptions
    chosen: Runs
    runs: Runs
    axes: list[str] = dataclasses.field(default_factory=list)  # those that differ, without seeds
    kind: str = ""
    x: str = ""
    y: Metric = metric_named("")
    group: list[str] = dataclasses.field(default_factory=list)

    @property
    def spread(self) -> str:
        return self.options.spread or SPREADS[0]

    @property
    def confidence(self) -> float:
        return self.options.confidence or _CONFIDENCE

    def groups(self) -> list[Group]:
        groups = (group for group in groups_of(self.chosen, self.group) if group.done)
        return sorted(groups, key=lambda group: group.done[0].number)

    def name(self, group: Group) -> str:
        """A single nameless series needs no legend."""
        return group_label(self.group, group.values) if self.group else ""

    def point(self, runs: Runs, metric: Metric) -> tuple[float, float, float]:
        """The mean, and the ends of what surrounds it; NaN where there is none."""
        column, factor, nothing = metric.name, metric.factor, math.nan
        values = figures_of(runs, column)
        summary = summarize([] if why_unlike(runs, column) else values, self.confidence)
        if not summary.n:
            return nothing, nothing, nothing
        half = {"sd": summary.sd, "ci": summary.half_width, "none": None}[self.spread]
        mean = factor * summary.mean
        return (mean, nothing, nothing) if half is None else (mean, mean - factor * half, mean + factor * half)

    def series(self, name: str, xs: list[Cell], runs: Runs) -> Series:
        """The points of runs at these values of x."""
        factor = metric_named(self.x).factor
        points = [self.point([run for run in runs if run.cell(self.x) == x], self.y) for x in xs]
        mean, low, high = (list(values) for values in zip(*points))
        drawn = any(map(math.isfinite, low))
        return Series(name, [factor * x if isinstance(x, float) and self.kind == "lines" else cell_text(x) for x in xs], mean,
                      low if drawn else [], high if drawn else [])


def _cells_in(runs: typing.Iterable[RunSummary], column: str) -> list[Cell]:
    """The cells of a column, each once: numbers by size if all are, else in the order of runs."""
    cells = list(dict.fromkeys(run.cell(column) for run in runs))
    return list(sorted(_numbers_in(runs, column))) if all(isinstance(cell, float) for cell in cells) else cells


def _numbers_in(runs: typing.Iterable[RunSummary], column: str) -> set[float]:
    return {cell for run in runs if isinstance(cell := run.cell(column), float)}


def _all_numbers(runs: Runs, column: str) -> bool:
    return all(isinstance(run.cell(column), float) for run in runs)


def _lines(shape: _Shape) -> list[Series]:
    """Where a group has trials at an x but none of them is done, its line has a gap."""
    if not _all_numbers(shape.runs, shape.x):
        raise InputError(f"'{shape.x}' has values that are not numbers", "--x", "--kind bars; or an axis of numbers")
    found = []
    for group in shape.groups():
        xs: list[Cell] = list(sorted(_numbers_in(group.done + group.others, shape.x)))
        found.append(shape.series(shape.name(group), xs, group.done))
        found[-1].joined = not why_unlike(group.done, shape.y.name)
    return found


def mean_curve(curves: list[Curve], confidence: float | None) -> Series:
    """The mean of the steps that all curves have, within its interval or (None) their standard deviation.

    One value that is not finite makes a gap: the mean of the others would hide it.
    """
    import numpy as np
    steps = sorted(set.intersection(*map(set, curves))) if curves else []
    if not steps:
        return Series("", [], [])
    values = np.array([[curve[step] for step in steps] for curve in curves])
    with np.errstate(invalid="ignore"):
        moved = values - values[0]
        mean = values[0] + moved.mean(axis=0)
        mean[~np.isfinite(mean)] = math.nan
        if len(curves) == 1:
            return Series("", steps, mean.tolist())
        unit = summarize([float(at) for at in range(len(curves))], confidence or 0.95)  # half-width and deviation of any sample this large
        factor = 1.0 if confidence is None else (unit.half_width or 0) / (unit.sd or 1)
        half = factor * moved.std(axis=0, ddof=1)
    return Series("", steps, mean.tolist(), (mean - half).tolist(), (mean + half).tolist())


def _curves(shape: _Shape) -> list[Series]:
    """Mean curves over steps, from the logs of the runs."""
    factor = shape.y.factor
    found = []
    for group in shape.groups():
        curves = [] if why_unlike(group.done, shape.y.name) else [read_log(run.directory).curve(shape.y.name) for run in group.done]
        series = mean_curve(curves, shape.confidence if shape.spread == "ci" else None)
        low, high = ([factor * value for value in end] if shape.spread != "none" else [] for end in (series.low, series.high))
        found.append(Series(shape.name(group), series.x, [factor * value for value in series.y], low, high))
    return found


def _bars(shape: _Shape) -> list[Series]:
    xs, factor = _cells_in(shape.runs, shape.x), shape.y.factor
    found = []
    for group in shape.groups():
        series = shape.series(shape.name(group), xs, group.done)
        for x in xs:
            runs = [run for run in group.done if run.cell(shape.x) == x]
            values = [factor * value for value in figures_of(runs, shape.y.name)]
            series.points.append(values if len(values) > 1 else [])
        found.append(series)
    return found


def _heat_map(shape: _Shape) -> list[Series]:
    if len(shape.group) != 1:
        raise InputError("a heat map has one axis for its rows", "--group", "--group COLUMN, --x COLUMN; now --x is "
                         f"{shape.x}, --group is {','.join(shape.group) or 'nothing'}")
    xs, column = _cells_in(shape.runs, shape.x), shape.group[0]
    rows = [shape.series(cell_text(row), xs, [run for run in shape.runs if run.cell(column) == row]) for row in _cells_in(shape.runs, column)]
    return [dataclasses.replace(row, low=[], high=[]) for row in rows]


def _points(shape: _Shape) -> list[Series]:
    """A point for each group of all axes; a series for each value of --group."""
    found, metrics = [], (metric_named(shape.x), shape.y)
    for group in groups_of(shape.runs, shape.options.group):
        parts = groups_of(group.done, shape.axes)
        x, y = ([shape.point(part.done, metric)[0] for part in parts] for metric in metrics)
        name = group_label(shape.options.group, group.values) if shape.options.group else ""
        found.append(Series(name, x, y, names=[group_label(shape.axes, part.values) for part in parts]))
    return found


def _default_x(shape: _Shape) -> str:
    if shape.options.kind == "pareto":
        return "peak_bytes"
    if not shape.axes:
        also = "--stopped, for the trials that the search stopped; or " if any(run.state == "stopped" for run in shape.chosen) else ""
        raise InputError("nothing but the seed differs between these trials", "--x", f"{also}--x step, for a curve over the steps of the runs")
    numbers = [axis for axis in shape.axes if _all_numbers(shape.runs, axis)]
    return shape.axes[0] if shape.options.kind in ("bars", "heatmap") or not numbers else numbers[0]


def _default_kind(shape: _Shape) -> str:
    if shape.x == "step":
        return "lines"
    if _all_numbers(shape.runs, shape.x):
        return "lines" if any(shape.x in run.settings for run in shape.runs) else "pareto"
    bars = len(_cells_in(shape.runs, shape.x)) * len(groups_of(shape.runs, shape.group))
    return "heatmap" if bars > _MOST_BARS and len(shape.group) == 1 else "bars"


def _default_y(shape: _Shape) -> Metric:
    options, results = shape.options, shape.results
    if options.y:
        return metric_named(options.y) if options.x == "step" else results.metric_of(options.y)
    metrics = default_metrics(results)
    if not metrics:
        raise InputError("the study has no metrics", "--y", "--y COLUMN")
    return results.metric_of("tokens_per_s") if options.kind == "pareto" and results.has("tokens_per_s") else metrics[0]


def _shape(results: StudyResults, options: PlotOptions) -> _Shape:
    chosen = results.chosen(options.where)
    shape = _Shape(results, options, chosen, [run for run in chosen if run.state == "done"])
    shape.axes = [axis for axis in results.axes if axis != SEED and len(_cells_in(shape.runs, axis)) > 1]
    shape.y = _default_y(shape)
    shape.x = options.x or _default_x(shape)
    for column, option in [(shape.x, "--x")] * (shape.x != "step") + [(column, "--group") for column in options.group]:
        results.require(column, option)
    shape.group = options.group or [axis for axis in shape.axes if axis != shape.x]
    if options.stopped and shape.x != "step" and len(_cells_in(results.runs, "steps")) > 1:
        shape.group = [*shape.group, "steps"]  # metrics of trials that were stopped are of fewer steps: another line
    shape.kind = options.kind or _default_kind(shape)
    return shape


def _scale_for(values: list[float]) -> str:
    """Powers of two have their own scale; other values are drawn by their logarithm if that spreads them more evenly."""
    if len(values) < 2 or not values[0] > 0:
        return "linear"
    logarithms = [math.log2(value) for value in values]
    if all(value >= 0 and value.is_integer() for value in logarithms):
        return "log2"

    def unevenness(of: list[float]) -> float:
        return max(abs((value - of[0]) / (of[-1] - of[0]) - at / (len(of) - 1)) for at, value in enumerate(of))

    return "log" if values[-1] >= _WIDE_RANGE * values[0] and unevenness(logarithms) < unevenness(values) else "linear"


def _notes(shape: _Shape, unlike: list[str]) -> list[str]:
    results, options = shape.results, shape.options
    notes = [*results.notes, *provenance_notes(shape.runs, results, options.mixed), *unlike]
    if len(shape.runs) < len(shape.chosen):
        stopped = any(run.state == "stopped" for run in shape.chosen)
        notes.append(f"{len(shape.runs)} of {len(shape.chosen)} trials are done; the others are not drawn"
                     + "; --stopped draws those that the search stopped" * stopped)
    for metric, scale in ((shape.x, options.x_scale), (shape.y.name, options.y_scale)):
        if shape.x == "step" or metric == shape.x and shape.kind != "pareto":
            continue
        values = {run.number: run.number_in(metric) for run in shape.runs}
        if lost := [number for number, value in values.items() if value is None or not math.isfinite(value)]:
            notes.append(f"{metric} has no finite value in {trials_text(lost)}: not drawn")
        if scale.startswith("log") and (lost := [number for number, value in values.items() if value is not None and value <= 0]):
            notes.append(f"{metric} is not above 0 in {trials_text(lost)}: not drawn on a logarithmic axis")
    notes += ["circles: single trials"] * (shape.kind == "bars")
    if shape.spread != "none" and shape.kind in ("lines", "bars"):
        notes.append("mean and standard deviation over the trials of a point" if shape.spread == "sd" else
                     f"mean and its {100 * shape.confidence:.4g}% interval over the trials of a point")
    return notes


def _front_chart(table: StudyTable) -> Chart:
    front, claim = table.front, table.claim
    assert front is not None
    name, gain, nothing = front.change, front.gain, math.nan

    def column(key: str, factor: float = 1.0) -> list[float]:
        return [factor * value if (value := getattr(point, key)) is not None else nothing for point in points]

    points = [point for point in front.points if point.gain is not None and point.change is not None]
    series = Series("", column("gain"), column("change", name.factor), column("change_ci_low", name.factor),
                    column("change_ci_high", name.factor), column("gain_ci_low"), column("gain_ci_high"), names=[point.name for point in points])
    what = "speed-up" if gain.better == "lower" else "gain"
    margins = [sign * name.factor * claim.margin for sign in (-1, 1)] if front.claimed and claim else []
    return Chart("points", Axis(f"{what} of {gain.label}, {100 * front.confidence:.4g}% intervals", better="higher"),
                 Axis(f"change of {name.label}, {100 * front.change_confidence:.4g}% intervals", name.unit, better=name.better,
                      levels=[0.0, *margins]), [series])


def _plot_front(results: StudyResults, options: PlotOptions) -> StudyPlot:
    claim = options.claim or results.claim
    front = [options.x or "train_s", options.y or (claim.metric if claim else "validation_loss")]
    table = make_table(results, TableOptions(front, options.group, options.baseline, confidence=options.confidence or _CONFIDENCE, where=options.where,
                                             mixed=options.mixed, claim=options.claim, front=front))
    return StudyPlot("front", _front_chart(table), claim_lines(table) + table.notes)


_DRAWN: dict[str, tuple[Kind, typing.Callable[[_Shape], list[Series]]]] = {
    "lines": ("lines", _lines), "bars": ("bars", _bars), "heatmap": ("heatmap", _heat_map), "pareto": ("points", _points)}


def _plot_shape(shape: _Shape) -> StudyPlot:
    x, y = shape.results.metric_of(shape.x) if shape.kind == "pareto" else metric_named(shape.x), shape.y
    unlike = unlike_notes(shape.runs, [x, y])
    by_step = shape.kind == "lines" and shape.x == "step"
    drawn, series_of = ("curves", _curves) if by_step else _DRAWN[shape.kind]
    chart = Chart(drawn, Axis(x.label, x.unit), Axis(y.label, y.unit), series_of(shape), note="; ".join(unlike))
    better = None if unlike else y.better
    if shape.kind == "heatmap":
        chart.y, chart.value = Axis(metric_named(shape.group[0]).label), Axis(y.label, y.unit, better=better)
    if shape.kind == "pareto" and not unlike:
        chart.x.better, chart.y.better = x.better, better
    if shape.kind == "lines" and not by_step:
        chart.x.scale = _scale_for(sorted(_numbers_in(shape.runs, shape.x)))
    return StudyPlot(shape.kind, chart, _notes(shape, unlike))


def _require_effect(options: PlotOptions, kind: str) -> None:
    """InputError for an option that has no effect on a chart of this kind."""
    for option, value, kinds in (("--x-scale", options.x_scale, ("heatmap", "bars")), ("--y-scale", options.y_scale, ("heatmap",)),
                                 ("--spread", options.spread, ("heatmap", "pareto", "front")),
                                 ("--confidence", options.confidence, ("heatmap", "pareto"))):
        if value and kind in kinds:
            raise InputError(f"{option} has no effect with --kind {kind}", option, f"leave out {option}, or --kind {kind}")
    for option, given, needed, there in (("--baseline", options.baseline, "--kind front", kind == "front"),
                                         ("--equivalent", options.claim, "--kind front", kind == "front"),
                                         ("--confidence", options.confidence, "--spread ci", kind == "front" or options.spread == "ci")):
        if given and not there:
            raise InputError(f"{option} has no effect without {needed}", option, f"{needed} as well, or leave out {option}")


def plot_study(results: StudyResults, options: PlotOptions) -> StudyPlot:
    """The chart of results. InputError for unknown columns, and where there is nothing to draw.

    Without a kind it has curves where x is "step", points where x is a metric, lines where its values are numbers, and else bars, or a heat
    map where there would be more bars than can be told apart. A front is that of make_table(), of x and y.
    """
    for word, words, option in ((options.kind or KINDS[0], KINDS, "--kind"), (options.spread or SPREADS[0], SPREADS, "--spread")):
        require_word(word, words, f"'{word}' is not a {'kind of chart' if option == '--kind' else 'spread'}", option)
    if options.stopped:
        results.include_stopped()
    if not any(run.state == "done" for run in results.chosen(options.where)):
        raise InputError("no trial is done", results.directory or results.name, "concertina study run")
    plot = _plot_front(results, options) if options.kind == "front" else _plot_shape(_shape(results, options))
    _require_effect(options, plot.kind)
    plot.chart.title, plot.chart.width, plot.chart.height = options.title, options.width, options.height
    plot.chart.x.scale, plot.chart.y.scale = options.x_scale or plot.chart.x.scale, options.y_scale or plot.chart.y.scale
    return plot


def plot(*of: str | pathlib.Path | StudyResults, **options: typing.Any) -> StudyPlot:
    """The chart of a study's folder, of runs, or of results; `options`: those of PlotOptions."""
    results = of[0] if isinstance(of[0], StudyResults) else study_results(*(str(folder) for folder in of))
    return plot_study(results, PlotOptions(**options))


def main(options: Options) -> int:
    """The program must not pass the defaults of --spread and --confidence, which would have no effect on some charts."""
    path = options.text("out")
    ending = pathlib.Path(path).suffix.lower()
    why = f"'{ending}' is not a kind of figure" if ending else "the file of a figure needs an ending that names its kind"
    require_word(ending, FORMATS, why, path)
    require_output(path, "--out")
    words = {name.replace("-", "_"): options.text(name) for name in ("kind", "x", "y", "title", "spread", "x-scale", "y-scale")}
    numbers = {name: options.number(name) for name in ("confidence", "width", "height") if name in options}
    lists = {name: options.all(name) for name in ("group", "where", "baseline")}
    flags = {name: name in options for name in ("mixed", "stopped")}
    given: dict[str, typing.Any] = words | numbers | lists | flags
    claim = claim_of(options.text("equivalent")) if "equivalent" in options else None
    chosen = PlotOptions(**given, claim=claim)
    plotted = plot_study(study_results(*options.all("study")), chosen)
    replace_file(path, save(plotted.figure(), ending))
    text = "".join(f"{note}\n" for note in plotted.notes) + f"{path}\n"
    print_whole(write_json(plotted.json() | {"figure": path}) if "json" in options else text)
    return 0
