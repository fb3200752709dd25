"""Compares runs from any program: configs, metrics, and where their bits first differ.

Bits are compared by logs, final states and checkpoints. Only steps for which both runs still have a checkpoint are compared; a damaged checkpoint
is an error, not a difference.
"""
import dataclasses
import math
import pathlib
import typing

import numpy as np

from .checkpoint import Checkpoint
from .errors import InputError
from .measures import why_incomparable
from .results import BITS_PER_BYTE, NO_CONFIG, RunSummary, StudyResults, study_results
from .run_log import config_texts, number, read_log
from .study_table import StudyTable, TableOptions, make_table, with_targets
from .table_formats import table_json, table_text
from .names import counted, plain, text_table


@dataclasses.dataclass
class Bits:
    same: bool = True
    steps: int = 0  # in both logs
    last_steps: list[int] = dataclasses.field(default_factory=list)
    log: dict[str, typing.Any] | None = None  # step, metric, one, other: the first difference between the logs
    unread: str = ""  # the first metric that is not a number in one of the logs, which does not count as a difference
    same_state: bool | None = None  # None if one of them lacks it
    checkpoints: int = 0  # of the same step
    tensor: dict[str, typing.Any] | None = None  # step, name, part, element, one, other: the first difference; tensors that differ, of how many
    why: str | None = None  # why no tensor is compared: the models differ
    state: str = ""

    def json(self) -> dict[str, typing.Any]:
        return {name: value for name, value in dataclasses.asdict(self).items() if value is not None and name != "state"}

    def text(self) -> str:
        text = f"the same losses over {counted(self.steps, 'step')}" if self.steps else "no step in common"
        if self.log:
            text = f"{self.log['figure']} differs from step {self.log['step']} on: {plain(self.log['one'])} against {plain(self.log['other'])}"
        last, other = self.last_steps
        text += f"; {self.unread}" * bool(self.unread) + (
            f"; different lengths: {other} and {counted(last, 'step')}" if last != other else "; different final states" * (self.same_state is False))
        if self.same_state:
            text += f"; the same final state ({self.state[:12]}...)"
        if found := self.tensor:
            text += (f"; in the checkpoints of step {found['step']} {found['tensors']} of {counted(found['of'], 'tensor')} differ, the first at "
                     f"element {found['element']} of {found['name']} ({found['part']}): {plain(found['one'])} against {plain(found['other'])}")
        elif self.why or self.checkpoints:
            text += f"; {self.why or 'the same bits in ' + counted(self.checkpoints, 'checkpoint')}"
        return text


def _compare_logs(one: str, other: str, bits: Bits) -> None:
    # For a repeated step, the last record counts.
    mine, theirs = ({int(number(line, "step")): line for line in read_log(directory).metrics} for directory in (one, other))
    bits.last_steps = [max(mine, default=0), max(theirs, default=0)]
    common = sorted(mine.keys() & theirs.keys())
    bits.steps = len(common)
    for step in common:
        for figure in ("loss", "grad_norm"):
            values = number(mine[step], figure), number(theirs[step], figure)
            if bad := [line for line in (mine[step], theirs[step]) if not isinstance(line.get(figure), (float, int, type(None)))]:
                bits.unread = bits.unread or f"{figure} of step {step} is not a number in a log: {bad[0][figure]!r}"
            elif values[0] != values[1] and not all(map(math.isnan, values)):
                bits.log = {"step": step, "figure": figure, "one": values[0], "other": values[1]}
                return


def _commits(directory: str) -> dict[int, pathlib.Path]:
    folder = pathlib.Path(config_texts(directory).get("checkpoint.dir") or pathlib.Path(directory, "checkpoints"))
    return {int(path.name[5:]): path for path in folder.glob("step-*") if path.name[5:].isdigit() and (path / "manifest.json").exists()}


def _compare_commits(one: Checkpoint, other: Checkpoint) -> tuple[dict[str, typing.Any] | None, str | None]:
    """The first difference, or why nothing can be compared. Only one tensor of each checkpoint is in memory."""
    if one.tensors.keys() != other.tensors.keys():
        return None, "the models have different tensors"
    for name in one.tensors:
        if one.tensors[name] != other.tensors[name]:
            return None, f"the shapes of {name} differ between the models"
    first: dict[str, typing.Any] | None = None
    differing = set()
    for name in one.tensors:
        for part in sorted(set(one.parts(name)) & set(other.parts(name))):
            mine, theirs = one.read(name, part).ravel(), other.read(name, part).ravel()
            where = np.flatnonzero(mine.view(np.uint32) != theirs.view(np.uint32))
            if where.size:
                differing.add(name)
                at = int(where[0])
                first = first or {"step": one.step, "name": name, "part": part, "element": at, "one": float(mine[at]), "other": float(theirs[at])}
    return first and {**first, "tensors": len(differing), "of": len(one.tensors)}, None


def compare_bits(one: RunSummary, other: RunSummary) -> Bits:
    """Where two runs first differ. Compares steps by their logs, then checkpoints in order."""
    bits = Bits()
    _compare_logs(one.directory, other.directory, bits)
    states = one.text("state_sha256"), other.text("state_sha256")
    if all(states):
        bits.same_state, bits.state = states[0] == states[1], states[0]
    mine, theirs = _commits(one.directory), _commits(other.directory)
    for step in sorted(mine.keys() & theirs.keys()):
        try:
            if not bits.tensor and bits.why is None:
                bits.tensor, bits.why = _compare_commits(Checkpoint(mine[step]), Checkpoint(theirs[step]))
            bits.checkpoints += 1
        except (OSError, ValueError):  # a training run removes its old commits
            if mine[step].exists() and theirs[step].exists():
                raise
    bits.same = not bits.log and not bits.tensor and bits.same_state is not False
    return bits


@dataclasses.dataclass
class RunComparison:
    """`bits`: each run except the first, compared with the first."""
    runs: StudyResults
    table: StudyTable
    bits: dict[str, Bits]

    @property
    def same(self) -> bool:
        return all(bits.same for bits in self.bits.values())

    @property
    def differences(self) -> dict[str, dict[str, str]]:
        """The values of each config key that differs, by run; empty if a run does not have the key."""
        return {key: {run.name: run.text(key) for run in self.runs.runs} for key in self.runs.axes}

    @property
    def config_note(self) -> str:
        """A note on the configs if there are no differences to show."""
        without = [run.name for run in self.runs.runs if NO_CONFIG in run.facts]
        if not without:
            return "" if self.runs.axes else "the configs are equal, except for where the runs are stored"
        has, its = ("has", "its") if len(without) == 1 else ("have", "their")
        return f"{', '.join(without)} {has} no config: {its} keys cannot be compared"

    def bit_lines(self) -> list[str]:
        return [f"{name} against {self.runs.runs[0].name}: {bits.text()}" for name, bits in self.bits.items()]

    def rows(self) -> list[list[str]]:
        """The header and rows of a table of the differing keys; empty if none differ."""
        rows = [[key, *(text or "-" for text in values.values())] for key, values in self.differences.items()]
        return [["key", *(run.name for run in self.runs.runs)], *rows] if rows else []

    def json(self) -> dict[str, typing.Any]:
        return {"differences": self.differences, "configs": self.config_note,
                "bits": {name: bits.json() for name, bits in self.bits.items()}, "table": table_json(self.table)}

    def text(self) -> str:
        rows, note = self.rows(), self.config_note
        keys = text_table(rows, len(rows[0])) if rows else ""
        return f"{keys}{note}{bool(note) * chr(10)}\n{table_text(self.table)}\n" + "\n".join(self.bit_lines()) + "\n"


def _common_target(runs: StudyResults) -> list[str]:
    """The worst of the runs' last held-out losses, rounded up, which all of them reached. Empty if the losses are not comparable."""
    every = runs.chosen()
    metric = BITS_PER_BYTE if why_incomparable(every, "validation_loss") else "validation_loss"
    if why_incomparable(every, metric) or not all(metric in run.metrics for run in every):
        return []
    last = [list(read_log(run.directory).curve(metric).values())[-1:] for run in every]
    values = [value for one in last for value in one if math.isfinite(value)]
    return [f"{metric}={plain(math.ceil(max(values) * 1e4) / 1e4)}"] if len(values) == len(every) else []


def compare(*folders: str | pathlib.Path, options: TableOptions | None = None) -> RunComparison:
    """Compares the runs in `folders`: run directories, or folders that contain several runs."""
    runs = study_results(*folders, loose=True)
    if len(runs.runs) < 2:
        raise InputError("a comparison needs at least two runs", str(folders[0]), "two run directories, or a folder that contains several")
    asked = options or TableOptions()
    asked = dataclasses.replace(asked, mixed=True, contests=False, targets=asked.targets or _common_target(runs),
                                baseline=asked.baseline or ([] if asked.by else ["none"]))
    table = make_table(runs, with_targets(runs, asked))
    return RunComparison(runs, table, {run.name: compare_bits(runs.runs[0], run) for run in runs.runs[1:]})
