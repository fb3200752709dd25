"""python -m concertina COMMAND: the commands of this package, each a module command_NAME with HELP, add_options() and run()."""
from __future__ import annotations

import importlib
import io
import os
import sys
import typing

from .command import Options, Parser, terminal_text
from .errors import InputError, missing_library, one_of

COMMANDS = ("import", "export", "compare", "study table", "study power")


def _usage() -> str:
    return f"usage: python3 -m concertina COMMAND ...\ncommands: {', '.join(COMMANDS)}; COMMAND --help has its options\n"


def run(words: list[str]) -> int:
    """Runs a command line without the program's name; returns the exit code."""
    name = next((name for name in COMMANDS if words[:len(name.split())] == name.split()), "")
    if not name and words[:1] in (["--help"], ["-h"]):
        sys.stdout.write(_usage())
        return 0
    if not name:
        asked = " ".join(words[:2 if words[:1] == ["study"] else 1])
        raise InputError(f"'{asked}' is not a command", "command line", one_of(asked, COMMANDS))
    command = importlib.import_module(f".command_{name.replace(' ', '_')}", __package__)
    parser = Parser(prog=f"concertina {name}", description=command.HELP, allow_abbrev=False)
    command.add_options(parser)
    return command.run(parser.parse_intermixed_args(words[len(name.split()):], Options()))


def main() -> int:
    for stream in (sys.stdout, sys.stderr):  # names and titles have letters of any language, whatever the terminal's
        typing.cast(io.TextIOWrapper, stream).reconfigure(encoding="utf-8", errors="replace")
    try:
        return run(sys.argv[1:])
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python would complain once more when it flushes
        code, error = 1, "the output could not be written"
    except ModuleNotFoundError as missing:
        code, error = 2, missing_library(missing)
    except (InputError, ImportError, OSError, ValueError) as refused:
        code, error = 2, str(refused)
    print(f"concertina: error: {terminal_text(error)}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
