"""What the commands of this package share: options that are checked as they are read, errors as the program prints them, and output."""
from __future__ import annotations

import argparse
import math
import os
import pathlib
import re
import sys
import tempfile
import typing

from .errors import InputError, nearest
from .texts import number_or_text

_RECORDS = ("results.csv", "study.toml", "trial.json")  # of a study, which no command replaces


class Parser(argparse.ArgumentParser):
    """Refuses wrong options as the program does: what is wrong, where, and what to try; exit code 2."""

    def error(self, message: str) -> typing.NoReturn:
        fix = f"{self.prog} --help"
        if unknown := re.match(r"unrecognized arguments: (\S+)", message):
            options = [word for action in self._actions for word in action.option_strings]
            near = nearest(unknown[1], options) if unknown[1].startswith("-") else ""
            fix = f"{near}; or {fix}" if near else fix
        raise InputError(message.removeprefix("argument "), self.prog, fix)


class Options(argparse.Namespace):
    """Parsed options. One without effect is an error, as a key of a config is."""

    def given(self, option: str) -> bool:
        return getattr(self, option.removeprefix("--").replace("-", "_")) not in (None, [], "", False)

    def needs(self, option: str, other: str) -> None:
        if self.given(option) and not self.given(other):
            raise InputError(f"{option} has no effect without {other}", option, f"{other} as well, or leave out {option}")

    def excludes(self, option: str, other: str, there: bool = True) -> None:
        if self.given(option) and there:
            raise InputError(f"{option} has no effect with {other}", option, f"leave out {option}, or {other}")


def number(low: float, high: float) -> typing.Callable[[str], float]:
    """The type of an option that is a finite number in this range."""
    def parse(text: str) -> float:
        value = number_or_text(text)
        if isinstance(value, str) or not math.isfinite(value):
            raise argparse.ArgumentTypeError(f"'{text[:60]}' is not a number")
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{text[:60]} is not in the range {low:g} to {high:g}")
        return value

    return parse


def whole_number(low: int, high: int) -> typing.Callable[[str], int]:
    """The same in decimal digits."""
    def parse(text: str) -> int:
        if not re.fullmatch("0|-?[1-9][0-9]*", text):
            raise argparse.ArgumentTypeError(f"'{text[:60]}' is not a whole number in decimal digits")
        return int(number(low, high)(text))

    return parse


def words(text: str) -> list[str]:
    """The type of an option that is a list, as "a,b"."""
    return list(filter(None, text.split(",")))


def require_output(path: str, option: str) -> None:
    """InputError unless a file can be made, or replaced, at `path`: it is not a device, a directory or a record of a study."""
    file = pathlib.Path(path)
    why = ("it is not a regular file" if file.exists() and not file.is_file() else
           "its directory does not exist" if not file.parent.is_dir() else
           "its directory cannot be written to" if not os.access(file.parent, os.W_OK | os.X_OK) else
           "a study keeps its records in a file of this name" if file.exists() and file.name in _RECORDS else "")
    if why:
        raise InputError(f"nothing can be written here: {why}", path, f"{option} FILE in a directory of yours")


def replace_file(path: str, content: str | bytes) -> None:
    """Writes the whole file, or leaves it as it was."""
    with tempfile.NamedTemporaryFile(dir=pathlib.Path(path).parent, prefix=".", delete=False) as file:
        file.write(content.encode() if isinstance(content, str) else content)
    os.chmod(file.name, 0o666 & ~_umask())
    os.replace(file.name, path)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def terminal_text(text: str) -> str:
    """A control character as its code: names and errors may hold any."""
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", lambda found: f"\\x{ord(found[0]):02x}", text)


def print_whole(text: str) -> None:
    """To stdout; OSError where not all of it could be written."""
    sys.stdout.write(text)
    sys.stdout.flush()
