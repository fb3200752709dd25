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


def library(module: str, packages: str = "") -> typing.Any:
    """`module`. ImportError, with the command that installs its `packages`, where it is missing."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ImportError(missing_library(error, packages)) from error


def missing_library(error: ModuleNotFoundError, packages: str = "") -> str:
    packages = packages or "numpy scipy pandas matplotlib jinja2"
    return f"the library {(error.name or '').partition('.')[0]} is not installed for this Python\n  try: python3 -m pip install {packages}"


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
