"""Drawings as values: boxes, lines and words on a sheet, in points from its upper left corner; and their text as SVG and TikZ.

The same drawing gives the same text, which is well-formed whatever words are in it. Colours are "#rrggbb"; an empty one is none. Only
converted() needs a library.
"""
from __future__ import annotations

import dataclasses
import html
import math
import re
import typing

from .page import COLOURS

COLOUR = {name: light for name, light, _ in COLOURS}
Spot = tuple[float, float]
_FONTS = "Helvetica, Arial, 'Liberation Sans', 'Nimbus Sans', 'DejaVu Sans', sans-serif"
# Helvetica's widths of ' ' to '~' in 1/1000 of the size (Adobe's font metrics), and how much wider the widest of these fonts is.
_WIDTHS = [int(one) for one in (
    "278 278 355 556 556 889 667 191 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 556 556 556 278 278 584 584 584 556 1015 667 667 "
    "722 722 667 611 778 722 278 500 667 556 833 722 778 667 778 722 667 611 722 667 944 667 667 611 278 278 278 469 556 333 556 556 500 556 556 "
    "278 556 556 222 222 500 222 833 556 556 556 556 333 500 278 556 500 722 500 500 500 334 260 334 584").split()]
_WIDEST_FONT, BOLD = 1.14, 1.1
_TEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
        "|": r"\textbar{}", "µ": r"$\mu$", "×": r"$\times$", **{mark: "\\" + mark for mark in "{}$&#_%"}}


@dataclasses.dataclass
class Box:
    x: float
    y: float
    width: float
    height: float
    fill: str = ""
    line: str = ""
    thick: float = 0.5
    title: str = ""  # what a reader of a page sees who points at it


@dataclasses.dataclass
class Path:
    pieces: list[list[Spot]]
    line: str = ""
    thick: float = 0.5
    fill: str = ""


@dataclasses.dataclass
class Words:
    x: float
    y: float  # of the base line
    text: str
    size: float
    anchor: str = "start"  # middle, end
    colour: str = COLOUR["ink"]
    bold: bool = False
    turn: float = 0  # degrees, clockwise
    zoom: int = 1  # shown from this zoom of a page on: there is no room before


Shape = Box | Path | Words


@dataclasses.dataclass
class Drawing:
    width: float
    height: float = 0
    title: str = ""
    shapes: list[Shape] = dataclasses.field(default_factory=list)
    zoomed: Spot = (0, 0)  # a page that zooms moves what is right of and below it

    def add(self, *shapes: Shape) -> None:
        """Leaves out what is empty."""
        self.shapes += (one for one in shapes if (one.text if isinstance(one, Words) else one.pieces if isinstance(one, Path) else
                                                  min(one.width, one.height) > 0))


def text_width(text: str, size: float, bold: bool = False) -> float:
    """Points that no usual sans serif font exceeds."""
    widths = (_WIDTHS[ord(letter) - 32] if " " <= letter <= "~" else 600 if letter < "\u1100" else 1000 for letter in text)
    return sum(widths) / 1000 * size * _WIDEST_FONT * (BOLD if bold else 1)


def shortened(text: str, size: float, width: float) -> str:
    """`text` if it fits into `width`, else its beginning and "..."."""
    if text_width(text, size) <= width:
        return text
    fits = next((end for end in range(len(text) - 1, 0, -1) if text_width(text[:end] + "...", size) <= width), 0)
    return text[:fits] + "..." if fits else ""


def wrapped(text: str, size: float, width: float) -> list[str]:
    lines: list[str] = []
    for word in text.split():
        if lines and text_width(f"{lines[-1]} {word}", size) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(shortened(word, size, width))
    return lines


def mixed(colour: str, other: str, share: float) -> str:
    """`colour` with `share` of `other` in it."""
    pairs = zip(bytes.fromhex(colour[1:]), bytes.fromhex(other[1:]))
    return "#" + "".join(f"{math.floor(a + (b - a) * share + 0.5):02x}" for a, b in pairs)


def readable_on(back: str) -> str:
    """Nearly black or white, whichever has more contrast (relative luminance of WCAG 2)."""
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055)**2.4 for c in (one / 255 for one in bytes.fromhex(back[1:]))]
    return "#141414" if 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] > 0.179 else "#ffffff"


def hatch_lines(area: Box, slopes: tuple[int, ...], gap: float) -> list[list[Spot]]:
    """Lines over the area, `gap` points apart: rising (1), falling (-1). Those of neighbours meet."""
    lines, step = [], gap * math.sqrt(2)  # along x
    for slope in slopes:
        ends = area.x + slope * area.y, area.x + slope * (area.y + area.height)
        for at in range(math.floor(min(ends) / step), math.ceil((max(ends) + area.width) / step)):
            c = at * step  # of the line x + slope * y = c
            low, high = sorted((c - slope * area.y, c - slope * (area.y + area.height)))
            begin, end = max(area.x, low), min(area.x + area.width, high)
            if end - begin >= 0.05:
                lines.append([(begin, (c - begin) / slope), (end, (c - end) / slope)])
    return lines


def _length(value: float) -> str:
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def svg(drawing: Drawing, in_page: bool = False) -> str:
    """As a file; or as a part of a page, as wide as its place there, which zooms and has the page's colours."""
    width, height = _length(drawing.width), _length(drawing.height)
    head = f'<svg viewBox="0 0 {width} {height}" font-family="{_FONTS}"'
    if in_page:
        head += f' data-axes="{_length(drawing.zoomed[0])} {_length(drawing.width)} {_length(drawing.zoomed[1])}">\n'
    else:
        head += f' role="img" xmlns="http://www.w3.org/2000/svg" width="{width}pt" height="{height}pt">\n<title>{_xml(drawing.title)}</title>\n'
    paper = f'<rect width="100%" height="100%" fill="{COLOUR["back"]}"/>\n'
    return head + paper + "".join(_svg_shape(shape) for shape in drawing.shapes) + "</svg>\n"


def _svg_shape(shape: Shape) -> str:
    if isinstance(shape, Words):
        x, y = _length(shape.x), _length(shape.y)
        return f'<text x="{x}" y="{y}" font-size="{_length(shape.size)}" fill="{shape.colour}"' + \
            f' text-anchor="{shape.anchor}"' * (shape.anchor != "start") + ' font-weight="bold"' * shape.bold + \
            f' data-zoom="{shape.zoom}" display="none"' * (shape.zoom > 1) + \
            f' transform="rotate({_length(shape.turn)} {x} {y})"' * (shape.turn != 0) + f">{_xml(shape.text)}</text>\n"
    paint = f' fill="{shape.fill or "none"}"'
    if shape.line:
        paint += f' stroke="{shape.line}" stroke-width="{_length(shape.thick)}" stroke-linejoin="round"'
    if isinstance(shape, Path):
        lines = "".join("M" + "L".join(f"{_length(x)} {_length(y)}" for x, y in piece) for piece in shape.pieces)
        short = re.sub(r" ([^ L]+)L([^ ]+) \1(?=[ML]|$)", r" \1H\2", lines)  # level ones
        return f'<path d="{short}"{paint}/>\n'
    sides = f'<rect x="{_length(shape.x)}" y="{_length(shape.y)}" width="{_length(shape.width)}" height="{_length(shape.height)}"'
    return sides + paint + (f"><title>{_xml(shape.title)}</title></rect>\n" if shape.title else "/>\n")


def _printable(text: str) -> str:
    """One line, without what is no character of XML or TeX."""
    return re.sub("[^\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", " ".join(text.split()))


def _xml(text: str) -> str:
    return html.escape(_printable(text))


def tikz(drawing: Drawing) -> str:
    """A `tikzpicture` for \\input, in plain TikZ; its head says what a document needs."""
    body = "".join(_tikz_shape(shape) for shape in drawing.shapes)
    names = sorted(set(re.findall("concertina([0-9a-f]{6})", body)))
    colours = "".join(f"\\definecolor{{concertina{name}}}{{HTML}}{{{name.upper()}}}\n" for name in names)
    return ("% In a document with \\usepackage{tikz}: \\input this file. By itself:\n"
            "%   \\documentclass{standalone}\\usepackage{tikz}\\begin{document}\\input{FILE}\\end{document}\n"
            f"\\begin{{tikzpicture}}[x=1bp,y=-1bp]\n{colours}"
            f"\\useasboundingbox (0,0) rectangle ({_length(drawing.width)},{_length(drawing.height)});\n{body}\\end{{tikzpicture}}\n")


def _tikz_shape(shape: Shape) -> str:
    if isinstance(shape, Words):
        look = "anchor=base" + {"start": " west", "middle": "", "end": " east"}[shape.anchor] + \
            f",inner sep=0pt,text={shape.colour.replace('#', 'concertina')}" + f",rotate={_length(-shape.turn)}" * (shape.turn != 0)
        font = "\\sffamily" + "\\bfseries" * shape.bold + f"\\fontsize{{{_length(shape.size)}bp}}{{{_length(1.2 * shape.size)}bp}}\\selectfont"
        text = "".join(_TEX.get(letter, letter) for letter in _printable(shape.text))
        return f"\\node[{look},font={font}] at ({_length(shape.x)},{_length(shape.y)}) {{{text}}};\n"
    paint = f"fill={shape.fill.replace('#', 'concertina')}," if shape.fill else ""
    if shape.line:
        paint += f"draw={shape.line.replace('#', 'concertina')},line width={_length(shape.thick)}bp,line join=round,"
    if isinstance(shape, Path):
        lines = (" " + "--".join(f"({_length(x)},{_length(y)})" for x, y in piece) for piece in shape.pieces)
        return f"\\path[{paint}]{''.join(lines)};\n"
    corners = (f"({_length(x)},{_length(y)})" for x, y in ((shape.x, shape.y), (shape.x + shape.width, shape.y + shape.height)))
    return f"\\path[{paint}] {' rectangle '.join(corners)};\n"


def converted(drawing: Drawing, kind: str) -> bytes:
    """The bytes of a file of the kind ".pdf" or ".png", drawn by matplotlib."""
    from matplotlib import patches, path
    from matplotlib.figure import Figure

    from .chart import save
    figure = Figure((drawing.width / 72, drawing.height / 72))
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, drawing.width), ylim=(drawing.height, 0))
    axes.set_axis_off()
    for shape in drawing.shapes:
        if isinstance(shape, Words):
            anchor = {"start": "left", "middle": "center", "end": "right"}[shape.anchor]
            axes.text(shape.x, shape.y, shape.text, size=shape.size, color=shape.colour, weight="bold" if shape.bold else "normal",
                      rotation=-shape.turn, rotation_mode="anchor", ha=anchor, va="baseline", parse_math=False)
            continue
        look: dict[str, typing.Any] = {"fc": shape.fill or "none", "ec": shape.line or "none", "lw": shape.thick if shape.line else 0, "joinstyle": "round"}
        if isinstance(shape, Box):
            axes.add_patch(patches.Rectangle((shape.x, shape.y), shape.width, shape.height, **look))
        else:
            pieces = path.Path.make_compound_path(*map(path.Path, shape.pieces))
            axes.add_patch(patches.PathPatch(pieces, **look))
    return save(figure, kind)
