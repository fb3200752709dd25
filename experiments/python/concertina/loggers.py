"""Runs in the form of wandb, MLflow and TensorBoard: written on this machine, for their own tools to show or send."""
from __future__ import annotations

import math
import numbers
import pathlib
import typing

from .errors import library
from .run import Run

_OTHER = ("batches", "seconds", "time", "layout")  # columns of a step that are not metrics of it


def points_of(run: Run) -> typing.Iterator[tuple[int, float, dict[str, float]]]:
    """Step, seconds since 1970 (0: not known), and the figures of the step that are finite, with those of an evaluation."""
    validations = run.validations
    for step, row in run.metrics.iterrows():
        figures = {f"train/{name}": float(value) for name, value in row.items() if name not in _OTHER and isinstance(value, numbers.Real)}
        if step in validations.index:
            evaluated = validations.loc[typing.cast(int, step)].drop(["time", "tokens", "of_tokens", "data_bytes"], errors="ignore")
            figures |= {f"validation/{name}": float(value) for name, value in evaluated.items() if isinstance(value, (int, float))}
        time = row["time"].timestamp() if "time" in row and row["time"] == row["time"] else 0.0
        yield typing.cast(int, step), time, {name: value for name, value in figures.items() if math.isfinite(value)}


def to_wandb(run: Run | str, project: str = "concertina", directory: str | pathlib.Path = ".") -> pathlib.Path:
    """An offline run in DIRECTORY/wandb, which `wandb sync` sends. Returns its folder."""
    wandb = library("wandb")
    run = run if isinstance(run, Run) else Run(run)
    log = wandb.init(project=project, name=run.name, dir=str(directory), mode="offline", config=run.config, reinit=True)
    for step, _, figures in points_of(run):
        log.log(figures, step=step)
    log.summary.update({key: value for key, value in run.result.items() if isinstance(value, (int, float, str))})
    folder = pathlib.Path(log.dir).parent
    log.finish()
    return folder


def to_mlflow(run: Run | str, experiment: str = "concertina", uri: str = "sqlite:///mlflow.db") -> str:
    """A run in the tracking store `uri`, which `mlflow ui --backend-store-uri URI` shows. Returns its id."""
    entities, tracking = (library(module) for module in ("mlflow.entities", "mlflow.tracking"))
    run = run if isinstance(run, Run) else Run(run)
    client = tracking.MlflowClient(uri)
    found = client.get_experiment_by_name(experiment)
    number = found.experiment_id if found else client.create_experiment(experiment)
    log = client.create_run(number, run_name=run.name)
    identity, most = log.info.run_id, 500  # of a batch
    params = [entities.Param(key, str(value)[:most]) for key, value in run.config.items()]
    for begin in range(0, len(params), 100):
        client.log_batch(identity, params=params[begin:begin + 100])
    batch: list[typing.Any] = []
    for step, time, figures in points_of(run):
        batch += [entities.Metric(name, value, int(1000 * time), step) for name, value in figures.items()]
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
    """A folder with the curves of runs, and their keys and last figures for TensorBoard's HParams page."""
    writers = library("tensorboardX")
    directory = pathlib.Path(directory)
    for one in runs:
        run = one if isinstance(one, Run) else Run(one)
        last: dict[str, float] = {}
        with writers.SummaryWriter(str(directory / run.name)) as writer:
            for step, time, figures in points_of(run):
                for name, value in figures.items():
                    writer.add_scalar(name, value, step, walltime=time or None)
                last |= figures
            params = {key: value if isinstance(value, (int, float, str, bool)) else str(value) for key, value in run.config.items()}
            writer.add_hparams(params, last, name="hparams")  # a folder of its own: files are named by the second
    return directory
