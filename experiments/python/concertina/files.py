"""Files of runs and studies, which may be another user's: what is no regular file is refused, at once."""
import contextlib
import json
import os
import pathlib
import stat
import typing

_MOST_BYTES = 1 << 30


@contextlib.contextmanager
def open_regular(path: pathlib.Path) -> typing.Iterator[tuple[typing.BinaryIO, os.stat_result]]:
    """The open file and its status. ValueError, with its name: it is a link, a pipe or a device."""
    if path.is_symlink():
        raise ValueError(f"{path} is a link: name the file that is meant")
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise ValueError(f"{path} is no regular file")
    with open(descriptor, "rb") as file:
        yield file, status


def read_bytes(path: pathlib.Path, most: int = _MOST_BYTES) -> bytes:
    """The whole file. ValueError, with its name, as of open_regular(), or where it is larger than `most`."""
    with open_regular(path) as (file, status):
        if status.st_size > most:
            raise ValueError(f"{path} has {status.st_size} bytes, more than the {most} allowed here")
        return file.read(status.st_size)


def read_tail(path: pathlib.Path, most: int) -> str:
    """The last lines, of `most` bytes together; empty where there is no file."""
    if not path.exists():
        return ""
    with open_regular(path) as (file, status):
        file.seek(max(0, status.st_size - most))
        text = file.read(most).decode(errors="replace")
    return text.partition("\n")[2] if status.st_size > most else text


def read_text(path: pathlib.Path) -> str:
    return read_bytes(path).decode(errors="replace")


def parse_json(text: str | bytes, loads: typing.Callable[..., typing.Any] = json.loads) -> typing.Any:
    """ValueError also where lists and objects are nested deeper than Python reads."""
    try:
        return loads(text)
    except RecursionError as error:
        raise ValueError("lists and objects are nested too deep") from error


def read_json(path: pathlib.Path, loads: typing.Callable[..., typing.Any] = json.loads) -> typing.Any:
    """The value of a file of JSON, or of what `loads` reads."""
    text = read_text(path)
    try:
        return parse_json(text, loads)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def flat(table: dict[str, typing.Any], path: str = "", mark: str = ".") -> dict[str, typing.Any]:
    """{"parallel": {"pp": 2}} as {"parallel.pp": 2}."""
    keys: dict[str, typing.Any] = {}
    for key, value in table.items():
        name = f"{path}{mark}{key}" if path else key
        keys.update(flat(value, name, mark) if isinstance(value, dict) else {name: value})
    return keys
