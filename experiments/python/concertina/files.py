"""Reads and writes files of runs and studies, which may belong to another user: refuses everything but regular files."""
import errno
import json
import math
import os
import pathlib
import re
import stat
import sys
import typing

from .errors import FAILURES, InputError

_MOST_BYTES = 1 << 30
_MOST_READ = 64 << 20  # bytes of a followed file to read at a time
_WARNED: set[pathlib.Path] = set()  # files with skipped lines
_ADVICE = {errno.ENOSPC: "free space there, or choose another place", errno.EDQUOT: "free space within the quota, or choose another place",
           errno.EACCES: "a writable place", errno.EROFS: "a writable place"}


def open_regular(path: pathlib.Path, most: int = _MOST_BYTES) -> typing.BinaryIO:
    """Opens the file for reading. Raises ValueError naming it if it is a link, a pipe, a device, or larger than `most`."""
    if path.is_symlink():
        raise ValueError(f"{path} is a link; name the file itself")
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    status = os.fstat(file)
    if stat.S_ISREG(status.st_mode) and status.st_size <= most:
        return open(file, "rb")
    os.close(file)
    raise ValueError(f"{path} has {status.st_size} bytes, more than the limit of {most}" if stat.S_ISREG(status.st_mode)
                     else f"{path} is not a regular file")


def read_bytes(path: pathlib.Path, most: int = _MOST_BYTES) -> bytes:
    with open_regular(path, most) as file:
        return file.read(os.fstat(file.fileno()).st_size)


def read_tail(path: pathlib.Path, most: int) -> str:
    """The last lines, with at most `most` bytes in total; empty if the file does not exist."""
    if not path.exists():
        return ""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size - most))
        text = file.read(most).decode(errors="replace")
    return text.partition("\n")[2] if size > most else text


def read_text(path: pathlib.Path) -> str:
    return read_bytes(path).decode(errors="replace")


class TooDeep(ValueError):
    """Lists and objects are nested too deeply for Python."""


def parse_json(text: str | bytes, loads: typing.Callable[..., typing.Any] = json.loads) -> typing.Any:
    """Parses JSON. Also raises ValueError for lists and objects that are nested too deeply for Python."""
    try:
        return loads(text)
    except RecursionError as error:
        raise TooDeep("lists and objects are nested too deeply") from error


def read_json(path: pathlib.Path, loads: typing.Callable[..., typing.Any] = json.loads) -> typing.Any:
    """The value in a JSON file, or in a file of another format that `loads` parses."""
    text = read_text(path)
    try:
        return parse_json(text, loads)
    except ValueError as error:
        raise InputError(f"cannot read this file: {error}", str(path), "the original file") from error


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a JSON number")


_LOADS = json.JSONDecoder(parse_constant=_refuse).decode  # NaN and Infinity are not JSON


def pass_warnings(text: str) -> None:
    """Prints the program's warnings, so that each file with skipped lines is named once, by the program or by this process."""
    for line in text.splitlines(keepends=True):
        path = pathlib.Path(named[1]) if (named := re.search(r" warning (.+?): skipped", line)) else None
        if path not in _WARNED:
            sys.stderr.write(line)
        if path:
            _WARNED.add(path)


def objects_in(text: str, path: pathlib.Path) -> list[dict[str, typing.Any]]:
    """The lines that are JSON objects. Skips other lines with one warning per file, but a truncated last line without a warning."""
    found, lines = [], text.split("\n")
    for count, line in enumerate(lines, 1):
        why = "it is not a JSON object"
        try:
            value = parse_json(line, _LOADS) if line.strip() else {}
        except ValueError as error:
            value, why = None, str(error) if isinstance(error, TooDeep) else f"it is not JSON ({error})"
        if isinstance(value, dict):
            found += [value] if value else []
        elif count < len(lines) and path not in _WARNED:
            _WARNED.add(path)
            sys.stderr.write(f"concertina: warning: {path}: skipped a line: {why}: {line[:60]!r}\n")
    return found


def read_lines(path: pathlib.Path) -> list[dict[str, typing.Any]]:
    """The lines of a file that are JSON objects. The last one may be truncated, and the file may be missing."""
    return objects_in(read_text(path), path) if path.exists() or path.is_symlink() else []


class Follower:
    """Returns each line of a growing file once, when it is complete. `cuts` counts how often the file was cut or replaced, as by a resumed run,
    and `written` is the time of the last change."""

    def __init__(self, path: pathlib.Path):
        self.path, self.cuts, self.written = path, 0, math.nan
        self._file, self._at = 0, 0

    def look(self) -> list[dict[str, typing.Any]]:
        """The new objects; none if the file does not exist."""
        found: list[dict[str, typing.Any]] = []
        if not self.path.exists() and not self.path.is_symlink():
            return found
        with open_regular(self.path) as file:
            status = os.fstat(file.fileno())
            if status.st_size < self._at or status.st_ino != self._file:
                self.cuts, self._at, self._file = self.cuts + 1, 0, status.st_ino
            self.written = status.st_mtime
            file.seek(self._at)
            while chunk := file.read(min(_MOST_READ, status.st_size - self._at)):  # without data written meanwhile
                whole = chunk.rfind(b"\n") + 1
                if not whole:
                    break
                self._at += whole
                file.seek(self._at)
                found += objects_in(chunk[:whole].decode(errors="replace"), self.path)
        return found


def flat(table: dict[str, typing.Any], path: str = "", mark: str = ".") -> dict[str, typing.Any]:
    """Flattens {"parallel": {"pp": 2}} to {"parallel.pp": 2}."""
    keys: dict[str, typing.Any] = {}
    for key, value in table.items():
        name = f"{path}{mark}{key}" if path else key
        keys.update(flat(value, name, mark) if isinstance(value, dict) else {name: value})
    return keys


def json_text(value: object) -> str:
    """JSON text in which non-finite numbers are null."""
    def clean(one: object) -> object:
        if isinstance(one, float) and not math.isfinite(one):
            return None
        if isinstance(one, dict):
            return {key: clean(inner) for key, inner in one.items()}
        return [clean(inner) for inner in one] if isinstance(one, (list, tuple)) else one

    return json.dumps(clean(value), ensure_ascii=False, separators=(",", ":"))


def replace_file(path: str | os.PathLike[str], data: str | bytes) -> None:
    """Writes the whole file, or leaves it unchanged on an error."""
    temporary = pathlib.Path(path).with_name(f".{pathlib.Path(path).name}.{os.getpid()}")
    try:
        temporary.write_bytes(data if isinstance(data, bytes) else data.encode())
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise InputError(f"cannot write this file: {error.strerror}", str(path),
                         _ADVICE.get(error.errno or 0, "a file in an existing directory"), 1 if error.errno in FAILURES else 2) from error
