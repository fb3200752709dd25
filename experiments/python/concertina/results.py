"""The results of a study as values: the settings and outcome of each run, and the columns under which tables find both.

Everything that reads, tabulates or draws results shares these types. A value that a run lacks is absent: `cell` returns None, never
zero. NaN is a value."""
import dataclasses
import json
import math
import pathlib
import typing

from .errors import InputError, library, nearest, one_of
from .names import Better, Metric, metric_named, number_or_text, plain, ranges
from .program import call
from .run_log import is_run

SEED = "run.seed"
RUN_COLUMN = "run"  # the name of a run that no study launched: the last parts of its path
NO_CONFIG = "config"  # marks a run without a config, such as one from another program
BITS_PER_BYTE = "validation_bits_per_byte"  # the held-out loss that is comparable across tokenizers

Cell = float | str | None


@dataclasses.dataclass
class RunSummary:
    """A run, or a trial of a study: its settings and outcome."""
    number: int
    settings: dict[str, str] = dataclasses.field(default_factory=dict)  # config keys (and "ranks"), values as text
    state: str = "open"
    error: str = ""
    directory: str = ""
    metrics: dict[str, float] = dataclasses.field(default_factory=dict)
    facts: dict[str, str] = dataclasses.field(default_factory=dict)

    def cell(self, column: str) -> Cell:
        """A setting (as a number if its text is a number), metric or fact, or "trial", "state", "error"; None if absent."""
        if column in self.settings:
            return number_or_text(self.settings[column])
        own: dict[str, Cell] = {"trial": float(self.number), "state": self.state, "error": self.error or None}
        return self.metrics.get(column, self.facts.get(column, own.get(column)))

    def text(self, column: str) -> str:
        return cell_text(self.cell(column))

    def number_in(self, column: str) -> float | None:
        """The number in `column`. Raises InputError if the value is text."""
        cell = self.cell(column)
        if isinstance(cell, str):
            raise InputError(f"the column '{column}' is not a number in trial {self.number}: '{cell[:80]}'", "--metric",
                             "a metric in result.json, such as loss or tokens_per_s")
        return cell

    @property
    def name(self) -> str:
        return self.settings.get(RUN_COLUMN, str(self.number))


Runs = list[RunSummary]


@dataclasses.dataclass
class Claim:
    """The claim that groups are as good as their baseline in a metric, within a margin in the metric's own unit."""
    metric: str
    margin: float
    alpha: float = 0.05
    baseline: list[str] = dataclasses.field(default_factory=list)  # "COLUMN=VALUE"s; empty: the table's


@dataclasses.dataclass
class Group:
    """Runs with the same values in some columns."""
    values: tuple[str, ...]
    done: Runs = dataclasses.field(default_factory=list)
    others: Runs = dataclasses.field(default_factory=list)  # failed, stopped, timed out, open


@dataclasses.dataclass
class StudyResults:
    """All runs of a study, or runs that no study launched (`loose`)."""
    name: str
    directory: str = ""
    loose: bool = False
    axes: list[str] = dataclasses.field(default_factory=list)  # keys that differ, run.seed last
    runs: Runs = dataclasses.field(default_factory=list)
    metric: str = ""  # objective of the study
    minimise: bool = True
    claim: Claim | None = None
    rung_steps: list[int] = dataclasses.field(default_factory=list)  # of successive halving, ascending
    rungs: dict[int, list[tuple[int, float]]] = dataclasses.field(default_factory=dict)  # steps and metric, by run
    notes: list[str] = dataclasses.field(default_factory=list)  # shown with any of these values

    @property
    def columns(self) -> list[str]:
        """All columns that any run has: trial, state, axes, metrics, facts, error."""
        metrics = sorted({name for run in self.runs for name in run.metrics})
        facts = sorted({name for run in self.runs for name in run.facts})
        return list(dict.fromkeys(["trial", "state", *self.axes, *metrics, *facts])) + ["error"]

    def has(self, column: str) -> bool:
        return any(run.cell(column) is not None for run in self.runs)

    def require(self, column: str, option: str) -> None:
        """Raises an InputError that names `option` if no run has a value in `column`."""
        if not self.has(column):
            known = list(dict.fromkeys([*self.columns, *(key for run in self.runs for key in run.settings)]))
            what = "a value in the column" if column in known else "the column"
            raise InputError(f"no trial has {what} '{column}'", option, _advice("" if column in known else column, known))

    def column_value(self, text: str, option: str) -> tuple[str, str]:
        """Splits "COLUMN=VALUE"."""
        column, equals, value = text.partition("=")
        if not column or not equals:
            raise InputError(f"'{text}' is not COLUMN=VALUE", option, f"{option} parallel.schedule=1f1b")
        self.require(column, option)
        return column, value

    def metric_of(self, word: str) -> Metric:
        """ "loss", or "loss:min" and "loss:max" to set whether lower or higher is better."""
        column, colon, way = word.rpartition(":")
        ways: dict[str, Better] = {"min": "lower", "max": "higher"}
        if colon and way not in ways and self.has(column):
            raise InputError(f"'{way}' is not a direction of a metric", "--metric", f"{column}:min or {column}:max")
        if not colon or way not in ways:
            column, way = word, ("min" if self.minimise else "max") if word == self.metric else ""
        self.require(column, "--metric")
        return dataclasses.replace(metric_named(column), better=ways[way]) if way else metric_named(column)

    def chosen(self, where: typing.Iterable[str] = ()) -> Runs:
        """The runs that match all of these "COLUMN=VALUE"s, sorted by number; of several values for one column, any may match."""
        runs = sorted(self.runs, key=lambda run: run.number)
        filters: dict[str, list[str]] = {}
        for text in where:
            column, value = self.column_value(text, "--where")
            filters.setdefault(column, []).append(value)
        for column, values in sorted(filters.items()):
            known = list(dict.fromkeys(run.text(column) for run in runs))
            runs = [run for run in runs if any(same_value(run.cell(column), value) for value in values)]
            if not runs and self.runs:
                raise InputError(f"no trial has {column}={' or '.join(values)}", "--where", _advice(values[0], known))
        return runs

    def include_stopped(self) -> None:
        """Counts a search's stopped trials as done, with the metrics of their completed steps."""
        if stopped := [run for run in self.runs if run.state == "stopped"]:
            for run in stopped:
                run.state = "done"
            self.rung_steps, self.rungs = [], {}
            self.notes.append(f"trials {ranges([run.number for run in stopped])} were stopped; their metrics cover their completed steps")

    def frame(self) -> typing.Any:
        """A pandas.DataFrame with a row for each run, sorted by number."""
        pandas = library("pandas")
        columns = dict.fromkeys([*self.columns[1:-1], *(key for run in self.runs for key in run.settings), "error"])
        rows = [{column: int(text) if (text := run.settings.get(column, "")).isdecimal() else run.cell(column) for column in columns}
                for run in self.runs]
        return pandas.DataFrame(rows, index=pandas.Index([run.number for run in self.runs], name="trial"))


def study_results(*places: str | pathlib.Path, loose: bool = False) -> StudyResults:
    """The study in one folder or file, or the runs in several folders, as read by `concertina study trials`.

    Settings and config values are text. `loose`: treat the runs of a study as separate runs. JSON has no NaN; null represents it."""
    said = json.loads(call("study", "trials", *places, "--json"))
    runs = [RunSummary(one["trial"], one["settings"], one["state"], one["error"], one["directory"],
                       {name: float("nan" if value is None else value) for name, value in one["figures"].items()}, one["facts"]) for one in said["trials"]]
    if loose and not said["loose"]:
        if not (found := [run.directory for run in runs if run.directory and is_run(pathlib.Path(run.directory))]):
            raise InputError("no run in this folder", str(places[0]), "run directories, such as runs/NAME, or the folder of a study")
        return study_results(*found)
    rungs = {one["trial"]: [(rung["steps"], float("nan" if rung["metric"] is None else rung["metric"])) for rung in one["rungs"]]
             for one in said["trials"] if "rungs" in one}
    claim = Claim(**said["claim"]) if said["claim"] else None
    return StudyResults(said["study"], said["directory"], said["loose"], said["axes"], runs, said["metric"], said["goal"] == "min", claim,
                        said["rung_steps"], rungs, said["notes"])


def _advice(word: str, names: list[str], most: int = 12) -> str:
    """The nearest name, otherwise names that contain `word`, otherwise the first few, since a long list would hide the right one."""
    if len(names) <= most:
        return one_of(word, names)
    if near := nearest(word, names):
        return f"{near} (one of {len(names)} columns; results.csv has all)"
    alike = [name for name in names if word and word in name] or names
    return f"{', '.join(alike[:most])} (some of {len(names)} columns; results.csv has all)"


def cell_text(cell: Cell) -> str:
    """Numbers with all digits; empty if absent."""
    return plain(cell) if isinstance(cell, float) else cell or ""


def same_value(cell: Cell, value: str) -> bool:
    """Whether the cell's text is `value`, or both are the same number."""
    return number_or_text(value) == cell if isinstance(cell, float) else cell_text(cell) == value


def metrics_of(runs: typing.Iterable[RunSummary], column: str) -> list[float]:
    """The numbers in `column` for the runs that have one there, finite or not."""
    return [value for run in runs if (value := run.number_in(column)) is not None]


def groups_of(runs: typing.Iterable[RunSummary], columns: typing.Sequence[str]) -> list[Group]:
    """Groups in the order of their first runs."""
    groups: dict[tuple[str, ...], Group] = {}
    for run in runs:
        values = tuple(run.text(column) for column in columns)
        group = groups.setdefault(values, Group(values))
        (group.done if run.state == "done" else group.others).append(run)
    return list(groups.values())


def group_label(columns: typing.Sequence[str], values: typing.Sequence[str]) -> str:
    """A short name for a legend: "zb-v pp=2" for parallel.schedule and parallel.pp."""
    def part(column: str, value: str) -> str:
        named = isinstance(number_or_text(value), float) or value in ("", "true", "false")
        return (f"{column.rpartition('.')[2]}=" if named else "") + (value or "none")

    return " ".join(map(part, columns, values)) or "all trials"


def titles(columns: typing.Iterable[str]) -> str:
    return ", ".join(metric_named(column).short for column in columns)


def never_came(group: Group, metric: str) -> int:
    """The number of runs in the group that never reached the target of a time_to() column; 0 for other metrics."""
    return sum(map(math.isinf, metrics_of(group.done, metric))) if metric.startswith("time_to_") else 0
