"""Numbers, lists and tables as people read them."""
from __future__ import annotations

import functools
import math
import re
import typing

_NUMBER = re.compile(r"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|-?(?:inf|infinity|nan)", re.IGNORECASE)


@functools.lru_cache(maxsize=1 << 16)
def number_or_text(text: str) -> float | str:
    """A number where `text` is one that a double can hold, as "0.001" or "inf"; else the text."""
    if not _NUMBER.fullmatch(text):
        return text
    value = float(text)
    digits = text.lower().partition("e")[0]
    overflow = value in (float("inf"), float("-inf")) and "inf" not in text.lower()
    return text if overflow or (value == 0 and digits.strip("-0.") != "") else value


def plain(value: float) -> str:
    """The shortest text that reads back to the same number: 3, 0.1, 1e-05."""
    return repr(float(value)).removesuffix(".0")


def duration_text(seconds: float) -> str:
    """ "12.3 ms"."""
    size = abs(seconds)
    if size < 1e-9:
        return "0"
    factor, unit = (1e6, "µs") if size < 1e-3 else (1e3, "ms") if size < 1 else (1, "s")
    return f"{factor * seconds:.3g} {unit}"


def clock_text(seconds: float) -> str:
    """ "1 h 2 min", "12.3 s"."""
    if not 60 <= seconds < 1e15:
        return "–" if math.isnan(seconds) else f"{seconds:.0f} s" if seconds >= 10 else duration_text(seconds)
    whole = round(seconds)
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600:,} h {whole % 3600 // 60} min"


def bytes_text(count: float) -> str:
    """ "6.7 MiB"."""
    size, unit = next(((1 << shift, unit) for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")) if count >= 1 << shift), (1, "B"))
    return f"{count / size:.4g} {unit}" if size > 1 else f"{count:.0f} B"


def share_text(share: float) -> str:
    return f"{100 * share:.1f}%"


def figure_text(value: float) -> str:
    """Five digits, or all of a large whole number: "0.57333", "26,431"; NaN and infinity by name."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "infinity" if value > 0 else "-infinity"
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.5g}"


def grouped(value: int) -> str:
    return f"{value:,}"


def counted(count: int, noun: str) -> str:
    """ "1 rank", "1,024 microbatches"."""
    return f"1 {noun}" if count == 1 else f"{grouped(count)} {noun}{'es' if noun.endswith('ch') else 's'}"


def ranges(numbers: typing.Sequence[int]) -> str:
    """ "1-3,5" of 1, 2, 3, 5."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    return ",".join("-".join(map(str, part)) for part in parts)


def trials_text(numbers: typing.Sequence[int]) -> str:
    return f"trial{'' if len(numbers) == 1 else 's'} {ranges(numbers)}"


def settings_text(columns: typing.Iterable[str], values: typing.Iterable[str]) -> str:
    """ "parallel.schedule=zb-v run.seed=2"."""
    return " ".join(f"{column}={value}" for column, value in zip(columns, values))


def text_table(rows: typing.Sequence[typing.Sequence[str]], left: int) -> str:
    """A line for each row; the first `left` columns begin at one place each, the others end at one."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ("  ".join(cell.ljust(width) if c < left else cell.rjust(width) for c, (cell, width) in enumerate(zip(row, widths)))
             for row in rows)
    return "".join(line.rstrip(" ") + "\n" for line in lines)
