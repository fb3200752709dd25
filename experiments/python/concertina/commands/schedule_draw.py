"""The picture of `concertina schedule draw`, whose input is the predicted steps as JSON."""
from __future__ import annotations

import json
import pathlib
import sys
import typing

from ..files import replace_file
from ..page import content, page, words
from ..steps import timeline_block

if typing.TYPE_CHECKING:
    from . import Options


def main(options: Options) -> int:
    """`note` stands below the picture of a page."""
    given, kind = json.load(sys.stdin), pathlib.Path(options.text("out")).suffix.lower()
    if kind == ".html":
        title = "Predicted timelines of " + ", ".join(panel["name"] for panel in given["panels"])
        replace_file(options.text("out"), page(content(title, "", [timeline_block(given), words("note", options.text("note"))])))
    else:
        from ..chart import save
        from ..timeline import draw_timelines
        replace_file(options.text("out"), save(draw_timelines(given), kind))
    return 0
