"""Errors that a user can act on: what is wrong, where, and what would be right."""
from __future__ import annotations

import difflib
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
    return f"the library {package} is not installed for this Python\n  try: python3 -m pip install numpy scipy pandas matplotlib jinja2"


def nearest(word: str, words: typing.Iterable[str]) -> str:
    """The first of `words` that begins with `word`, else the one that is most like it; empty if none is."""
    known = {one.lower(): one for one in words}
    begun = (one for lower, one in known.items() if len(word) > 2 and lower.startswith(word.lower()))
    return next(begun, "") or next((known[lower] for lower in difflib.get_close_matches(word.lower(), known, 1)), "")


def one_of(word: str, words: typing.Iterable[str]) -> str:
    """Advice for a wrong word: "zb-v (one of: gpipe, 1f1b, zb-v)"."""
    listed = f"one of: {', '.join(words := list(words))}"
    return f"{near} ({listed})" if (near := nearest(word, words)) else listed


def require_word(word: str, words: typing.Iterable[str], what: str, option: str) -> str:
    """`word`. InputError that says `what`, and the nearest of `words`, where it is none of them."""
    if word not in (words := list(words)):
        raise InputError(what, option, one_of(word, words))
    return word
