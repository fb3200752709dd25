"""Charts for papers: values that `draw` turns into a matplotlib Figure, which can be restyled; equal charts give identical bytes.

Values that are not finite, or not above 0 on a logarithmic axis, are not drawn. Series are distinguished by color (Okabe and Ito, 2008)
and by dashes, markers or hatches, so that charts are readable in grayscale.
"""
import contextlib
import dataclasses
import io
import math
import pathlib
import re
import textwrap
import typing
import warnings

import numpy as np
from matplotlib import rc_params_from_file, style
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pgf import RendererPgf
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.legend import Legend
from matplotlib.legend_handler import HandlerTuple
from matplotlib.textpath import text_to_path

from .names import Better

_STYLE: typing.Any = rc_params_from_file(pathlib.Path(__file__).with_name("concertina.mplstyle"), use_default_template=False)
INK, LINE, SOFT, PAPER, GREY, NO_VALUE = _STYLE["text.color"], _STYLE["grid.color"], "#5c6470", "#ffffff", "#bcc1c9", "#f4f5f7"
BY_NAME = {"blue": "#0072b2", "orange": "#e69f00", "green": "#009e73", "vermillion": "#d55e00", "sky": "#56b4e9", "pink": "#cc79a7",
           "dark": "#4d545e", "yellow": "#f0e442"}
COLORS = tuple(BY_NAME.values())
DASHES = ("-", (0, (4, 1.6)), (0, (1.2, 1.4)), (0, (5, 1.4, 1.2, 1.4)), (0, (2.4, 1.2)))
MARKERS, HATCHES = "os^DvPX*", ("", "////", "xxxx", "\\\\\\\\", "----")
LABEL, TICK, NAME, TITLE = _STYLE["axes.labelsize"], _STYLE["font.size"], 6.5, 9.0  # font sizes in points
Kind = typing.Literal["lines", "curves", "bars", "stacks", "heatmap", "points"]
FORMATS = (".svg", ".pdf", ".png")
COLUMN_INCHES = 3.25  # width of one of two columns
_TEX_LETTERS = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
            "|": r"\textbar{}", "µ": r"\ensuremath{\mu}", "×": r"\ensuremath{\times}", "…": r"\ldots{}", **{mark: "\\" + mark for mark in "{}$&#_%"}}
_TEX_HEAD = r"""% Use \input{FILE} in a document with \usepackage{pgf} or \usepackage{tikz}, or alone:
%   \documentclass{standalone}\usepackage{pgf}\begin{document}\input{FILE}\end{document}
"""


@dataclasses.dataclass
class Axis:
    label: str = ""
    unit: str = ""
    scale: str = "linear"  # or log, or log2 with ticks at powers of two
    better: Better | None = None
    from_zero: bool = False  # the axis always includes 0
    levels: list[float] = dataclasses.field(default_factory=list)  # values of y with a thin line across the chart

    @property
    def title(self) -> str:
        return f"{self.label} ({self.unit})" if self.label and self.unit else self.label or self.unit

    def numbers(self, values: typing.Iterable[float]) -> np.ndarray:
        """The values, with NaN in place of those that the axis cannot show."""
        array = np.array(list(values), float)
        array[~np.isfinite(array) | ((array <= 0) & (self.scale != "linear"))] = math.nan
        return array


@dataclasses.dataclass
class Series:
    """A line, bars or stacked parts of one color, a row of a heat map, or points. `low` and `high` are bounds around y; NaN if absent."""
    name: str
    x: list[typing.Any]  # numbers, or texts for bars and heat maps
    y: list[float]
    low: list[float] = dataclasses.field(default_factory=list)  # as long as y, or empty
    high: list[float] = dataclasses.field(default_factory=list)
    x_low: list[float] = dataclasses.field(default_factory=list)
    x_high: list[float] = dataclasses.field(default_factory=list)
    points: list[list[float]] = dataclasses.field(default_factory=list)  # the values whose mean each bar shows
    names: list[str] = dataclasses.field(default_factory=list)  # labels of points
    joined: bool = True  # by a line; false if the values have different measures
    look: int | None = None  # index of the series whose color and dashes to use; -1: grey


@dataclasses.dataclass
class Chart:
    kind: Kind
    x: Axis = dataclasses.field(default_factory=Axis)
    y: Axis = dataclasses.field(default_factory=Axis)  # for heat maps: the rows
    series: list[Series] = dataclasses.field(default_factory=list)
    value: Axis = dataclasses.field(default_factory=Axis)  # for the colors of heat maps
    title: str = ""
    note: str = ""  # below the title
    width: float = COLUMN_INCHES
    height: float = 0  # inches; 0: derived from the width


def held(chart: Chart, series: Series) -> np.ndarray:
    """The values, with NaN in place of those that an axis cannot show."""
    axis = {"heatmap": chart.value, "stacks": chart.x}.get(chart.kind, chart.y)
    return axis.numbers(series.y) + (0 * chart.x.numbers(series.x) if chart.kind in ("lines", "curves", "points") else 0)


def readable_on(back: typing.Any) -> str:
    """Near-black or white, whichever has more contrast with `back` (by WCAG 2's relative luminance)."""
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055)**2.4 for c in to_rgb(back)]
    return "#141414" if np.dot(linear, (0.2126, 0.7152, 0.0722)) > 0.179 else PAPER


def text_width(text: str, size: float) -> float:
    """Returns the width in points."""
    return float(text_to_path.get_text_width_height_descent(text, FontProperties(family="DejaVu Sans", size=size), False)[0])


def _letters(text: str, size: float, width: float) -> int:
    """Approximate number of the text's characters that fit in `width`."""
    return max(2, int(len(text) * width / max(text_width(text, size), width)))


def shortened(text: str, size: float, width: float) -> str:
    most = _letters(text, size, width)
    return text if most >= len(text) else text[:most - 1].rstrip() + "…"


def wrapped(text: str, size: float, width: float) -> str:
    most = _letters(text, size, width)
    return text if most >= len(text) else textwrap.fill(text, max(2, int(0.92 * most)))


@contextlib.contextmanager
def own_style() -> typing.Iterator[None]:
    """Applies a fixed style instead of the user's; missing glyphs are left to the file's viewer."""
    with style.context(["default", _STYLE]), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def draw(chart: Chart) -> Figure:
    """Draws the figure, with one Axes and, for a heat map, a second one for its colors."""
    from .chart_marks import DRAWERS, name_points
    with own_style():
        rows = {"heatmap": len(chart.series), "stacks": max((len(series.x) for series in chart.series), default=0)}.get(chart.kind, 0)
        usual = max(0.28 * rows + 0.7, 1.4) if rows else (0.66 if chart.width <= 4 else 0.45) * chart.width
        figure = Figure((chart.width, chart.height or usual), dpi=144, layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        axes.set(xscale="linear" if chart.x.scale == "linear" else "log", yscale="linear" if chart.y.scale == "linear" else "log")
        if chart.kind != "heatmap":
            axes.grid(True, axis="y" if chart.kind == "bars" else "x" if chart.kind == "stacks" else "both")
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


class _TexRenderer(RendererPgf):  # type: ignore[misc]
    """Measures text without LaTeX, and writes all of its characters."""

    def get_text_width_height_descent(self, s: str, prop: typing.Any, ismath: typing.Any) -> tuple[float, float, float]:
        return tuple(self.points_to_pixels(1) * size for size in text_to_path.get_text_width_height_descent(s, prop, False))  # type: ignore

    def draw_text(self, gc: typing.Any, x: float, y: float, s: str, prop: FontProperties, *rest: typing.Any, **more: typing.Any) -> None:
        plain, font = re.sub("[^\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", s), prop.copy()
        font.set_family("sans-serif")  # the document's font
        super().draw_text(gc, x, y, "".join(_TEX_LETTERS.get(letter, letter) for letter in plain), font, *rest, **more)


def _tex(figure: Figure) -> str:
    text = io.StringIO()
    figure.set_dpi(72)
    figure.draw(_TexRenderer(figure, text))
    width, height = figure.get_size_inches()
    bounds = f"\\pgfpathrectangle{{\\pgfpointorigin}}{{\\pgfqpoint{{{width:f}in}}{{{height:f}in}}}}\n\\pgfusepath{{use as bounding box, clip}}\n"
    return f"{_TEX_HEAD}\\begingroup\\makeatletter\n\\begin{{pgfpicture}}\n{bounds}{text.getvalue()}\\end{{pgfpicture}}\n\\makeatother\\endgroup\n"


def save(figure: Figure, kind: str) -> bytes:
    """The bytes of a file in one of FORMATS or ".tex", without a date, so that they are reproducible."""
    file = io.BytesIO()
    metadata: dict[str, None] = {".svg": {"Date": None, "Creator": None}, ".pdf": {"CreationDate": None}}.get(kind, {"Software": None})
    with own_style():
        if kind == ".tex":
            return _tex(figure).encode()
        figure.savefig(file, format=kind[1:], dpi=300, metadata=metadata)
    if kind != ".svg":
        return file.getvalue()
    text = re.sub(rb"[\x00-\x08\x0b-\x1f]", b"?", file.getvalue())
    return re.sub(rb'(?<= d=")[^"]*', lambda path: re.sub(rb"(\.\d\d)\d+", rb"\1", path[0]), text)  # 1/100 of a point


def add_legend(figure: Figure, handles: typing.Sequence[typing.Any], names: typing.Sequence[str], room: float) -> Legend:
    """Adds a legend with as many columns as fit in `room` points."""
    for columns in range(len(names), 0, -1):
        legend = figure.legend(handles, names, loc="upper left", ncols=columns, borderpad=0, borderaxespad=0, columnspacing=1.2, handlelength=2.2,
                               handletextpad=0.5, labelspacing=0.35, handler_map={tuple: HandlerTuple(None, 0)})
        width = legend.get_window_extent(figure.canvas.get_renderer()).width  # type: ignore[attr-defined]
        if columns == 1 or width <= room * figure.dpi / 72:
            break
        legend.remove()
    return legend


def _add_header(figure: Figure, chart: Chart, handles: list[typing.Any]) -> None:
    """Places the title, note and legend above the axes; a figure without a given height grows to fit them."""
    room, renderer = 72 * chart.width - 8, figure.canvas.get_renderer()  # type: ignore[attr-defined]
    parts: list[typing.Any] = []
    if chart.title:
        parts.append(figure.text(0, 0, wrapped(chart.title, 1.16 * TITLE, room), size=TITLE, weight="bold", va="top"))
    if chart.note:
        parts.append(figure.text(0, 0, wrapped(chart.note, TICK, room), size=TICK, color=SOFT, va="top"))
    names = [wrapped(str(handle.get_label()), TICK, room - 40) for handle in handles]
    if handles:
        parts.append(add_legend(figure, handles, names, room))
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
