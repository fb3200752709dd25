"""The report on a run: the data from its files and the program, as a page and as values."""
import dataclasses
import functools
import json
import os
import pathlib
import typing

from .errors import InputError
from .files import read_json, read_lines, replace_file
from .page import page
from .program import call
from .run_course import Course, course_of
from .run_log import Line, RunLog, is_run, read_log, totals


@dataclasses.dataclass
class RunFiles:
    """The data of a run directory. `recorded`: the result of recorded_metrics()."""
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
        return self.recorded.get("ranks", [])

    @functools.cached_property
    def totals(self) -> dict[str, float]:
        return totals(self.log.metrics)

    @functools.cached_property
    def course(self) -> Course:
        return course_of(self.log.metrics, self.events, self.log.launches, self.recorded.get("layer_ends", []), self.result)


def recorded_metrics(run: pathlib.Path, step: int | None) -> dict[str, typing.Any]:
    """Data that only the program has (see recorded_metrics.h). For each of `ranks`, `memory` is [ms, saved bytes, bytes of boundary buffers],
    ..., and `predicted_memory` [ms, saved bytes], ...; `timeline` is in the form that steps.py uses."""
    if step is not None and not (run / f"trace-{step:08}.json").exists():
        there = sorted(int(path.stem[6:]) for path in run.glob("trace-*.json") if path.stem[6:].isdigit())
        raise InputError(f"no trace starts at step {step}", str(run), f"--step {there[0]}" if there else "remove --step")
    if not (run / "config.toml").exists():
        return {}
    return json.loads(call("report", run, "--data", *(["--step", step] if step is not None else [])))


def load_run(directory: str | pathlib.Path, step: int | None = None) -> RunFiles:
    path = pathlib.Path(directory)
    if not is_run(path):
        raise InputError("not a run directory", str(path), "a run directory, such as runs/NAME")
    result = read_json(path / "result.json") if (path / "result.json").exists() else {}
    return RunFiles(path, read_log(path), read_lines(path / "events.jsonl"), result if isinstance(result, dict) else {},
                    recorded_metrics(path, step))


def report_text(run: RunFiles) -> str:
    """The report for a terminal."""
    every, known, said = run.totals, run.recorded, ""
    if "steps" in every:
        rate = f", {every['tokens_per_s']:,.0f} tokens/s" if "tokens_per_s" in every else ""
        said += f"{every['steps']:,} steps: median {every['median_step_ms']:.2f} ms{rate}\n"
    if not run.ranks:
        return said + "no step was recorded (log.trace)\n" + run.course.text()
    said += (f"recorded step {known['typical_step']}: {known['step_ms']:.2f} ms, predicted {known['predicted_step_ms']:.2f} ms "
             f"({known['prediction_error']:+.1%})\n")
    if missing := known.get("costs_missing"):
        said += f"predicted without the reduction of gradients: {missing}\n"
    return said + f"bubble {known['bubble']:.1%}, predicted {known['predicted_bubble']:.1%}\n" + run.course.text()


_OF_PAGE = ("timeline", "pipelines", "layer_ends", "parameters", "tokens_per_step")  # and of ranks, memory over the step


def report_json(run: RunFiles) -> dict[str, typing.Any]:
    ranks = [{key: value for key, value in rank.items() if "memory" not in key} for rank in run.ranks]
    recorded = {key: value for key, value in run.recorded.items() if key not in _OF_PAGE} | ({"ranks": ranks} if ranks else {})
    return {"run": run.name, **recorded, "all_steps": run.totals, "course": run.course.json()}


def write_report(run: str | os.PathLike[str], output: str | os.PathLike[str] = "", step: int | None = None) -> RunFiles:
    """Writes the page of a run to `output`, or RUN/report.html; to a .svg, .pdf or .png file, only its predicted and measured timelines.

    `step`: the first step of the trace to show."""
    path = pathlib.Path(os.fspath(output) or pathlib.Path(run, "report.html"))
    files = load_run(os.fspath(run), step)
    if path.suffix.lower() not in (".svg", ".pdf", ".png"):
        from .run_page import report_page
        replace_file(path, page(report_page(files)))
        return files
    from .chart import save
    from .timeline import draw_timelines
    if "timeline" not in files.recorded:
        raise InputError("no step of this run was recorded", str(run), "log.trace=3 when training, or --output FILE.html")
    replace_file(path, save(draw_timelines(files.recorded["timeline"]), path.suffix.lower()))
    return files
