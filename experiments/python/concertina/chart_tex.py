"""Figures for \\input in a document: matplotlib's PGF backend, but texts are measured without LaTeX and have all their letters."""
from __future__ import annotations

import io
import re
import typing

from matplotlib.backends.backend_pgf import RendererPgf
from matplotlib.figure import Figure
from matplotlib.textpath import text_to_path

_LETTERS = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
            "|": r"\textbar{}", "µ": r"\ensuremath{\mu}", "×": r"\ensuremath{\times}", "…": r"\ldots{}", **{mark: "\\" + mark for mark in "{}$&#_%"}}
_HEAD = r"""% In a document with \usepackage{pgf} or \usepackage{tikz}: \input this file. By itself:
%   \documentclass{standalone}\usepackage{pgf}\begin{document}\input{FILE}\end{document}
"""


class _Renderer(RendererPgf):  # type: ignore[misc]
    def get_text_width_height_descent(self, s: str, prop: typing.Any, ismath: typing.Any) -> tuple[float, float, float]:
        return tuple(self.points_to_pixels(1) * size for size in text_to_path.get_text_width_height_descent(s, prop, False))  # type: ignore

    def draw_text(self, gc: typing.Any, x: float, y: float, s: str, *rest: typing.Any, **more: typing.Any) -> None:
        plain = re.sub("[^\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", s)
        super().draw_text(gc, x, y, "".join(_LETTERS.get(letter, letter) for letter in plain), *rest, **more)


def tex(figure: Figure) -> str:
    text = io.StringIO()
    figure.set_dpi(72)
    figure.draw(_Renderer(figure, text))
    width, height = figure.get_size_inches()
    return _HEAD + f"\\begingroup\\makeatletter\n\\begin{{pgfpicture}}\n\\pgfpathrectangle{{\\pgfpointorigin}}{{\\pgfqpoint{{{width:f}in}}{{{height:f}in}}}}\n" \
        f"\\pgfusepath{{use as bounding box, clip}}\n{text.getvalue()}\\end{{pgfpicture}}\n\\makeatother\\endgroup\n"
