"""The figures of `concertina study scaling`, whose JSON is the input: speed-up, efficiency, and where the time of all ranks goes."""
from __future__ import annotations

import json
import pathlib
import sys
import typing

from ..chart import Axis, Chart, Series
from ..chart import draw, save
from ..files import replace_file

if typing.TYPE_CHECKING:
    from . import Options

Json = dict[str, typing.Any]


def _by_ranks(results: list[Json]) -> list[Json]:
    """The first result of each number of ranks, which has the config's own microbatches."""
    return [one for at, one in enumerate(results) if not at or one["ranks"] != results[at - 1]["ranks"]]


def _gains(points: list[Json], name: str) -> Chart:
    """Speed-up or efficiency over ranks: measured with the spread of its rounds, predicted, and ideal."""
    percent = 100 if name == "efficiency" else 1
    series = []
    for kind in ("predicted", "measured"):
        known = [one for one in points if f"{kind}_{name}" in one]
        series.append(Series(kind, [one["ranks"] for one in known], [percent * one[f"{kind}_{name}"] for one in known]))
        if kind == "measured":
            series[-1].low, series[-1].high = ([value * one["measured_ms"] / ends(one["rounds_ms"]) for value, one in zip(series[-1].y, known)]
                                               for ends in (max, min))
    ranks = [one["ranks"] for one in points]
    ideal = Series("ideal", ranks, [percent * (1 if name == "efficiency" else one / ranks[0]) for one in ranks], look=-1)
    y = Axis("efficiency", "%", from_zero=True) if name == "efficiency" else Axis("speed-up", scale="log2")
    return Chart("lines", Axis("ranks", scale="log2"), y, [ideal, *series])


def _parts(points: list[Json]) -> Chart:
    """Milliseconds that all ranks spend on a sample, by what they do: the same for all where the ranks scale perfectly."""
    bars = [(one, kind) for one in points for kind in ("measured", "predicted") if one.get(f"{kind}_ms") is not None]
    names = [f"{counted} ranks, {kind}" for counted, kind in ((one["ranks"], kind) for one, kind in bars)]
    series = [Series(part, names, [one[f"{kind}_parts"][part] * one[f"{kind}_ms"] * one["ranks"] / one["batch"] for one, kind in bars])
              for part in points[0]["predicted_parts"]]
    return Chart("stacks", Axis("rank time per sample", "ms"), series=series, width=6.75,
                 title="Where the time of all ranks goes (equal bars: perfect scaling)")


def main(options: Options) -> int:
    """Weak scaling has no speed-up: its batches differ."""
    report = json.load(sys.stdin)
    points = _by_ranks(report["results"])
    charts = {name: _gains(points, name) for name in ("speedup", "efficiency") if report["mode"] != "weak" or name == "efficiency"}
    for name, chart in (charts | {"parts": _parts(points)}).items():
        replace_file(pathlib.Path(options.text("folder"), f"{name}.svg"), save(draw(chart), ".svg"))
    return 0
