"""Compares what a deployed model receives and predicts with a reference, such as the file of `concertina eval RUN --predictions FILE.jsonl`.

Both are JSON lines. Each field with texts or truth values (the predicted class) or with numbers (its probability, the number of tokens or of
unknown tokens) that both have is compared."""
import json
import pathlib
import typing

import numpy as np

from .files import read_text
from .names import text_table
from .page import SERIES, Block, chart, content, line, page, table, words
from .statistic import holm

_LEAST_ROWS = 20


class Drift(typing.NamedTuple):
    """The change of one field in one window of rows."""
    first: int  # number of the window's first line
    rows: int
    field: str
    reference: str  # the mean, or the share of the class that changed most
    now: str
    distance: float  # between the distributions, from 0 to 1: total variation of classes, Kolmogorov-Smirnov statistic of numbers
    p: float  # adjusted for the number of comparisons (Holm)
    drifts: bool


def _rows(path: pathlib.Path) -> list[dict[str, typing.Any]]:
    rows = []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise ValueError(f"{path}:{number}: not JSON: {error}") from error
        if not isinstance(row, dict):
            raise ValueError(f"{path}:{number}: expected an object, such as {{\"prediction\": \"good\", \"probability\": 0.9}}")
        rows.append(row)
    if len(rows) < _LEAST_ROWS:
        raise ValueError(f"{path} has {len(rows)} rows; a comparison needs at least {_LEAST_ROWS}")
    return rows


def _kind(values: list) -> type | None:
    """str for texts and truth values, float for finite numbers, None for anything else."""
    if values and all(isinstance(value, (str, bool)) for value in values):
        return str
    number = all(isinstance(value, (int, float)) and not isinstance(value, bool) and np.isfinite(value) for value in values)
    return float if values and number else None


def _classes(before: list, after: list) -> tuple[str, str, float, float]:
    from scipy.stats import chi2_contingency
    names = sorted({*map(str, before), *map(str, after)})
    counts = np.array([[sum(str(value) == name for value in values) for name in names] for values in (before, after)])
    shares = counts / counts.sum(1, keepdims=True)
    most = int(np.abs(shares[0] - shares[1]).argmax())
    p = float(chi2_contingency(counts).pvalue) if len(names) > 1 else 1.0
    texts = [f"{share:.1%} {names[most]}" for share in shares[:, most]]
    return texts[0], texts[1], float(np.abs(shares[0] - shares[1]).sum() / 2), p


def _numbers(before: list, after: list) -> tuple[str, str, float, float]:
    from scipy.stats import ks_2samp
    test = ks_2samp(before, after, method="asymp")
    return f"{np.mean(before):.4g}", f"{np.mean(after):.4g}", float(test.statistic), float(test.pvalue)


def drift(log: str | pathlib.Path, reference: str | pathlib.Path, window: int = 0, least: float = 0.1, alpha: float = 0.01) -> list[Drift]:
    """Compares each `window` of rows of the log (0: all rows; the last one also has the rest) with the reference. A field drifts if its distribution differs by at least
    `least` and the difference is significant at `alpha`. Raises ValueError if the files have no common fields, or too few rows."""
    before, after = _rows(pathlib.Path(reference)), _rows(pathlib.Path(log))
    fields = [field for field in before[0] if field != "index" and all(field in row for row in before) and all(field in row for row in after)]
    kinds = {field: _kind([row[field] for row in before + after]) for field in fields}
    fields = [field for field in fields if kinds[field]]
    if not fields:
        raise ValueError(f"the rows of {log} and {reference} have no common fields with texts or numbers")
    windows = max(1, len(after) // window) if window else 1
    ends, found = [window * one for one in range(windows)] + [len(after)], []
    for first, end in zip(ends, ends[1:]):
        for field in fields:
            test = _classes if kinds[field] is str else _numbers
            found.append((first + 1, end - first, field, *test([row[field] for row in before], [row[field] for row in after[first:end]])))
    adjusted = holm([one[-1] for one in found])
    return [Drift(*one[:-1], p, p < alpha and one[-2] >= least) for one, p in zip(found, adjusted)]


_HEAD = ("rows", "field", "reference", "now", "distance", "p", "")


def _cells(rows: typing.Sequence[Drift]) -> list[tuple[str, ...]]:
    return [(f"{row.first}-{row.first + row.rows - 1}", row.field, row.reference, row.now, f"{row.distance:.3f}", f"{row.p:.2g}",
             "drifts" if row.drifts else "") for row in rows]


def drift_text(rows: typing.Sequence[Drift]) -> str:
    """One line for each comparison; those that drift are marked."""
    return text_table([_HEAD, *_cells(rows)], len(_HEAD))


def drift_page(rows: typing.Sequence[Drift], log: str, reference: str, least: float) -> str:
    """A page with the comparisons, and the distance of each field over the windows."""
    drifting = sorted({row.field for row in rows if row.drifts})
    fields, windows = list(dict.fromkeys(row.field for row in rows)), sorted({row.first for row in rows})
    tiles = [(f"{sum(row.rows for row in rows) // len(fields):,}", "rows"), (str(len(windows)), "windows"),
             (", ".join(drifting) or "none", "fields that drift")]
    blocks: list[Block] = [{"kind": "tiles", "tiles": tiles}]
    if len(windows) > 1:
        series = [line(field, windows, [row.distance for row in rows if row.field == field], color) for field, color in zip(fields, SERIES)]
        limit = line("least that counts as drift", [windows[0], windows[-1]], [least, least], "dark", dash=[4, 4])
        blocks.append(chart("Distance from the reference", [*series, limit], x="first row of the window", zero=True))
    return page(content("Monitor", f"{log} compared with {reference}", [*blocks, words("heading", "Comparisons"), table(_HEAD, _cells(rows), left=2)]))
