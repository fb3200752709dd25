"""python -m concertina import LOG RUN: a run of another program's log."""
from __future__ import annotations

import argparse

from .command import Options, whole_number
from .errors import InputError
from .imports import import_run
from .log_forms import PROGRAMS

HELP = "a run of another program's log"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("log", help="JSONL, CSV, trainer_state.json, what nanoGPT, llm.c, torchtitan or Megatron-LM printed, exports of W&B, "
                        "MLflow's database or folder, a folder of TensorBoard's event files")
    parser.add_argument("run", help="the new directory, such as runs/NAME")
    parser.add_argument("--column", action="append", default=[], metavar="METRIC=NAME", help="loss=my/ce: what the log calls it")
    parser.add_argument("--program", choices=PROGRAMS, help="where the log alone does not tell; plain: any other")
    parser.add_argument("--decimal", choices=[".", ","], help="the decimal mark, where no number of the log decides")
    parser.add_argument("--devices", type=whole_number(1, 1 << 30), metavar="N", help="multiply torchtitan's tokens/s per device by this")
    parser.add_argument("--run", dest="of", metavar="NAME", help="of an export or a store with several runs")


def run(options: Options) -> int:
    wrong = [word for word in options.column if "=" not in word]
    if wrong:
        raise InputError(f"'{wrong[0]}' is not METRIC=NAME", "--column", "--column loss=my/ce")
    print(import_run(options.log, options.run, dict(word.split("=", 1) for word in options.column), program=options.program,
                     decimal=options.decimal, devices=options.devices, run=options.of))
    return 0
