"""The series of a study's charts: the runs and columns to draw, and the mean and spread of each point.

Missing or non-finite values, trials that are not done, and means over different measures are not included."""
import dataclasses
import math
import typing

import numpy as np

from .chart import COLUMN_INCHES, Kind, Series
from .errors import InputError
from .measures import default_metrics, why_incomparable
from .names import Metric, metric_named
from .results import SEED, Cell, Claim, Group, RunSummary, Runs, StudyResults, cell_text, group_label, groups_of, metrics_of
from .run_log import Curve, read_log
from .statistic import summarize

SPREADS = ("sd", "ci", "none")
CONFIDENCE = 0.95
_MOST_BARS = 36  # in one chart; more become a heat map


@dataclasses.dataclass
class PlotOptions:
    """The contents of a chart; columns and "COLUMN=VALUE"s are as on the command line."""
    kind: str = ""  # of KINDS; empty: derived from x
    x: str = ""  # a column, or "step" for curves of the runs; empty: the first numeric axis, otherwise the first axis
    y: str = ""  # empty: the first of default_metrics()
    group: list[str] = dataclasses.field(default_factory=list)  # empty: all other axes but run.seed
    where: list[str] = dataclasses.field(default_factory=list)
    spread: str = ""  # around means: sd (default), ci (interval for the mean) or none
    confidence: float | None = None  # of intervals; default 0.95
    mixed: bool = False
    stopped: bool = False  # include trials that a search stopped
    baseline: list[str] = dataclasses.field(default_factory=list)  # of a front
    claim: Claim | None = None  # of a front; None: that of the study's file
    title: str = ""
    width: float = COLUMN_INCHES
    height: float = 0  # inches; 0: derived from the width
    x_scale: str = ""  # linear, log or log2; empty: derived from the values of x
    y_scale: str = ""


@dataclasses.dataclass
class Shape:
    """The runs, columns and form of a chart. `chosen` includes runs that are not done."""
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
        return self.options.confidence or CONFIDENCE

    def groups(self) -> list[Group]:
        groups = (group for group in groups_of(self.chosen, self.group) if group.done)
        return sorted(groups, key=lambda group: group.done[0].number)

    def name(self, group: Group) -> str:
        """The name of a series; a single series has no name and needs no legend."""
        return group_label(self.group, group.values) if self.group else ""

    def point(self, runs: Runs, metric: Metric) -> tuple[float, float, float]:
        """The mean and the ends of its spread; NaN if absent."""
        summary = summarize([] if why_incomparable(runs, metric.name) else metrics_of(runs, metric.name), self.confidence)
        if not summary.n:
            return math.nan, math.nan, math.nan
        half = {"sd": summary.sd, "ci": summary.half_width, "none": None}[self.spread]
        mean, half = metric.factor * summary.mean, math.nan if half is None else metric.factor * half
        return mean, mean - half, mean + half

    def series(self, name: str, xs: list[Cell], runs: Runs) -> Series:
        """The points for these runs, at these values of x."""
        factor = metric_named(self.x).factor
        mean, low, high = map(list, zip(*(self.point([run for run in runs if run.cell(self.x) == x], self.y) for x in xs)))
        drawn = any(map(math.isfinite, low))
        return Series(name, [factor * x if isinstance(x, float) and self.kind == "lines" else cell_text(x) for x in xs], mean,
                      low if drawn else [], high if drawn else [])


def cells_in(runs: typing.Iterable[RunSummary], column: str) -> list[Cell]:
    """The distinct cells of a column: sorted if all are numbers, otherwise in run order."""
    cells = list(dict.fromkeys(run.cell(column) for run in runs))
    return sorted(cells) if all(isinstance(cell, float) for cell in cells) else cells  # type: ignore[type-var]


def numbers_in(runs: typing.Iterable[RunSummary], column: str) -> list[float]:
    """The distinct numbers of a column, sorted."""
    return sorted({cell for run in runs if isinstance(cell := run.cell(column), float)})


def _all_numbers(runs: Runs, column: str) -> bool:
    return all(isinstance(run.cell(column), float) for run in runs)


def _lines(shape: Shape) -> list[Series]:
    """A line has a gap where a group has trials but none is done."""
    if not _all_numbers(shape.runs, shape.x):
        raise InputError(f"'{shape.x}' has values that are not numbers", "--x", "--kind bars, or a numeric axis")
    found = []
    for group in shape.groups():
        found.append(shape.series(shape.name(group), list(numbers_in(group.done + group.others, shape.x)), group.done))
        found[-1].joined = not why_incomparable(group.done, shape.y.name)
    return found


def mean_curve(curves: list[Curve], confidence: float | None) -> Series:
    """The mean over the steps that all curves have, with its interval or (if `confidence` is None) standard deviation.

    A non-finite value leaves a gap, since the mean of the others would hide it."""
    steps = sorted(set.intersection(*map(set, curves))) if curves else []
    values = np.array([[curve[step] for step in steps] for curve in curves])
    if not steps or len(curves) == 1:
        return Series("", steps, values.ravel().tolist())
    with np.errstate(invalid="ignore"):
        moved = values - values[0]
        mean, half = values[0] + moved.mean(axis=0), moved.std(axis=0, ddof=1)
    mean[~np.isfinite(mean)] = math.nan
    if confidence is not None:
        unit = summarize([float(at) for at in range(len(curves))], confidence)  # the same for any sample of this size
        half *= (unit.half_width or 0) / (unit.sd or 1)
    return Series("", steps, mean.tolist(), (mean - half).tolist(), (mean + half).tolist())


def curves_of(shape: Shape) -> list[Series]:
    """Mean curves over steps, from the runs' logs."""
    scaled = lambda values: [shape.y.factor * value for value in values]  # noqa: E731
    found = []
    for group in shape.groups():
        curves = [] if why_incomparable(group.done, shape.y.name) else [read_log(run.directory).curve(shape.y.name) for run in group.done]
        mean = mean_curve(curves, shape.confidence if shape.spread == "ci" else None)
        low, high = (scaled(end) if shape.spread != "none" else [] for end in (mean.low, mean.high))
        found.append(Series(shape.name(group), mean.x, scaled(mean.y), low, high))
    return found


def _bars(shape: Shape) -> list[Series]:
    xs, found = cells_in(shape.runs, shape.x), []
    for group in shape.groups():
        series = shape.series(shape.name(group), xs, group.done)
        for x in xs:
            values = [shape.y.factor * value for value in metrics_of((run for run in group.done if run.cell(shape.x) == x), shape.y.name)]
            series.points.append(values if len(values) > 1 else [])
        found.append(series)
    return found


def _heat_map(shape: Shape) -> list[Series]:
    if len(shape.group) != 1:
        raise InputError("a heat map needs one axis for its rows", "--group", "--group COLUMN and --x COLUMN; currently --x is "
                         f"{shape.x} and --group is {','.join(shape.group) or 'nothing'}")
    xs, column = cells_in(shape.runs, shape.x), shape.group[0]
    rows = [shape.series(cell_text(row), xs, [run for run in shape.runs if run.cell(column) == row]) for row in cells_in(shape.runs, column)]
    return [dataclasses.replace(row, low=[], high=[]) for row in rows]


def _points(shape: Shape) -> list[Series]:
    """A point for each group by all axes; a series for each value of --group."""
    found, by = [], shape.options.group
    for group in groups_of(shape.runs, by):
        parts = groups_of(group.done, shape.axes)
        x, y = ([shape.point(part.done, metric)[0] for part in parts] for metric in (metric_named(shape.x), shape.y))
        found.append(Series(group_label(by, group.values) if by else "", x, y, names=[group_label(shape.axes, part.values) for part in parts]))
    return found


DRAWN: dict[str, tuple[Kind, typing.Callable[[Shape], list[Series]]]] = {
    "lines": ("lines", _lines), "bars": ("bars", _bars), "heatmap": ("heatmap", _heat_map), "pareto": ("points", _points)}


def _default_x(shape: Shape) -> str:
    if shape.options.kind == "pareto":
        return "peak_bytes"
    if not shape.axes:
        also = "--stopped to include trials that the search stopped, or " if any(run.state == "stopped" for run in shape.chosen) else ""
        raise InputError("only the seed differs between these trials", "--x", f"{also}--x step for curves over the steps of the runs")
    numbers = [axis for axis in shape.axes if _all_numbers(shape.runs, axis)]
    return shape.axes[0] if shape.options.kind in ("bars", "heatmap") or not numbers else numbers[0]


def _default_kind(shape: Shape) -> str:
    if shape.x == "step":
        return "lines"
    if _all_numbers(shape.runs, shape.x):
        return "lines" if any(shape.x in run.settings for run in shape.runs) else "pareto"
    bars = len(cells_in(shape.runs, shape.x)) * len(groups_of(shape.runs, shape.group))
    return "heatmap" if bars > _MOST_BARS and len(shape.group) == 1 else "bars"


def _default_y(shape: Shape) -> Metric:
    options, results = shape.options, shape.results
    if options.y:
        return metric_named(options.y) if options.x == "step" else results.metric_of(options.y)
    if options.kind == "pareto" and results.has("tokens_per_s"):
        return results.metric_of("tokens_per_s")
    if not (metrics := default_metrics(results)):
        raise InputError("the study has no metrics", "--y", "--y COLUMN")
    return metrics[0]


def shape_of(results: StudyResults, options: PlotOptions) -> Shape:
    chosen = results.chosen(options.where)
    shape = Shape(results, options, chosen, [run for run in chosen if run.state == "done"])
    shape.axes = [axis for axis in results.axes if axis != SEED and len(cells_in(shape.runs, axis)) > 1]
    shape.y = _default_y(shape)
    shape.x = options.x or _default_x(shape)
    for column, option in [(shape.x, "--x")] * (shape.x != "step") + [(column, "--group") for column in options.group]:
        results.require(column, option)
    shape.group = options.group or [axis for axis in shape.axes if axis != shape.x]
    if options.stopped and shape.x != "step" and len(cells_in(results.runs, "steps")) > 1:
        shape.group = [*shape.group, "steps"]  # metrics of stopped trials cover fewer steps: a separate line
    shape.kind = options.kind or _default_kind(shape)
    return shape
