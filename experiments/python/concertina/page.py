"""Pages of runs: single HTML files with their data as JSON, which a script in the file draws.

A page is a title and blocks. A block is a dictionary; page.html draws each "kind". All texts are escaped. Numbers that are absent or not
finite are null, and leave gaps in charts.
"""
import base64
import hashlib
import html
import math
import os
import pathlib
import re
import typing
import urllib.parse

from .files import json_text

Block = dict[str, typing.Any]
Mark = tuple[float, str, str]  # position, label and text

MOST_POINTS = 1600  # per series; a chart is less than 1,300 pixels wide
LEAST_SMOOTHED = 40  # points; shorter series are not smoothed

SERIES = ["blue", "orange", "green", "vermillion", "sky", "pink", "dark", "yellow"]


def chart(title: str, series: typing.Sequence[Block], *, x: str = "step", note: str = "", **more: typing.Any) -> Block:
    """Lines over `x`. `more`: marks, bands (from, to, share of the height), zero (y includes 0), share (in percent), high, wide, range."""
    return {"kind": "chart", "title": title, "x": x, "series": [one for one in series if one["x"]], "note": note, **more}


def line(name: str, x: typing.Sequence[float], y: typing.Sequence[float], color: str = "blue", **more: typing.Any) -> Block:
    """A series of a chart. `more`: faint, dash (lengths), points, area, stepped."""
    at, values = reduced(x, y)
    return {"name": name, "x": at, "y": values, "color": color, **more}


def unzipped(points: typing.Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """Returns x and y."""
    return [x for x, _ in points], [y for _, y in points]


def table(head: typing.Sequence[str], rows: typing.Iterable[typing.Sequence[typing.Any]], left: int = 1, **more: typing.Any) -> Block:
    """The first `left` columns are left-aligned. A cell is a text, or an object with text, href, title and look."""
    return {"kind": "table", "head": list(head), "rows": [list(row) for row in rows], "left": left, **more}


def words(kind: str, text: str) -> Block:
    """`kind`: heading, lead or note."""
    return {"kind": kind, "text": text}


def section(heading: str, blocks: typing.Iterable[Block], lead: str = "") -> list[Block]:
    """Blocks below a heading; nothing if there are none."""
    return [words("heading", heading), *[words("lead", lead)] * bool(lead), *shown] if (shown := list(blocks)) else []


def folded(summary: str, text: str = "", blocks: typing.Sequence[Block] = ()) -> list[Block]:
    """Text or blocks that appear when the summary line is expanded; nothing if there are none."""
    return [{"kind": "fold", "summary": summary, "text": text, "blocks": list(blocks)}] if text or blocks else []


def reduced(x: typing.Sequence[float], y: typing.Sequence[float], most: int = MOST_POINTS) -> tuple[list[float], list[float | None]]:
    """The lowest and highest value of each of most / 2 equal parts, in order, with gaps for non-finite values."""
    values = [one if math.isfinite(one) else None for one in y]
    size, kept = -(-len(values) // (most // 2)), {0, len(values) - 1}
    if len(values) <= most:
        return list(x), values
    for begin in range(0, len(values), size):
        part = [(value, at) for at, value in enumerate(values[begin:begin + size], begin) if value is not None]
        if part:
            kept |= {min(part)[1], max(part)[1]}
        if len(part) < min(size, len(values) - begin):
            kept.add(values.index(None, begin))
    order = sorted(kept)
    return [x[at] for at in order], [values[at] for at in order]


def smoothed(y: typing.Sequence[float], span: float, rates: bool = False) -> list[float]:
    """The exponential moving average over about `span` values; for `rates`, of their reciprocals: total work over total time."""
    keep, total, weight, means = 1 - 1 / span if span > 1 else 0.0, 0.0, 0.0, []
    for one in y:
        value = 1 / one if rates and one else one
        if math.isfinite(value) and not (rates and not one):
            total, weight = keep * total + (1 - keep) * value, keep * weight + (1 - keep)
            means.append(weight / total if rates else total / weight)
        else:
            means.append(math.nan)
    return means


def run_link(text: str, directory: str | os.PathLike[str], output: str | os.PathLike[str]) -> Block:
    """A cell of the page at `output` that links to the page of the run in `directory`, or to the directory if there is no page."""
    report = pathlib.Path(directory, "report.html")
    target = os.path.relpath(report if report.is_file() else directory, os.path.dirname(os.path.abspath(output)))
    return {"text": text + " (report)" * report.is_file(), "href": urllib.parse.quote(target)}


def write_json(value: object) -> str:
    """JSON that is safe within HTML."""
    return json_text(value).replace("<", "\\u003c")


def content(title: str, sub: str, blocks: typing.Sequence[Block], **more: typing.Any) -> Block:
    return {"title": title, "sub": sub, "blocks": list(blocks), **more}


def page(what: Block) -> str:
    """The HTML of content(). With "live", the page polls the server that sent it."""
    folder = pathlib.Path(__file__).parent
    text, library, style, licence = ((folder / name).read_text(encoding="utf-8") for name in (
        "page.html", "uplot/uPlot.iife.min.js", "uplot/uPlot.min.css", "uplot/LICENSE"))
    scripts = [f"/*!\n{licence}*/\n{library}", text[text.index("<script>") + 8:text.rindex("</script>")]]
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'" for one in scripts)
    parts = {"TITLE": html.escape(str(what["title"])), "HASHES": hashes, "STYLE": style,
             "LIBRARY": f"<script>{scripts[0]}</script>", "DATA": write_json({**what, "series": SERIES})}
    return re.sub(r"\{\{([A-Z]+)\}\}", lambda found: parts[found[1]], text)
