"""Runs the program from Python: checks, predicts and draws user-defined schedules, and trains with them.

Everything uses the command line and its JSON output. The program is the `concertina` on the PATH, or the one that the environment variable
CONCERTINA names."""
from __future__ import annotations

import csv
import io
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import typing

from .errors import InputError, library
from .files import pass_warnings

if typing.TYPE_CHECKING:
    import pandas as pd

    from .run import Run


class ProgramError(InputError):
    """The program's error message: what, where, and what to try. `code`: its exit code."""

    def __init__(self, said: str, code: int = 2):
        super().__init__(said.removeprefix("concertina: error: "), code=code)


def program() -> str:
    found = os.environ.get("CONCERTINA") or shutil.which("concertina")
    if not found:
        raise FileNotFoundError("`concertina` is not on the PATH; set CONCERTINA=/path/to/concertina")
    return found


def call(*words: object) -> str:
    """Returns the output of `concertina WORDS`. Raises ProgramError if it fails."""
    done = subprocess.run([program(), *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        if "--json" in words:
            call(*(word for word in words if word != "--json"))  # raises the same error as text
        raise ProgramError((done.stderr or done.stdout).strip()[-4000:] or f"exit code {done.returncode}: concertina {words}", done.returncode)
    pass_warnings(done.stderr * ("--json" in words))  # such as of a damaged file
    return done.stdout


class Picture(str):
    """An SVG that a notebook displays."""

    def _repr_svg_(self) -> str:
        return str(self)


class Schedule:
    """The order of actions on each rank, given by a schedule name with ranks and microbatches, or by rows.

    `rows`: the actions of each rank, such as "0F0" (stage, F, microbatch); see experiments/guide/schedules.md, "Running your own schedule".
    Transfers are added to rows that contain only computations."""

    def __init__(self, name: str = "own", rows: typing.Sequence[typing.Sequence[str]] | None = None, **sizes: int):
        self.name, self._sizes = name, dict[str, object](sizes)
        if rows is None:
            text = call("schedule", "show", name, "--compute-only", *_options(self._sizes))
            rows = [line.split(",") for line in text.splitlines() if line]
        self.rows = [list(row) for row in rows]

    def to_csv(self, path: str | pathlib.Path | None = None) -> str:
        """The text of a file for `parallel.schedule`."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(self.rows)
        if path is not None:
            pathlib.Path(path).write_text(text.getvalue(), encoding="utf-8")
        return text.getvalue()

    def check(self) -> dict:
        """Proves that the schedule is complete and free of deadlocks. Raises a ProgramError that names the first invalid action."""
        return json.loads(self._call("check", "--json"))

    def simulate(self, costs: object = "1,1,1", **options: object) -> dict:
        """Predicts the makespan, bubble, memory, critical path and timeline. `costs`: seconds "F,I,W", a file, or a run directory."""
        return json.loads(self._call("simulate", "--json", "--costs", costs, *_options(options)))

    def timeline(self, costs: object = "1,1,1", **options: object) -> pd.DataFrame:
        """The predicted timeline with a row per action: rank, action, start, end."""
        rows = self.simulate(costs, **options)["timeline"]
        return library("pandas").DataFrame([(rank, *action) for rank, row in enumerate(rows) for action in row],
                                           columns=["rank", "action", "start", "end"])

    def draw(self, costs: object = "1,1,1", **options: object) -> Picture:
        """Draws the predicted timeline as SVG."""
        with tempfile.TemporaryDirectory() as folder:
            self._call("draw", "--out", f"{folder}/picture.svg", "--costs", costs, *_options(options))
            text = pathlib.Path(folder, "picture.svg").read_text(encoding="utf-8")
            return Picture(text[text.index("<svg"):])

    def _repr_svg_(self) -> str:
        return str(self.draw())

    def _call(self, command: str, *words: object) -> str:
        with tempfile.TemporaryDirectory() as folder:
            self.to_csv(file := f"{folder}/{self.name}.csv")
            return call("schedule", command, file, *words)

    def __repr__(self) -> str:
        return f"Schedule({self.name}: {len(self.rows)} ranks, {sum(map(len, self.rows))} actions)"


def train(name: str, *configs: object, ranks: int = 1, launcher: str | None = None, **keys: object) -> Run:
    """Trains to the end with restarts after faults (`concertina run`). Returns the run.

    `configs`: "@file.toml", run directories and "table.key=value"; `keys`: keys with "__" instead of the dot, such as parallel__pp=2. A `Schedule`
    passed as parallel__schedule is saved as NAME.csv in run.dir. `launcher`: a template as for `concertina run --launcher`."""
    from .run import Run
    words = [str(word) for word in configs]
    directory = str(keys.get("run__dir", next((word.split("=", 1)[1] for word in words if word.startswith("run.dir=")), "runs")))
    for key, value in keys.items():
        if isinstance(value, Schedule):
            pathlib.Path(directory).mkdir(parents=True, exist_ok=True)
            value.to_csv(file := f"{directory}/{name}.csv")
            value = file
        words.append(f"{key.replace('__', '.')}={str(value).lower() if isinstance(value, bool) else value}")
    call("run", "--ranks", ranks, *(["--launcher", launcher] if launcher else []), "--", "train", *words, f"run.name={name}")
    return Run(pathlib.Path(directory, name))


def _options(options: dict[str, object]) -> list[str]:
    """Converts {"boundary_bytes": 8} to ["--boundary-bytes", "8"]."""
    return [word for key, value in options.items() for word in (f"--{key.replace('_', '-')}", str(value))]
