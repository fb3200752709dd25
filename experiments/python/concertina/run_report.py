"""The report on a run: its page, and its figures as text and JSON."""
from __future__ import annotations

import os
import pathlib
import typing

from .errors import InputError
from .files import replace_file
from .page import page
from .run_files import RunFiles, load_run
from .run_log import read_log, totals
from .run_page import report_page
from .texts import grouped


def report_text(run: RunFiles) -> str:
    """What a terminal shows of the figures."""
    every, known, said = totals(run.log.metrics), run.recorded, ""
    if "steps" in every:
        rate = f", {grouped(round(every['tokens_per_s']))} tokens/s" if "tokens_per_s" in every else ""
        said += f"{grouped(int(every['steps']))} steps: median {every['median_step_ms']:.2f} ms{rate}\n"
    if not run.ranks:
        return said + "no step was recorded (log.trace)\n" + run.course.text()
    said += (f"recorded step {known['typical_step']}: {known['step_ms']:.2f} ms, predicted {known['predicted_step_ms']:.2f} ms "
             f"({100 * known['prediction_error']:+.1f}%)\n")
    if missing := known.get("costs_missing"):
        said += f"predicted without the reduction of gradients: {missing}\n"
    return said + f"bubble {100 * known['bubble']:.1f}%, predicted {100 * known['predicted_bubble']:.1f}%\n" + run.course.text()


_OF_PAGE = ("timeline", "pipelines", "layer_ends", "parameters", "tokens_per_step")  # and of ranks, memory over the step


def report_json(run: RunFiles) -> dict[str, typing.Any]:
    ranks = [{key: value for key, value in rank.items() if "memory" not in key} for rank in run.ranks]
    recorded = {key: value for key, value in run.recorded.items() if key not in _OF_PAGE} | ({"ranks": ranks} if ranks else {})
    return {"run": run.name, **recorded, "all_steps": totals(run.log.metrics), "course": run.course.json()}


def write_report(run: str | os.PathLike[str], output: str | os.PathLike[str] = "", beside: str | os.PathLike[str] = "",
                 step: int | None = None) -> RunFiles:
    """Writes the page of a run to `output`, or RUN/report.html. `step`: of the trace that begins there."""
    path = os.fspath(output) or str(pathlib.Path(run, "report.html"))
    other = (os.fspath(beside), read_log(os.fspath(beside))) if beside else None
    if other and not other[1].metrics:
        raise InputError("this is not the directory of a run that has trained", other[0],
                         "--beside runs/NAME, of the same config without freeze.policy")
    files = load_run(os.fspath(run), step)
    replace_file(path, page(report_page(files, other)))
    return files
