"""Files of runs and studies, which may be another user's: what is no regular file is refused, at once."""
import json
import os
import pathlib
import stat
import typing

_MOST_BYTES = 1 << 30


def open_regular(path: pathlib.Path, most: int = _MOST_BYTES) -> typing.BinaryIO:
    """The file, for reading. ValueError as of read_bytes()."""
    if path.is_symlink():
        raise ValueError(f"{path} is a link: name the file that is meant")
    file = open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC), "rb")
    status = os.fstat(file.fileno())
    why = ""
    if not stat.S_ISREG(status.st_mode):
        why = f"{path} is not a regular file"
    elif status.st_size > most:
        why = f"{path} has {status.st_size} bytes, more than the {most} allowed here"
    if why:
        file.close()
        raise ValueError(why)
    return file


def read_bytes(path: pathlib.Path, most: int = _MOST_BYTES) -> bytes:
    """The whole file. ValueError, with its name: it is a link, a pipe, a device, or larger than `most`."""
    with open_regular(path, most) as file:
        return file.read(os.fstat(file.fileno()).st_size)


def read_text(path: pathlib.Path) -> str:
    return read_bytes(path).decode(errors="replace")


def parse_json(text: str | bytes, loads: typing.Callable = json.loads) -> typing.Any:
    """ValueError also where lists and objects are nested deeper than Python reads."""
    try:
        return loads(text)
    except RecursionError as error:
        raise ValueError("lists and objects are nested too deep") from error


def read_json(path: pathlib.Path, loads: typing.Callable = json.loads) -> typing.Any:
    """The value of a file of JSON, or of what `loads` reads."""
    text = read_text(path)
    try:
        return parse_json(text, loads)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def objects_in(text: str) -> list[dict]:
    """The lines that are JSON objects."""
    found = []
    for line in text.split("\n"):
        try:
            value = parse_json(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            found.append(value)
    return found


def read_lines(path: pathlib.Path) -> list[dict]:
    """The whole lines of a file that are JSON objects: the last one may be cut off, and there may be no file."""
    if not path.exists() and not path.is_symlink():
        return []
    return objects_in(read_text(path).rpartition("\n")[0])


class Follower:
    """Sees each line of a file that is being written once, when it is whole."""

    def __init__(self, path: pathlib.Path):
        self._path, self._read = path, 0

    def look(self) -> list[dict]:
        """The objects that are new; none while there is no file."""
        try:
            with open_regular(self._path) as file:
                file.seek(self._read)
                whole = file.read().rpartition(b"\n")[0]
        except FileNotFoundError:
            return []
        self._read += len(whole) + 1 if whole else 0
        return objects_in(whole.decode(errors="replace"))
