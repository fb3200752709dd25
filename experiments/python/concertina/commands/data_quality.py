"""`concertina data inspect --quality` and `data clean`, whose input is the rows of tables as JSON: faults as text, JSON and a page."""
from __future__ import annotations

import collections
import json
import sys
import typing

from ..errors import InputError
from ..files import json_text, replace_file
from ..page import Block, chart, content, folded, line, page, table, words
from ..quality import FAULTS, Finding, Row, find_faults
from ..names import counted, grouped, share_text

if typing.TYPE_CHECKING:
    from . import Options

_EXAMPLES, _LABELS = 20, 50
_SPLITS = ("train", "validation", "test")
Json = dict[str, typing.Any]


def _bytes(text: str) -> bytes:
    return text.encode("latin-1")


class Rows:
    """The rows, and what is wrong with them."""

    def __init__(self, given: Json, near: float):
        self.files, self.head, self.most_tokens, self.labelled = given["files"], given["head"], given["tokens"], given["labelled"]
        self.rows: list[Row] = given["rows"]
        self.near = near
        self.findings = find_faults(self.rows, near, self.most_tokens)

    def place(self, row: int) -> str:
        return f"{self.files[self.rows[row]['file']]}:{self.rows[row]['line']}"

    def text(self, row: int, most: int) -> str:
        """The texts of a row, or the row as it stands."""
        texts = self.rows[row].get("texts", [])
        text = " | ".join(_bytes(one).decode(errors="replace") for one in texts) if any(texts) else \
            _bytes(self.rows[row]["raw"]).decode(errors="replace").rstrip("\r\n")
        return text if len(text) <= most else text[:most] + "..."

    def why(self, found: Finding) -> str:
        own = self.rows[found.row]
        if found.fault == "broken":
            return str(own["broken"])
        if found.fault == "cut":
            return f"{own['tokens']} tokens, of which a sample has {self.most_tokens}"
        if found.other is None:
            return FAULTS[found.fault]
        other = self.place(found.other)
        if found.fault == "conflict":
            return "'{}' here, '{}' at {}".format(*(_bytes(one["label"]).decode(errors="replace") for one in (own, self.rows[found.other])), other)
        return {"overlap": f"held out at {other}", "near": f"nearly the text of {other} ({found.similarity:.2f})"}.get(
            found.fault, f"the text of {other}")

    def not_looked_for(self, fault: str) -> str:
        if fault == "conflict" and not self.labelled:
            return "there are no labels"
        return "not looked for" if (fault == "cut" and not self.most_tokens) or (fault == "near" and not self.near) else ""

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
                "labels": {label: {split: labels[label][split] for split in _SPLITS if counts[split]} for label in frequent[:_LABELS]}, "other_labels": max(0, len(labels) - _LABELS),
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
        text += f"{fault:<12}{grouped(known['rows']):>9} {100 * known['rows'] / count:>5.1f}%  {FAULTS[fault]}\n"
        text += "".join(f"  {one['at']}: {one['why']}: {one['text'][:60]}\n" for one in known["first"][:3])
    return text + f"{'sound':<12}{grouped(report['sound']):>9} {100 * report['sound'] / count:>5.1f}%  have none of these\n"


def _page(report: Json) -> str:
    rows, lengths = report["rows"], report["lengths"]
    tiles = [(grouped(size), "rows to train on" if split == "train" else f"rows of {split}") for split, size in rows.items() if size]
    tiles.append((share_text(report["sound"] / max(1, sum(rows.values()))), "of all rows have no fault"))
    looked = {fault: known for fault, known in report["faults"].items() if known}
    blocks: list[Block] = [{"kind": "tiles", "tiles": tiles}, words("heading", "Faults"), words(
        "lead", "Texts that differ only in case and white space count as the same. A row may have several faults."),
        table(["fault", "rows", "a row that"], [[fault, grouped(known["rows"]), known["meaning"]] for fault, known in looked.items()], left=3)]
    for fault, known in looked.items():
        if examples := [[one["at"], *({"text": one[key], "look": "text"} for key in ("why", "text"))] for one in known["first"]]:
            blocks += folded(f"{fault}: {len(examples)} of {grouped(known['rows'])}", blocks=[table(["where", "why", "text"], examples, left=3)])
    if report["labels"]:
        splits = [split for split, size in rows.items() if size]
        listed = [[label, *(grouped(of.get(split, 0)) for split in splits)] for label, of in report["labels"].items()]
        more = [[f"and {report['other_labels']} more", *("" for _ in splits)]] if report["other_labels"] else []
        blocks += [words("heading", "Labels"), table(["label", *splits], listed + more, left=1)]
    if len(lengths) > 1:
        blocks += [words("heading", "Lengths"), chart("Bytes of text of the rows without a fault", [line("bytes", range(0, 101, 10), lengths)],
                                                      x="% of rows that are not longer", zero=True)]
    return page(content("Data", "", blocks))


def _clean(rows: Rows, options: Options) -> tuple[str, Json]:
    """Writes the rows to train on without those that have one of the faults of --drop, and which these were."""
    faults = options.text("drop").split(",")
    worst: dict[int, Finding] = {}
    for found in rows.findings:
        if found.fault in faults:
            worst.setdefault(found.row, found)
    train = [at for at, row in enumerate(rows.rows) if row["split"] == "train"]
    kept = [at for at in train if at not in worst]
    if not kept:
        raise InputError("no row is left", "--drop", "fewer kinds of faults, or the right data.text_columns")
    lines = [_bytes(raw) for raw in [rows.head] * bool(rows.head) + [rows.rows[at]["raw"] for at in kept]]
    dropped = [worst[at] for at in train if at in worst]
    listed = ({"line": rows.rows[one.row]["line"], "fault": one.fault, "why": rows.why(one),
               "row": _bytes(rows.rows[one.row]["raw"]).decode(errors="replace").rstrip("\r\n")} for one in dropped)
    replace_file(options.text("dropped"), "".join(f"{json_text(one)}\n" for one in listed))
    replace_file(options.text("out"), b"".join(one if one.endswith(b"\n") else one + b"\n" for one in lines))
    because = {fault: count for fault in FAULTS if (count := sum(one.fault == fault for one in dropped))}
    text = f"{options.text('out')}: {counted(len(kept), 'row')} kept, {grouped(len(dropped))} dropped, listed in {options.text('dropped')}\n"
    text += "".join(f"{fault:<12}{grouped(count):>9}  {FAULTS[fault]}\n" for fault, count in because.items())
    return text, {"path": options.text("out"), "kept": len(kept), "dropped": len(dropped), "dropped_path": options.text("dropped"),
                  "because": because}


def main(options: Options) -> int:
    rows = Rows(json.load(sys.stdin), options.number("near"))
    report = rows.report()
    if "report" in options:
        replace_file(options.text("report"), _page(report))
    options.print_result(*(_clean(rows, options) if "out" in options else (_report_text(rows, report), report)))
    return 0
