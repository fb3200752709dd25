"""Runs: their config, logs, traces and checkpoints (formats in experiments/guide/run-directory.md), and exports to other tools."""
import functools
import math
import numbers
import pathlib
import tomllib
import typing

import pandas as pd

from .checkpoint import Checkpoint
from .errors import library
from .files import flat, read_json, read_lines
from .results import StudyResults, study_results
from .run_log import PLACES, is_run, read_log


class NotARun(ValueError):
    """The directory contains no training log."""


class Run:
    """A run directory. Data is read once, on first use; create another `Run(path)` to see new data."""

    def __init__(self, path: str | pathlib.Path):
        self.path = pathlib.Path(path)
        self.name = self.path.resolve().name
        if not is_run(self.path):
            raise NotARun(f"{self.path} is not a run directory: it contains neither config.toml nor metrics.jsonl")

    def _lines(self, name: str) -> pd.DataFrame:
        return pd.DataFrame(read_lines(self.path / f"{name}.jsonl"))

    @functools.cached_property
    def config(self) -> dict[str, typing.Any]:
        """All keys of config.toml, as {"parallel.pp": 2, ...}; empty for a run from another program."""
        file = self.path / "config.toml"
        return flat(read_json(file, tomllib.loads)) if file.is_file() else {}

    @functools.cached_property
    def metrics(self) -> pd.DataFrame:
        """A row per step, sorted: the columns of metrics.jsonl, and `tokens` and `seconds` of training so far.

        For a repeated step, the last line counts. `seconds` are as in `concertina report`: without evaluations, the time between launches,
        and the first step of each launch."""
        log = read_log(self.path)
        frame = _by_step(pd.DataFrame(log.metrics), ("loss", "lr", "grad_norm", "tokens_per_s", "step_ms", "bubble"))
        if "time" in frame:
            frame["time"] = pd.to_datetime(frame["time"], utc=True)
            if log.seconds:  # otherwise the time of a line or an evaluation is missing
                frame["seconds"] = frame.index.map(log.seconds)
        if {"tokens_per_s", "step_ms"} <= set(frame):
            batches = frame["batches"].fillna(1) if "batches" in frame else 1
            of_step = frame["tokens_per_s"] * frame["step_ms"] / 1e3 * batches
            if of_step.notna().all():
                frame["tokens"] = of_step.round().cumsum()
        return frame

    @functools.cached_property
    def events(self) -> pd.DataFrame:
        """events.jsonl, with a row per event; absent values are NaN."""
        return self._lines("events")

    @functools.cached_property
    def validations(self) -> pd.DataFrame:
        """A row per evaluation, sorted by step: `loss`, and the task's metrics."""
        lines = pd.DataFrame(read_log(self.path).validations)
        return _by_step(lines.drop(columns="event", errors="ignore") if len(lines) else pd.DataFrame(columns=["step", "loss"]), ("loss",))

    @functools.cached_property
    def launches(self) -> pd.DataFrame:
        """A row per launch: its hosts, program and exit."""
        return self._lines("launches")

    @functools.cached_property
    def restarts(self) -> pd.DataFrame:
        """A row per restart by `concertina run`."""
        return self._lines("restarts")

    @functools.cached_property
    def result(self) -> dict[str, typing.Any]:
        """result.json; empty if the run has not finished."""
        file = self.path / "result.json"
        return read_json(file) if file.exists() else {}

    @property
    def checkpoints(self) -> dict[int, pathlib.Path]:
        """The directories of the run's commits, by step."""
        folder = pathlib.Path(self.config.get("checkpoint.dir") or self.path / "checkpoints")
        found = {int(path.name[5:]): path for path in folder.glob("step-*") if path.name[5:].isdigit()}
        return dict(sorted(found.items()))

    def checkpoint(self, step: int | None = None) -> Checkpoint:
        """The checkpoint of `step`; default: the newest."""
        found = self.checkpoints
        if not found or (step is not None and step not in found):
            there = ", ".join(map(str, found)) or "none"
            raise FileNotFoundError(f"{self.path} has no checkpoint" + (f" for step {step}" if step else "") + f"; there: {there}")
        return Checkpoint(found[max(found) if step is None else step])

    def trace(self, step: int | None = None) -> pd.DataFrame:
        """A row per action of the recorded steps: rank, kind, stage, microbatch, start and seconds (on rank 0's clock).

        `step`: the first step of the trace (`log.trace_at`); default: the last trace."""
        file = self.path / ("trace.json" if step is None else f"trace-{step:08}.json")
        events = read_json(file)["traceEvents"]
        rows = [{"rank": event["pid"], "name": event["name"], "start": event["ts"] / 1e6, "seconds": event["dur"] / 1e6,
                 **event.get("args", {})} for event in events if event.get("cat") == "action"]
        return pd.DataFrame(rows).rename(columns={"i": "index_in_plan"})

    def __repr__(self) -> str:
        last = self.metrics.index.max() if len(self.metrics) else 0
        state = "finished" if self.result else "not finished"
        return f"Run({self.name}: {last} steps, {state}, {self.path})"


def _by_step(frame: pd.DataFrame, columns: typing.Iterable[str]) -> pd.DataFrame:
    """Keeps the last of several lines for a step. `columns`: those in which null stands for a number that is not finite."""
    if "step" not in frame:
        return pd.DataFrame(index=pd.Index([], name="step", dtype="int64"))
    nulls = frame.columns[frame.isna().all()]
    frame = frame.astype({column: "float64" for column in {*columns, *nulls} if column in frame})
    return frame.drop_duplicates("step", keep="last").set_index("step").sort_index()


def _named(runs: typing.Iterable[Run | str | pathlib.Path]) -> dict[str, Run]:
    """Runs by name, or by path if two have the same name."""
    opened = [run if isinstance(run, Run) else Run(run) for run in runs]
    names = [run.name for run in opened]
    return {run.name if names.count(run.name) == 1 else str(run.path): run for run in opened}


def differing_keys(runs: typing.Iterable[Run | str | pathlib.Path]) -> pd.DataFrame:
    """A row per config key that differs between runs and a column per run; ignores where the runs are stored.

    A run from another program has no config, and so no column."""
    frame = pd.DataFrame({name: {key: str(value) for key, value in run.config.items()} for name, run in _named(runs).items() if run.config})
    differ = [key for key in frame.index if key not in PLACES and frame.loc[key].nunique(dropna=False) > 1]
    return frame.loc[differ].sort_index()


def curves(runs: typing.Iterable[Run | str | pathlib.Path], column: str = "loss", by: str = "step") -> pd.DataFrame:
    """A column per run, indexed by `step`, `tokens` or `seconds`. "validation_loss" uses evaluations."""
    if by not in ("step", "tokens", "seconds"):
        raise ValueError(f"by={by!r} is not one of step, tokens, seconds")
    found = {}
    for name, run in _named(runs).items():
        held_out = column.startswith("validation_")
        frame, figure = (run.validations, column.removeprefix("validation_")) if held_out else (run.metrics, column)
        if figure not in frame:
            continue
        curve = frame[figure]
        if by != "step":
            if by not in run.metrics:  # its log lacks them
                continue
            clock = run.metrics[by]
            curve = curve[curve.index.isin(clock.index)]
            curve.index = pd.Index(clock.loc[curve.index], name=by)
        found[name] = curve[~curve.index.duplicated(keep="last")]
    return pd.DataFrame(found)


class Study:
    """The folder of a study, studies/NAME."""

    def __init__(self, path: str | pathlib.Path):
        self.path = pathlib.Path(path)
        if not (self.path / "study.toml").is_file():
            raise NotARun(f"{self.path} is not the folder of a study: it has no study.toml")

    @functools.cached_property
    def results(self) -> StudyResults:
        """All trials, including open ones, and the study's claim and search."""
        return study_results(self.path)

    @property
    def trials(self) -> pd.DataFrame:
        """A row per finished trial, sorted by number: state, settings, metrics, facts and error."""
        frame = self.results.frame()
        return frame[frame["state"] != "open"]

    @property
    def runs(self) -> dict[int, Run]:
        """The runs of all started trials, by number."""
        begun = ((run.number, self.path / str(run.number) / "run") for run in self.results.runs)
        return {number: Run(folder) for number, folder in begun if (folder / "config.toml").is_file()}

    def __repr__(self) -> str:
        return f"Study({self.path.name}: {len(self.trials)} trials, {self.path})"


_OTHER = ("batches", "seconds", "time", "layout")  # columns of a step that are not metrics


def points_of(run: Run) -> typing.Iterator[tuple[int, float, dict[str, float]]]:
    """Step, seconds since 1970 (0: unknown), and the finite metrics of the step and its evaluation."""
    validations = run.validations
    for step, row in run.metrics.iterrows():
        metrics = {f"train/{name}": float(value) for name, value in row.items() if name not in _OTHER and isinstance(value, numbers.Real)}
        if step in validations.index:
            evaluated = validations.loc[typing.cast(int, step)].drop(["time", "tokens", "of_tokens", "data_bytes"], errors="ignore")
            metrics |= {f"validation/{name}": float(value) for name, value in evaluated.items() if isinstance(value, (int, float))}
        time = row["time"].timestamp() if "time" in row and row["time"] == row["time"] else 0.0
        yield typing.cast(int, step), time, {name: value for name, value in metrics.items() if math.isfinite(value)}


def to_wandb(run: Run | str, project: str = "concertina", directory: str | pathlib.Path = ".") -> pathlib.Path:
    """Creates an offline run in DIRECTORY/wandb for `wandb sync`. Returns its folder."""
    wandb = library("wandb")
    run = run if isinstance(run, Run) else Run(run)
    log = wandb.init(project=project, name=run.name, dir=str(directory), mode="offline", config=run.config, reinit=True)
    for step, _, metrics in points_of(run):
        log.log(metrics, step=step)
    log.summary.update({key: value for key, value in run.result.items() if isinstance(value, (int, float, str))})
    folder = pathlib.Path(log.dir).parent
    log.finish()
    return folder


def to_mlflow(run: Run | str, experiment: str = "concertina", uri: str = "sqlite:///mlflow.db") -> str:
    """Creates a run in the tracking store `uri` for `mlflow ui --backend-store-uri URI`. Returns its id."""
    entities, tracking = (library(module) for module in ("mlflow.entities", "mlflow.tracking"))
    run = run if isinstance(run, Run) else Run(run)
    client = tracking.MlflowClient(uri)
    found = client.get_experiment_by_name(experiment)
    number = found.experiment_id if found else client.create_experiment(experiment)
    log = client.create_run(number, run_name=run.name)
    identity, most = log.info.run_id, 500  # maximum per batch
    params = [entities.Param(key, str(value)[:most]) for key, value in run.config.items()]
    for begin in range(0, len(params), 100):
        client.log_batch(identity, params=params[begin:begin + 100])
    batch: list[typing.Any] = []
    for step, time, metrics in points_of(run):
        batch += [entities.Metric(name, value, int(1000 * time), step) for name, value in metrics.items()]
        while len(batch) >= most:
            client.log_batch(identity, metrics=batch[:most])
            batch = batch[most:]
    client.log_batch(identity, metrics=batch)
    for key in ("state_sha256", "commit", "layout"):
        if key in run.result:
            client.set_tag(identity, key, str(run.result[key]))
    client.set_terminated(identity, "FINISHED" if run.result else "KILLED")
    return identity


def to_tensorboard(runs: typing.Iterable[Run | str], directory: str | pathlib.Path) -> pathlib.Path:
    """Writes a folder with runs' curves, and their config keys and last metrics for TensorBoard's HParams page."""
    writers = library("tensorboardX")
    directory = pathlib.Path(directory)
    for one in runs:
        run = one if isinstance(one, Run) else Run(one)
        last: dict[str, float] = {}
        with writers.SummaryWriter(str(directory / run.name)) as writer:
            for step, time, metrics in points_of(run):
                for name, value in metrics.items():
                    writer.add_scalar(name, value, step, walltime=time or None)
                last |= metrics
            params = {key: value if isinstance(value, (int, float, str, bool)) else str(value) for key, value in run.config.items()}
            writer.add_hparams(params, last, name="hparams")  # a separate folder, since file names only differ by the second
    return directory
