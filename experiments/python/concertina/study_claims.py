"""A study's claims about groups and their gains (equivalence, fronts), and the course of a search by successive halving."""
from __future__ import annotations

import dataclasses
import math
import typing

from .errors import InputError
from .measures import why_incomparable
from .names import Better, Metric, digits_for, metric_named, number_text, pareto_front
from .results import Claim, RunSummary, StudyResults, group_label
from .statistic import PAIRED, Equivalence, Pairs, compare_pairs, interval, test_equivalence

if typing.TYPE_CHECKING:
    from .study_table import StudyTable

Rows = list[list[str]]


@dataclasses.dataclass
class FrontPoint:
    name: str
    baseline: bool
    pairs: int = 0
    gain: float | None = None  # ratio to the baseline, the geometric mean of pairs
    gain_ci_low: float | None = None
    gain_ci_high: float | None = None
    change: float | None = None  # minus the baseline, paired
    change_ci_low: float | None = None
    change_ci_high: float | None = None
    on_front: bool = False  # no other group is as good in both metrics and better in one
    equivalence: Equivalence | None = None


@dataclasses.dataclass
class Front:
    """The gains of groups over their baseline in one metric, against the losses in another."""
    gain: Metric
    change: Metric
    confidence: float  # of the intervals of gains
    change_confidence: float  # 1 - 2 alpha if that metric has a claim
    points: list[FrontPoint] = dataclasses.field(default_factory=list)
    loss_begins: str | None = None  # the first group that is not shown to be as good as the baseline

    @property
    def claimed(self) -> bool:
        return any(point.equivalence for point in self.points)

    def rows(self) -> Rows:
        """The header and rows of a table; groups on the front are marked."""
        change = _signed(self.change, [(point.change, point.change_ci_low) for point in self.points if point.change is not None])
        head = ["Front", "Pairs", "Speed-up" if self.gain.better == "lower" else "Times as much", _interval_head(self.confidence),
                f"Δ {self.change.title}", _interval_head(self.change_confidence)] + ["Verdict"] * self.claimed
        rows = [head]
        for point in self.points:
            verdict = verdict_text(point.equivalence, self.change.better) if point.equivalence else "-"
            rows.append(["> " * point.on_front + point.name, "baseline" if point.baseline else str(point.pairs),
                         _text("{:.3f}".format, point.gain), _text("{:.3f}".format, point.gain_ci_low, point.gain_ci_high),
                         _text(change, point.change), _text(change, point.change_ci_low, point.change_ci_high)] + [verdict] * self.claimed)
        return rows

    def lines(self) -> list[str]:
        what, name = "speed-up" if self.gain.better == "lower" else "the gain", self.change.short
        by = "that is not shown to be equivalent" if self.claimed else "whose interval is on the worse side of zero"
        return [f"front of {self.gain.short} against {name}: >: no other group is as good in both and better in one; {what} is the "
                "geometric mean of the ratios of pairs, Δ the mean of their differences",
                f"no group loses {name}" if self.loss_begins is None else
                f"loss of {name} starts at {self.loss_begins}, the first group {by}"]

    def json(self) -> dict[str, typing.Any]:
        points = [{**{name: value for name, value in vars(point).items() if name != "equivalence"},
                   **({"equivalence": equivalence_json(point.equivalence)} if point.equivalence else {})} for point in self.points]
        return {"gain": self.gain.name, "change": self.change.name, "confidence": self.confidence,
                "change_confidence": self.change_confidence, "points": points, "loss_begins": self.loss_begins}


def equivalence_json(result: Equivalence) -> dict[str, typing.Any]:
    return {name: value for name, value in vars(result).items() if value is not None}


def _signed(metric: Metric, changes: list[tuple[float, float | None]]) -> typing.Callable[[float], str]:
    """Returns a formatter for differences whose digits suit all `changes`, which include the lower ends of their intervals."""
    factor = metric.factor
    digits = digits_for([factor * moved for moved, _ in changes], [factor * (moved - low) for moved, low in changes if low is not None])
    return lambda value: ("+" if value > 0 else "") + number_text(factor * value, digits)


def _text(text: typing.Callable[[float], str], *values: float | None) -> str:
    """A number, or the two ends of an interval; a dash if absent."""
    return "-" if None in values else " to ".join(text(value) for value in values if value is not None)


def _interval_head(confidence: float) -> str:
    return f"{100 * confidence:.4g}% interval"


def verdict_text(result: Equivalence, better: Better | None) -> str:
    """ "different (worse)"."""
    if result.verdict not in ("different", "not equivalent"):
        return result.verdict
    more = (result.difference or 0) > 0
    way = ("more" if more else "less") if better is None else "better" if more == (better == "higher") else "worse"
    return f"{result.verdict} ({way})"


def make_front(table: StudyTable, gain: Metric, change: Metric) -> Front:
    """The front of the table's rows. Raises InputError if it is unknown whether lower or higher is better for a metric."""
    for metric in (gain, change):
        if metric.better is None:
            raise InputError(f"it is unknown whether lower {metric.name} is better", "--front", f"{metric.name}:min or {metric.name}:max")
    claim = table.claim if table.claim and table.claim.metric == change.name else None
    front = Front(gain, change, table.confidence, 1 - 2 * claim.alpha if claim else table.confidence)
    for row in table.rows:
        point = FrontPoint(row.label, row.baseline)
        if point.baseline and row.group.done:
            point.gain, point.change = 1.0, 0.0
        elif row.base:
            of_gain, of_change = (table.comparison.pairs(row.base.group, row.group, metric.name) for metric in (gain, change))
            _fill(front, point, of_gain, of_change, claim)
        if front.loss_begins is None and _loses(point, change.better):
            front.loss_begins = point.name
        front.points.append(point)
    there = [point for point in front.points if point.gain is not None and point.change is not None]
    for at in pareto_front([(point.gain or 0, point.change or 0) for point in there], "higher", change.better):
        there[at].on_front = True
    return front


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf if value == 0 else math.nan


def _fill(front: Front, point: FrontPoint, of_gain: Pairs, of_change: Pairs, claim: Claim | None) -> None:
    moved = compare_pairs([(_log(first), _log(second)) for first, second in of_gain], PAIRED, front.confidence)
    if moved.pairs:
        middle = -moved.difference if front.gain.better == "lower" else moved.difference
        point.gain, point.gain_ci_low, point.gain_ci_high = (
            None if value is None else math.exp(value) if value < 709 else math.inf for value in (middle, *interval(middle, moved.half_width)))
    moved = compare_pairs(of_change, PAIRED, front.change_confidence)
    point.pairs = moved.pairs
    if moved.pairs:
        point.change, (point.change_ci_low, point.change_ci_high) = moved.difference, interval(moved.difference, moved.half_width)
        point.equivalence = test_equivalence(of_change, claim.margin, claim.alpha) if claim else None


def _loses(point: FrontPoint, better: Better | None) -> bool:
    if point.baseline or point.equivalence:
        return not point.baseline and point.equivalence is not None and point.equivalence.verdict != "equivalent"
    if point.change_ci_low is None or point.change_ci_high is None:
        return False
    return point.change_ci_high < 0 if better == "higher" else point.change_ci_low > 0


def equivalence_rows(table: StudyTable) -> Rows:
    """The header and rows of a table of all tested groups."""
    tested = [(row.label, cell.equivalence, metric) for row in table.rows for cell, metric in zip(row.cells, table.metrics) if cell.equivalence]
    if not tested or not table.claim:
        return []
    metric = tested[0][2]
    change = _signed(metric, [(result.difference, result.ci_low) for _, result, _ in tested if result.difference is not None])
    head = ["Group", "Pairs", f"Δ {metric.title}", _interval_head(1 - 2 * table.claim.alpha), "p", "Verdict"]
    return [head, *([label, str(result.pairs), _text(change, result.difference), _text(change, result.ci_low, result.ci_high),
                     _text(lambda p: "< 0.001" if p < 0.001 else f"{p:.2g}", result.p), verdict_text(result, metric.better)]
                    for label, result, _ in tested)]


def claim_lines(table: StudyTable) -> list[str]:
    """How to read the claim's tests and the front, and where the loss starts."""
    lines, claim = [], table.claim
    tested = [cell.equivalence for row in table.rows for cell in row.cells if cell.equivalence]
    if tested and claim:
        name = metric_named(claim.metric)
        several = f"; no correction for {len(tested)} comparisons" if len(tested) > 1 else ""
        own = "; margin, alpha and baseline are from the study's file" if table.claim_in_file else ""
        lines.append(f"equivalence of {name.short} to {table.baseline} within ±{name.in_unit(claim.margin, '.6g')}: two one-sided paired t "
                     f"tests, p: the larger p-value, below alpha = {claim.alpha:.4g} equivalent; different: by the two-sided test; not "
                     f"equivalent: the interval is outside the margin{several}{own}")
        if any(result.verdict == "too few pairs" for result in tested):
            lines.append("an equivalence test needs at least two pairs")
    return lines + (table.front.lines() if table.front else [])


@dataclasses.dataclass
class Rung:
    """A step at which trials are compared. A trial with a non-finite metric counts as stopped and is in none of the ranges."""
    steps: int
    reached: int = 0
    stopped: int = 0  # trials that stopped here, without the others
    best: float | None = None
    stopped_best: float | None = None
    stopped_worst: float | None = None


@dataclasses.dataclass
class Search:
    metric: str
    trials: int
    best: RunSummary | None = None  # at the last rung
    best_metric: float | None = None
    steps_run: int = 0
    steps_of_all: int = 0  # if all trials had finished
    rungs: list[Rung] = dataclasses.field(default_factory=list)

    def _text(self, value: float | None) -> str:
        return "—" if value is None else f"{metric_named(self.metric).factor * value:#.5g}"

    def lines(self) -> list[str]:
        """The outcome and the cost."""
        last = self.rungs[-1]
        outcome = "no best trial, since they are not compared" if last.reached else f"none reached the last step, {last.steps}"
        if self.best:
            label = group_label(list(self.best.settings), list(self.best.settings.values()))
            outcome = f"the best is trial {self.best.number} ({label}), {self._text(self.best_metric)} after {last.steps} steps"
        share = self.steps_run / self.steps_of_all if self.steps_of_all else 0
        return [f"successive halving of {self.trials} trials by {metric_named(self.metric).short}: {outcome}",
                f"cost: {self.steps_run:,} of the {self.steps_of_all:,} steps of the whole grid ({share:.0%})"]

    def rows(self) -> list[list[str]]:
        """The header and rows of a table of the rungs."""
        head = ["Step", "Trials", "Stopped", f"Best {metric_named(self.metric).title}", "Of those stopped"]
        return [head, *([f"{rung.steps:,}", str(rung.reached), str(rung.stopped), self._text(rung.best), "-" if rung.stopped_best is None
                         else f"{self._text(rung.stopped_best)} to {self._text(rung.stopped_worst)}"] for rung in self.rungs)]

    def json(self) -> dict[str, typing.Any]:
        return dataclasses.asdict(self) | {"best": self.best and self.best.number}


def search_of(results: StudyResults) -> Search | None:
    """The course of a study by successive halving; None for other studies."""
    if not results.rung_steps:
        return None
    search = Search(results.metric, len(results.runs), steps_of_all=results.rung_steps[-1] * len(results.runs),
                    rungs=[Rung(steps) for steps in results.rung_steps])
    best, worst = (min, max) if results.minimise else (max, min)
    ends = {run.number: results.rungs[run.number][-1] for run in results.runs if results.rungs.get(run.number)}
    search.steps_run = sum(steps for steps, _ in ends.values())
    for rung in search.rungs:
        there = [metric for reached in results.rungs.values() for steps, metric in reached if steps == rung.steps]
        rung.reached, rung.best = len(there), best(filter(math.isfinite, there), default=None)
        here = [ends[run.number][1] for run in results.runs if run.state == "stopped" and ends.get(run.number, (0,))[0] == rung.steps]
        rung.stopped = len(here)
        rung.stopped_best, rung.stopped_worst = (end(filter(math.isfinite, here), default=None) for end in (best, worst))
    last = [run for run in results.runs if ends.get(run.number, (0,))[0] == results.rung_steps[-1] and math.isfinite(ends[run.number][1])]
    if last and not why_incomparable(results.chosen(), results.metric):
        search.best = best(last, key=lambda run: ends[run.number][1])
        search.best_metric = ends[search.best.number][1]
    return search
