"""Errors that a user can fix: what is wrong, where, and what is valid."""
import difflib
import errno
import importlib
import importlib.util
import os
import sys
import typing

LIBRARIES = ["matplotlib", "numpy", "onnx", "pandas", "scipy"]
EXPORTS = {"mlflow": "mlflow-skinny alembic sqlalchemy"}  # packages whose names differ from the library's
FAILURES = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN}  # exit code 1; of other OSErrors 2

class InputError(ValueError):
    """Invalid input, with a line for each of `what`, `where` and `fix`. Subcommands exit with `code`."""

    def __init__(self, what: str, where: str = "", fix: str = "", code: int = 2):
        super().__init__(what + (f"\n  at: {where}" if where else "") + (f"\n  try: {fix}" if fix else ""))
        self.what, self.where, self.fix, self.code = what, where, fix, code


def missing_library(name: str) -> InputError:
    """Names the command that installs all of this package's missing libraries."""
    absent = [one for one in LIBRARIES if importlib.util.find_spec(one) is None] if name in LIBRARIES else [EXPORTS.get(name, name)]
    of_system = name in LIBRARIES and os.path.dirname(sys.executable) == "/usr/bin" and os.path.exists("/usr/bin/apt-get")
    install = "apt-get install " + " ".join("python3-" + one for one in absent) if of_system else \
        f"{sys.executable} -m pip install " + " ".join(absent)
    return InputError(f"the Python library {name} is missing", sys.executable, install)


def library(module: str) -> typing.Any:
    """Imports `module`. Raises ImportError with the command that installs it if it is missing."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ImportError(str(missing_library((error.name or module).partition(".")[0]))) from error


def nearest(word: str, words: typing.Iterable[str]) -> str:
    """The first of `words` that starts with `word`, otherwise the most similar one; empty if there is none."""
    known = {one.lower(): one for one in words}
    begun = [lower for lower in known if len(word) > 2 and lower.startswith(word.lower())]
    return known[found[0]] if (found := begun or difflib.get_close_matches(word.lower(), known, 1)) else ""


def one_of(word: str, words: typing.Iterable[str]) -> str:
    """Advice for an unknown word: "zb-v (one of: gpipe, 1f1b, zb-v)"."""
    listed = f"one of: {', '.join(words := list(words))}"
    return f"{near} ({listed})" if (near := nearest(word, words)) else listed


def require_word(word: str, words: typing.Iterable[str], what: str, option: str) -> str:
    """Returns `word`. Raises InputError with `what` and the nearest of `words` if it is not one of them."""
    if word not in (words := list(words)):
        raise InputError(what, option, one_of(word, words))
    return word
