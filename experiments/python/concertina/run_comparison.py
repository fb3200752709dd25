"""Runs beside each other, whoever launched them: configs, metrics, and where their bits first differ."""
from __future__ import annotations

import dataclasses
import math
import pathlib
import typing

from .errors import InputError
from .measures import why_unlike
from .results import BITS_PER_BYTE, NO_CONFIG, StudyResults, study_results
from .run_bits import Bits, compare_bits
from .run_log import read_log
from .study_table import StudyTable, TableOptions, make_table, with_targets
from .table_formats import table_json, table_text
from .texts import plain, text_table


@dataclasses.dataclass
class RunComparison:
    """`bits`: of each run but the first, beside the first."""
    runs: StudyResults
    table: StudyTable
    bits: dict[str, Bits]

    @property
    def same(self) -> bool:
        return all(bits.same for bits in self.bits.values())

    @property
    def differences(self) -> dict[str, dict[str, str]]:
        """The values of each key in which configs differ, by run; empty where a run does not have it."""
        return {key: {run.name: run.text(key) for run in self.runs.runs} for key in self.runs.axes}

    @property
    def config_note(self) -> str:
        """What is known of the configs where no difference says it."""
        without = [run.name for run in self.runs.runs if NO_CONFIG in run.facts]
        if not without:
            return "" if self.runs.axes else "no key of the configs differs, but for where the runs are"
        has, its = ("has", "its") if len(without) == 1 else ("have", "their")
        return f"{', '.join(without)} {has} no config: {its} keys cannot be compared"

    def bit_lines(self) -> list[str]:
        return [f"{name} against {self.runs.runs[0].name}: {bits.text()}" for name, bits in self.bits.items()]

    def rows(self) -> list[list[str]]:
        """Head and lines of a table of the differing keys; none if no key differs."""
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
    """The worst of the runs' last held-out losses, which all of them reached; rounded up. None where they cannot be compared."""
    every = runs.chosen()
    metric = BITS_PER_BYTE if why_unlike(every, "validation_loss") else "validation_loss"
    if why_unlike(every, metric) or not all(metric in run.figures for run in every):
        return []
    last = [list(read_log(run.directory).curve(metric).values())[-1:] for run in every]
    values = [value for one in last for value in one if math.isfinite(value)]
    return [f"{metric}={plain(math.ceil(max(values) * 1e4) / 1e4)}"] if len(values) == len(every) else []


def compare(*folders: str | pathlib.Path, options: TableOptions | None = None) -> RunComparison:
    """The runs in `folders`: directories of runs, or folders that have several."""
    runs = study_results(*folders, loose=True)
    if len(runs.runs) < 2:
        raise InputError("a comparison needs at least two runs", str(folders[0]), "two directories of runs, or a folder that has several")
    asked = options or TableOptions()
    asked = dataclasses.replace(asked, mixed=True, contests=False, targets=asked.targets or _common_target(runs),
                                baseline=asked.baseline or ([] if asked.by else ["none"]))
    table = make_table(runs, with_targets(runs, asked))
    return RunComparison(runs, table, {run.name: compare_bits(runs.runs[0], run) for run in runs.runs[1:]})
