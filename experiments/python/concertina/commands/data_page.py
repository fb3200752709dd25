"""The page of `concertina data inspect --quality` and `data clean`, whose JSON is the input: faults with examples, labels, lengths."""
from __future__ import annotations

import json
import sys
import typing

from ..files import replace_file
from ..page import Block, chart, content, folded, line, page, table, words
from ..texts import grouped, share_text

if typing.TYPE_CHECKING:
    from ..subcommands import Options


def _faults(faults: dict[str, typing.Any]) -> list[Block]:
    looked = {name: fault for name, fault in faults.items() if fault}
    blocks = [words("heading", "Faults"),
              words("lead", "Texts that differ only in case and white space count as the same. A row may have several faults."),
              table(["fault", "rows", "meaning"], [[name, grouped(fault["rows"]), fault["meaning"]] for name, fault in looked.items()], left=3)]
    for name, fault in looked.items():
        rows = [[one["at"], {"text": one["why"], "look": "text"}, {"text": one["text"], "look": "text"}] for one in fault["first"]]
        if rows:
            blocks += folded(f"{name}: {len(rows)} of {grouped(fault['rows'])}", blocks=[table(["where", "why", "text"], rows, left=3)])
    return blocks


def main(options: Options) -> int:
    report = json.load(sys.stdin)
    rows, labels, lengths = report["rows"], report.get("labels", {}), report["lengths"]
    tiles = [(grouped(count), "rows to train on" if split == "training" else f"rows of {split}") for split, count in rows.items() if count]
    tiles.append((share_text(report["sound"] / max(1, sum(rows.values()))), "of all rows have no fault"))
    blocks: list[Block] = [{"kind": "tiles", "tiles": tiles}, *_faults(report["faults"])]
    if labels:
        splits = [split for split, count in rows.items() if count]
        listed = [[label, *(grouped(of.get(split, 0)) for split in splits)] for label, of in labels.items()]
        more = [[f"and {report['other_labels']} more", *("" for _ in splits)]] if "other_labels" in report else []
        blocks += [words("heading", "Labels"), table(["label", *splits], listed + more, left=1)]
    if len(lengths) > 1:
        shares = [100 * at / (len(lengths) - 1) for at in range(len(lengths))]
        blocks += [words("heading", "Lengths"), chart("Bytes of text of the rows without a fault", [line("bytes", shares, lengths)],
                                                      x="% of rows that are not longer", zero=True)]
    replace_file(options.text("out"), page(content("Data", "", blocks)))
    return 0
