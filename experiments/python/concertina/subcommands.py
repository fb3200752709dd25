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


def _run(name: str, words: typing.Iterable[str]) -> int:
    try:
        return importlib.import_module(f".commands.{name.replace('-', '_')}", __package__).main(Options(words))
    except InputError:
        raise
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing == __package__:
            raise
        raise missing_library(missing) from error
    except BrokenPipeError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python would complain once more when it flushes
        raise Failure("the output could not be written", "stdout") from error
    except ImportError as error:
        raise InputError(str(error)) from error
    except ValueError as error:
        raise InputError(str(error), f"concertina {name.replace('-', ' ')}") from error
    except OSError as error:
        raise Failure(error.strerror or str(error), str(error.filename or "")) from error


def run(name: str, words: typing.Iterable[str]) -> int:
    """Runs the subcommand `name`, such as "study-table"; returns its exit code."""
    try:
        return _run(name, words)
    except InputError as error:
        text = re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", lambda found: f"\\x{ord(found[0]):02x}", str(error))
        sys.stderr.write(f"concertina: error: {text}\n")
        return error.code
