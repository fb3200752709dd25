"""python -m concertina import LOG RUN; python -m concertina export wandb|mlflow|tensorboard RUN... [--to FOLDER]."""
import argparse
import io
import os
import sys
import typing

if sys.version_info < (3, 11):
    sys.stderr.write(f"concertina: error: Python {sys.version.split()[0]} is too old\n  at: {sys.executable}\n  try: Python 3.11 on PATH\n")
    sys.exit(2)
if not __package__:  # run as `python3 FOLDER/concertina` by the program: import the modules next to this file
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    __package__ = "concertina"

import concertina  # noqa: E402
from concertina.commands import run  # noqa: E402


def _count(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def main() -> int:
    for stream in (sys.stdout, sys.stderr):  # names and titles may contain any Unicode text, whatever the terminal's encoding
        typing.cast(io.TextIOWrapper, stream).reconfigure(encoding="utf-8", errors="replace")
    if sys.argv[1:2] == ["--parsed"]:
        return run(sys.argv[2], sys.argv[3:])
    from concertina.log_forms import PROGRAMS
    parser = argparse.ArgumentParser(prog="python -m concertina", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("import", help="create a run from another program's log")
    one.add_argument("log", help="JSONL, CSV, trainer_state.json, output of nanoGPT, llm.c, torchtitan or Megatron-LM, exports of W&B, "
                     "MLflow database or folder, folder of TensorBoard event files")
    one.add_argument("run", help="new run directory, such as runs/NAME")
    one.add_argument("--column", action="append", default=[], metavar="FIGURE=NAME", help="name in the log, such as loss=my/ce; may be repeated")
    one.add_argument("--program", choices=PROGRAMS, help="program that wrote the log, if it is ambiguous; plain: any other")
    one.add_argument("--decimal", choices=[".", ","], help="decimal mark, if the numbers in the log are ambiguous")
    one.add_argument("--devices", type=_count, metavar="N", help="number of devices, to convert torchtitan's tokens/s per device")
    one.add_argument("--run", dest="of", metavar="NAME", help="run to import from an export or a store with several runs")
    two = commands.add_parser("export", help="export runs to another program")
    two.add_argument("program", choices=["wandb", "mlflow", "tensorboard"])
    two.add_argument("runs", nargs="+")
    two.add_argument("--to", dest="folder", default=None, help="output folder; for mlflow, the URI of its store")
    options = parser.parse_args()
    try:
        if options.command == "import":
            if wrong := [word for word in options.column if "=" not in word]:
                raise ValueError(f"--column {wrong[0]}: expected FIGURE=NAME, such as loss=my/ce")
            print(concertina.import_run(options.log, options.run, dict(word.split("=", 1) for word in options.column), program=options.program,
                             decimal=options.decimal, devices=options.devices, run=options.of))
        elif options.program == "tensorboard":
            print(concertina.to_tensorboard(options.runs, options.folder or "tensorboard"))
        for name in options.runs if options.program in ("wandb", "mlflow") else []:
            print(concertina.to_wandb(name, directory=options.folder or ".") if options.program == "wandb" else
                  concertina.to_mlflow(name, uri=options.folder or "sqlite:///mlflow.db"))
    except (OSError, ValueError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
