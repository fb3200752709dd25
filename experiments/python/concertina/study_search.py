"""The course of a search that halves the trials of a study (successive halving), and its cost beside the whole grid."""
from __future__ import annotations

import dataclasses
import math
import typing

from .measures import why_unlike
from .names import metric_named
from .results import RunSummary, StudyResults, group_label


@dataclasses.dataclass
class Rung:
    """A step at which trials are compared. A metric that is not finite counts as stopped and is in no range."""
    steps: int
    reached: int = 0
    stopped: int = 0  # trials that ended here, without the rest
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
    steps_of_all: int = 0  # if all trials had run to their end
    rungs: list[Rung] = dataclasses.field(default_factory=list)

    def _text(self, value: float | None) -> str:
        return "—" if value is None else f"{metric_named(self.metric).factor * value:#.5g}"

    def lines(self) -> list[str]:
        """What came of it, and what it cost."""
        last = self.rungs[-1]
        outcome = "there is no best, since they are not compared" if last.reached else f"none has reached the last step, {last.steps}"
        if self.best:
            label = group_label(list(self.best.settings), list(self.best.settings.values()))
            outcome = f"the best is trial {self.best.number} ({label}), {self._text(self.best_metric)} after {last.steps} steps"
        share = self.steps_run / self.steps_of_all if self.steps_of_all else 0
        return [f"successive halving of {self.trials} trials by {metric_named(self.metric).short}: {outcome}",
                f"cost: {self.steps_run:,} of the {self.steps_of_all:,} steps of the whole grid ({share:.0%})"]

    def rows(self) -> list[list[str]]:
        """Head and lines of a table of the rungs."""
        head = ["Step", "Trials", "Stopped", f"Best {metric_named(self.metric).title}", "Of those stopped"]
        return [head, *([f"{rung.steps:,}", str(rung.reached), str(rung.stopped), self._text(rung.best), "-" if rung.stopped_best is None
                         else f"{self._text(rung.stopped_best)} to {self._text(rung.stopped_worst)}"] for rung in self.rungs)]

    def json(self) -> dict[str, typing.Any]:
        return dataclasses.asdict(self) | {"best": self.best and self.best.number}


def search_of(results: StudyResults) -> Search | None:
    """The course of a study that halves its trials; None of another one."""
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
    if last and not why_unlike(results.chosen(), results.metric):
        search.best = best(last, key=lambda run: ends[run.number][1])
        search.best_metric = ends[search.best.number][1]
    return search
