"""Charts for a paper, as values: `draw` makes the matplotlib Figure of a Chart, which anybody can restyle, and `save` writes it.

The same chart gives the same bytes. What is not finite, or not above 0 on a logarithmic axis, is not drawn. Series are told apart by colour
(Okabe and Ito, 2008), and by dashes, markers or hatches too, so that a grey print can be read.
"""
from __future__ import annotations

import contextlib
import dataclasses
import io
import math
import re
import typing
import warnings

import numpy as np
from matplotlib import style, ticker
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.textpath import text_to_path
from matplotlib.transforms import Bbox, ScaledTranslation

from .names import Better, digits_for, number_text

if typing.TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis as DrawnAxis

INK, SOFT, LINE, PAPER, GREY, NO_VALUE = "#1d2129", "#5c6470", "#e0e3e8", "#ffffff", "#bcc1c9", "#f4f5f7"
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#4d545e", "#f0e442")
DASHES = ("-", (0, (4, 1.6)), (0, (1.2, 1.4)), (0, (5, 1.4, 1.2, 1.4)), (0, (2.4, 1.2)))
_MARKERS, _HATCHES = "os^DvPX*", ("", "////", "xxxx", "\\\\\\\\", "----")
_LABEL, _TICK, _NAME, _TITLE = 8.0, 7.0, 6.5, 9.0  # sizes of letters in points
_STYLE = {
    "font.family": ["DejaVu Sans"], "font.size": _TICK, "text.color": INK, "text.parse_math": False, "axes.edgecolor": INK, "axes.linewidth": 0.7,
    "axes.labelcolor": INK, "axes.labelsize": _LABEL, "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True,
    "xtick.labelsize": _TICK, "ytick.labelsize": _TICK, "xtick.color": INK, "ytick.color": INK, "xtick.major.width": 0.5, "ytick.major.width": 0.5,
    "xtick.major.size": 2, "ytick.major.size": 2, "grid.color": LINE, "grid.linewidth": 0.5, "legend.fontsize": _TICK, "legend.frameon": False,
    "lines.markersize": 4, "hatch.linewidth": 0.6, "pdf.fonttype": 42, "svg.fonttype": "none", "svg.hashsalt": "concertina"}

Kind = typing.Literal["lines", "curves", "bars", "stacks", "heatmap", "points"]
FORMATS = (".svg", ".pdf", ".png")
COLUMN_INCHES = 3.25  # a column of a page that has two


@dataclasses.dataclass
class Axis:
    label: str = ""
    unit: str = ""
    scale: str = "linear"  # log; log2: ticks at powers of two
    better: Better | None = None
    from_zero: bool = False  # 0 is on it, whatever the values
    levels: list[float] = dataclasses.field(default_factory=list)  # of y, each a thin line across the chart

    @property
    def title(self) -> str:
        return f"{self.label} ({self.unit})" if self.label and self.unit else self.label or self.unit

    def numbers(self, values: typing.Iterable[float | None]) -> np.ndarray:
        """NaN in place of what the axis does not hold."""
        array = np.array([math.nan if value is None else value for value in values], float)
        array[~np.isfinite(array) | ((array <= 0) & (self.scale != "linear"))] = math.nan
        return array


@dataclasses.dataclass
class Series:
    """A line, the bars or parts of stacks of one colour, a row of a heat map, or points. `low` and `high` surround y; NaN: there is none."""
    name: str
    x: list[typing.Any]  # numbers; texts of bars and heat maps
    y: list[float]
    low: list[float] = dataclasses.field(default_factory=list)  # as long as y, or empty
    high: list[float] = dataclasses.field(default_factory=list)
    x_low: list[float] = dataclasses.field(default_factory=list)
    x_high: list[float] = dataclasses.field(default_factory=list)
    points: list[list[float]] = dataclasses.field(default_factory=list)  # what each bar is the mean of
    names: list[str] = dataclasses.field(default_factory=list)  # of points, beside them
    joined: bool = True  # by a line; not where the values are of unlike measures
    faint: bool = False  # a single run, of whose group another line is the mean
    look: int | None = None  # colour and dashes are those of this series, from 0 on; -1: grey


@dataclasses.dataclass
class Chart:
    kind: Kind
    x: Axis = dataclasses.field(default_factory=Axis)
    y: Axis = dataclasses.field(default_factory=Axis)  # of a heat map: the rows
    series: list[Series] = dataclasses.field(default_factory=list)
    value: Axis = dataclasses.field(default_factory=Axis)  # of the colours of a heat map
    title: str = ""
    note: str = ""  # under the title
    width: float = COLUMN_INCHES
    height: float = 0  # inches; 0: what suits the width


def draw(chart: Chart) -> Figure:
    """The figure, with one Axes (a heat map has a second one with its colours)."""
    with _own_style():
        rows = len(chart.series) if chart.kind == "heatmap" else len(chart.series[0].x) if chart.kind == "stacks" else 0
        usual = max(0.28 * rows + 0.7, 1.4) if rows else (0.66 if chart.width <= 4 else 0.45) * chart.width
        figure = Figure((chart.width, chart.height or usual), dpi=144, layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        axes.set(xscale="linear" if chart.x.scale == "linear" else "log", yscale="linear" if chart.y.scale == "linear" else "log")
        if chart.kind != "heatmap":
            axes.grid(True, axis="y" if chart.kind == "bars" else "x" if chart.kind == "stacks" else "both")
        if np.isfinite(np.concatenate([_held(chart, series) for series in chart.series] or [np.empty(0)])).any():
            handles = _DRAWERS[chart.kind](axes, chart)
        else:
            handles = []
            axes.set_axis_off()
            axes.text(0.5, 0.5, "no data", size=_LABEL, color=SOFT, ha="center", va="center", transform=axes.transAxes)
        _add_header(figure, chart, handles)
        figure.draw_without_rendering()
        for label, room in [(one.xaxis.label, one.bbox.width) for one in figure.axes] + [(one.yaxis.label, one.bbox.height) for one in figure.axes]:
            label.set_text(_wrapped(label.get_text(), _LABEL, 66 / figure.dpi * room))
        figure.draw_without_rendering()
        if chart.kind == "points":
            _name_points(figure, axes, chart)
        return figure


def save(figure: Figure, kind: str, salt: str = "concertina") -> bytes:
    """The bytes of a file of one of FORMATS; without a date, so that they are the same each time. `salt`: of ids in SVG."""
    file = io.BytesIO()
    metadata: dict[str, None] = {".svg": {"Date": None, "Creator": None}, ".pdf": {"CreationDate": None}, ".png": {"Software": None}}[kind]
    with _own_style({"svg.hashsalt": salt}):
        figure.savefig(file, format=kind[1:], dpi=300, metadata=metadata)
    return file.getvalue() if kind != ".svg" else re.sub(rb"[\x00-\x08\x0b-\x1f]", b"?", file.getvalue())


@contextlib.contextmanager
def _own_style(more: dict[str, str] | None = None) -> typing.Iterator[None]:
    """Not the user's; a letter that the font does not have is for whoever shows the file."""
    with style.context(["default", _STYLE | (more or {})]), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def pareto_front(points: list[tuple[float, float]], x: Better | None, y: Better | None) -> list[int]:
    """The points that no other one beats, by x: as good in both and better in one. The first of equal points stays."""
    if not x or not y:
        return []
    costs = [(a if x == "lower" else -a, b if y == "lower" else -b, at) for at, (a, b) in enumerate(points) if math.isfinite(a + b)]
    front: list[int] = []
    least = math.inf
    for _, cost, at in sorted(costs):
        if cost < least:
            least, front = cost, [*front, at]
    return front if x == "lower" else front[::-1]


def _held(chart: Chart, series: Series) -> np.ndarray:
    """The values that both axes hold."""
    axis = {"heatmap": chart.value, "stacks": chart.x}.get(chart.kind, chart.y)
    return axis.numbers(series.y) + (0 * chart.x.numbers(series.x) if chart.kind in ("lines", "curves", "points") else 0)


def _figure(artist: Artist) -> typing.Any:
    return artist.figure


def _look(series: Series, at: int) -> int:
    return at if series.look is None else series.look


def _colour(at: int) -> str:
    return COLOURS[at % len(COLOURS)] if at >= 0 else GREY


class _Numbers(ticker.Formatter):
    """Numbers with all the digits that tell them apart: on a linear axis as many decimals for each."""

    def __init__(self, same: bool):
        self._same = same

    def __call__(self, value: float, pos: int | None = None) -> str:
        return f"{value + 0.0:,.10g}" if self._same or abs(value) >= 1e4 else f"{value:,.4g}"

    def format_ticks(self, values: typing.Sequence[float]) -> list[str]:
        texts = [self(value) for value in values]
        decimals = max((len(text.partition(".")[2]) for text in texts), default=0)
        return texts if not self._same or "e" in "".join(texts) else [f"{value + 0.0:,.{decimals}f}" for value in values]


def _set_numbers(drawn: DrawnAxis, axis: Axis, room: float, whole: bool = False) -> None:
    """As many ticks as there is room for (in points); `whole`: at whole numbers."""
    drawn.set_label_text(axis.title)
    numbers, (low, high) = _Numbers(axis.scale == "linear"), drawn.get_view_interval()
    size = _TICK if drawn.axis_name == "y" else max(_text_width(numbers(float(f"{end:.3g}")), _TICK) for end in (low, high))  # type: ignore[attr-defined]
    count = min(max(int(room / (size + 10)), 2), 7)
    if axis.scale == "linear":
        drawn.set_major_locator(ticker.MaxNLocator(count - 1, steps=[1, 2, 5, 10], integer=whole, min_n_ticks=2))
    else:
        parts = (1, 2, 5) if axis.scale == "log" and 3 * math.log10(high / low) < count + 1 else (1,)
        drawn.set_major_locator(ticker.LogLocator(2 if axis.scale == "log2" else 10, parts, numticks=count))
        drawn.set_minor_locator(ticker.NullLocator())
    drawn.set_major_formatter(numbers)


def _lines(axes: Axes, chart: Chart) -> list[Artist]:
    """Points at one x stand a little beside each other where they have error bars, which could not be told apart."""
    axes.margins(0.05, 0.07)
    handles: list[Artist] = []
    with_bars = [series for series in chart.series if series.low and chart.kind == "lines"]
    for at, series in enumerate(chart.series):
        look, x, y = _look(series, at), chart.x.numbers(series.x), chart.y.numbers(series.y)
        dashes: typing.Any = DASHES[look % len(DASHES)] if series.joined else "none"
        marker = _MARKERS[look % len(_MARKERS)] if chart.kind == "lines" or not series.joined else "none"
        line = axes.plot(x, y, color=_colour(look), linestyle=dashes, marker=marker, markeredgecolor=PAPER, markeredgewidth=0.4,
                         label=series.name, linewidth=0.5 if series.faint else 1.3, alpha=0.4 if series.faint else 1)[0]
        handles += [] if series.faint or not series.name or np.isnan(y).all() else [line]
        if not series.low:
            continue
        low, high = chart.y.numbers(series.low), chart.y.numbers(series.high)
        if chart.kind == "curves":
            axes.fill_between(x, low, high, color=_colour(look), alpha=0.18, linewidth=0)
            continue
        bars = axes.errorbar(x, y, [y - low, high - y], fmt="none", ecolor=_colour(look), elinewidth=0.8, capsize=1.8, capthick=0.8)
        shift = (with_bars.index(series) - (len(with_bars) - 1) / 2) * min(3, 14 / len(with_bars))
        moved = axes.transData + ScaledTranslation(shift / 72, 0, _figure(axes).dpi_scale_trans)
        for artist in (line, *bars.lines[1], *bars.lines[2]):  # after they are added: limits are of the values
            artist.set_transform(moved)
    if chart.y.from_zero:
        axes.set_ylim(bottom=0)
    _set_numbers(axes.xaxis, chart.x, 58 * chart.width, all(float(x).is_integer() for series in chart.series for x in series.x))
    _set_numbers(axes.yaxis, chart.y, 120)
    return handles


def _bars(axes: Axes, chart: Chart) -> list[Artist]:
    """Side by side, one for each series; circles are what a bar is the mean of, in their order."""
    names = list(dict.fromkeys(name for series in chart.series for name in series.x))
    drawn = [(at, series) for at, series in enumerate(chart.series) if not np.isnan(chart.y.numbers(series.y)).all()]
    slot = 58 * chart.width / len(names)  # points, roughly
    width = min(0.84 / len(drawn), 28 / slot)
    handles: list[Artist] = []
    for beside, (at, series) in enumerate(drawn):
        look, y = _look(series, at), chart.y.numbers(series.y)
        x = np.array([names.index(name) for name in series.x]) + (beside - (len(drawn) - 1) / 2) * width
        there = ~np.isnan(y)
        hatch = _HATCHES[look % len(_HATCHES)]
        axes.bar(x[there], y[there], width, color=_colour(look), edgecolor=PAPER, linewidth=0, hatch=hatch, label=series.name)
        axes.bar(x[there], y[there], width, color="none", edgecolor=INK, linewidth=0.4)
        for middle, points in zip(x, series.points):
            places = middle + width * ((np.arange(len(points)) + 0.5) / max(len(points), 1) - 0.5)
            axes.plot(places, chart.y.numbers(points), "o", markersize=min(2.8, slot * width / 2.5), markerfacecolor=PAPER, markeredgecolor=INK,
                      markeredgewidth=0.5)
        if series.low:
            low, high = chart.y.numbers(series.low), chart.y.numbers(series.high)
            axes.errorbar(x, y, [y - low, high - y], fmt="none", ecolor=INK, elinewidth=0.8, capsize=min(2.0, slot * width / 3), capthick=0.8)
        if series.name:
            handles.append(Patch(facecolor=_colour(look), edgecolor=PAPER, linewidth=0, hatch=hatch, label=series.name))
    axes.set_xlim(-0.6, len(names) - 0.4)
    _set_names(axes.xaxis, names, slot, chart)
    axes.set_xlabel(chart.x.title)
    _set_numbers(axes.yaxis, chart.y, 120)
    return handles


def _stacks(axes: Axes, chart: Chart) -> list[Artist]:
    """From left to right, the first bar on top; parts that are missing, or not above 0, are left out."""
    handles: list[Artist] = []
    ends = np.zeros(len(chart.series[0].x))
    for at, series in enumerate(chart.series):
        sizes = np.nan_to_num(np.maximum(chart.x.numbers(series.y), 0))
        axes.barh(range(len(sizes)), sizes, 0.62, ends, color=_colour(_look(series, at)), edgecolor=PAPER, linewidth=0.4)
        handles += [Patch(facecolor=_colour(_look(series, at)), label=series.name)] if (sizes > 1e-3 * (ends + sizes).max()).any() else []
        ends += sizes
    axes.invert_yaxis()
    _set_names(axes.yaxis, [str(x) for x in chart.series[0].x], 20, chart)
    _set_numbers(axes.xaxis, chart.x, 58 * chart.width)
    return handles


def _set_names(drawn: DrawnAxis, names: list[str], room: float, chart: Chart) -> None:
    """Ticks with names, aslant or on end where they have no room beside each other; the figure grows by that. Of very many, some are named."""
    texts = ["\n".join(_shortened(line, _TICK, min(110, 34 * chart.width)) for line in name.split("\n")) for name in names]
    every = math.ceil(10 / room)
    drawn.set_ticks(range(0, len(names), every), texts[::every])
    drawn.set_tick_params(length=0)
    widest = max(_text_width(text, _TICK) for text in texts)
    if drawn.axis_name == "y" or widest <= room - 4:  # type: ignore[attr-defined]
        return
    slant = 30 if room > 13 else 90
    for label in drawn.get_ticklabels():
        label.set(rotation=slant, ha="right" if slant == 30 else "center", rotation_mode="anchor" if slant == 30 else "default")
    figure = _figure(drawn)
    if not chart.height:
        figure.set_figheight(figure.get_figheight() + widest * math.sin(math.radians(slant)) / 72)


def _heat_map(axes: Axes, chart: Chart) -> list[Artist]:
    """Dark is better, or high where nothing is; a cell without a value is hatched. The first row is on top."""
    columns, rows = [str(x) for x in chart.series[0].x], [series.name for series in chart.series]
    values = np.array([_held(chart, series) for series in chart.series])
    finite = values[np.isfinite(values)]
    axes.patch.set(facecolor=NO_VALUE, hatch="////", edgecolor=LINE, linewidth=0)
    mesh = axes.pcolormesh(np.arange(len(columns) + 1) - 0.5, np.arange(len(rows) + 1) - 0.5, np.ma.masked_invalid(values),
                           cmap="cividis" if chart.value.better == "lower" else "cividis_r", edgecolors=PAPER, linewidth=0.6)
    axes.invert_yaxis()
    room = max(72 * chart.width - min(max(_text_width(row, _TICK) for row in rows), 34 * chart.width) - 75, 20) / len(columns)
    _set_names(axes.xaxis, columns, room, chart)
    _set_names(axes.yaxis, rows, 20, chart)
    axes.set(xlabel=chart.x.title, ylabel=chart.y.title)
    axes.spines[:].set_visible(False)
    key = _figure(axes).colorbar(mesh, ax=axes, pad=0.02, aspect=14)
    key.outline.set_visible(False)
    _set_numbers(key.ax.yaxis, chart.value, 20 * len(rows) + 30)
    digits = digits_for(finite, [])
    texts = {(r, c): number_text(value, digits) for (r, c), value in np.ndenumerate(values) if math.isfinite(value)}
    size = min(_TICK, (room - 2) / max(_text_width(text, 1) for text in texts.values()))
    for (r, c), text in texts.items() if size >= 4 else ():
        red, green, blue = mesh.to_rgba(values[r, c])[:3]
        axes.text(c, r, text, size=size, ha="center", va="center", color="#141414" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.45 else PAPER)
    return []


def _points(axes: Axes, chart: Chart) -> list[Artist]:
    """Where both axes have a better end, the points that no other one beats are joined by steps, and the others are pale."""
    axes.margins(0.12)
    for level in chart.y.levels:
        axes.axhline(level, color=SOFT, linewidth=0.5)
    spots = _spots(chart)
    front = pareto_front(spots, chart.x.better, chart.y.better)
    steps = [spots[at] for at in front[:1]]
    for x, y in (spots[at] for at in front[1:]):  # between two points lies what the worse one of each axis still reaches
        steps += [(x, steps[-1][1]) if chart.x.better == "lower" else (steps[-1][0], y), (x, y)]
    axes.plot(*np.array(steps).reshape(-1, 2).T, color=INK, linewidth=0.9)
    handles: list[Artist] = []
    before = 0
    for at, series in enumerate(chart.series):
        mine = np.array(spots[before:before + len(series.y)]).reshape(-1, 2)
        pale = np.array([bool(chart.x.better and chart.y.better) and before + i not in front for i in range(len(series.y))], bool)
        before += len(series.y)
        _add_spans(axes, chart, series, mine, _colour(at))
        for those, alpha in ((pale, 0.45), (~pale, 1.0)):
            axes.plot(*mine[those].T, linestyle="none", marker=_MARKERS[at % len(_MARKERS)], color=_colour(at), alpha=alpha, label=series.name,
                      markeredgecolor=INK if alpha == 1 else _colour(at), markeredgewidth=0.5)
        if series.name and np.isfinite(mine).any():
            handles.append(Line2D([], [], linestyle="none", marker=_MARKERS[at % len(_MARKERS)], color=_colour(at), label=series.name))
    _set_numbers(axes.xaxis, chart.x, 58 * chart.width)
    _set_numbers(axes.yaxis, chart.y, 120)
    return handles


def _spots(chart: Chart) -> list[tuple[float, float]]:
    """The points of all series; NaN in both where one axis does not hold it."""
    spots = []
    for series in chart.series:
        for x, y in zip(chart.x.numbers(series.x), chart.y.numbers(series.y)):
            spots.append((math.nan, math.nan) if math.isnan(x + y) else (float(x), float(y)))
    return spots


def _add_spans(axes: Axes, chart: Chart, series: Series, spots: np.ndarray, colour: str) -> None:
    """Error bars, both ways."""
    lines = []
    for at, (x, y) in enumerate(spots):
        for axis, low, high in ((chart.x, series.x_low, series.x_high), (chart.y, series.low, series.high)):
            ends = axis.numbers([low[at], high[at]]) if low else np.array([math.nan])
            if not np.isnan(ends).any() and not math.isnan(x):
                lines.append([(end, y) if axis is chart.x else (x, end) for end in ends])
    axes.add_collection(LineCollection(lines, colors=colour, linewidths=0.8, alpha=0.65))
    axes.autoscale_view()


_DRAWERS: dict[str, typing.Callable[[Axes, Chart], list[Artist]]] = {
    "lines": _lines, "curves": _lines, "bars": _bars, "stacks": _stacks, "heatmap": _heat_map, "points": _points}


def _text_width(text: str, size: float) -> float:
    """In points."""
    return float(text_to_path.get_text_width_height_descent(text, FontProperties(family="DejaVu Sans", size=size), False)[0])


def _shortened(text: str, size: float, width: float) -> str:
    while len(text) > 1 and _text_width(text, size) > width:
        text = text[:-2].rstrip() + "…" if text.endswith("…") else text[:-1].rstrip() + "…"
    return text


def _wrapped(text: str, size: float, width: float) -> str:
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".lstrip()
        lines[-1:] = [longer] if not lines[-1] or _text_width(longer, size) <= width else [lines[-1], word]
    return "\n".join(_shortened(line, size, width) for line in lines)


def _add_header(figure: Figure, chart: Chart, handles: list[Artist]) -> None:
    """Title, note and legend stand above the axes, which get the rest; a figure without a given height grows by them."""
    room, renderer = 72 * chart.width - 8, figure.canvas.get_renderer()  # type: ignore[attr-defined]
    parts: list[typing.Any] = []
    if chart.title:
        parts.append(figure.text(0, 0, _wrapped(chart.title, 1.16 * _TITLE, room), size=_TITLE, weight="bold", va="top"))
    if chart.note:
        parts.append(figure.text(0, 0, _wrapped(chart.note, _TICK, room), size=_TICK, color=SOFT, va="top"))
    if handles:
        names = [_wrapped(str(handle.get_label()), _TICK, room - 40) for handle in handles]
        for columns in range(min(len(handles), 6), 0, -1):
            legend = figure.legend(handles, names, loc="upper left", ncols=columns, borderpad=0, borderaxespad=0, columnspacing=1.2,
                                   handlelength=2.2, handletextpad=0.5, labelspacing=0.35)
            if columns == 1 or legend.get_window_extent(renderer).width <= room * figure.dpi / 72:
                break
            legend.remove()
        parts.append(legend)
    heights = [part.get_window_extent(renderer).height / figure.dpi + 0.05 for part in parts]
    header = sum(heights) + 0.04 * bool(parts)
    if not chart.height:
        figure.set_size_inches(chart.width, figure.get_figheight() + header)
    height, top = figure.get_figheight(), 0.03
    for part, size in zip(parts, heights):
        place = (4 / 72 / chart.width, 1 - top / height)
        if hasattr(part, "set_bbox_to_anchor"):
            part.set_bbox_to_anchor(place, figure.transFigure)
        else:
            part.set_position(place)
        top += size
    engine: typing.Any = figure.get_layout_engine()
    engine.set(rect=(0, 0, 1, max(0.3, 1 - header / height)))


_WAYS = ((1, 0), (-1, 0), (0, -1), (0, 1), (0.8, -0.8), (0.8, 0.8), (-0.8, -0.8), (-0.8, 0.8))


def _name_points(figure: Figure, axes: Axes, chart: Chart) -> None:
    """Names near their points, where they lie on no point, line or other name; one without room is left out."""
    unit, spots = figure.dpi / 72, _spots(chart)
    front = pareto_front(spots, chart.x.better, chart.y.better)
    at = axes.transData.transform(spots) / unit
    inside = Bbox(axes.get_window_extent().get_points() / unit)
    taken = [Bbox.from_bounds(x - 3, y - 3, 6, 6) for x, y in at if math.isfinite(x)] + _line_boxes(axes, unit)
    named: list[Bbox] = []
    names = [_shortened(name, _NAME, 0.6 * inside.width) for series in chart.series for name in series.names]
    for i in sorted(range(len(names)), key=lambda one: (one not in front, one)):
        place = _free_place(at[i], _text_width(names[i], _NAME), inside, taken, named) if names[i] and math.isfinite(at[i][0]) else None
        if place is None:
            continue
        box, leader = place
        taken, named = [*taken, box, *leader], [*named, box]
        label = axes.annotate(names[i], spots[i], (box.x0 - at[i][0], box.y0 - at[i][1] + 1.5), textcoords="offset points", size=_NAME,
                              color=INK if i in front or not front else SOFT)
        label.set_in_layout(False)
        if leader:
            ends = axes.transData.inverted().transform([(one.x0 * unit, one.y0 * unit) for one in (leader[0], leader[-1])])
            axes.plot(*ends.T, color=SOFT, linewidth=0.35, label="_leader", scalex=False, scaley=False)


def _line_boxes(axes: Axes, unit: float) -> list[Bbox]:
    """Boxes around all lines of a chart of points: the front, levels and error bars."""
    paths: list[typing.Any] = [line.get_transform().transform_path(line.get_path()).vertices for line in axes.lines if line.get_linestyle() != "none"]
    paths += [axes.transData.transform(segment) for one in axes.collections for segment in one.get_segments()]  # type: ignore[attr-defined]
    pieces = [np.array(piece) / unit for vertices in paths for piece in zip(vertices, vertices[1:])]
    return [Bbox([piece.min(axis=0) - 1, piece.max(axis=0) + 1]) for piece in pieces]


def _free_place(spot: np.ndarray, width: float, inside: Bbox, taken: list[Bbox], named: list[Bbox]) -> tuple[Bbox, list[Bbox]] | None:
    """A place for a name, beside the point first, then above and below, then farther away; and boxes along the line that leads there."""
    for far in (4.5, 11, 19, 28, 38, 50):
        for way_x, way_y in _WAYS:
            left = spot[0] + way_x * far - (width if way_x < 0 else width / 2 if way_x == 0 else 0)
            if way_x == 0:
                left = min(max(left, inside.x0 + 2), max(inside.x0 + 2, inside.x1 - width))
            bottom = spot[1] + way_y * (far + 2.5 * (way_x == 0)) - _NAME / 2
            box = Bbox.from_bounds(left, bottom, width, _NAME)
            end = np.clip(spot, box.min, box.max)
            length = math.hypot(*(end - spot))
            along = [spot + share * (end - spot) for share in np.linspace(3.2 / length, 1, 25)] if length > 10 else []
            leader = [Bbox([place, place + 0.1]) for place in along]
            fits = box.x0 > inside.x0 and box.x1 < inside.x1 and box.y0 > inside.y0 and box.y1 < inside.y1
            if fits and not box.count_overlaps(taken) and not any(one.count_overlaps(named) for one in leader):
                return box, leader
    return None
