"""The picture of `concertina schedule draw`, whose input is the predicted steps as JSON."""
import json
import pathlib
import sys

from ..files import replace_file
from ..page import content, page, words
from ..steps import timeline_block
from . import Options


def main(options: Options) -> int:
    """`note` stands below the picture of a page."""
    path = pathlib.Path(options.text("out"))
    if path.suffix.lower() != ".html":
        from ..chart import save  # before the input is read: another Python may have to take over
        from ..timeline import draw_timelines
        replace_file(path, save(draw_timelines(json.load(sys.stdin)), path.suffix.lower()))
        return 0
    given = json.load(sys.stdin)
    title = "Predicted timelines of " + ", ".join(panel["name"] for panel in given["panels"])
    replace_file(path, page(content(title, "", [timeline_block(given), words("note", options.text("note"))])))
    return 0
