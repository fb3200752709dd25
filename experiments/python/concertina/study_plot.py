"""`concertina study plot`: a metric over an axis, with a line or bar per group, and the mean and spread over the rest.

    plot = concertina.plot("studies/depths", y="tokens_per_s")
    plot.figure().axes[0].set_title("Throughput")   # matplotlib; plot.frame() has the numbers

Equal results give equal charts, in whatever order trials finished. Missing or non-finite values, trials that are not done, and means over
different measures are not drawn; `notes` lists them.
"""
import dataclasses
import math
import pathlib
import typing

from matplotlib.figure import Figure

from .chart import Axis, Chart, Series, draw, save
from .errors import InputError, library, require_word
from .measures import provenance_notes, incomparable_notes
from .names import metric_named, trials_text
from .results import StudyResults, study_results
from .study_claims import claim_lines
from .study_series import CONFIDENCE, DRAWN, SPREADS, PlotOptions, Shape, curves_of, numbers_in, shape_of
from .study_table import StudyTable, TableOptions, make_table

KINDS = ("lines", "bars", "heatmap", "pareto", "front")
_WIDE_RANGE = 8.0  # minimum ratio of values for a logarithmic axis


@dataclasses.dataclass
class StudyPlot:
    kind: str
    chart: Chart
    notes: list[str]

    def figure(self) -> Figure:
        """A new matplotlib figure, to save or restyle."""
        return draw(self.chart)

    def frame(self) -> typing.Any:
        """A DataFrame with a row for each drawn value: series, x, y, and the ends of its spread."""
        pandas = library("pandas")
        frames = [pandas.DataFrame({"series": series.name, **{key: values for key, values in _json_of(series).items()
                                                              if values and key not in ("name", "points")}}) for series in self.chart.series]
        return pandas.concat(frames, ignore_index=True).rename(columns={"names": "name"}) if frames else pandas.DataFrame()

    def json(self) -> dict[str, typing.Any]:
        if self.chart.kind != "points":
            return {"kind": self.kind, "series": [_json_of(series) for series in self.chart.series], "notes": self.notes}
        points = [{"name": name, "group": series.name, "x": series.x[at], "y": series.y[at],
                   **{key: values[at] for key, values in (("x_low", series.x_low), ("x_high", series.x_high), ("y_low", series.low),
                                                          ("y_high", series.high)) if values and not math.isnan(values[at])}}
                  for series in self.chart.series for at, name in enumerate(series.names)]
        return {"kind": self.kind, "series": points, "notes": self.notes}

    def _repr_svg_(self) -> str:
        return save(self.figure(), ".svg").decode()


def _json_of(series: Series) -> dict[str, typing.Any]:
    optional = ("x_low", "x_high", "points", "names")
    return {key: value for key, value in vars(series).items() if key not in ("joined", "look") and (value or key not in optional)}


def _scale_for(values: list[float]) -> str:
    """Powers of two use log2; other values use a logarithmic axis if it spreads them more evenly."""
    if len(values) < 2 or not values[0] > 0:
        return "linear"
    logarithms = [math.log2(value) for value in values]
    if all(value >= 0 and value.is_integer() for value in logarithms):
        return "log2"

    def unevenness(of: list[float]) -> float:
        return max(abs((value - of[0]) / (of[-1] - of[0]) - at / (len(of) - 1)) for at, value in enumerate(of))

    return "log" if values[-1] >= _WIDE_RANGE * values[0] and unevenness(logarithms) < unevenness(values) else "linear"


def _notes(shape: Shape, unlike: list[str]) -> list[str]:
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
                     f"mean and {100 * shape.confidence:.4g}% interval over the trials of a point")
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
    table = make_table(results, TableOptions(front, options.group, options.baseline, confidence=options.confidence or CONFIDENCE, where=options.where,
                                             mixed=options.mixed, claim=options.claim, front=front))
    return StudyPlot("front", _front_chart(table), claim_lines(table) + table.notes)


def _plot_shape(shape: Shape) -> StudyPlot:
    x, y = shape.results.metric_of(shape.x) if shape.kind == "pareto" else metric_named(shape.x), shape.y
    unlike = incomparable_notes(shape.runs, [x, y])
    by_step = shape.kind == "lines" and shape.x == "step"
    drawn, series_of = ("curves", curves_of) if by_step else DRAWN[shape.kind]
    chart = Chart(drawn, Axis(x.label, x.unit), Axis(y.label, y.unit), series_of(shape), note="; ".join(unlike))
    better = None if unlike else y.better
    if shape.kind == "heatmap":
        chart.y, chart.value = Axis(metric_named(shape.group[0]).label), Axis(y.label, y.unit, better=better)
    if shape.kind == "pareto" and not unlike:
        chart.x.better, chart.y.better = x.better, better
    if shape.kind == "lines" and not by_step:
        chart.x.scale = _scale_for(numbers_in(shape.runs, shape.x))
    return StudyPlot(shape.kind, chart, _notes(shape, unlike))


def _require_effect(options: PlotOptions, kind: str) -> None:
    """Raises InputError for an option that has no effect on a chart of this kind."""
    front = kind == "front"
    for name, kinds in (("x_scale", ("heatmap", "bars")), ("y_scale", ("heatmap",)), ("spread", ("heatmap", "pareto", "front")),
                        ("confidence", ("heatmap", "pareto"))):
        if kind in kinds and getattr(options, name):
            option = f"--{name.replace('_', '-')}"
            raise InputError(f"{option} has no effect with --kind {kind}", option, f"remove {option} or --kind {kind}")
    for option, given, needed, there in (("--baseline", options.baseline, "--kind front", front), ("--equivalent", options.claim, "--kind front", front),
                                         ("--confidence", options.confidence, "--spread ci", front or options.spread == "ci")):
        if given and not there:
            raise InputError(f"{option} has no effect without {needed}", option, f"add {needed}, or remove {option}")


def plot_study(results: StudyResults, options: PlotOptions) -> StudyPlot:
    """The chart of results. Raises InputError for unknown columns and if there is nothing to draw.

    The default kind is curves if x is "step", points if x is a metric, lines if the values of x are numbers, and otherwise bars, or a heat
    map for too many bars. A front is computed by make_table() from x and y."""
    require_word(options.kind or KINDS[0], KINDS, f"'{options.kind}' is not a kind of chart", "--kind")
    require_word(options.spread or SPREADS[0], SPREADS, f"'{options.spread}' is not a spread", "--spread")
    if options.stopped:
        results.include_stopped()
    if not any(run.state == "done" for run in results.chosen(options.where)):
        raise InputError("no trial is done", results.directory or results.name, "concertina study run")
    plot = _plot_front(results, options) if options.kind == "front" else _plot_shape(shape_of(results, options))
    _require_effect(options, plot.kind)
    plot.chart.title, plot.chart.width, plot.chart.height = options.title, options.width, options.height
    plot.chart.x.scale, plot.chart.y.scale = options.x_scale or plot.chart.x.scale, options.y_scale or plot.chart.y.scale
    return plot


def plot(*of: str | pathlib.Path | StudyResults, **options: typing.Any) -> StudyPlot:
    """The chart of a study's folder, of runs, or of results; `options` are those of PlotOptions."""
    results = of[0] if isinstance(of[0], StudyResults) else study_results(*(str(folder) for folder in of))
    return plot_study(results, PlotOptions(**options))
