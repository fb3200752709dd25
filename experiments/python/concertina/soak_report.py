"""The results of a soak as text, JSON and a page."""
import dataclasses
import math
import typing

from .page import Block, chart, content, line, table, words
from .names import counted, text_table

_SHARES = {"p50": 0.5, "p99": 0.99, "max": 1}

@dataclasses.dataclass
class Fault:
    """Times are in seconds from the start of the run; None: the event did not happen."""
    kind: str
    at: float
    harmless: bool = False  # may go unnoticed
    reached: int = 0  # the last completed step at that time
    host: str = ""  # affected by the fault
    seen: float | None = None  # by a rank or the supervisor
    recovered: float | None = None  # a new step was completed


@dataclasses.dataclass
class Trained:
    """A finished run. `hash`: state_sha256; empty if the run did not finish, for the reason in `why`."""
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
        """Whether the run recovered from all faults and the training results are equal."""
        one, two = self.clean, self.disturbed
        return not two.why and one.hash != "" and one.hash == two.hash and one.losses == two.losses and \
            all(fault.recovered is not None for fault in two.faults)

    @property
    def bits(self) -> str:
        if not self.disturbed.hash:
            return "the disturbed run did not finish"
        if self.disturbed.hash != self.clean.hash:
            return "different weights or optimizer state"
        return "the same bits: state_sha256, and the loss of every step" if self.disturbed.losses == self.clean.losses else "different losses"

    @property
    def restarts(self) -> str:
        steps = self.disturbed.repeated
        if not steps:
            return "no restart"
        return f"{counted(len(steps), 'restart')}, each with {spread(steps)['p50']:g} repeated steps (p50), {max(steps):g} at most"


def spread(values: typing.Iterable[float]) -> dict[str, float | None]:
    """A percentile that falls between two values is the larger of the two."""
    ordered = sorted(values)
    return {name: ordered[math.ceil(share * (len(ordered) - 1))] if ordered else None for name, share in _SHARES.items()}


def _delays(faults: list[Fault]) -> tuple[list[float], list[float]]:
    """Seconds from each fault until it was detected, and until recovery."""
    return ([fault.seen - fault.at for fault in faults if fault.seen is not None],
            [fault.recovered - fault.at for fault in faults if fault.recovered is not None])


def result_json(result: Result) -> dict[str, typing.Any]:
    seen, recovered = _delays(result.disturbed.faults)
    return {"passed": result.passed, "faults": len(result.disturbed.faults), "recovered": len(recovered),
            "restarts": len(result.disturbed.repeated), "seen_s": spread(seen), "recovered_s": spread(recovered),
            "steps_repeated": spread(result.disturbed.repeated), "useful": result.disturbed.useful,
            "useful_without_faults": result.clean.useful, "seconds": result.disturbed.seconds, "state_sha256": result.disturbed.hash,
            "state_sha256_without_faults": result.clean.hash, "why": result.disturbed.why}


def rows(result: Result) -> list[list[str]]:
    """The header and rows of a table by kind, ending with the total."""
    table = [["fault", "made", "recovered from", "seen p50, s", "p99", "max", "recovered p50, s", "p99", "max"]]
    faults = result.disturbed.faults
    for kind in [*sorted({fault.kind for fault in faults}), *(["all"] if faults else [])]:
        these = [fault for fault in faults if kind in (fault.kind, "all")]
        seen, recovered = _delays(these)
        table.append([kind, str(len(these)), str(len(recovered)),
                      *("" if value is None else f"{value:.2f}" for value in (*spread(seen).values(), *spread(recovered).values()))])
    return table


def text(result: Result) -> str:
    one, two = result.disturbed, result.clean
    return text_table(rows(result), 1) + (
        f"{result.restarts}\nuseful time {100 * one.useful:.1f}% of {one.seconds:.3g} s ({100 * two.useful:.1f}% of {two.seconds:.3g} s "
        f"without faults); {result.bits}\n" + f"{one.why}\n" * bool(one.why))


def _share_within(name: str, delays: list[float], count: int, color: str) -> Block:
    """The share of `count` faults, in percent, over the seconds after the fault."""
    return line(name, [0, *sorted(delays)], [100 * at / max(count, 1) for at in range(len(delays) + 1)], color, stepped=True)


def content_of(result: Result, mean: float, seed: str) -> Block:
    one, two, (head, *body) = result.disturbed, result.clean, rows(result)
    tiles = [(str(len(one.faults)), f"faults, on average {mean:g} s apart (seed {seed})"),
             (f"{100 * one.useful:.1f}%", "of the time was useful"), (f"{100 * two.useful:.1f}%", "without faults"),
             ("passed" if result.passed else "failed", result.bits)]
    seen, recovered = _delays(one.faults)
    # Faults that went unnoticed count only in the second line.
    unseen = sum(fault.seen is None and fault.recovered is None for fault in one.faults)
    series = [_share_within("seen", seen, len(seen) + unseen, "blue"), _share_within("a new step is completed", recovered, len(one.faults), "vermillion")]
    return content("Soak", "; ".join(filter(None, (result.restarts, one.why))), [
        {"kind": "tiles", "tiles": tiles}, words("heading", "Faults"), table(head, body),
        chart("from a fault to the next new step, % of faults", series, x="seconds after the fault", zero=True)])
