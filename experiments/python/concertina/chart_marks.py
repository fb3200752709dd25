"""What the kinds of charts draw into their axes: marks, ticks, and the names of points. Each returns the handles of its legend."""
from __future__ import annotations

import math
import typing

import numpy as np
from matplotlib import ticker
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.transforms import Bbox, ScaledTranslation

from .chart import (DASHES, HATCHES, INK, LINE, MARKERS, NAME, NO_VALUE, PAPER, SOFT, TICK, Axis, Chart, Series, colour, held, look_of,
                    shortened, text_width)
from .names import digits_for, number_text, pareto_front

if typing.TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis as DrawnAxis


def _figure(artist: Artist) -> typing.Any:
    return artist.figure


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
    size = TICK if drawn.axis_name == "y" else max(text_width(numbers(float(f"{end:.3g}")), TICK) for end in (low, high))  # type: ignore[attr-defined]
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
        look, x, y = look_of(series, at), chart.x.numbers(series.x), chart.y.numbers(series.y)
        dashes: typing.Any = DASHES[look % len(DASHES)] if series.joined else "none"
        marker = MARKERS[look % len(MARKERS)] if chart.kind == "lines" or not series.joined else "none"
        line = axes.plot(x, y, color=colour(look), linestyle=dashes, marker=marker, markeredgecolor=PAPER, markeredgewidth=0.4,
                         label=series.name, linewidth=0.5 if series.faint else 1.3, alpha=0.4 if series.faint else 1)[0]
        handles += [] if series.faint or not series.name or np.isnan(y).all() else [line]
        if not series.low:
            continue
        low, high = chart.y.numbers(series.low), chart.y.numbers(series.high)
        if chart.kind == "curves":
            axes.fill_between(x, low, high, color=colour(look), alpha=0.18, linewidth=0)
            continue
        bars = axes.errorbar(x, y, [y - low, high - y], fmt="none", ecolor=colour(look), elinewidth=0.8, capsize=1.8, capthick=0.8)
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
        look, y = look_of(series, at), chart.y.numbers(series.y)
        x = np.array([names.index(name) for name in series.x]) + (beside - (len(drawn) - 1) / 2) * width
        there = ~np.isnan(y)
        hatch = HATCHES[look % len(HATCHES)]
        axes.bar(x[there], y[there], width, color=colour(look), edgecolor=PAPER, linewidth=0, hatch=hatch, label=series.name)
        axes.bar(x[there], y[there], width, color="none", edgecolor=INK, linewidth=0.4)
        for middle, points in zip(x, series.points):
            places = middle + width * ((np.arange(len(points)) + 0.5) / max(len(points), 1) - 0.5)
            axes.plot(places, chart.y.numbers(points), "o", markersize=min(2.8, slot * width / 2.5), markerfacecolor=PAPER, markeredgecolor=INK,
                      markeredgewidth=0.5)
        if series.low:
            low, high = chart.y.numbers(series.low), chart.y.numbers(series.high)
            axes.errorbar(x, y, [y - low, high - y], fmt="none", ecolor=INK, elinewidth=0.8, capsize=min(2.0, slot * width / 3), capthick=0.8)
        if series.name:
            handles.append(Patch(facecolor=colour(look), edgecolor=PAPER, linewidth=0, hatch=hatch, label=series.name))
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
        axes.barh(range(len(sizes)), sizes, 0.62, ends, color=colour(look_of(series, at)), edgecolor=PAPER, linewidth=0.4)
        handles += [Patch(facecolor=colour(look_of(series, at)), label=series.name)] if (sizes > 1e-3 * (ends + sizes).max()).any() else []
        ends += sizes
    axes.invert_yaxis()
    _set_names(axes.yaxis, [str(x) for x in chart.series[0].x], 20, chart)
    _set_numbers(axes.xaxis, chart.x, 58 * chart.width)
    return handles


def _set_names(drawn: DrawnAxis, names: list[str], room: float, chart: Chart) -> None:
    """Ticks with names, aslant or on end where they have no room beside each other; the figure grows by that. Of very many, some are named."""
    texts = ["\n".join(shortened(line, TICK, min(110, 34 * chart.width)) for line in name.split("\n")) for name in names]
    every = math.ceil(10 / room)
    drawn.set_ticks(range(0, len(names), every), texts[::every])
    drawn.set_tick_params(length=0)
    widest = max(text_width(text, TICK) for text in texts)
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
    values = np.array([held(chart, series) for series in chart.series])
    finite = values[np.isfinite(values)]
    axes.patch.set(facecolor=NO_VALUE, hatch="////", edgecolor=LINE, linewidth=0)
    mesh = axes.pcolormesh(np.arange(len(columns) + 1) - 0.5, np.arange(len(rows) + 1) - 0.5, np.ma.masked_invalid(values),
                           cmap="cividis" if chart.value.better == "lower" else "cividis_r", edgecolors=PAPER, linewidth=0.6)
    axes.invert_yaxis()
    room = max(72 * chart.width - min(max(text_width(row, TICK) for row in rows), 34 * chart.width) - 75, 20) / len(columns)
    _set_names(axes.xaxis, columns, room, chart)
    _set_names(axes.yaxis, rows, 20, chart)
    axes.set(xlabel=chart.x.title, ylabel=chart.y.title)
    axes.spines[:].set_visible(False)
    key = _figure(axes).colorbar(mesh, ax=axes, pad=0.02, aspect=14)
    key.outline.set_visible(False)
    _set_numbers(key.ax.yaxis, chart.value, 20 * len(rows) + 30)
    digits = digits_for(finite, [])
    texts = {(r, c): number_text(value, digits) for (r, c), value in np.ndenumerate(values) if math.isfinite(value)}
    size = min(TICK, (room - 2) / max(text_width(text, 1) for text in texts.values()))
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
        _add_spans(axes, chart, series, mine, colour(at))
        for those, alpha in ((pale, 0.45), (~pale, 1.0)):
            axes.plot(*mine[those].T, linestyle="none", marker=MARKERS[at % len(MARKERS)], color=colour(at), alpha=alpha, label=series.name,
                      markeredgecolor=INK if alpha == 1 else colour(at), markeredgewidth=0.5)
        if series.name and np.isfinite(mine).any():
            handles.append(Line2D([], [], linestyle="none", marker=MARKERS[at % len(MARKERS)], color=colour(at), label=series.name))
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


DRAWERS: dict[str, typing.Callable[[Axes, Chart], list[Artist]]] = {
    "lines": _lines, "curves": _lines, "bars": _bars, "stacks": _stacks, "heatmap": _heat_map, "points": _points}
_WAYS = ((1, 0), (-1, 0), (0, -1), (0, 1), (0.8, -0.8), (0.8, 0.8), (-0.8, -0.8), (-0.8, 0.8))


def name_points(figure: Figure, axes: Axes, chart: Chart) -> None:
    """Names near their points, where they lie on no point, line or other name; one without room is left out."""
    unit, spots = figure.dpi / 72, _spots(chart)
    front = pareto_front(spots, chart.x.better, chart.y.better)
    at = axes.transData.transform(spots) / unit
    inside = Bbox(axes.get_window_extent().get_points() / unit)
    taken = [Bbox.from_bounds(x - 3, y - 3, 6, 6) for x, y in at if math.isfinite(x)] + _line_boxes(axes, unit)
    named: list[Bbox] = []
    names = [shortened(name, NAME, 0.6 * inside.width) for series in chart.series for name in series.names]
    for i in sorted(range(len(names)), key=lambda one: (one not in front, one)):
        place = _free_place(at[i], text_width(names[i], NAME), inside, taken, named) if names[i] and math.isfinite(at[i][0]) else None
        if place is None:
            continue
        box, leader = place
        taken, named = [*taken, box, *leader], [*named, box]
        label = axes.annotate(names[i], spots[i], (box.x0 - at[i][0], box.y0 - at[i][1] + 1.5), textcoords="offset points", size=NAME,
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
            bottom = spot[1] + way_y * (far + 2.5 * (way_x == 0)) - NAME / 2
            box = Bbox.from_bounds(left, bottom, width, NAME)
            end = np.clip(spot, box.min, box.max)
            length = math.hypot(*(end - spot))
            along = [spot + share * (end - spot) for share in np.linspace(3.2 / length, 1, 25)] if length > 10 else []
            leader = [Bbox([place, place + 0.1]) for place in along]
            fits = box.x0 > inside.x0 and box.x1 < inside.x1 and box.y0 > inside.y0 and box.y1 < inside.y1
            if fits and not box.count_overlaps(taken) and not any(one.count_overlaps(named) for one in leader):
                return box, leader
    return None
