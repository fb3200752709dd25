"""What the files of a run directory say, and what the program alone knows of it."""
from __future__ import annotations

import dataclasses
import functools
import json
import pathlib
import typing

from .errors import InputError
from .files import read_json
from .program import call
from .run_course import Course, course_of
from .files import read_lines
from .run_log import Line, RunLog, read_log
from .run_log import is_run


@dataclasses.dataclass
class RunFiles:
    """What a run directory says. `recorded`: what recorded_figures() gives."""
    path: pathlib.Path
    log: RunLog
    events: list[Line]
    result: Line
    recorded: dict[str, typing.Any] = dataclasses.field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.path.resolve().name

    @property
    def ranks(self) -> list[dict[str, typing.Any]]:
        ranks: list[dict[str, typing.Any]] = self.recorded.get("ranks", [])
        return ranks

    @functools.cached_property
    def course(self) -> Course:
        return course_of(self.log.metrics, self.events, self.log.launches, self.recorded.get("layer_ends", []), self.result)


def recorded_figures(run: pathlib.Path, step: int | None) -> dict[str, typing.Any]:
    """What the program alone knows of a run: its model, and its recorded steps beside their prediction.

    `concertina report RUN --figures [--step N]` prints one JSON object: `layer_ends` (the last unit of each layer), `parameters` and
    `tokens_per_step`, as far as this version knows the config; and, where the run has a trace, the keys that `report --json` has had
    (run, schedule, layout, steps, recorded_steps, typical_step, step_ms, predicted_step_ms, prediction_error, bubble, predicted_bubble,
    ranks, clock_error_us, costs_missing), `pipelines` (as in trace.json), `timeline` (the drawing of both steps as SVG), and for each of
    `ranks` `memory` ([ms, saved bytes, bytes of boundary buffers], ...) and `predicted_memory` ([ms, saved bytes], ...).
    """
    trace = run / ("trace.json" if step is None else f"trace-{step:08}.json")
    if step is not None and not trace.exists():
        there = sorted(int(path.stem[6:]) for path in run.glob("trace-*.json") if path.stem[6:].isdigit())
        raise InputError(f"no trace begins at step {step}", str(run), f"--step {there[0]}" if there else "a report without --step")
    if not (run / "config.toml").exists():
        return {}
    return json.loads(call("report", run, "--figures", *(["--step", step] if step is not None else [])))


def load_run(directory: str | pathlib.Path, step: int | None = None) -> RunFiles:
    path = pathlib.Path(directory)
    if not is_run(path):
        raise InputError("this is not a run directory", str(path), "the directory of a run: runs/NAME")
    result = read_json(path / "result.json") if (path / "result.json").exists() else {}
    return RunFiles(path, read_log(path), read_lines(path / "events.jsonl"), result if isinstance(result, dict) else {},
                    recorded_figures(path, step))
