"""python -m concertina import LOG RUN; python -m concertina export wandb|mlflow|tensorboard RUN... [--to FOLDER]."""
import argparse
import sys

from . import import_run, to_mlflow, to_tensorboard, to_wandb


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m concertina", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("import", help="a run of another program's log")
    one.add_argument("log", help="JSONL, CSV, TensorBoard's event files, or what nanoGPT, llm.c or torchtitan printed")
    one.add_argument("run", help="the new directory, such as runs/NAME")
    one.add_argument("--column", action="append", default=[], metavar="FIGURE=NAME", help="loss=my/ce: what the log calls it")
    two = commands.add_parser("export", help="runs for another program")
    two.add_argument("program", choices=["wandb", "mlflow", "tensorboard"])
    two.add_argument("runs", nargs="+")
    two.add_argument("--to", dest="folder", default=None, help="a folder; of mlflow, the URI of its store")
    options = parser.parse_args()
    try:
        if options.command == "import":
            wrong = [word for word in options.column if "=" not in word]
            if wrong:
                raise ValueError(f"--column {wrong[0]}: FIGURE=NAME, such as loss=my/ce")
            print(import_run(options.log, options.run, dict(word.split("=", 1) for word in options.column)))
        elif options.program == "tensorboard":
            print(to_tensorboard(options.runs, options.folder or "tensorboard"))
        else:
            for run in options.runs:
                if options.program == "wandb":
                    print(to_wandb(run, directory=options.folder or "."))
                else:
                    print(to_mlflow(run, uri=options.folder or "sqlite:///mlflow.db"))
    except (OSError, ValueError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
