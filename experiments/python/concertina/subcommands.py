"""Subcommands of the program that are written in Python: `concertina NAME` runs `python3 concertina --parsed NAME --OPTION=VALUE...`.

The program has declared and checked the options; all are there, with their defaults, a word per value. A module of the subcommand's
name has `main(options)`, which returns the exit code.
"""
from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import typing

_LIBRARIES = ["jinja2", "matplotlib", "numpy", "pandas", "scipy", "statsmodels"]


class Failure(Exception):
    """What is wrong, where, and what to try, as of an error of the program. `code`: 2 for bad input, 1 for a failure."""

    def __init__(self, what: str, where: str, fix: str, code: int = 1):
        super().__init__(what)
        self.code = code
        self.text = f"concertina: error: {what}\n" + "".join(f"  {word}: {text}\n" for word, text in (("at", where), ("try", fix)) if text)


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


def _missing(name: str, library: str) -> Failure:
    """The one command that installs every library that subcommands need and this Python does not have."""
    absent = [one for one in _LIBRARIES if importlib.util.find_spec(one) is None]
    of_system = os.path.dirname(sys.executable) == "/usr/bin" and os.path.exists("/usr/bin/apt-get")
    install = "apt-get install " + " ".join("python3-" + one for one in absent) if of_system else \
        f"{sys.executable} -m pip install " + " ".join(absent)
    return Failure(f"`concertina {name.replace('-', ' ')}` needs the Python library {library}", sys.executable, install, 2)


def run(name: str, words: typing.Iterable[str]) -> int:
    """Runs the subcommand `name`, such as "study-table"; returns its exit code."""
    try:
        try:
            return importlib.import_module(f".{name.replace('-', '_')}", __package__).main(Options(words))
        except ModuleNotFoundError as error:
            library = (error.name or "").partition(".")[0]
            if library not in _LIBRARIES:
                raise
            raise _missing(name, library) from error
        except (OSError, ValueError) as error:
            what, where = getattr(error, "strerror", None), getattr(error, "filename", None)
            raise Failure(what or str(error), str(where or f"concertina {name}"), "") from error
    except Failure as failure:
        sys.stdout.flush()
        sys.stderr.write(failure.text)
        return failure.code
