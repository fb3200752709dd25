"""Draws steps as figures: a panel per schedule, a row per rank, one time axis. In grayscale, lightness distinguishes F, B and I, and hatches the
rest."""
import itertools
import math
import typing

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path

from .chart import BY_NAME, GREY, INK, LINE, PAPER, SOFT, Axis, add_legend, own_style, readable_on, text_width, wrapped
from .chart_marks import set_numbers
from .steps import LOOKS, Json, described, short_number

Rectangle = tuple[float, float, float, float]  # left, right, top, bottom

_MARGIN, _STRIP = 5, 18  # points
_RANK, _CAPTION, _TITLE, _FIGURES = 6.5, 6.2, 8, 7  # font sizes
_LEAST_NUMBER, _MOST_NUMBER = 3.8, 7
_OUTLINED = 2.4  # points: for narrower boxes, the critical path is one line
_COLOR = {**BY_NAME, "pale": "#f6d28b", "idle": "#f0f1f4"}
_HATCHES = {"input": "/////", "weight": "\\" * 5, "optimizer": "xxxxx", "idle": "////"}


class Work(typing.NamedTuple):
    kind: str
    start: float
    end: float
    what: str = ""
    microbatch: int = -1
    chunk: int = 0  # index of the stage within its rank
    part: int = 0  # 1 or 2 for overlapped actions


def mixed(color: str, other: str, share: float) -> str:
    """`color` with `share` of `other` mixed in."""
    return to_hex(tuple((1 - share) * np.array(to_rgb(color)) + share * np.array(to_rgb(other))))  # type: ignore[arg-type]


def shade(kind: str, chunk: int, chunks: int) -> str:
    """Paler for later stages of a rank. A paler F is still darker than B, also in grayscale."""
    share = (0.27 if kind == "forward" else 0.45) * chunk / (chunks - 1) if chunks > 1 else 0
    return mixed(_COLOR[LOOKS[kind][0]], PAPER, share)


def _add(axes: Axes, shapes: typing.Iterable[typing.Sequence[tuple[float, float]]], **look: typing.Any) -> None:
    """Adds lines or areas as one path, to keep the file small; not with add_patch, which would compute the limits of their curves."""
    if paths := [Path(shape) for shape in map(list, shapes) if shape]:
        axes.add_artist(PathPatch(Path.make_compound_path(*paths), **look))


def _corners(rectangles: typing.Iterable[Rectangle]) -> typing.Iterator[list[tuple[float, float]]]:
    for left, right, top, bottom in rectangles:
        yield [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]


def _look(kind: str, color: str) -> dict[str, typing.Any]:
    line = GREY if kind == "idle" else mixed(color, INK, 0.4)
    return {"facecolor": color, "edgecolor": line, "linewidth": 0, "hatch": _HATCHES.get(kind)}


class _Picture:
    """Shared by the panels: the figure, the steps, and the row height in points."""

    def __init__(self, given: Json):
        self.given = known = described(given)
        self.columns, self.longest, self.most_saved = known.get("columns"), known["longest"], known["most_saved"]
        self.panels = [_Panel(self, panel) for panel in known["panels"]]
        most = max(len(panel.rows) for panel in self.panels)
        self.row = next((height for ranks, height in ((4, 13.0), (8, 11.0), (16, 8.5), (32, 6.0)) if most <= ranks), 4.0)
        self.gap = (1.6 if self.row > 8 else 0.8 if self.row > 5 else 0.4) / self.row  # between rows, as a share of the row height
        ranks = str(max(panel["ranks"] for panel in known["panels"]) - 1)
        self.left = _MARGIN + 12 + max(text_width(text, _RANK) for text in (ranks, self.saved(self.most_saved)))
        self.whole = 72 * given["inches"]
        self.width = self.whole - self.left - _MARGIN
        self.figure = Figure((given["inches"], 1), dpi=144)
        FigureCanvasAgg(self.figure)

    def saved(self, amount: float) -> str:
        return short_number(amount / self.given["byte"], 3)

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Converts a point, relative to the upper left corner, for matplotlib."""
        return x / self.whole, 1 - y / 72 / self.figure.get_figheight()

    def axes(self, top: float, height: float, rows: float) -> Axes:
        """A part of the figure that starts `top` points below its upper edge, with time in the steps' unit and `rows` from the top down."""
        axes = self.figure.add_axes((*self.place(self.left, top + height), self.width / self.whole, height / 72 / self.figure.get_figheight()))
        axes.set(xlim=(0, self.longest), ylim=(rows, 0), facecolor="none", xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
        axes.tick_params(axis="y", length=0, labelsize=_RANK, pad=3)
        return axes

    def draw(self) -> Figure:
        note, legend = wrapped(self.given["notes"], _RANK, self.whole - 2 * _MARGIN), self._legend()
        header = legend.get_window_extent(self.figure.canvas.get_renderer()).height / 2 + 6  # type: ignore[attr-defined]
        tops = list(itertools.accumulate((panel.arrange() for panel in self.panels), initial=header))
        self.figure.set_figheight((tops[-1] + 24 + (9 * (1 + note.count("\n")) + 3) * bool(note)) / 72)
        legend.set_bbox_to_anchor(self.place(_MARGIN, 3), self.figure.transFigure)
        for panel, top in zip(self.panels, tops):
            panel.draw(top)
        axes = self.axes(tops[-1] - 2, 0.01, 1)
        axes.set_xlim(0, self.longest / self.given["second"])
        axes.spines["bottom"].set_visible(True)
        set_numbers(axes.xaxis, Axis(self.given["time_label"]), self.width)
        self.figure.text(*self.place(_MARGIN, tops[-1] + 24), note, size=_RANK, color=SOFT, va="top")
        return self.figure

    def _legend(self) -> typing.Any:
        used = {"idle", *(one.kind for panel in self.panels for row in panel.rows for one in row)}
        chunks = max(panel.chunks for panel in self.panels)
        entries: list[tuple[typing.Any, str]] = []
        for kind, (_, meaning) in LOOKS.items():
            look = _look(kind, shade(kind, 0, 1)) | ({"hatch": None} if self.columns and kind != "idle" else {})
            entries += [(Patch(**look), meaning)] * (kind in used)
            if kind == "optimizer" and chunks > 1 and not self.columns:
                both = tuple(Patch(facecolor=shade("forward", chunk, chunks)) for chunk in (0, chunks - 1))
                entries.append((both, "first, last stage of a rank"))
        if any(panel.given["critical_path"] for panel in self.panels):
            entries.append((Patch(facecolor="none", edgecolor=INK, linewidth=1.1), "critical path"))
        handles, meanings = zip(*entries)
        return add_legend(self.figure, handles, meanings, self.whole - 2 * _MARGIN)


class _Panel:
    """One schedule's title, rows per rank, critical path and memory."""

    def __init__(self, picture: _Picture, panel: Json):
        self.picture, self.given, self.makespan, self.chunks = picture, panel, panel["makespan"], panel["chunks"]
        self.rows = [[Work(*one) for one in row["boxes"]] for row in panel["rows"]]
        self.ranks = [row["rank"] for row in panel["rows"]]

    def arrange(self) -> float:
        """Returns the height of the panel in points; `head` points of it are above its rows."""
        picture, room = self.picture, self.picture.whole - 2 * _MARGIN
        title, figures = self.given["title"], self.given["figures"]
        self.one_line = 1.1 * text_width(title, _TITLE) + 10 + text_width(figures, _FIGURES) <= room
        self.title, self.figures = wrapped(title, 1.1 * _TITLE, room), figures if self.one_line else wrapped(figures, _FIGURES, room)
        self.head = 10.5 * (1 + self.title.count("\n")) + (0 if self.one_line else 9 * (1 + self.figures.count("\n"))) + 2
        self.height = len(self.rows) * picture.row
        return self.head + self.height + (_CAPTION + 6 + _STRIP if picture.most_saved > 0 else 0) + 10

    def draw(self, top: float) -> None:
        picture = self.picture
        axes = picture.axes(top + self.head, self.height, len(self.rows))
        every = math.ceil((_RANK + 0.5) / picture.row)  # only some rows are labelled if they are narrow
        axes.set_yticks([at + 0.5 for at in range(0, len(self.rows), every)], list(map(str, self.ranks[::every])))
        axes.set_ylabel("rank", size=_RANK, color=SOFT, labelpad=2)
        picture.figure.text(*picture.place(_MARGIN, top + 1), self.title, size=_TITLE, weight="bold", va="top")
        below = top + 2 if self.one_line else top + 10.5 * (1 + self.title.count("\n"))
        picture.figure.text(*picture.place(picture.whole - _MARGIN if self.one_line else _MARGIN, below), self.figures, size=_FIGURES, va="top",
                            ha="right" if self.one_line else "left")
        self._boxes(axes)
        self._path(axes)
        if picture.most_saved > 0:
            self._memory(picture.axes(top + self.head + self.height + _CAPTION + 4, _STRIP, 1))

    def _rectangle(self, start: float, end: float, row: int, part: int = 0) -> Rectangle:
        top, high = row + self.picture.gap / 2, 1 - self.picture.gap
        return start, end, top + high / 2 * (part == 2), top + high / (2 if part == 1 else 1)

    def _boxes(self, axes: Axes) -> None:
        _add(axes, _corners(self._rectangle(0, self.makespan, at) for at in range(len(self.rows))), **_look("idle", _COLOR["idle"]))
        sizes = {} if self.picture.columns else self._number_sizes()
        looks: dict[tuple[str, int], list[tuple[Work, int]]] = {}
        for at, row in enumerate(self.rows):
            for one in row:
                looks.setdefault((one.kind, one.chunk), []).append((one, at))
        for (kind, chunk), boxes in looks.items():
            color = shade(kind, chunk, self.chunks)
            if self.picture.columns:  # thick lines have half as many points as boxes
                _add(axes, ([(one.start, at + 0.5), (one.end, at + 0.5)] for one, at in boxes), facecolor="none", capstyle="butt",
                     edgecolor=color, linewidth=self.picture.row * (1 - self.picture.gap))
                continue
            rectangles = [self._rectangle(one.start, one.end, at, one.part) for one, at in boxes]
            _add(axes, _corners(rectangles), **_look(kind, color))
            _add(axes, _corners(rectangles), facecolor="none", edgecolor=PAPER, linewidth=0.4)
            plate = {"facecolor": color, "edgecolor": "none", "pad": 0.2} if kind in _HATCHES else None  # no lines under the number
            for (one, _), (left, right, top, bottom) in zip(boxes, rectangles):
                if one.microbatch >= 0 and kind in sizes:
                    axes.text((left + right) / 2, (top + bottom) / 2, str(one.microbatch), size=sizes[kind], color=readable_on(color), bbox=plate,
                              ha="center", va="center_baseline")

    def _number_sizes(self) -> dict[str, float]:
        """For each kind of work, the font size at which the numbers of all its boxes fit; either all or none are drawn."""
        row, sizes = self.picture.row, dict.fromkeys(LOOKS, min(_MOST_NUMBER, 0.68 * self.picture.row))
        unit = {digits: text_width("0" * digits, 100) / 100 for digits in range(1, 7)}
        for one in itertools.chain(*self.rows):
            if one.microbatch >= 0 and one.end > one.start:
                fits = ((one.end - one.start) / self.picture.longest * self.picture.width - 0.8) / unit[len(str(one.microbatch))]
                sizes[one.kind] = min(sizes[one.kind], fits, 0.45 * row if one.part else math.inf)
        return {kind: size for kind, size in sizes.items() if size >= _LEAST_NUMBER}

    def _path(self, axes: Axes) -> None:
        """Draws the critical path over the computations of the visible ranks."""
        row_of, near = {rank: at for at, rank in enumerate(self.ranks)}, self.picture.longest / self.picture.width  # one point
        steps: list[tuple[float, float, int]] = []  # from, to and row, joined if there is no visible wait in between
        for rank, start, end in self.given["critical_path"]:
            row = row_of.get(rank)
            if row is not None and steps and steps[-1][2] == row and start - steps[-1][1] < near:
                steps[-1] = steps[-1][0], end, row
            elif row is not None:
                steps.append((start, end, row))
        if self.picture.columns or any(end - start < _OUTLINED * near for start, end, _ in steps):
            for color, thick in ((PAPER, 1.6), (INK, 0.8)):
                _add(axes, [[(when, row + 0.5) for start, end, row in steps for when in (start, end)]], facecolor="none", edgecolor=color,
                     linewidth=thick)
            return
        boxes = [self._rectangle(*step) for step in steps]
        links = [[(one[1], one[3] if below > row else one[2]), (other[0], other[2] if below > row else other[3])]
                 for (one, other), (row, below) in zip(itertools.pairwise(boxes), itertools.pairwise(step[2] for step in steps)) if row != below]
        _add(axes, [*links, *_corners(boxes)], facecolor="none", edgecolor=INK, linewidth=1.1, clip_on=False)

    def _memory(self, axes: Axes) -> None:
        """Draws the activations of the rank that saves the most."""
        picture, near = self.picture, self.picture.longest / self.picture.width
        caption = self.given["caption"]
        if text_width(caption, _CAPTION) > picture.width:
            caption = caption.replace(", which saves most", "").removesuffix(" of a rank's share of the model")
        axes.annotate(wrapped(caption, _CAPTION, picture.width), (0, _STRIP + 3), xycoords="axes points", size=_CAPTION, color=SOFT)
        levels = self.given["saved"]["levels"]
        # Omit dips that are too short to be visible.
        dips = {at for at in range(1, len(levels) - 1)
                if levels[at - 1][1] > levels[at][1] < levels[at + 1][1] and levels[at + 1][0] - levels[at][0] < near}
        when, amount = zip(*(level for at, level in enumerate(levels) if at not in dips), (self.makespan, levels[-1][1]))
        axes.set_ylim(0, picture.most_saved)
        axes.fill_between(when, amount, step="post", color=mixed(SOFT, PAPER, 0.72), linewidth=0)
        axes.step([0, *when, when[-1]], [0, *amount, 0], where="post", color=SOFT, linewidth=0.7, clip_on=False)
        axes.axhline(0, color=LINE, linewidth=0.5)
        axes.set_yticks([0, picture.most_saved], [picture.saved(0), picture.saved(picture.most_saved)], color=SOFT)


def draw_timelines(given: Json) -> Figure:
    with own_style():
        return _Picture(given).draw()
