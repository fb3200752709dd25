"""The course of a search that halves the trials of a study (successive halving), and its cost beside the whole grid."""
from __future__ import annotations

import dataclasses
import math
import typing

from .measures import why_unlike
from .names import Metric, metric_named
from .results import RunSummary, StudyResults, group_label
from .texts import grouped


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
    rungs: list[Rung]
    best: RunSummary | None = None  # at the last rung
    best_metric: float = math.nan
    steps_run: int = 0
    steps_of_all: int = 0  # if all trials had run to their end

    def lines(self) -> list[str]:
        """What came of it, and what it cost."""
        name, last = metric_named(self.metric), self.rungs[-1]
        if self.best:
            label = group_label(list(self.best.settings), list(self.best.settings.values()))
            outcome = f"the best is trial {self.best.number} ({label}), {_text(self.best_metric, name)} after {last.steps} steps"
        elif last.reached:
            outcome = "there is no best, since they are not compared"
        else:
            outcome = f"none has reached the last step, {last.steps}"
        share = 100 * self.steps_run / self.steps_of_all if self.steps_of_all else 0
        return [f"successive halving of {self.trials} trials by {name.short}: {outcome}",
                f"cost: {grouped(self.steps_run)} of the {grouped(self.steps_of_all)} steps of the whole grid ({share:.0f}%)"]

    def rows(self) -> list[list[str]]:
        """Head and lines of a table of the rungs."""
        name = metric_named(self.metric)
        lines = [[grouped(rung.steps), str(rung.reached), str(rung.stopped), _text(rung.best, name),
                  "-" if rung.stopped_best is None else f"{_text(rung.stopped_best, name)} to {_text(rung.stopped_worst, name)}"]
                 for rung in self.rungs]
        return [["Step", "Trials", "Stopped", f"Best {name.title}", "Of those stopped"], *lines]

    def json(self) -> dict[str, typing.Any]:
        return {"metric": self.metric, "trials": self.trials, "best": self.best and self.best.number,
                "best_metric": self.best_metric if self.best else None, "steps_run": self.steps_run,
                "steps_of_all": self.steps_of_all, "rungs": [dataclasses.asdict(rung) for rung in self.rungs]}


def _text(value: float | None, name: Metric) -> str:
    return "—" if value is None else f"{name.factor * value:#.5g}"


def search_of(results: StudyResults) -> Search | None:
    """The course of a study that halves its trials; None of another one."""
    if not results.rung_steps:
        return None
    search = Search(results.metric, len(results.runs), [Rung(steps) for steps in results.rung_steps])
    search.steps_of_all = results.rung_steps[-1] * len(results.runs)
    for run in results.runs:
        _add(search, results, run)
    if why_unlike(results.chosen(), results.metric):
        search.best = None
    return search


def _add(search: Search, results: StudyResults, run: RunSummary) -> None:
    reached = results.rungs.get(run.number, [])
    rungs = {rung.steps: rung for rung in search.rungs}

    def better(value: float, kept: float | None, least: bool = results.minimise) -> float | None:
        if not math.isfinite(value):
            return kept
        return value if kept is None else min(value, kept) if least else max(value, kept)

    for steps, metric in reached:
        if rung := rungs.get(steps):
            rung.reached += 1
            rung.best = better(metric, rung.best)
    if not reached:
        return
    steps, metric = reached[-1]
    search.steps_run += steps
    if (rung := rungs.get(steps)) is None:
        return
    if run.state == "stopped":
        rung.stopped += 1
        rung.stopped_best = better(metric, rung.stopped_best)
        rung.stopped_worst = better(metric, rung.stopped_worst, not results.minimise)
    if steps == search.rungs[-1].steps and math.isfinite(metric):
        if search.best is None or (metric < search.best_metric if results.minimise else metric > search.best_metric):
            search.best, search.best_metric = run, metric
