"""`concertina data inspect --quality` and `data clean`, whose input is table rows as JSON: finds faults and reports them as text, JSON and
a page.

A fault belongs to one row and is fixed by dropping that row. Texts that differ only in case and white space count as equal."""
import collections
import dataclasses
import json
import sys
import typing

import numpy as np

from ..errors import InputError
from ..files import json_text, replace_file
from ..page import Block, chart, content, folded, line, page, table, words
from ..names import counted
from . import Options

Json = dict[str, typing.Any]

_EXAMPLES, _LABELS = 20, 50
_SPLITS = ("train", "validation", "test")
FAULTS = {  # worst first: the reason given for a dropped row
    "broken": "cannot be read", "undecodable": "is not valid UTF-8", "empty": "has no text",
    "conflict": "has a different label from an earlier row with the same text", "overlap": "is training data but also held out",
    "duplicate": "has the text of an earlier row", "near": "has nearly the text of an earlier row", "cut": "has more tokens than a sample"}
_ORDER = {name: at for at, name in enumerate(FAULTS)}
_SHINGLE, _BANDS, _HASHES_OF_BAND, _MOST_COMPARED = 5, 16, 4, 32
_RANDOM = np.random.Generator(np.random.PCG64(0))
_MULTIPLY, _ADD = (_RANDOM.integers(0, 1 << 63, (_BANDS * _HASHES_OF_BAND, 1), np.uint64) for _ in range(2))


@dataclasses.dataclass
class Finding:
    """`other`: the row that this one is compared with."""
    row: int
    fault: str
    other: int | None = None
    similarity: float = 1


def _shingles(text: bytes) -> np.ndarray:
    """The distinct 5-byte sequences of a text as numbers; a shorter text is a single sequence."""
    letters = np.frombuffer(text, np.uint8).astype(np.uint64) + np.uint64(1)
    size = min(_SHINGLE, len(letters))
    runs = np.zeros(max(1, len(letters) - size + 1), np.uint64)
    for at in range(size):
        runs = (runs << np.uint64(9)) | letters[at:len(letters) - size + 1 + at]
    return np.unique(runs)


def near_duplicates(texts: typing.Sequence[bytes], least: float) -> list[tuple[int, int, float]]:
    """(text, most similar earlier text without this fault, their similarity) if the Jaccard index of their shingles is at least `least`.

    Candidates are found by MinHash (Broder, "On the resemblance and containment of documents", 1997) in 16 bands of 4 hashes: one in
    5,000 pairs with similarity 0.8 is not found. A text is compared with the first 32 texts in each of its buckets, so time is linear in bytes."""
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


def _alone(row: Json, most_tokens: int | None) -> str | None:
    """The fault of a single row."""
    if row.get("broken"):
        return "broken"
    if not row["decodable"]:
        return "undecodable"
    if not all(row["folded"]):
        return "empty"
    return "cut" if most_tokens and row["tokens"] > most_tokens else None


def _compared(rows: list[Json], same: list[int]) -> tuple[list[Finding], list[int]]:
    """The faults of rows with equal text, and the rows to keep, which include no training row if the text is held out."""
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


def find_faults(rows: list[Json], near: float, most_tokens: int | None = None) -> list[Finding]:
    """All faults, by row, worst first. `near`: minimum similarity; 0: do not search."""
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
    if near:  # held-out rows come first, so that the fault is attributed to the training row
        singles.sort(key=lambda at: (rows[at]["split"] == "train", at))
        alike = near_duplicates([b"\t".join(text.encode() for text in [*rows[at]["folded"], ""][:2]) for at in singles], near)
        found += [Finding(singles[item], "near", singles[other], similarity) for item, other, similarity in alike]
    return sorted(found, key=lambda one: (one.row, _ORDER[one.fault]))


def _bytes(text: str) -> bytes:
    return text.encode("latin-1")


class Rows:
    """The rows and their faults."""

    def __init__(self, given: Json, near: float):
        self.files, self.head, self.most_tokens, self.labelled = given["files"], given["head"], given["tokens"], given["labelled"]
        self.rows: list[Json] = given["rows"]
        self.near = near
        self.findings = find_faults(self.rows, near, self.most_tokens)

    def place(self, row: int) -> str:
        return f"{self.files[self.rows[row]['file']]}:{self.rows[row]['line']}"

    def text(self, row: int, most: int) -> str:
        """The texts of a row, or the raw row."""
        texts = self.rows[row].get("texts", [])
        text = " | ".join(_bytes(one).decode(errors="replace") for one in texts) if any(texts) else \
            _bytes(self.rows[row]["raw"]).decode(errors="replace").rstrip("\r\n")
        return text if len(text) <= most else text[:most] + "..."

    def why(self, found: Finding) -> str:
        own = self.rows[found.row]
        if found.fault == "broken":
            return str(own["broken"])
        if found.fault == "cut":
            return f"{own['tokens']} tokens, more than the {self.most_tokens} in a sample"
        if found.other is None:
            return FAULTS[found.fault]
        other = self.place(found.other)
        if found.fault == "conflict":
            return "'{}' here, '{}' at {}".format(*(_bytes(one["label"]).decode(errors="replace") for one in (own, self.rows[found.other])), other)
        return {"overlap": f"held out at {other}", "near": f"nearly the same text as {other} ({found.similarity:.2f})"}.get(
            found.fault, f"the same text as {other}")

    def not_looked_for(self, fault: str) -> str:
        if fault == "conflict" and not self.labelled:
            return "no labels"
        return "not checked" if (fault == "cut" and not self.most_tokens) or (fault == "near" and not self.near) else ""

    def report(self) -> Json:
        faulty = {found.row for found in self.findings}
        by_fault = {fault: [found for found in self.findings if found.fault == fault] for fault in FAULTS}
        labels: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
        for row in self.rows if self.labelled else []:
            if not row.get("broken"):
                labels[_bytes(row["label"]).decode(errors="replace")][row["split"]] += 1
        frequent = sorted(sorted(labels), key=lambda label: -labels[label].total())
        sizes = sorted(sum(map(len, row["texts"])) for at, row in enumerate(self.rows) if at not in faulty)
        counts = {split: sum(row["split"] == split for row in self.rows) for split in _SPLITS}
        return {"rows": counts, "sound": len(sizes),
                "faults": {fault: None if self.not_looked_for(fault) else
                           {"rows": len(found), "meaning": FAULTS[fault], "first": [self._example(one) for one in found[:_EXAMPLES]]}
                           for fault, found in by_fault.items()},
                "labels": {label: {split: labels[label][split] for split in _SPLITS if counts[split]} for label in frequent[:_LABELS]},
                "other_labels": max(0, len(labels) - _LABELS),
                "lengths": [sizes[(len(sizes) - 1) * tenth // 10] for tenth in range(11)] if sizes else []}

    def _example(self, found: Finding) -> Json:
        json = {"at": self.place(found.row), "why": self.why(found), "text": self.text(found.row, 200)}
        if found.other is not None:
            json["other"] = self.place(found.other)
        return json | ({"similarity": found.similarity} if found.fault == "near" else {})


def _report_text(rows: Rows, report: Json) -> str:
    count = len(rows.rows) or 1
    text = "".join(f"{'training' if split == 'train' else split:<12}{counted(size, 'row')}\n" for split, size in report["rows"].items() if size)
    for fault, known in report["faults"].items():
        if known is None:
            text += f"{fault:<12}{'-':>9} {'':>6}  {rows.not_looked_for(fault)}\n"
            continue
        text += f"{fault:<12}{known['rows']:>9,} {100 * known['rows'] / count:>5.1f}%  {FAULTS[fault]}\n"
        text += "".join(f"  {one['at']}: {one['why']}: {one['text'][:60]}\n" for one in known["first"][:3])
    return text + f"{'sound':<12}{report['sound']:>9,} {100 * report['sound'] / count:>5.1f}%  have no fault\n"


def _page(report: Json) -> str:
    rows, lengths = report["rows"], report["lengths"]
    tiles = [(f"{size:,}", "training rows" if split == "train" else f"rows of {split}") for split, size in rows.items() if size]
    tiles.append((f"{report['sound'] / max(1, sum(rows.values())):.1%}", "of all rows have no fault"))
    looked = {fault: known for fault, known in report["faults"].items() if known}
    blocks: list[Block] = [{"kind": "tiles", "tiles": tiles}, words("heading", "Faults"), words(
        "lead", "Texts that differ only in case and white space count as equal. A row may have several faults."),
        table(["fault", "rows", "a row that"], [[fault, f"{known['rows']:,}", known["meaning"]] for fault, known in looked.items()], left=3)]
    for fault, known in looked.items():
        if examples := [[one["at"], *({"text": one[key], "look": "text"} for key in ("why", "text"))] for one in known["first"]]:
            blocks += folded(f"{fault}: {len(examples)} of {known['rows']:,}", blocks=[table(["where", "why", "text"], examples, left=3)])
    if report["labels"]:
        splits = [split for split, size in rows.items() if size]
        listed = [[label, *(f"{of.get(split, 0):,}" for split in splits)] for label, of in report["labels"].items()]
        more = [[f"and {report['other_labels']} more", *("" for _ in splits)]] if report["other_labels"] else []
        blocks += [words("heading", "Labels"), table(["label", *splits], listed + more, left=1)]
    if len(lengths) > 1:
        blocks += [words("heading", "Lengths"), chart("Bytes of text in rows without a fault", [line("bytes", range(0, 101, 10), lengths)],
                                                      x="% of rows up to this length", zero=True)]
    return page(content("Data", "", blocks))


def _clean(rows: Rows, options: Options) -> tuple[str, Json]:
    """Writes the training rows without the faults in --drop, and the dropped rows."""
    faults = options.text("drop").split(",")
    worst: dict[int, Finding] = {}
    for found in rows.findings:
        if found.fault in faults:
            worst.setdefault(found.row, found)
    train = [at for at, row in enumerate(rows.rows) if row["split"] == "train"]
    kept = [at for at in train if at not in worst]
    if not kept:
        raise InputError("no rows are left", "--drop", "fewer kinds of faults, or the right data.text_columns")
    lines = [_bytes(raw) for raw in [rows.head] * bool(rows.head) + [rows.rows[at]["raw"] for at in kept]]
    dropped = [worst[at] for at in train if at in worst]
    listed = ({"line": rows.rows[one.row]["line"], "fault": one.fault, "why": rows.why(one),
               "row": _bytes(rows.rows[one.row]["raw"]).decode(errors="replace").rstrip("\r\n")} for one in dropped)
    replace_file(options.text("dropped"), "".join(f"{json_text(one)}\n" for one in listed))
    replace_file(options.text("out"), b"".join(one if one.endswith(b"\n") else one + b"\n" for one in lines))
    because = {fault: count for fault in FAULTS if (count := sum(one.fault == fault for one in dropped))}
    text = f"{options.text('out')}: {counted(len(kept), 'row')} kept, {len(dropped):,} dropped, listed in {options.text('dropped')}\n"
    text += "".join(f"{fault:<12}{count:>9,}  {FAULTS[fault]}\n" for fault, count in because.items())
    return text, {"path": options.text("out"), "kept": len(kept), "dropped": len(dropped), "dropped_path": options.text("dropped"),
                  "because": because}


def main(options: Options) -> int:
    rows = Rows(json.load(sys.stdin), options.number("near"))
    report = rows.report()
    if "report" in options:
        replace_file(options.text("report"), _page(report))
    options.print_result(*(_clean(rows, options) if "out" in options else (_report_text(rows, report), report)))
    return 0
