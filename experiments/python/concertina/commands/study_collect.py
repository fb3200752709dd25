"""`concertina study collect`: reports the state of each trial, including Slurm tasks. results.csv has already been written."""
import os
import pathlib
import shlex
import shutil
import subprocess
import typing

from ..errors import InputError
from ..files import read_lines
from ..names import ranges
from ..results import study_results
from . import Options

SUBMISSIONS, OUTPUT = "submissions.jsonl", "slurm.txt"  # of a study: a line per array job; of a trial: the output of its task
_ENDS = {"done": "done", "stopped": "stopped", "failed": "failed", "timeout": "timed_out"}


class Task(typing.NamedTuple):
    """A queued or running task of an array job."""
    trial: int
    job: str
    state: str
    nodes: str
    number: int


# Trials that are done, stopped, failed, timed_out, lost (started, but without a record) and left; tasks that are running or queued.
Standing = dict[str, list]


def slurm_says(words: list[str], fix: str) -> str:
    """Returns the output of a Slurm command. Raises InputError if the command fails (with its output) or hangs for five minutes."""
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              timeout=300, check=False)
    except subprocess.TimeoutExpired as error:
        raise InputError(f"{words[0]} did not answer for 300 s", shlex.join(words), fix, code=1) from error
    text = done.stdout.strip("\n")
    if done.returncode != 0:
        raise InputError(f"{words[0]} failed: {text or 'it printed nothing'}", shlex.join(words), fix, code=1)
    return text


def _tasks(jobs: dict[str, int]) -> dict[int, Task]:
    """The tasks of these jobs by trial; `jobs` gives the trial at index 0 of each. Raises InputError if squeue does not answer."""
    if not shutil.which("squeue"):
        raise InputError("squeue is not on PATH", code=1)
    said = slurm_says(["squeue", "--noheader", "--array", "--user", str(os.getuid()), "--format", "%F %K %T %N"], "")
    tasks: dict[int, Task] = {}
    for job, index, state, *nodes in (words for line in said.splitlines() if len(words := line.split()) > 2):
        if job in jobs and index.isdecimal():  # for a job that is not an array, %K is not a number
            task = Task(jobs[job] + int(index), job, state, " ".join(nodes), int(index))
            tasks.setdefault(task.trial, task)
    return tasks


def standing_of(folder: pathlib.Path, states: dict[int, str]) -> tuple[Standing, str]:
    """Returns trials grouped by state, given `states` by trial number, and why queued and running tasks are unknown (empty: they are known).

    Runs squeue if the study has been submitted."""
    # A truncated line is ignored: at worst its trials are submitted again.
    before = [line for line in read_lines(folder / SUBMISSIONS) if isinstance(line.get("job"), str)]
    submitted = {trial for line in before for trial in line.get("trials", [])}
    tasks, unknown = {}, ""
    try:
        tasks = _tasks({line["job"]: line.get("first", 0) for line in before[::-1]}) if before else {}
    except InputError as error:
        unknown = error.what
    standing: Standing = {what: [] for what in (*_ENDS.values(), "running", "queued", "lost", "left")}
    for trial, state in sorted(states.items()):
        if state in _ENDS:
            standing[_ENDS[state]].append(trial)
        elif task := tasks.get(trial):
            standing["queued" if task.state == "PENDING" else "running"].append(task)
        else:
            lost = trial in submitted and (folder / str(trial) / OUTPUT).exists() and not unknown
            standing["lost" if lost else "left"].append(trial)
    return standing, unknown


def _text(standing: Standing, unknown: str, results: str) -> str:
    def count(*names: str) -> str:
        return "".join(f"{what.replace('_', ' '):<10} {len(standing[what]):>5}   {ranges(standing[what])}\n" for what in names if standing[what])

    ended = count(*_ENDS.values())
    tasks = "".join(f"{what:<10} {task.trial:>5}   job {task.job}_{task.number}, {task.state}{' on ' * bool(task.nodes)}{task.nodes}\n"
                    for what in ("running", "queued") for task in standing[what])
    lost = "  their tasks exited without a record (see the trial's slurm.txt and log.txt)\n" * bool(standing["lost"])
    left = "  run concertina study submit for these\n" * bool(standing["lost"] or standing["left"])
    return (ended + f"\n{tasks}\n" * bool(tasks) + count("lost") + lost + count("left") + left
            + f"queued and running tasks are unknown: {unknown}\n" * bool(unknown)
            + (f"results: {results}/results.csv\n" if ended else "no results yet\n"))


def main(options: Options) -> int:
    results = study_results(options.text("study"))
    standing, unknown = standing_of(pathlib.Path(results.directory), {run.number: run.state for run in results.runs})
    tasks = {what: None if unknown else [dict(list(task._asdict().items())[:4]) for task in standing[what]] for what in ("running", "queued")}
    options.print_result(_text(standing, unknown, results.directory), {"study": results.directory} | standing | tasks)
    return 0
