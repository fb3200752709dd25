"""What a soak found: as text, JSON, a picture and a page."""
from __future__ import annotations

import dataclasses
import html
import math
import typing


@dataclasses.dataclass
class Fault:
    """Seconds are from the start of the run; None: it did not happen."""
    kind: str
    at: float
    harmless: bool = False  # it may pass unseen
    reached: int = 0  # the last step that was done then
    host: str = ""  # that it was made of
    seen: float | None = None  # by a rank or the supervisor
    recovered: float | None = None  # a step is done that was not before


@dataclasses.dataclass
class Trained:
    """A run that has ended. `hash`: state_sha256; empty if it is not finished, and `why` says why."""
    hash: str
    seconds: float  # from the first launch to the end
    step_seconds: float  # of its steps, each counted once
    losses: list[tuple[int, float | None]]
    faults: list[Fault]
    repeated: list[int]  # steps, by restart
    why: str

    @property
    def useful(self) -> float:
        return self.step_seconds / self.seconds


@dataclasses.dataclass
class Result:
    clean: Trained
    disturbed: Trained

    @property
    def passed(self) -> bool:
        """Whether all faults were recovered from, and nothing that was trained differs."""
        one, two = self.clean, self.disturbed
        return not two.why and one.hash != "" and one.hash == two.hash and one.losses == two.losses and \
            all(fault.recovered is not None for fault in two.faults)

    @property
    def bits(self) -> str:
        if not self.disturbed.hash:
            return "the disturbed run is not finished"
        if self.disturbed.hash != self.clean.hash:
            return "other weights or optimizer state"
        return "the same bits: state_sha256, and the loss of every step" if self.disturbed.losses == self.clean.losses else "other losses"

    @property
    def restarts(self) -> str:
        steps = self.disturbed.repeated
        if not steps:
            return "no restart"
        times = "1 restart" if len(steps) == 1 else f"{len(steps)} restarts"
        return f"{times}, each with {spread(steps)[0]:g} steps trained twice (p50), {max(steps):g} at most"


def spread(values: typing.Iterable[float]) -> list[float | None]:
    """p50, p99 and the largest; where values are few, a percentile is the next larger one."""
    ordered = sorted(values)
    return [ordered[math.ceil(share * (len(ordered) - 1))] if ordered else None for share in (0.5, 0.99, 1)]


def _delays(faults: list[Fault]) -> tuple[list[float], list[float]]:
    """Seconds from each fault until it was seen, and until it was recovered from."""
    return ([fault.seen - fault.at for fault in faults if fault.seen is not None],
            [fault.recovered - fault.at for fault in faults if fault.recovered is not None])


def result_json(result: Result) -> dict[str, typing.Any]:
    seen, recovered = _delays(result.disturbed.faults)

    def named(values: typing.Iterable[float]) -> dict[str, float | None]:
        return dict(zip(("p50", "p99", "max"), spread(values)))

    return {"passed": result.passed, "faults": len(result.disturbed.faults), "recovered": len(recovered),
            "restarts": len(result.disturbed.repeated), "seen_s": named(seen), "recovered_s": named(recovered),
            "steps_repeated": named(result.disturbed.repeated), "useful": result.disturbed.useful,
            "useful_without_faults": result.clean.useful, "seconds": result.disturbed.seconds, "state_sha256": result.disturbed.hash,
            "state_sha256_without_faults": result.clean.hash, "why": result.disturbed.why}


def seconds_text(seconds: float) -> str:
    return f"{seconds:.3g} s"


def rows(result: Result) -> list[list[str]]:
    """By kind, with a last row of all."""
    table = [["fault", "made", "recovered from", "seen p50, s", "p99", "max", "recovered p50, s", "p99", "max"]]
    faults = result.disturbed.faults
    for kind in [*sorted({fault.kind for fault in faults}), *(["all"] if faults else [])]:
        these = [fault for fault in faults if kind in (fault.kind, "all")]
        seen, recovered = _delays(these)
        table.append([kind, str(len(these)), str(len(recovered)),
                      *("" if value is None else f"{value:.2f}" for value in spread(seen) + spread(recovered))])
    return table


def text(result: Result) -> str:
    table = rows(result)
    widths = [max(map(len, column)) for column in zip(*table)]
    lines = ["  ".join(cell.rjust(width) if i else cell.ljust(width) for i, (cell, width) in enumerate(zip(row, widths))).rstrip()
             for row in table]
    one, two = result.disturbed, result.clean
    lines += [result.restarts, f"useful time {100 * one.useful:.1f}% of {seconds_text(one.seconds)} ({100 * two.useful:.1f}% of "
              f"{seconds_text(two.seconds)} without faults); {result.bits}", *([one.why] if one.why else [])]
    return "\n".join(lines) + "\n"


def picture(result: Result) -> str:
    """The share of faults by the seconds within which they were seen, and recovered from: SVG."""
    left, top, right, bottom = 60, 34, 850, 250
    faults = result.disturbed.faults
    seen, recovered = _delays(faults)
    # What passed unseen counts in the second line alone.
    curves = [("seen", "s", seen, len(seen) + sum(1 for fault in faults if fault.seen is None and fault.recovered is None)),
              ("a new step is done", "r", recovered, len(faults))]
    most = max([1e-3, *seen, *recovered])
    step = 10 ** math.floor(math.log10(most))
    step *= next(times for times in (0.2, 0.5, 1, 2) if most / (step * times) <= 6 or times == 2)
    shapes = [f'<text x="{left}" y="16">From a fault to the next new step</text>']
    for share in range(0, 101, 20):
        y = bottom - (bottom - top) * share / 100
        shapes.append(f'<path class="grid" d="M{left} {y:g}H{right}"/><text x="{left - 6}" y="{y + 4:g}" text-anchor="end">{share}</text>')
    for i in range(int(most / step) + 1):
        x = left + (right - left) * i * step / most
        shapes.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{i * step:g}</text>')
    shapes.append(f'<text x="{right}" y="{bottom + 38}" text-anchor="end">time after the fault, s</text>'
                  f'<text x="14" y="{(top + bottom) / 2:g}" transform="rotate(-90 14 {(top + bottom) / 2:g})" text-anchor="middle">faults, %</text>')
    for i, (name, style, delays, count) in enumerate(curves):
        path = f"M{left} {bottom}" + "".join(f"H{left + (right - left) * delay / most:.1f}V{bottom - (bottom - top) * (n + 1) / count:.1f}"
                                             for n, delay in enumerate(sorted(delays)))
        shapes.append(f'<path class="{style}" d="{path}"/><text class="{style}" x="{right}" y="{bottom - 14 - 18 * i}" text-anchor="end">{name}</text>')
    style = ("text{font:13px sans-serif;fill:#222}path{fill:none;stroke-width:2}.grid{stroke:#8884;stroke-width:1}path.s{stroke:#0072b2}"
             "path.r{stroke:#d55e00}text.s{fill:#0072b2}text.r{fill:#d55e00}"
             "@media (prefers-color-scheme:dark){text{fill:#ddd}}")
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 870 295"><style>{style}</style>{"".join(shapes)}</svg>\n'


_STYLE = """:root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;max-width:1100px;margin:0 auto;padding:20px}
.tiles{display:flex;flex-wrap:wrap;gap:12px}.tiles div{background:#8882;border-radius:8px;padding:10px 16px;flex:1 1 180px}
b{display:block;font-size:24px}.wide{overflow-x:auto}table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums}
th,td{padding:3px 12px 3px 0;text-align:right;border-bottom:1px solid #8884;white-space:nowrap}
th:first-child,td:first-child{text-align:left}svg{width:100%;min-width:560px}"""


def page(result: Result, mean: float, seed: str) -> str:
    tiles = [(str(len(result.disturbed.faults)), f"faults, on average {mean:g} s apart (seed {seed})"),
             (f"{100 * result.disturbed.useful:.1f}%", "of the time was useful"), (f"{100 * result.clean.useful:.1f}%", "without faults"),
             ("passed" if result.passed else "failed", result.bits)]
    head, *body = ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows(result)]
    paragraphs = [result.restarts, *([result.disturbed.why] if result.disturbed.why else [])]
    return ("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/><meta name=\"viewport\" content=\"width=device-width, "
            f"initial-scale=1\"/>\n<title>Soak · concertina</title><style>{_STYLE}</style></head>\n<body><h1>Soak</h1>\n<div class=\"tiles\">"
            + "".join(f"<div><b>{html.escape(value)}</b>{html.escape(about)}</div>" for value, about in tiles) + "</div>\n"
            + "".join(f"<p>{html.escape(paragraph)}</p>\n" for paragraph in paragraphs)
            + f"<h2>Faults</h2>\n<div class=\"wide\"><table><tr>{head.replace('td>', 'th>')}</tr>\n"
            + "".join(f"<tr>{row}</tr>\n" for row in body) + f"</table></div>\n<div class=\"wide\">{picture(result)}</div></body></html>\n")
