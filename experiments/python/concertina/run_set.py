"""Runs that exist, as the results of a study: so tables are of any runs, whoever launched them.

A run that has not ended is there with the steps that it has done, and its name says so.
"""
from __future__ import annotations

import json
import math
import os
import pathlib
import tomllib
import typing

from .errors import InputError
from .files import flat, parse_json, read_text
from .program import default_config
from .results import NO_CONFIG, RUN_COLUMN, SEED, RunSummary, StudyResults
from .run_log import Line, RunLog, number, read_log, text, totals
from .study_folder import STUDY_FILE, read_study
from .texts import counted, toml_text

PLACES = ("run.name", "run.dir", "checkpoint.dir", "cache.dir")  # keys that say where a run is kept
_OF_LAUNCH = ("version", "commit", "program", "onednn", "device", "isa", "compute", "text")


def is_run(folder: pathlib.Path) -> bool:
    return (folder / "metrics.jsonl").is_file() or (folder / "config.toml").is_file()


def config_texts(folder: str | pathlib.Path) -> dict[str, str]:
    """The keys of config.toml as "table.key", with their values as text; none if it is missing or is not TOML."""
    file = pathlib.Path(folder) / "config.toml"
    try:
        table = tomllib.loads(read_text(file)) if file.is_file() else {}
    except tomllib.TOMLDecodeError:
        return {}
    return {key: value if isinstance(value, str) else toml_text(value) for key, value in flat(table).items()}


def _take_result(run: RunSummary, result: Line) -> None:
    for name, value in flat(result).items():
        if isinstance(value, str) and name.rpartition(".")[2] != "time":
            run.facts[name] = value
        elif not math.isnan(figure := number({name: value}, name)):
            run.figures[name] = figure


def _take_logged(run: RunSummary, log: RunLog) -> None:
    """A run that was killed after its last checkpoint has a result without the numbers of its steps, which its log has."""
    if "steps" not in run.figures or "loss" in run.figures or not log.metrics or log.metrics[-1].get("step") != run.figures["steps"]:
        return
    logged: dict[str, float] = totals(log.metrics)
    for key in ("loss", "lr", "grad_norm", "peak_bytes"):
        values = [line[key] for line in log.metrics if key in line]
        if values and (values[-1] is None or not math.isnan(number({key: values[-1]}, key))):
            logged[key] = number({key: values[-1]}, key)
    run.figures = logged | run.figures


def _evaluation(run: RunSummary, log: RunLog) -> Line | None:
    """That of the checkpoint which the run keeps as its best; the last so far, of a run that has not ended; None: the result's."""
    if not log.validations:
        return None
    if "validation_loss" not in run.figures:
        return log.validations[-1]
    if "best_step" not in run.figures or not config_texts(run.directory).get("checkpoint.best"):
        return None
    return next((line for line in log.validations if number(line, "step") == run.figures["best_step"]), None)


def _take_evaluation(run: RunSummary, line: Line) -> None:
    run.figures = {name: value for name, value in run.figures.items() if not name.startswith("validation_")}
    found = {key: number(line, key) for key in line if key not in ("step", "seconds")}
    run.figures |= {f"validation_{key}": value for key, value in found.items() if not math.isnan(value)}
    run.facts |= {f"validation_{key}": text(line, key) for key in ("data", "measure") if text(line, key)}


def _take_launch(run: RunSummary, launch: Line) -> None:
    """Where the last launch ran."""
    hosts = launch.get("hosts")
    hosts = [host for host in hosts if isinstance(host, dict)] if isinstance(hosts, list) else []
    run.facts |= {key: launch[key] for key in _OF_LAUNCH if isinstance(launch.get(key), str)}
    run.facts |= {key: ", ".join(sorted({host[key] for host in hosts if isinstance(host.get(key), str)}))
                  for key in ("host", "processor")}
    loads = [load for host in hosts if not math.isnan(load := number(host, "load"))]
    if loads:
        run.figures["load"] = max(0.0, run.figures.get("load", 0.0), *loads)
    if isinstance(libraries := launch.get("libraries"), dict) and libraries:
        run.facts["libraries"] = json.dumps(libraries, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def read_run(number_of_run: int, directory: str, name: str) -> RunSummary:
    """What a run's files say; of one that has not ended, what its steps so far say."""
    folder, log = pathlib.Path(directory), read_log(directory)
    run = RunSummary(number_of_run, state="done", directory=directory)
    if not log.metrics:
        raise InputError("this run has trained no step", directory, "a run with a metrics.jsonl")
    if (folder / "result.json").is_file():
        try:
            result = parse_json(read_text(folder / "result.json"))
        except ValueError:
            result = None
        _take_result(run, result if isinstance(result, dict) else {})
    else:
        run.figures["steps"] = number(log.metrics[-1], "step")
        name += f" (at step {run.figures['steps']:.0f})"
    _take_logged(run, log)
    if evaluation := _evaluation(run, log):
        _take_evaluation(run, evaluation)
    if log.seconds and (seconds := list(log.seconds.values())[-1]) > 0:
        run.figures["train_s"] = seconds
    if log.launches:
        _take_launch(run, log.launches[-1])
    if not (folder / "config.toml").is_file():
        run.facts[NO_CONFIG] = "none"
    run.settings[RUN_COLUMN] = name
    return run


def _runs_in(folder: pathlib.Path, below: bool = True) -> list[str]:
    """The runs in `folder`, or one level below."""
    if is_run(folder):
        return [str(folder)]
    if (folder / STUDY_FILE).is_file():
        return [run.directory for run in read_study(folder).runs if run.directory and is_run(pathlib.Path(run.directory))]
    if not below or not folder.is_dir():
        return []
    return sorted(run for entry in folder.iterdir() for run in _runs_in(entry, below=False))


def _all_runs(folders: typing.Sequence[str | pathlib.Path]) -> list[str]:
    runs: list[str] = []
    for folder in folders:
        found = _runs_in(pathlib.Path(os.path.normpath(folder)))
        if not found:
            raise InputError("there is no run in this folder", str(folder),
                             "directories of runs, such as runs/NAME, or the folder of a study")
        runs += found
    places = [os.path.realpath(run) for run in runs]
    for run, place in zip(runs, places):
        if places.count(place) > 1:
            raise InputError("this run is given twice", run, "each run once")
    return runs


def _short_names(runs: list[str]) -> list[str]:
    """The last parts of the paths, as many as tell each from all others."""
    parts = [pathlib.PurePath(run).parts for run in runs]
    for count in range(1, max(map(len, parts)) + 1):
        names = [str(pathlib.PurePath(*path[-count:])) for path in parts]
        if len(set(names)) == len(names):
            break
    return names


def _differing(configs: dict[int, dict[str, str]]) -> list[str]:
    """The keys in which configs differ, run.seed last; a key that one of them lacks gets its default."""
    differing = []
    for key in sorted({key for config in configs.values() for key in config}):
        if lacking := [config for config in configs.values() if key not in config]:
            default = default_config().get(key, "")
            for config in lacking:
                config[key] = default
        if key not in PLACES and len({config[key] for config in configs.values()}) > 1:
            differing.append(key)
    return sorted(differing, key=lambda key: key == SEED)


def read_runs(folders: typing.Sequence[str | pathlib.Path]) -> StudyResults:
    """The runs in `folders`: directories of runs, folders of studies, or folders that have some of these."""
    places = _all_runs(folders)
    names = _short_names(places)
    results = StudyResults(counted(len(places), "run"), loose=True)
    results.runs = [read_run(at, place, name) for at, (place, name) in enumerate(zip(places, names), 1)]
    configs = {run.number: config_texts(run.directory) for run in results.runs if NO_CONFIG not in run.facts}
    results.axes = _differing(configs)
    results.notes.append("trials: " + ", ".join(f"{at} {name}" for at, name in enumerate(names, 1)))
    for run in results.runs:
        if run.number in configs:
            run.settings |= {key: configs[run.number][key] for key in results.axes}
    return results


def study_results(*folders: str | pathlib.Path) -> StudyResults:
    """The study of one folder, or the runs in several."""
    if len(folders) == 1:
        folder = pathlib.Path(folders[0])
        if not is_run(folder) and (folder / STUDY_FILE).is_file():
            return read_study(folder)
    return read_runs(folders)
