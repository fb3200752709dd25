"""Subcommands of the program that are written in Python: `concertina NAME` runs `python3 concertina --parsed NAME --OPTION=VALUE...`.

The program has declared and checked the options; all are there, with their defaults, a word per value. A module of the subcommand's
name in `commands` has `main(options)`, which returns the exit code.
"""
from __future__ import annotations

import importlib
import os
import re
import sys
import typing

from .errors import Failure, InputError, missing_library
from .files import json_text


class Options:
    """The values of the options, by their long names without dashes."""

    def __init__(self, words: typing.Iterable[str]):
        self._values: dict[str, list[str]] = {}
        for word in words:
            name, _, value = word.removeprefix("--").partition("=")
            self._values.setdefault(name, []).append(value)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def all(self, name: str) -> list[str]:
        return self._values.get(name, [])

    def text(self, name: str) -> str:
        """The value; empty where there is none."""
        return (self.all(name) or [""])[-1]

    def number(self, name: str) -> float:
        return float(self.text(name))

    def optional(self, name: str) -> float | None:
        return self.number(name) if name in self else None

    def print_result(self, text: str, json: object) -> None:
        """With --json one line of JSON, else the text."""
        sys.stdout.write(json_text(json) + "\n" if "json" in self else text)
        sys.stdout.flush()


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
        return importlib.import_module(f".commands.{name.replace('-', '_')}", __package__).main(Options(words))
    except Exception as error:
        known = _as_input_error(error, name)
        if known is None:
            raise
        text = re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", lambda found: f"\\x{ord(found[0]):02x}", str(known))
        sys.stderr.write(f"concertina: error: {text}\n")
        return known.code
