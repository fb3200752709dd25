"""`concertina study submit`: runs a study as a Slurm array job. The study's folder already exists, except with --dry-run.

A study with more trials than an array may have indices is split into several arrays, one per range of trials whose numbers differ only in their
last digits, which form the index. A trial that is already queued or running is never submitted again."""
import itertools
import json
import os
import pathlib
import shlex
import shutil
import sys
import typing

from ..errors import InputError
from ..files import replace_file
from ..names import counted, ranges
from ..program import program
from . import Options
from .study_collect import OUTPUT, SUBMISSIONS, slurm_says, standing_of

# sbatch options that a study sets: their short forms, and variables that override them
_OWN = {"--array": ("a", "SBATCH_ARRAY_INX"), "--output": ("o", "SBATCH_OUTPUT"), "--open-mode": (" ", "SBATCH_OPEN_MODE"),
        "--signal": (" ", "SBATCH_SIGNAL")}


class Array(typing.NamedTuple):
    """The trials of one array job, in ascending order. The index is the trial number minus `first`, padded to `digits` if `first` is not 0."""
    trials: list[int]
    first: int = 0
    digits: int = 0


def _arrays(trials: list[int]) -> list[Array]:
    if not trials or trials[-1] < (most := _most_indices()):
        return [Array(trials)] if trials else []
    digits = len(str(most)) - 1
    return [Array(list(same), first, digits) for first, same in itertools.groupby(trials, lambda trial: trial - trial % 10 ** digits)]


class Submission:
    """`study`: name, folder, and trials with their states and ranks."""

    def __init__(self, study: dict[str, typing.Any], options: Options):
        self.name, self.folder, self.options = study["name"], pathlib.Path(study["folder"]), options
        self.ranks = {one["trial"]: one["ranks"] for one in study["trials"]}
        standing, unknown = standing_of(self.folder, {one["trial"]: one["state"] for one in study["trials"]})
        if unknown:
            raise InputError(f"this study's queued and running jobs are unknown: {unknown}", str(self.folder),
                             "try again when squeue works", code=1)
        self.repeated = sorted(standing["failed"] + standing["timed_out"]) if "retry-failed" in options else []
        self.trials = sorted(standing["left"] + standing["lost"] + self.repeated)
        self.under_way = sorted(task.trial for task in standing["queued"] + standing["running"])

    def script(self, array: Array) -> str:
        """A batch script whose tasks run one trial each."""
        folder, options = os.path.abspath(self.folder), self.options
        minutes, cores, most = (options.whole(name) or 0 for name in ("time", "cpus-per-task", "at-once"))
        # Slurm only knows a task's index, which it can pad: for index 7 of the array that starts at trial 2000, 2%3a gives 2007.
        trial = str(array.first)[:-array.digits or None] + f"%{array.digits}a" * (array.digits > 0) if array.first else "%a"
        values = {"job-name": _quoted(self.name, "name"),
                  "array": ranges([one - array.first for one in array.trials]) + f"%{most}" * (most > 0),
                  "ntasks": max(self.ranks[one] for one in array.trials), "nodes": options.whole("nodes"), "cpus-per-task": cores,
                  "time": minutes, "partition": _quoted(options.text("partition"), "--partition"),
                  "chdir": _quoted(os.getcwd(), "the working directory"),
                  "output": _quoted(folder.replace("%", "%%") + f"/{trial}/{OUTPUT}", "the study's folder")}
        # A task is asked for a checkpoint two minutes, or a quarter of a shorter limit, before its time runs out.
        lines = [*(f"--{name}={value}" for name, value in values.items() if value),
                 f"--requeue --open-mode=append --signal=B:USR1@{min(120, 15 * minutes) if minutes else 120}", options.text("sbatch")]
        index = f"$((SLURM_ARRAY_TASK_ID + {array.first}))" if array.first else "$SLURM_ARRAY_TASK_ID"
        launcher = f" --launcher {shlex.quote(options.text('launcher'))}" if "launcher" in options else ""
        return "\n".join(["#!/bin/bash", "# Each task of this array job runs one trial of the study.", *(f"#SBATCH {line}" for line in lines if line),
                          "", *[f"export SRUN_CPUS_PER_TASK={cores}"] * (cores > 0),  # srun does not inherit it from sbatch since Slurm 22.05
                          # Slurm sends signals to the script's process.
                          f"exec {shlex.join([program(), 'study', 'trial', folder])} \"{index}\"{launcher}\n"])

    def submit(self, array: Array, after: str) -> str:
        """Submits an array that starts after the job `after`, if any; returns its job ID.

        Records of repeated trials are removed first, and restored if the submission fails."""
        script = self.folder / (f"submit-{array.first}.sbatch" if array.first else "submit.sbatch")
        replace_file(script, self.script(array))
        for trial in array.trials:
            (self.folder / str(trial)).mkdir(exist_ok=True)
        records = [self.folder / str(trial) / "trial.json" for trial in self.repeated if trial in array.trials]
        kept = [record.replace(record.with_suffix(".before")) for record in records]
        try:
            said = slurm_says(["sbatch", "--parsable", *[f"--dependency=afterany:{after}"] * bool(after), str(script)],
                              "fix the problem that sbatch reports above, in the script or in --sbatch")
            job = said.rpartition("\n")[2].partition(";")[0]  # warnings come first, then "12" or "12;CLUSTER"
            if not job.isdecimal():
                raise InputError(f"sbatch printed no job ID: {said}", str(script), code=1)
        except InputError:
            for record, before in zip(records, kept):
                before.replace(record)
            raise
        with open(self.folder / SUBMISSIONS, "a", encoding="utf-8") as file:
            file.write(json.dumps({"job": job, "trials": array.trials} | ({"first": array.first} if array.first else {})) + "\n")
            file.flush()
            os.fsync(file.fileno())
        for before in kept:
            before.unlink()
        return job

    def submit_all(self) -> list[str]:
        """Submits everything and returns the job IDs. With --at-once, each array waits for the previous one, since Slurm limits tasks per
        array."""
        jobs: list[str] = []
        for array in _arrays(self.trials):
            try:
                jobs.append(self.submit(array, jobs[-1] if "at-once" in self.options and jobs else ""))
            except InputError as error:
                if not jobs:
                    raise
                raise InputError(f"{error.what}; trials below {array.trials[0]} were submitted as {', '.join(jobs)}", error.where,
                                 f"{error.fix}; rerun the same command to submit the rest", error.code) from error
        return jobs

    def text(self, jobs: list[str]) -> str:
        folder, verb = str(self.folder), "was" if len(self.under_way) == 1 else "were"
        said = f"skipped: {ranges(self.under_way)}, which {verb} already submitted and queued or running\n" * bool(self.under_way)
        if not jobs:
            return said + f"nothing left to submit in {folder}\n"
        return said + f"""\
submitted {counted(len(self.trials), 'trial')} of {folder} as {'job' if len(jobs) == 1 else 'jobs'} {', '.join(jobs)}: {ranges(self.trials)}
follow it   squeue --array --jobs {','.join(jobs)}; tail -f {shlex.quote(f'{folder}/{self.trials[0]}/{OUTPUT}')}
results     concertina study collect {shlex.quote(folder)}
pause it    scancel -b -s USR1 {' '.join(jobs)} (writes checkpoints; each task resumes later)
stop it     scancel {' '.join(jobs)}; rerun the same command to submit the rest
"""

    def json(self, jobs: list[str]) -> dict[str, object]:
        return {"study": str(self.folder), "job": ",".join(jobs) or None, "trials": self.trials, "repeated": self.repeated,
                "under_way": self.under_way}


def _quoted(text: str, where: str) -> str:
    """A quoted value for an #SBATCH line; empty if `text` is empty."""
    if "\n" in text:
        raise InputError("a batch script cannot contain a name with a line break", where, "a name without line breaks")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"' if text else ""


def _most_indices() -> int:
    """MaxArraySize, the exclusive limit on array indices. If it is unknown, Slurm's default; sbatch then reports errors."""
    try:
        words = slurm_says(["scontrol", "show", "config"], "").replace("=", " ").split() if shutil.which("scontrol") else []
    except InputError:
        words = []
    most = int(words[words.index("MaxArraySize") + 1]) if "MaxArraySize" in words else 1001
    if most < 1:
        raise InputError("this cluster does not support array jobs", "MaxArraySize of `scontrol show config`",
                         "`concertina study run` in one allocation for the whole study")
    return most


def _is(word: str, name: str, letter: str) -> bool:
    """Whether sbatch parses `word` as its option `name`: it accepts abbreviations of long options, and several letters in one word."""
    if word.startswith("--"):
        return len(given := word.partition("=")[0]) > 2 and name.startswith(given)
    return word.startswith("-") and word[1:].lstrip("hHOQuvVWX").startswith(letter)


def _require_own(more: str) -> None:
    """Raises InputError if something would override what the study sets. `more`: options for sbatch."""
    if "\n" in more:
        raise InputError("--sbatch contains more than one line", "--sbatch", "options on one line")
    try:
        words = shlex.split(more)
    except ValueError as error:
        raise InputError("a quote is not closed", "--sbatch", "options with shell quoting") from error
    for name, (letter, variable) in _OWN.items():
        if variable in os.environ:
            raise InputError(f"{variable} overrides {name}, which the study sets", "environment", f"unset {variable}")
        if sets := [word for word in words if _is(word, name, letter)]:
            raise InputError(f"{sets[0]} sets {name}, which the study sets", "--sbatch",
                             "other options of sbatch, or --at-once K to limit concurrent tasks")


def main(options: Options) -> int:
    """With --check, only reports problems, before the folder exists."""
    if "dry-run" not in options and not shutil.which("sbatch"):
        raise InputError("sbatch is not on PATH", "this machine",
                         "a machine with Slurm, --dry-run to show the script, or `concertina study run`, which does not need Slurm")
    _require_own(options.text("sbatch"))
    study = Submission(json.load(sys.stdin), options)
    if "dry-run" in options:
        scripts = [study.script(array) for array in _arrays(study.trials)]
        more = {"script": scripts[0] if scripts else ""} | ({"scripts": scripts} if len(scripts) > 1 else {})
        options.print_result("\n".join(scripts) or study.text([]), study.json([]) | more)
        return 0
    if "check" in options:
        study.script(Array([1]))
        return 0
    jobs = study.submit_all()
    options.print_result(study.text(jobs), study.json(jobs))
    return 0
