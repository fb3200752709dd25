"""Errors that a user can act on: what is wrong, where, and what would be right."""
from __future__ import annotations

import importlib
import typing


class InputError(ValueError):
    """The input is wrong: a line for each of `what`, `where` and `fix`. Commands end with exit code 2."""

    def __init__(self, what: str, where: str = "", fix: str = ""):
        super().__init__(what + (f"\n  at: {where}" if where else "") + (f"\n  try: {fix}" if fix else ""))
        self.what, self.where, self.fix = what, where, fix


def library(name: str) -> typing.Any:
    """The module `name`. ImportError, with the command that installs it, where it is missing."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        package = name.split(".", maxsplit=1)[0]
        if error.name is None or error.name.split(".")[0] != package:
            raise
        raise ImportError(missing_library(package)) from error


def missing_library(package: str) -> str:
    return f"the library {package} is not installed for this Python\n  try: python3 -m pip install numpy scipy pandas matplotlib"


def _distance(a: str, b: str) -> int:
    """Levenshtein's distance."""
    row = list(range(len(b) + 1))
    for i, letter in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(b, 1):
            diagonal, row[j] = row[j], min(diagonal + (letter != other), row[j] + 1, row[j - 1] + 1)
    return row[-1]


def nearest(word: str, words: typing.Iterable[str]) -> str:
    """The first of `words` that begins with `word`, else the one with the fewest typing errors; empty if none is near."""
    def away(candidate: str) -> int:
        begins = len(word) >= 3 and candidate.lower().startswith(word.lower())
        return 0 if begins else _distance(word.lower(), candidate.lower())

    found = min(((away(candidate), at, candidate) for at, candidate in enumerate(words)), default=None)
    if found is None:
        return ""
    most = max(2, len(word) // 3)
    return found[2] if found[0] <= most and found[0] < max(2, len(word)) else ""


def one_of(word: str, words: typing.Iterable[str]) -> str:
    """Advice for a wrong word: "zb-v (one of: gpipe, 1f1b, zb-v)"."""
    words = list(words)
    near = nearest(word, words)
    listed = f"one of: {', '.join(words)}"
    return f"{near} ({listed})" if near else listed


def require_word(word: str, words: typing.Iterable[str], what: str, option: str) -> str:
    """`word`. InputError that says `what`, and the nearest of `words`, where it is none of them."""
    words = list(words)
    if word not in words:
        raise InputError(what, option, one_of(word, words))
    return word
