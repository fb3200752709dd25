"""The picture of `concertina schedule draw`, whose input is the predicted steps as JSON."""
from __future__ import annotations

import json
import pathlib
import sys
import typing

from ..drawing import converted, svg, tikz
from ..files import replace_file
from ..page import content, page, words
from ..timeline import draw_timelines

if typing.TYPE_CHECKING:
    from . import Options


def main(options: Options) -> int:
    """`note` stands below the picture of a page."""
    kind = pathlib.Path(options.text("out")).suffix.lower()
    drawing = draw_timelines(json.load(sys.stdin), in_page=kind == ".html")
    text: str | bytes
    if kind == ".html":
        blocks = [{"kind": "timeline", "svg": svg(drawing, in_page=True)}, words("note", options.text("note"))]
        text = page(content(drawing.title, "", blocks))
    else:
        text = svg(drawing) if kind == ".svg" else tikz(drawing) if kind == ".tex" else converted(drawing, kind)
    replace_file(options.text("out"), text)
    return 0
