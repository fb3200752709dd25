"""Runs a subcommand of commands.py, and says what a user can do about an error."""
from __future__ import annotations

import os
import re
import sys
import typing

from . import commands
from .errors import Failure, InputError, missing_library


def _as_input_error(error: Exception, name: str) -> InputError | None:
    """What a user can do about an error; None where it is a fault of this package."""
    if isinstance(error, InputError):
        return error
    if isinstance(error, ModuleNotFoundError):
        missing = (error.name or "").partition(".")[0]
        return None if missing == __package__ else missing_library(missing)
    if isinstance(error, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python would complain once more when it flushes
        return Failure("the output could not be written", "stdout")
    if isinstance(error, (ImportError, ValueError)):
        return InputError(str(error), f"concertina {name.replace('-', ' ')}")
    return Failure(error.strerror or str(error), str(error.filename or "")) if isinstance(error, OSError) else None


def run(name: str, words: typing.Iterable[str]) -> int:
    """Runs the subcommand `name`, such as "study-table"; returns its exit code."""
    try:
        return int(getattr(commands, name.replace("-", "_"))(commands.Options(words)))
    except Exception as error:
        known = _as_input_error(error, name)
        if known is None:
            raise
        text = re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", lambda found: f"\\x{ord(found[0]):02x}", str(known))
        sys.stderr.write(f"concertina: error: {text}\n")
        return known.code
