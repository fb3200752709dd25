"""Steps of schedules, from the JSON of experiments/timeline/timeline_rows.h, in the form that figures (timeline.py) and pages draw."""
import typing

from .names import counted

Json = dict[str, typing.Any]

# Color (in chart.py and page.html) and meaning of each kind of work. In grayscale, hatches distinguish W and the optimizer from F, B, I.
LOOKS = {"forward": ("blue", "F forward"), "backward": ("orange", "B backward (I and W)"), "input": ("pale", "I input gradient"),
         "weight": ("sky", "W weight gradient"), "optimizer": ("pink", "optimizer"), "idle": ("idle", "waiting"),
         "transfer": ("vermillion", "waiting for a transfer"), "reduction": ("green", "waiting for reduction"),
         "exchange": ("dark", "waiting in the optimizer")}
_TIMES = {"s": 1.0, "ms": 1e-3, "µs": 1e-6}
_BYTES = {"GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10, "bytes": 1}


def short_number(value: float, digits: int = 4) -> str:
    """ "0.25", "12345", "3.5e-06": with this many significant digits, but all digits of the integer part."""
    return f"{value:.0f}" if 10**digits <= abs(value) < 1e7 else f"{value:.{digits}g}"


def described(given: Json) -> Json:
    """Adds text to the steps: units of time and memory, their sizes, and for each panel `title` and `figures`."""
    panels = given["panels"]
    longest = max(panel["makespan"] for panel in panels)
    unit = given.get("unit") or next((name for name, seconds in _TIMES.items() if longest >= seconds), "µs")
    unit = "" if given.get("time_label") else unit
    most = max((amount for panel in panels if "saved" in panel for _, amount in panel["saved"]["levels"]), default=0)
    memory = next(name for name, size in _BYTES.items() if most >= size or size == 1) if given.get("bytes") else "microbatches"
    more = {"longest": longest or 1, "second": _TIMES.get(unit, 1), "unit": unit, "most_saved": most, "byte": _BYTES.get(memory, 1),
            "time_label": given.get("time_label") or f"time ({unit})", "notes": _notes(given)}
    return {**given, **more, "panels": [{**panel, **_said(panel, more, memory)} for panel in panels]}


def _said(panel: Json, known: Json, memory: str) -> Json:
    title = " ".join(panel["name"].encode(errors="replace").decode().split())
    figures = caption = ""
    if "by_cause" in panel:
        causes = {cause.replace("_", " "): share for cause, share in panel["by_cause"].items() if share >= 0.0005}
        listed = ", ".join(f"{cause} {share:.1%}" if len(causes) > 1 else cause for cause, share in causes.items())
        title += f", {counted(panel['ranks'], 'rank')} x {counted(panel['microbatches'], 'microbatch')}"
        figures = f"makespan {short_number(panel['makespan'] / known['second'])} {known['unit']}".rstrip()
        figures += f", bubble {panel['bubble']:.1%}" + f" ({listed})" * bool(listed)
    if "saved" in panel:
        peak = short_number(max(amount for _, amount in panel["saved"]["levels"]) / known["byte"], 3)
        share = " of a rank's share of the model" * (memory == "microbatches")
        caption = f"activations of rank {panel['saved']['rank']}, which saves most, up to {peak} {memory}{share}"
    return {"title": title, "figures": figures, "caption": caption}


def _notes(given: Json) -> str:
    """Notes on everything that is simplified in the drawing."""
    text = f"Too many boxes: each of {given['columns']:,} columns has the color of its longest action. " if given.get("columns") else ""
    most = max((len(panel["rows"]) for panel in given["panels"] if len(panel["rows"]) < panel["ranks"]), default=0)
    return text + f"At most {most} ranks are shown, equally spaced." * (most > 0)


def timeline_block(given: Json) -> Json:
    """A block of a page; kinds of work, and times rounded to columns, are given by index."""
    known, kinds = described(given), list(LOOKS)
    columns = known.get("columns")

    def box(kind: str, start: float, end: float, *more: typing.Any) -> list[typing.Any]:
        times = (round(one / known["longest"] * columns) if columns else float(f"{one:.7g}") for one in (start, end))
        return [kinds.index(kind), *times, *more]

    panels = [{**panel, "rows": [{**row, "boxes": [box(*one) for one in row["boxes"]]} for row in panel["rows"]]} for panel in known["panels"]]
    return {"kind": "timeline", "looks": LOOKS, **known, "panels": panels}
