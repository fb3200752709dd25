"""Steps as a picture, from the JSON of experiments/timeline/timeline_json.h: a panel per schedule, a row per rank, one axis of time for all.

In grey, W and the optimizer are told from F, B and I by hatches, and these by lightness.
"""
from __future__ import annotations

import itertools
import math
import re
import typing

from .drawing import BOLD, COLOUR, Box, Drawing, Path, Words, hatch_lines, mixed, readable_on, shortened, text_width, wrapped
from .names import counted

Json = dict[str, typing.Any]

_MARGIN, _PANEL_GAP, _STRIP = 5, 9, 18
_RANK, _CAPTION, _TITLE, _FIGURES, _LEGEND, _NOTE, _AXIS = 6.5, 6.2, 8, 7, 7, 6.5, 7.5  # sizes of letters
_LEAST_LABEL, _MOST_LABEL, _MOST_ZOOM = 3.8, 7, 16
_UNITS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6}
_NO_WAIT = 1  # points: shorter waits interrupt neither path nor memory
_OUTLINED = 2.4  # points: where a box of the critical path is narrower, the path is one line
_SOFT, _INK, _PAPER = COLOUR["soft"], COLOUR["ink"], COLOUR["back"]


class Look(typing.NamedTuple):
    colour: str
    meaning: str
    slopes: tuple[int, ...] = ()  # of its hatch
    hatch: str = ""
    gap: float = 3
    thick: float = 0.4


def _look(name: str, meaning: str, *slopes: int) -> Look:
    return Look(COLOUR[name], meaning, slopes, mixed(COLOUR[name], _INK, 0.4))


LOOKS = {"forward": _look("blue", "F forward"), "backward": _look("orange", "B backward (I and W)"),
         "input": Look("#f6d28b", "I input gradient", (1,), mixed(COLOUR["orange"], _INK, 0.1)),
         "weight": _look("sky", "W weight gradient", -1), "optimizer": _look("pink", "optimizer", 1, -1),
         "idle": Look(COLOUR["idle"], "waiting", (1,), COLOUR["idle-lines"], 3.4, 0.5),
         "transfer": _look("vermillion", "waiting for a transfer"), "reduction": _look("green", "waiting for reduction"),
         "exchange": _look("dark", "waiting in the optimizer")}


class Work(typing.NamedTuple):
    """A box of a row."""
    kind: str
    start: float
    end: float
    what: str = ""
    microbatch: int = -1
    chunk: int = 0  # which of its rank's stages it is
    part: int = 0  # of two that overlap: 1 or 2


def short_number(value: float, digits: int) -> str:
    """ "0.25", "12000", "3.5e-06": so many digits at most."""
    text = f"{value:.{digits}g}"
    if "e" in text and 1 <= abs(value) < 1e7:
        return f"{float(text):.0f}"
    return "0" if text == "-0" else re.sub(r"e\+0*", "e", text)


def axis_ticks(high: float, count: int) -> list[tuple[float, str]]:
    """About `count` from 0 to `high`, at multiples of 1, 2 or 5 times a power of ten, with their labels."""
    high = high if 0 < high < 1e300 else 1
    count = max(2, count)
    power = 10.0**math.floor(math.log10(high / count))
    step = next((factor * power for factor in (1, 2, 5) if factor * power >= high / count * (1 - 1e-9)), 10 * power)
    ticks = [at * step for at in range(math.floor(high / step + 1e-6) + 1)]
    return [(tick, short_number(tick, 4)) for tick in ticks] if len(ticks) > 1 else axis_ticks(high, count + 1)


def waits_between(row: list[Work], makespan: float) -> list[tuple[float, float]]:
    """When a rank does nothing. A gap that rounding leaves is no wait."""
    waits, until = [], 0.0
    for one in [*row, Work("", makespan, makespan)]:
        if one.start - until > 1e-9 * makespan:
            waits.append((until, one.start))
        until = max(until, one.end)
    return waits


class _Picture:
    """What the panels share: the sheet, the scales of time and of memory, and how high a row is."""

    def __init__(self, given: Json, in_page: bool):
        self.panels, self.columns, self.in_page, self.bytes = given["panels"], given.get("columns"), in_page, given.get("bytes", False)
        self.rows = [[[Work(*one) for one in row["boxes"]] for row in panel["rows"]] for panel in self.panels]
        self.longest = max(panel["makespan"] for panel in self.panels)
        self.label, self.unit, self.unit_name = given.get("time_label", ""), 1.0, ""
        if not self.label:
            name = given.get("unit") or next((name for name, seconds in _UNITS.items() if self.longest >= seconds), "µs")
            self.label, self.unit, self.unit_name = f"time ({name})", _UNITS[name], f" {name}"
        self.peaks = [max((level[1] for level in panel["saved"]["levels"]), default=0) if "saved" in panel else 0 for panel in self.panels]
        self.most_saved, self.saved_unit, self.saved_name = max(self.peaks), 1, "microbatches"
        if self.bytes:
            units = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
            self.saved_unit, self.saved_name = next((one for one in units if self.most_saved >= one[0]), (1, "bytes"))
        most = max(map(len, self.rows))
        self.row = next((height for ranks, height in ((4, 13.0), (8, 11.0), (16, 8.5), (32, 6.0)) if most <= ranks), 4.0) * (1.35 if in_page else 1)
        self.height = self.row - (1.6 if self.row > 8 else 0.8 if self.row > 5 else 0.4)  # of a box
        self.sheet = Drawing(72 * given["inches"], title="Predicted timelines of " + ", ".join(panel["name"] for panel in self.panels))
        self.add = self.sheet.add
        widest = max(text_width(one, _RANK) for one in (str(max(panel["ranks"] for panel in self.panels) - 1), self.saved(self.most_saved)))
        self.left, self.right = _MARGIN + 9 + widest + 3, self.sheet.width - _MARGIN

    def x(self, seconds: float) -> float:
        return self.left + (seconds / self.longest if self.longest > 0 else 0) * (self.right - self.left)

    def saved(self, amount: float) -> str:
        return short_number(amount / self.saved_unit, 3)

    def seconds(self, value: float) -> str:
        return short_number(value / self.unit, 4) + self.unit_name

    def draw(self) -> Drawing:
        top = y = self._legend()
        for at in range(len(self.panels)):
            y = _Panel(self, at).draw(y + (_PANEL_GAP if at else 3))
        self.sheet.zoomed = self.left, top
        self.sheet.height = self._notes(self._axis(y + 3)) + 4
        return self.sheet

    def _legend(self) -> float:
        """Draws the content of the panels, in lines; returns where they end."""
        used = {one.kind for rows in self.rows for row in rows for one in row}
        if any(waits_between(row, panel["makespan"]) for panel, rows in zip(self.panels, self.rows) for row in rows):
            used.add("idle")
        chunks, entries = max(panel["chunks"] for panel in self.panels), []
        for kind, look in LOOKS.items():
            if kind in used:
                entries.append(([look.colour], look.meaning, look if kind == "idle" or not self.columns else LOOKS["forward"]))
            if kind == "optimizer" and chunks > 1 and not self.columns:
                entries.append(([LOOKS["forward"].colour, shade("forward", chunks - 1, chunks)], "first, last stage of a rank", LOOKS["forward"]))
        if any(panel["critical_path"] for panel in self.panels):
            entries.append(([""], "critical path", LOOKS["forward"]))
        x, y = float(_MARGIN), 3.0
        for colours, name, look in entries:
            width = 10 * len(colours) + 3 + text_width(name, _LEGEND)
            if x > _MARGIN and x + width > self.right:
                x, y = _MARGIN, y + 10.5
            for at, colour in enumerate(colours):
                box = Box(x + 10 * at, y + 1, 10, 7, colour, "" if colour else _INK, 0.5 if colour else 1.1)
                self.add(box, Path(hatch_lines(box, look.slopes, look.gap), look.hatch, look.thick))
            self.add(Words(x + 10 * len(colours) + 3, y + 7.2, name, _LEGEND))
            x += width + 9
        return y + 10.5

    def _axis(self, y: float) -> float:
        self.add(Path([[(self.left, y), (self.right, y)]], _INK, 0.6))
        for value, label in axis_ticks(self.longest / self.unit, int((self.right - self.left) / 40)):
            at = self.x(value * self.unit)
            self.add(Path([[(at, y), (at, y + 2.5)]], _INK, 0.6))
            self.add(Words(min(at, self.sheet.width - text_width(label, _RANK) / 2 - 1), y + 9.5, label, _RANK, "middle"))
        label = shortened(self.label, _AXIS, self.right - self.left)
        self.add(Words((self.left + self.right) / 2, y + 18.5, label, _AXIS, "middle"))
        return y + 20

    def _notes(self, y: float) -> float:
        """On all that is not drawn as it is."""
        text = f"Boxes are many: each of {self.columns:,} columns has the colour of what took most of it. " if self.columns else ""
        if most := max((len(rows) for panel, rows in zip(self.panels, self.rows) if len(rows) < panel["ranks"]), default=0):
            text += f"At most {most} ranks are shown, at equal distances."
        for line in wrapped(text, _NOTE, self.right - _MARGIN):
            y += 8
            self.add(Words(_MARGIN, y, line, _NOTE, colour=_SOFT))
        return y


def shade(kind: str, chunk: int, chunks: int) -> str:
    """Paler for the later of its rank's stages. A paler F still is darker than B, in grey too."""
    return mixed(LOOKS[kind].colour, _PAPER, (0.27 if kind == "forward" else 0.45) * chunk / (chunks - 1) if chunks > 1 else 0)


class _Panel:
    """Title, a row per rank, critical path and memory of one schedule."""

    def __init__(self, picture: _Picture, at: int):
        self.picture, self.panel, self.rows, self.peak = picture, picture.panels[at], picture.rows[at], picture.peaks[at]
        self.x, self.add, self.height, self.top = picture.x, picture.add, picture.height, 0.0
        self.ranks = [row["rank"] for row in self.panel["rows"]]

    def draw(self, top: float) -> float:
        """Returns the height where it ends."""
        picture = self.picture
        self.top = self._titles(top)
        bottom = self.top + len(self.rows) * picture.row
        sizes = {} if picture.columns or picture.in_page else self._label_sizes()
        every = math.ceil((_RANK + 0.5) / picture.row)  # only some of narrow rows have a name
        for at, row in enumerate(self.rows):
            if at % every == 0:
                self.add(Words(picture.left - 3, self.y(at) + self.height / 2 + 0.36 * _RANK, str(self.ranks[at]), _RANK, "end"))
            self._row(row, self.y(at), sizes)
        names = max(text_width(str(rank), _RANK) for rank in self.ranks[::every])
        self.add(Words(picture.left - names - 5.5, (self.top + bottom) / 2, "rank", _RANK, "middle", _SOFT, turn=-90))
        self._path()
        return self._memory(bottom + 2) if picture.most_saved > 0 else bottom + 2

    def y(self, row: int) -> float:
        return self.top + row * self.picture.row

    def _titles(self, top: float) -> float:
        title, figures, right = self.panel["name"], "", self.picture.right
        if "by_cause" in self.panel:
            title += f", {counted(self.panel['ranks'], 'rank')} x {counted(self.panel['microbatches'], 'microbatch')}"
            figures = self._figures()
        self.add(Words(_MARGIN, top + 8, shortened(title, BOLD * _TITLE, right - 5), _TITLE, bold=True))
        if _MARGIN + text_width(title, _TITLE, bold=True) + 10 + text_width(figures, _FIGURES) <= right:
            self.add(Words(right, top + 8, figures, _FIGURES, "end"))
            return top + 11.5
        lines = wrapped(figures, _FIGURES, right - 10)
        self.add(*(Words(_MARGIN, top + 16.5 + 8.5 * at, line, _FIGURES) for at, line in enumerate(lines)))
        return top + 8 + 8.5 * len(lines) + 3.5

    def _figures(self) -> str:
        causes = {cause.replace("_", " "): share for cause, share in self.panel["by_cause"].items() if share >= 0.0005}
        listed = ", ".join(f"{cause} {100 * share:.1f}%" if len(causes) > 1 else cause for cause, share in causes.items())
        figures = f"makespan {self.picture.seconds(self.panel['makespan'])}, bubble {100 * self.panel['bubble']:.1f}%"
        return f"{figures} ({listed})" if listed else figures

    def _row(self, row: list[Work], top: float, sizes: dict[str, float]) -> None:
        picture, idle = self.picture, LOOKS["idle"]
        self.add(Box(picture.left, top, self.x(self.panel["makespan"]) - picture.left, self.height, idle.colour))
        waits = [Box(self.x(start), top, self.x(end) - self.x(start), self.height) for start, end in waits_between(row, self.panel["makespan"])]
        self.add(Path([line for wait in waits for line in hatch_lines(wait, idle.slopes, idle.gap)], idle.hatch, idle.thick))
        if picture.columns:  # one path per colour
            for kind in sorted({one.kind for one in row}):
                ends = [[(self.x(one.start), top + self.height / 2), (self.x(one.end), top + self.height / 2)] for one in row if one.kind == kind]
                self.add(Path(ends, LOOKS[kind].colour, self.height))
        else:
            for one in row:
                self._box(one, top, sizes.get(one.kind, 0))

    def _label_sizes(self) -> dict[str, float]:
        """Per kind of work, the size at which the numbers of all its boxes fit: all of them or none."""
        row, sizes = self.picture.row, {kind: min(_MOST_LABEL, 0.68 * self.picture.row) for kind in LOOKS}
        for one in (one for boxes in self.rows for one in boxes if one.microbatch >= 0 and one.end > one.start):
            width = self.x(one.end) - self.x(one.start) - 0.8
            fits = min(width / text_width(str(one.microbatch), 1), 0.45 * row if one.part else math.inf)
            sizes[one.kind] = min(sizes[one.kind], fits)
        sizes = {kind: size for kind, size in sizes.items() if size >= _LEAST_LABEL}
        least = min(sizes.values(), default=0)
        return {kind: least if size < 1.5 * least else size for kind, size in sizes.items()}  # nearly of one size: of one size

    def _box(self, one: Work, top: float, size: float) -> None:
        left, width = self.x(one.start), self.x(one.end) - self.x(one.start)
        height = self.height / 2 if one.part else self.height
        look, seconds = LOOKS[one.kind], self.picture.seconds
        title = f"{one.what}, {seconds(one.start).removesuffix(self.picture.unit_name)} to {seconds(one.end)}: {seconds(one.end - one.start)}"
        box = Box(left, top + height * (one.part == 2), width, height, shade(one.kind, one.chunk, self.panel["chunks"]), _PAPER,
                  0.4 if width > 2 else 0.1, title)
        hatch = hatch_lines(box, look.slopes, look.gap)
        self.add(box, Path(hatch, look.hatch, look.thick))
        if one.microbatch >= 0:
            self._number(one, box, size, bool(hatch))

    def _number(self, one: Work, box: Box, size: float, hatched: bool) -> None:
        """The microbatch in its box; on a page, from the zoom on at which it has room."""
        text, zoom = str(one.microbatch), 1
        if self.picture.in_page:
            size = min(_RANK, 0.68 * self.picture.row) * (0.6 if one.part else 1)
            while zoom <= _MOST_ZOOM and box.width * zoom < text_width(text, size) + 0.8:
                zoom *= 2
        if size < _LEAST_LABEL or zoom > _MOST_ZOOM:
            return
        x, y, inner = box.x + box.width / 2, box.y + box.height / 2, text_width(text, size) + 0.6
        if hatched and zoom == 1:  # no lines under the number
            self.add(Box(x - inner / 2, y - 0.45 * size, inner, 0.9 * size, box.fill))
        self.add(Words(x, y + 0.36 * size, text, size, "middle", readable_on(box.fill), zoom=zoom))

    def _path(self) -> None:
        """The critical path over the computations of the ranks that are shown."""
        row_of = {rank: at for at, rank in enumerate(self.ranks)}
        steps: list[tuple[float, float, int]] = []  # from, to and row, joined where no visible wait is between two
        for rank, start, end in self.panel["critical_path"]:
            row, begin = row_of.get(rank), self.x(start)
            if row is not None and steps and steps[-1][2] == row and begin - steps[-1][1] < _NO_WAIT:
                steps[-1] = steps[-1][0], self.x(end), row
            elif row is not None:
                steps.append((begin, self.x(end), row))
        middles = [(x, self.y(row) + self.height / 2) for begin, end, row in steps for x in (begin, end)]
        if self.picture.columns or any(end - begin < _OUTLINED for begin, end, _ in steps):
            self.add(Path([middles], _PAPER, 1.6), Path([middles], _INK, 0.8))
            return
        links = [[(end, self.y(row) + self.height * (below > row)), (begin, self.y(below) + self.height * (below < row))]
                 for (_, end, row), (begin, _, below) in itertools.pairwise(steps) if row != below]
        self.add(Path(links, _INK, 1.1))
        self.add(*(Box(begin, self.y(row), end - begin, self.height, line=_INK, thick=1.1) for begin, end, row in steps))

    def _memory(self, top: float) -> float:
        """The activations of the rank that saves most."""
        picture, saved = self.picture, self.panel["saved"]
        room, most = picture.right - picture.left, f"up to {picture.saved(self.peak)} {picture.saved_name}"
        share = "" if picture.bytes else " of a rank's share of the model"
        caption = f"activations of rank {saved['rank']}, which saves most: {most}{share}"
        if text_width(caption, _CAPTION) > picture.right - _MARGIN - 20:
            caption = f"activations of rank {saved['rank']}: {most}"
        self.add(Words(picture.left, top + _CAPTION, shortened(caption, _CAPTION, room), _CAPTION, colour=_SOFT))
        top += _CAPTION + 3
        base, levels = top + _STRIP, saved["levels"]
        line = [(picture.left, base)]
        for at, (when, amount) in enumerate(levels):
            before, (until, after) = levels[max(at - 1, 0)][1], levels[min(at + 1, len(levels) - 1)]
            if before > amount < after and self.x(until) - self.x(when) < _NO_WAIT:
                continue  # a dip that is too short to be seen as more than a scratch
            line += [(self.x(when), line[-1][1]), (self.x(when), base - amount / picture.most_saved * _STRIP)]
        end = self.x(self.panel["makespan"])
        line += [(end, line[-1][1]), (end, base)]
        self.add(Path([line], fill=mixed(_SOFT, _PAPER, 0.72)), Path([line], _SOFT, 0.7))
        self.add(Path([[(picture.left, base), (picture.right, base)]], COLOUR["line"], 0.5))
        for amount, y in ((picture.most_saved, top), (0, base)):
            self.add(Words(picture.left - 3, y + 0.36 * _RANK, picture.saved(amount), _RANK, "end", _SOFT))
        return base + 1


def draw_timelines(given: Json, in_page: bool = False) -> Drawing:
    """In a page, which zooms, numbers appear as there is room for them."""
    return _Picture(given, in_page).draw()
