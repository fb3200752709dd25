"""python -m concertina export wandb|mlflow|tensorboard RUN... [--to FOLDER]: runs for another program."""
from __future__ import annotations

import argparse

from .command import Options

HELP = "runs for another program"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("program", choices=["wandb", "mlflow", "tensorboard"])
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--to", dest="folder", default=None, help="a folder; for mlflow, the URI of its store")


def run(options: Options) -> int:
    from .loggers import to_mlflow, to_tensorboard, to_wandb
    if options.program == "tensorboard":
        print(to_tensorboard(options.runs, options.folder or "tensorboard"))
        return 0
    for one in options.runs:
        if options.program == "wandb":
            print(to_wandb(one, directory=options.folder or "."))
        else:
            print(to_mlflow(one, uri=options.folder or "sqlite:///mlflow.db"))
    return 0
