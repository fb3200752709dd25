"""Draws the marks, ticks and point names of each kind of chart. Each function in DRAWERS returns the legend's handles."""
import math
import typing

import numpy as np
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.path import Path
from matplotlib.text import Text
from matplotlib.transforms import Bbox, ScaledTranslation

from .chart import (COLORS, DASHES, GREY, HATCHES, INK, LINE, MARKERS, NAME, NO_VALUE, PAPER, SOFT, TICK, Axis, Chart, Series, held, readable_on,
                    shortened, text_width)
from .names import digits_for, number_text, pareto_front

Handles = list[typing.Any]


def _of(looks: typing.Sequence[typing.Any], at: int) -> typing.Any:
    return looks[at % len(looks)] if at >= 0 or looks is not COLORS else GREY


def _number(value: float, _: int | None = None) -> str:
    return f"{value + 0.0:,.10g}"


def set_numbers(drawn: typing.Any, axis: Axis, room: float, whole: bool = False) -> None:
    """Sets as many ticks as fit in `room` points; `whole`: only at integers."""
    drawn.set_label_text(axis.title)
    low, high = drawn.get_view_interval()
    size = TICK if drawn.axis_name == "y" else max(text_width(_number(float(f"{end:.3g}")), TICK) for end in (low, high))
    count = min(max(int(room / (size + 10)), 2), 7)
    if axis.scale == "linear":
        drawn.set_major_locator(ticker.MaxNLocator(count - 1, steps=[1, 2, 5, 10], integer=whole, min_n_ticks=2))
    else:
        parts = (1, 2, 5) if axis.scale == "log" and 3 * math.log10(high / low) < count + 1 else (1,)
        drawn.set_major_locator(ticker.LogLocator(2 if axis.scale == "log2" else 10, parts, numticks=count))
        drawn.set_minor_locator(ticker.NullLocator())
    drawn.set_major_formatter(_number)


def _spans(axis: Axis, middle: np.ndarray, low: list[float], high: list[float]) -> list[np.ndarray] | None:
    """Sizes of error bars, or None."""
    return [middle - axis.numbers(low), axis.numbers(high) - middle] if low else None


def _lines(axes: Axes, chart: Chart) -> Handles:
    """Points with error bars at the same x are shifted sideways, to keep them apart."""
    axes.margins(0.05, 0.07)
    handles: Handles = []
    with_bars = [series for series in chart.series if series.low and chart.kind == "lines"]
    for at, series in enumerate(chart.series):
        at = at if series.look is None else series.look
        color, x, y = _of(COLORS, at), chart.x.numbers(series.x), chart.y.numbers(series.y)
        marker = _of(MARKERS, at) if chart.kind == "lines" or not series.joined else "none"
        line = axes.plot(x, y, color=color, linestyle=_of(DASHES, at) if series.joined else "none", marker=marker, markeredgecolor=PAPER,
                         markeredgewidth=0.4, label=series.name, linewidth=1.3)[0]
        handles += [line] if series.name and not np.isnan(y).all() else []
        if series.low and chart.kind == "curves":
            axes.fill_between(x, chart.y.numbers(series.low), chart.y.numbers(series.high), color=color, alpha=0.18, linewidth=0)
        elif series.low:
            bars = axes.errorbar(x, y, _spans(chart.y, y, series.low, series.high), fmt="none", ecolor=color, elinewidth=0.8, capsize=1.8,
                                 capthick=0.8)
            shift = (with_bars.index(series) - (len(with_bars) - 1) / 2) * min(3, 14 / len(with_bars))
            for artist in (line, *bars.lines[1], *bars.lines[2]):  # after they are added, so that limits follow the values
                artist.set_transform(axes.transData + ScaledTranslation(shift / 72, 0, axes.figure.dpi_scale_trans))  # type: ignore[union-attr]
    if chart.y.from_zero:
        axes.set_ylim(bottom=0)
    set_numbers(axes.xaxis, chart.x, 58 * chart.width, all(float(x).is_integer() for series in chart.series for x in series.x))
    set_numbers(axes.yaxis, chart.y, 120)
    return handles


def _bars(axes: Axes, chart: Chart) -> Handles:
    """Draws bars side by side, one per series. Circles show the values whose mean is the bar, in order."""
    names = list(dict.fromkeys(name for series in chart.series for name in series.x))
    drawn = [(at, series) for at, series in enumerate(chart.series) if not np.isnan(chart.y.numbers(series.y)).all()]
    slot = 58 * chart.width / len(names)  # points, roughly
    width = min(0.84 / len(drawn), 28 / slot)
    handles: Handles = []
    for position, (at, series) in enumerate(drawn):
        y = chart.y.numbers(series.y)
        x = np.array([names.index(name) for name in series.x]) + (position - (len(drawn) - 1) / 2) * width
        look = {"facecolor": _of(COLORS, at), "edgecolor": PAPER, "linewidth": 0, "hatch": _of(HATCHES, at), "label": series.name}
        there = ~np.isnan(y)
        axes.bar(x[there], y[there], width, **look)
        axes.bar(x[there], y[there], width, color="none", edgecolor=INK, linewidth=0.4)
        for middle, points in zip(x, series.points):
            places = middle + width * ((np.arange(len(points)) + 0.5) / max(len(points), 1) - 0.5)
            axes.plot(places, chart.y.numbers(points), "o", markersize=min(2.8, slot * width / 2.5), markerfacecolor=PAPER, markeredgecolor=INK,
                      markeredgewidth=0.5)
        if series.low:
            axes.errorbar(x, y, _spans(chart.y, y, series.low, series.high), fmt="none", ecolor=INK, elinewidth=0.8,
                          capsize=min(2.0, slot * width / 3), capthick=0.8)
        handles += [Patch(**look)] if series.name else []
    axes.set_xlim(-0.6, len(names) - 0.4)
    _set_names(axes.xaxis, names, slot, chart)
    axes.set_xlabel(chart.x.title)
    set_numbers(axes.yaxis, chart.y, 120)
    return handles


def _stacks(axes: Axes, chart: Chart) -> Handles:
    """Stacks parts from left to right, with the first bar on top; skips parts that are missing or not above 0."""
    handles: Handles = []
    ends = np.zeros(len(chart.series[0].x))
    for at, series in enumerate(chart.series):
        sizes = np.nan_to_num(np.maximum(chart.x.numbers(series.y), 0))
        bars = axes.barh(range(len(sizes)), sizes, 0.62, ends, color=_of(COLORS, at), edgecolor=PAPER, linewidth=0.4, label=series.name)
        handles += [bars] if (sizes > 1e-3 * (ends + sizes).max()).any() else []
        ends += sizes
    axes.invert_yaxis()
    _set_names(axes.yaxis, [str(x) for x in chart.series[0].x], 20, chart)
    set_numbers(axes.xaxis, chart.x, 58 * chart.width)
    return handles


def _set_names(drawn: typing.Any, names: list[str], room: float, chart: Chart) -> None:
    """Sets ticks with names, slanted or vertical if they do not fit, which enlarges the figure. If there are too many, some are omitted."""
    texts = ["\n".join(shortened(line, TICK, min(110, 34 * chart.width)) for line in name.split("\n")) for name in names]
    every = math.ceil(10 / room)
    drawn.set_ticks(range(0, len(names), every), texts[::every])
    drawn.set_tick_params(length=0)
    widest = max(text_width(text, TICK) for text in texts)
    if drawn.axis_name == "y" or widest <= room - 4:
        return
    slant, looks = (30, {"ha": "right", "rotation_mode": "anchor"}) if room > 13 else (90, {"ha": "center"})
    for label in drawn.get_ticklabels():
        label.set(rotation=slant, **looks)
    if not chart.height:
        drawn.figure.set_figheight(drawn.figure.get_figheight() + widest * math.sin(math.radians(slant)) / 72)


def _heat_map(axes: Axes, chart: Chart) -> Handles:
    """Darker cells are better, or higher if neither lower nor higher is better; cells without a value are hatched. The first row is on top."""
    columns, rows = [str(x) for x in chart.series[0].x], [series.name for series in chart.series]
    values = np.array([held(chart, series) for series in chart.series])
    axes.patch.set(facecolor=NO_VALUE, hatch="////", edgecolor=LINE, linewidth=0)
    mesh = axes.pcolormesh(np.arange(len(columns) + 1) - 0.5, np.arange(len(rows) + 1) - 0.5, np.ma.masked_invalid(values),
                           cmap="cividis" if chart.value.better == "lower" else "cividis_r", edgecolors=PAPER, linewidth=0.6)
    axes.invert_yaxis()
    room = max(72 * chart.width - min(max(text_width(row, TICK) for row in rows), 34 * chart.width) - 75, 20) / len(columns)
    _set_names(axes.xaxis, columns, room, chart)
    _set_names(axes.yaxis, rows, 20, chart)
    axes.set(xlabel=chart.x.title, ylabel=chart.y.title)
    axes.spines[:].set_visible(False)
    key = axes.figure.colorbar(mesh, ax=axes, pad=0.02, aspect=14)  # type: ignore[union-attr]
    key.outline.set_visible(False)
    set_numbers(key.ax.yaxis, chart.value, 20 * len(rows) + 30)
    digits = digits_for(values[np.isfinite(values)], [])
    texts = {place: number_text(value, digits) for place, value in np.ndenumerate(values) if math.isfinite(value)}
    size = min(TICK, (room - 2) / max(text_width(text, 1) for text in texts.values()))
    for (r, c), text in texts.items() if size >= 4 else ():
        axes.text(c, r, text, size=size, ha="center", va="center", color=readable_on(mesh.to_rgba(values[r, c])))
    return []


def _spots(chart: Chart, series: Series) -> np.ndarray:
    """The points of a series; both coordinates are NaN if an axis cannot show one of them."""
    spots = np.column_stack([chart.x.numbers(series.x), chart.y.numbers(series.y)])
    spots[np.isnan(spots).any(axis=1)] = math.nan
    return spots


def _all_spots(chart: Chart) -> tuple[np.ndarray, list[int]]:
    """The points of all series, and the indices of those that no other point dominates."""
    spots = np.concatenate([_spots(chart, series) for series in chart.series])
    return spots, pareto_front([(x, y) for x, y in spots], chart.x.better, chart.y.better)


def _points(axes: Axes, chart: Chart) -> Handles:
    """If lower or higher is better on both axes, steps join the points on the front and other points are pale."""
    axes.margins(0.12)
    for level in chart.y.levels:
        axes.axhline(level, color=SOFT, linewidth=0.5)
    every, front = _all_spots(chart)
    # Between two points on the front, the corner of the step is at the worse value on each axis.
    axes.step(*every[front].T, where="post" if chart.x.better == "lower" else "pre", color=INK, linewidth=0.9)
    handles: Handles = []
    before = 0
    for at, series in enumerate(chart.series):
        spots, color, marker = _spots(chart, series), _of(COLORS, at), _of(MARKERS, at)
        pale = np.array([bool(front) and before + i not in front for i in range(len(spots))], bool)
        before += len(spots)
        axes.errorbar(spots[:, 0], spots[:, 1], _spans(chart.y, spots[:, 1], series.low, series.high),
                      _spans(chart.x, spots[:, 0], series.x_low, series.x_high), fmt="none", ecolor=color, elinewidth=0.8, alpha=0.65)
        for those, alpha in ((pale, 0.45), (~pale, 1.0)):
            axes.plot(*spots[those].T, linestyle="none", marker=marker, color=color, alpha=alpha, label=series.name,
                      markeredgecolor=INK if alpha == 1 else color, markeredgewidth=0.5)
        if series.name and np.isfinite(spots).any():
            handles.append(Line2D([], [], linestyle="none", marker=marker, color=color, label=series.name))
    set_numbers(axes.xaxis, chart.x, 58 * chart.width)
    set_numbers(axes.yaxis, chart.y, 120)
    return handles


DRAWERS: dict[str, typing.Callable[[Axes, Chart], Handles]] = {
    "lines": _lines, "curves": _lines, "bars": _bars, "stacks": _stacks, "heatmap": _heat_map, "points": _points}
_WAYS = ((1, 0), (-1, 0), (0, -1.4), (0, 1.4), (0.8, -1), (0.8, 1), (-0.8, -1), (-0.8, 1))
_PLACES = [(far * x, far * y) for far in (4.5, 12, 20) for x, y in _WAYS]


def name_points(figure: Figure, axes: Axes, chart: Chart) -> None:
    """Places names near their points, the front's first, without covering points, lines or other names; skips names that do not fit."""
    renderer, (spots, front) = figure.canvas.get_renderer(), _all_spots(chart)  # type: ignore[attr-defined]
    inside, size, unit = axes.get_window_extent(), NAME * figure.dpi / 72, figure.dpi / 72
    at = axes.transData.transform(spots)
    paths = [line.get_transform().transform_path(line.get_path()) for line in axes.lines if line.get_linestyle() != "none"]
    segments = (segment for one in axes.collections for segment in one.get_segments() if len(segment))  # type: ignore[attr-defined]
    paths += [Path(axes.transData.transform(segment)) for segment in segments]
    taken = [Bbox.from_bounds(x - size / 2, y - size / 2, size, size) for x, y in at if math.isfinite(x)]
    names = [shortened(name, NAME, 0.6 * inside.width / unit) for series in chart.series for name in series.names]
    for i in sorted((one for one in range(len(names)) if math.isfinite(at[one][0])), key=lambda one: (one not in front, one)):
        label = axes.annotate(names[i], spots[i], textcoords="offset points", size=NAME, va="center",
                              color=INK if i in front or not front else SOFT,
                              arrowprops={"arrowstyle": "-", "linewidth": 0.35, "color": SOFT, "shrinkA": 0, "shrinkB": 3})
        label.set_in_layout(False)
        for x, y in _PLACES:
            label.set(position=(x, y), ha="left" if x > 0 else "right" if x < 0 else "center")
            label.update_positions(renderer)
            box = Text.get_window_extent(label, renderer)  # without the line to its point
            within = inside.x0 < box.x0 and box.x1 < inside.x1 and inside.y0 < box.y0 and box.y1 < inside.y1
            if within and not box.count_overlaps(taken) and not any(path.intersects_bbox(box, filled=False) for path in paths):
                taken.append(box)
                break
        else:
            label.remove()
