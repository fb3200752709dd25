"""The folder of a study (studies/NAME): the records of its trials, each of which is as the study wrote it."""
from __future__ import annotations

import hashlib
import math
import os
import pathlib
import re

from .errors import InputError
from .files import parse_json, read_bytes, read_text
from .program import default_config
from .results import STATES, RunSummary, StudyResults
from .study_file import StudyFile, read_study_file

STUDY_FILE, RECORD_FILE, RESULTS_FILE = "study.toml", "trial.json", "results.csv"

_SPACE = re.compile(rb'\n *("(?:[^"\\]|\\.)*":)? ?')  # as the program indents
_DIGEST = re.compile(rb',"digest":"([0-9a-f]{64})"}$')

Rungs = list[tuple[int, float]]


def _number(value: float | None) -> float:
    """JSON has neither NaN nor infinity: a number that is one is written as null."""
    return math.nan if value is None else float(value)


def read_record(path: pathlib.Path) -> tuple[RunSummary, Rungs, str]:
    """A trial.json: the trial, its rungs, and the digest of its study. InputError if somebody edited it."""
    text = _SPACE.sub(rb"\1", read_bytes(path))
    digest = _DIGEST.search(text)
    try:
        if not digest or hashlib.sha256(text[:digest.start()] + b"}").hexdigest().encode() != digest[1]:
            raise ValueError("digest")
        record = parse_json(text)
        trial = RunSummary(int(record["trial"]), record["settings"], record["state"], record.get("error", ""), "",
                           {name: _number(value) for name, value in record["figures"].items()}, record["facts"])
        rungs = [(int(rung["steps"]), _number(rung["metric"])) for rung in record.get("rungs", [])]
        texts = [*trial.settings.values(), *trial.facts.values(), trial.error]
        if trial.state not in STATES or not all(isinstance(one, str) for one in texts):
            raise ValueError("state")
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError("this record of a trial is not as the study wrote it", str(path),
                         "the file as it was; or remove its directory, and `study run` repeats the trial") from error
    return trial, rungs, record.get("study", "")


def _require_own(file: pathlib.Path) -> None:
    """InputError if somebody edited results.csv; lines that were added last may be cut short, and are not looked at."""
    digests = file.with_suffix(".sha256")
    if not file.exists() or not digests.exists():
        return
    text = read_bytes(file)
    lines = [line.split() for line in read_text(digests).splitlines() if len(line.split()) == 2]
    # The first two are of the text before it was last written as a whole, and after.
    for size, digest in lines[-1:] if len(lines) > 2 else lines:
        if size.isdigit() and int(size) <= len(text) and hashlib.sha256(text[:int(size)]).hexdigest() == digest:
            return
    raise InputError("results.csv is not as the study wrote it", str(file),
                     "move it elsewhere: the records of the trials are whole, and `study run` writes it again")


def _records(root: pathlib.Path, study: StudyFile) -> dict[int, tuple[RunSummary, Rungs]]:
    found, common = {}, study.digest
    for number in sorted({int(name) for name in os.listdir(root) if re.fullmatch("0*[1-9][0-9]{0,8}", name)}):
        path = root / str(number) / RECORD_FILE
        if not path.exists():
            continue
        trial, rungs, digest = read_record(path)
        if trial.number != number:
            raise InputError(f"this is the record of trial {trial.number}", str(path), "each record in the directory of its trial")
        if digest != common:
            raise InputError("this record of a trial is of another study: base configs or [set] differ", str(path),
                             "remove the trial's directory, and `study run` repeats the trial")
        trial.directory = str(root / str(number) / "run")  # where it is now
        found[number] = trial, rungs
    return found


def read_study(folder: str | pathlib.Path) -> StudyResults:
    """All trials of a study: those without a record are open. InputError if a file is not as the study wrote it."""
    root = pathlib.Path(folder)
    study = read_study_file(root)
    search = study.search
    results = StudyResults(root.resolve().name if root.name in ("", "..") else root.name, str(root), False, study.keys, [],
                           search.get("metric", ""), search.get("goal", "min") == "min", study.claim)
    trials = {} if study.proposes else {at: RunSummary(at, settings) for at, settings in enumerate(study.trials(), 1)}
    if trials:
        results.rung_steps = study.rung_steps(lambda: int(default_config().get("run.steps", "200")))
    for number, (trial, rungs) in _records(root, study).items():
        trials[number] = trial
        if rungs:
            results.rungs[number] = rungs
        if study.proposes:  # arms have keys that are not axes
            results.axes += [key for key in trial.settings if key not in results.axes]
    results.runs = [trials[number] for number in sorted(trials)]
    _require_own(root / RESULTS_FILE)
    return results
