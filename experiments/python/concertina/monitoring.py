"""Compares what a deployed model receives and predicts with a reference, such as the file of `concertina eval RUN --predictions FILE.jsonl`.

Both are JSON lines. Each field with texts or truth values (the predicted class) or with numbers (its probability, the number of tokens or of
unknown tokens) that both have is compared."""
import json
import pathlib
import typing

import numpy as np

from .files import json_text, read_text
from .names import text_table
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


def drift_text(rows: typing.Sequence[Drift], as_json: bool = False) -> str:
    """One line for each comparison; those that drift are marked."""
    if as_json:
        return "".join(json_text(row._asdict()) + "\n" for row in rows)
    cells = [("rows", "field", "reference", "now", "distance", "p", "")] + [
        (f"{row.first}-{row.first + row.rows - 1}", row.field, row.reference, row.now, f"{row.distance:.3f}", f"{row.p:.2g}",
         "drifts" if row.drifts else "") for row in rows]
    return text_table(cells, len(cells[0]))
