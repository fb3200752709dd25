"""Charts for a paper, as values, and how series and words look: colours, markers, sizes of letters.

What is not finite, or not above 0 on a logarithmic axis, is not drawn. Series are told apart by colour (Okabe and Ito, 2008), and by
dashes, markers or hatches too, so that a grey print can be read.
"""
from __future__ import annotations

import dataclasses
import math
import textwrap
import typing

import numpy as np
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from .names import Better

INK, SOFT, LINE, PAPER, NO_VALUE = "#1d2129", "#5c6470", "#e0e3e8", "#ffffff", "#f4f5f7"
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#4d545e", "#f0e442")
DASHES = ("-", (0, (4, 1.6)), (0, (1.2, 1.4)), (0, (5, 1.4, 1.2, 1.4)), (0, (2.4, 1.2)))
MARKERS, HATCHES = "os^DvPX*", ("", "////", "xxxx", "\\\\\\\\", "----")
LABEL, TICK, NAME, TITLE = 8.0, 7.0, 6.5, 9.0  # sizes of letters in points
Kind = typing.Literal["lines", "curves", "bars", "heatmap", "points"]
FORMATS = (".svg", ".pdf", ".png")
COLUMN_INCHES = 3.25  # a column of a page that has two


@dataclasses.dataclass
class Axis:
    label: str = ""
    unit: str = ""
    scale: str = "linear"  # log; log2: ticks at powers of two
    better: Better | None = None
    levels: list[float] = dataclasses.field(default_factory=list)  # of y, each a thin line across the chart

    @property
    def title(self) -> str:
        return f"{self.label} ({self.unit})" if self.label and self.unit else self.label or self.unit

    def numbers(self, values: typing.Iterable[float]) -> np.ndarray:
        """NaN in place of what the axis does not hold."""
        array = np.array(list(values), float)
        array[~np.isfinite(array) | ((array <= 0) & (self.scale != "linear"))] = math.nan
        return array


@dataclasses.dataclass
class Series:
    """A line, the bars of one colour, a row of a heat map, or points. `low` and `high` surround y; NaN: there is none."""
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


def held(chart: Chart, series: Series) -> np.ndarray:
    """The values that both axes hold."""
    axis = chart.value if chart.kind == "heatmap" else chart.y
    return axis.numbers(series.y) + (0 * chart.x.numbers(series.x) if chart.kind in ("lines", "curves", "points") else 0)


def text_width(text: str, size: float) -> float:
    """In points."""
    return float(text_to_path.get_text_width_height_descent(text, FontProperties(family="DejaVu Sans", size=size), False)[0])


def _letters(text: str, size: float, width: float) -> int:
    """How many letters of the text have room in `width`, about."""
    return max(2, int(len(text) * width / max(text_width(text, size), width)))


def shortened(text: str, size: float, width: float) -> str:
    most = _letters(text, size, width)
    return text if most >= len(text) else text[:most - 1].rstrip() + "…"


def wrapped(text: str, size: float, width: float) -> str:
    most = _letters(text, size, width)
    return text if most >= len(text) else textwrap.fill(text, max(2, int(0.92 * most)))
