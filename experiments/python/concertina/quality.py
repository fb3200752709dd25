"""What is wrong with the rows of tables, before a model is trained on them: `data inspect --quality` and `data clean`.

A fault is that of one row, which would be gone if the row were. Texts are the same that differ only in case and white space.
"""
from __future__ import annotations

import collections
import dataclasses
import typing

import numpy as np

FAULTS = {  # worse ones first: what a dropped row is said to have been
    "broken": "cannot be read", "undecodable": "is not UTF-8", "empty": "has no text",
    "conflict": "has another label than another row of the same text", "overlap": "is to train on, and held out too",
    "duplicate": "has the text of an earlier row", "near": "has nearly the text of an earlier row", "cut": "has more tokens than a sample"}
_ORDER = {name: at for at, name in enumerate(FAULTS)}
_SHINGLE, _BANDS, _HASHES_OF_BAND, _MOST_COMPARED = 5, 16, 4, 32
_RANDOM = np.random.Generator(np.random.PCG64(0))
_MULTIPLY, _ADD = (_RANDOM.integers(0, 1 << 63, (_BANDS * _HASHES_OF_BAND, 1), np.uint64) for _ in range(2))
Row = dict[str, typing.Any]


@dataclasses.dataclass
class Finding:
    """`other`: the row that it is compared with."""
    row: int
    fault: str
    other: int | None = None
    similarity: float = 1


def _shingles(text: bytes) -> np.ndarray:
    """Runs of 5 bytes as numbers, or the whole of a shorter text; each once."""
    letters = np.frombuffer(text, np.uint8).astype(np.uint64) + np.uint64(1)
    size = min(_SHINGLE, len(letters))
    runs = np.zeros(max(1, len(letters) - size + 1), np.uint64)
    for at in range(size):
        runs = (runs << np.uint64(9)) | letters[at:len(letters) - size + 1 + at]
    return np.unique(runs)


def near_duplicates(texts: typing.Sequence[bytes], least: float) -> list[tuple[int, int, float]]:
    """(text, an earlier one that is none itself, their similarity) where Jaccard's index of their shingles is at least `least`.

    Candidates are found by MinHash (Broder, "On the resemblance and containment of documents", 1997) in 16 bands of 4 hashes: of pairs at
    0.8 one in 5,000 is missed. A text is compared with the first 32 of its bucket, so that the time stays in proportion to the bytes.
    """
    found: list[tuple[int, int, float]] = []
    buckets: dict[tuple[int, bytes], list[int]] = collections.defaultdict(list)
    kept: dict[int, np.ndarray] = {}
    for item, text in enumerate(texts):
        own = _shingles(text)
        hashes = ((own * (_MULTIPLY | np.uint64(1)) + _ADD) >> np.uint64(32)).min(axis=1)
        keys = list(enumerate(part.tobytes() for part in hashes.reshape(_BANDS, _HASHES_OF_BAND)))
        best = (0.0, 0)
        for other in sorted({one for key in keys for one in buckets.get(key, ())}):
            both = len(np.intersect1d(own, kept[other], assume_unique=True))
            similarity = both / (len(own) + len(kept[other]) - both)
            if similarity >= least and similarity > best[0]:
                best = similarity, other
        if best[0] > 0:
            found.append((item, best[1], best[0]))
            continue
        kept[item] = own
        for key in keys:
            if len(buckets[key]) < _MOST_COMPARED:
                buckets[key].append(item)
    return found


def _alone(row: Row, most_tokens: int | None) -> str | None:
    """The fault that a row shows by itself."""
    if row.get("broken"):
        return "broken"
    if not row["decodable"]:
        return "undecodable"
    if not all(row["folded"]):
        return "empty"
    return "cut" if most_tokens and row["tokens"] > most_tokens else None


def _compared(rows: list[Row], same: list[int]) -> tuple[list[Finding], list[int]]:
    """The faults of rows of the same text, and the rows that stand for it: of those to train on none where it is held out."""
    first_of: dict[str, int] = {}
    for row in same:
        first_of.setdefault(rows[row]["split"], row)
    label = rows[same[0]]["label"]
    other_label = next((row for row in same if rows[row]["label"] != label), None)
    held_out = first_of.get("validation", first_of.get("test"))
    found, stand = [], []
    for row in same:
        trains = rows[row]["split"] == "train"
        if other_label is not None:
            found.append(Finding(row, "conflict", other_label if rows[row]["label"] == label else same[0]))
        if trains and held_out is not None:
            found.append(Finding(row, "overlap", held_out))
        if first_of[rows[row]["split"]] != row:
            found.append(Finding(row, "duplicate", first_of[rows[row]["split"]]))
        elif not trains or held_out is None:
            stand.append(row)
    return found, stand


def find_faults(rows: list[Row], near: float, most_tokens: int | None = None) -> list[Finding]:
    """All faults, by row, the worse ones first. `near`: the least similarity; 0: do not look."""
    found, singles = [], []
    texts: dict[tuple[str, ...], list[int]] = collections.defaultdict(list)
    for at, row in enumerate(rows):
        if fault := _alone(row, most_tokens):
            found.append(Finding(at, fault))
        if fault in (None, "cut"):
            texts[tuple(row["folded"])].append(at)
    for same in texts.values():
        faults, stand = _compared(rows, same)
        found += faults
        singles += stand
    if near:  # what is held out comes first, so that a row to train on is the one that has the fault
        singles.sort(key=lambda at: (rows[at]["split"] == "train", at))
        alike = near_duplicates([b"\t".join(text.encode() for text in [*rows[at]["folded"], ""][:2]) for at in singles], near)
        found += [Finding(singles[item], "near", singles[other], similarity) for item, other, similarity in alike]
    return sorted(found, key=lambda one: (one.row, _ORDER[one.fault]))
