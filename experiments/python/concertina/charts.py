"""`draw` makes the matplotlib Figure of a Chart, which anybody can restyle, and `save` writes it. The same chart gives the same bytes."""
from __future__ import annotations

import contextlib
import io
import re
import typing
import warnings

import numpy as np
from matplotlib import style
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from .chart import INK, LABEL, LINE, SOFT, TICK, TITLE, Chart, held, wrapped
from .chart_marks import DRAWERS, name_points

_STYLE = {
    "font.family": ["DejaVu Sans"], "font.size": TICK, "text.color": INK, "text.parse_math": False, "axes.edgecolor": INK, "axes.linewidth": 0.7,
    "axes.labelcolor": INK, "axes.labelsize": LABEL, "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True,
    "xtick.labelsize": TICK, "ytick.labelsize": TICK, "xtick.color": INK, "ytick.color": INK, "xtick.major.width": 0.5, "ytick.major.width": 0.5,
    "xtick.major.size": 2, "ytick.major.size": 2, "grid.color": LINE, "grid.linewidth": 0.5, "legend.fontsize": TICK, "legend.frameon": False,
    "lines.markersize": 4, "hatch.linewidth": 0.6, "pdf.fonttype": 42, "svg.fonttype": "none", "svg.hashsalt": "concertina"}


@contextlib.contextmanager
def _own_style() -> typing.Iterator[None]:
    """Not the user's; a letter that the font does not have is for whoever shows the file."""
    with style.context(["default", _STYLE]), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def draw(chart: Chart) -> Figure:
    """The figure, with one Axes (a heat map has a second one with its colours)."""
    with _own_style():
        usual = max(0.28 * len(chart.series) + 0.7, 1.4) if chart.kind == "heatmap" else (0.66 if chart.width <= 4 else 0.45) * chart.width
        figure = Figure((chart.width, chart.height or usual), dpi=144, layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        axes.set(xscale="linear" if chart.x.scale == "linear" else "log", yscale="linear" if chart.y.scale == "linear" else "log")
        if chart.kind != "heatmap":
            axes.grid(True, axis="y" if chart.kind == "bars" else "both")
        drawn = any(np.isfinite(held(chart, series)).any() for series in chart.series)
        handles = DRAWERS[chart.kind](axes, chart) if drawn else []
        if not drawn:
            axes.set_axis_off()
            axes.text(0.5, 0.5, "no data", size=LABEL, color=SOFT, ha="center", va="center", transform=axes.transAxes)
        _add_header(figure, chart, handles)
        figure.draw_without_rendering()
        for one in figure.axes:
            for label, room in ((one.xaxis.label, one.bbox.width), (one.yaxis.label, one.bbox.height)):
                label.set_text(wrapped(label.get_text(), LABEL, 66 / figure.dpi * room))
        figure.draw_without_rendering()
        if drawn and chart.kind == "points":
            name_points(figure, axes, chart)
        return figure


def save(figure: Figure, kind: str) -> bytes:
    """The bytes of a file of one of FORMATS; without a date, so that they are the same each time."""
    file = io.BytesIO()
    metadata: dict[str, None] = {".svg": {"Date": None, "Creator": None}, ".pdf": {"CreationDate": None}, ".png": {"Software": None}}[kind]
    with _own_style():
        figure.savefig(file, format=kind[1:], dpi=300, metadata=metadata)
    return file.getvalue() if kind != ".svg" else re.sub(rb"[\x00-\x08\x0b-\x1f]", b"?", file.getvalue())


def _add_header(figure: Figure, chart: Chart, handles: list[typing.Any]) -> None:
    """Title, note and legend stand above the axes, which get the rest; a figure without a given height grows by them."""
    room, renderer = 72 * chart.width - 8, figure.canvas.get_renderer()  # type: ignore[attr-defined]
    parts: list[typing.Any] = []
    for text, looks in ((chart.title, {"size": TITLE, "weight": "bold"}), (chart.note, {"size": TICK, "color": SOFT})):
        if text:
            parts.append(figure.text(0, 0, wrapped(text, 1.16 * looks["size"], room), va="top", **looks))
    names = [wrapped(str(handle.get_label()), TICK, room - 40) for handle in handles]
    for columns in range(min(len(handles), 6), 0, -1):
        legend = figure.legend(handles, names, loc="upper left", ncols=columns, borderpad=0, borderaxespad=0, columnspacing=1.2,
                               handlelength=2.2, handletextpad=0.5, labelspacing=0.35)
        if columns == 1 or legend.get_window_extent(renderer).width <= room * figure.dpi / 72:
            parts.append(legend)
            break
        legend.remove()
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
