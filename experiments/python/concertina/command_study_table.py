"""concertina study table: means, spread and differences over the trials of a study."""
from __future__ import annotations

import argparse
import sys
import typing

from .command import Options, number, print_whole, replace_file, require_output, words

if typing.TYPE_CHECKING:
    from .study_table import TableOptions

HELP = "means, spread and differences over the trials of a study"


def add_group_options(parser: argparse.ArgumentParser) -> None:
    """Which study and trials, in which groups, and how they are compared."""
    parser.add_argument("study", nargs="+", metavar="STUDY|RUN", help="the folder of a study, such as studies/NAME, or run directories (not "
                        "only Concertina's)")
    several: dict[str, typing.Any] = {"action": "extend", "type": words, "default": []}
    parser.add_argument("--metric", **several, metavar="COLUMN,...", help="columns to average; append :min or :max to set the better "
                        "direction (default: the study's metric, loss, tokens_per_s, median_step_ms, bubble and peak_bytes)")
    parser.add_argument("--by", **several, metavar="COLUMN,...", help="columns that make groups (default: all axes but run.seed)")
    parser.add_argument("--baseline", **several, metavar="COLUMN=VALUE,...", help="the groups that others are compared with, each with the one "
                        "that has its other values; none: no comparison (default: the first group, where groups have several trials)")
    parser.add_argument("--pair", default="run.seed", metavar="COLUMN", help="compare trials with the same value there (default: run.seed)")
    parser.add_argument("--test", default="t", choices=["t", "wilcoxon"], help="test of pairs: paired t test or Wilcoxon's signed rank test")
    parser.add_argument("--correction", default="holm", choices=["holm", "none"], help="correction of the p values of a metric (default: holm)")
    parser.add_argument("--confidence", default=0.95, type=number(0, 1), help="of intervals; p below 1 - confidence is marked (default: 0.95)")
    parser.add_argument("--equivalent", default="", metavar="METRIC=MARGIN", help="test whether groups are within this margin of the baseline, "
                        "in the metric's own unit (default: the [equivalence] of the study's file)")
    parser.add_argument("--alpha", type=number(1e-6, 0.49), help="significance level for --equivalent (default: 0.05)")
    parser.add_argument("--to", action="append", default=[], metavar="METRIC=NUMBER|baseline", help="add a column of the training seconds until "
                        "a held-out metric reaches a number, or the baseline's last value (baseline-0.005: a little less is enough)")
    parser.add_argument("--where", action="append", default=[], metavar="COLUMN=VALUE", help="only trials with this value; repeated: any of "
                        "the values of one column, and all columns")
    parser.add_argument("--sort", default="", metavar="COLUMN", help="sort by a metric, best first, or by a column of the groups")
    parser.add_argument("--stopped", action="store_true", help="include trials that a search has stopped, with the metrics of the steps they did")
    parser.add_argument("--no-notes", action="store_true", help="the table alone")
    parser.add_argument("--mixed", action="store_true", help="average trials of different programs or processors, with a note")


def add_options(parser: argparse.ArgumentParser) -> None:
    add_group_options(parser)
    parser.add_argument("--format", default=None, metavar="FORMAT", help="text, csv, markdown, latex or html (default: text)")
    parser.add_argument("--cells", default=None, metavar="KIND", help="mean-sd, mean-ci (interval of the mean), difference (mean-sd and the "
                        "difference to the baseline) or full (default: full for text, else mean-sd)")
    parser.add_argument("--front", action="extend", type=words, default=[], metavar="COLUMN,COLUMN", help="what groups gain over the baseline "
                        "in one metric, and lose in another")
    parser.add_argument("--out", default="", metavar="FILE", help="write to this file instead of printing")
    parser.add_argument("--json", action="store_true", help="print one JSON object, nothing else")


def table_options(options: Options) -> TableOptions:
    from .statistic import PAIRED, WILCOXON
    from .study_power import claim_of
    from .study_table import TableOptions
    options.needs("--alpha", "--equivalent")
    return TableOptions(options.metric, options.by, options.baseline, options.pair, options.confidence,
                        PAIRED if options.test == "t" else WILCOXON, options.correction, options.where, options.sort, options.mixed,
                        not options.no_notes, claim=claim_of(options.equivalent, options.alpha) if options.equivalent else None,
                        front=getattr(options, "front", []), targets=options.to, stopped=options.stopped)


def run(options: Options) -> int:
    from .errors import require_word
    from .run_set import study_results
    from .study_folder import write_json
    from .study_table import make_table, with_targets
    from .table_formats import CELLS, FORMATS, default_cells, table_json, table_notes, table_text
    for option in ("--format", "--cells"):
        options.excludes(option, "--json alone", options.json and not options.out)
    written = require_word(options.format or "text", FORMATS, f"a table cannot be written as '{options.format}'", "--format")
    cells = require_word(options.cells or default_cells(written), CELLS, f"cells cannot be written as '{options.cells}'", "--cells")
    if options.out:
        require_output(options.out, "--out")
    chosen = table_options(options)
    results = study_results(*options.study)
    table = make_table(results, with_targets(results, chosen))
    text = "" if options.json and not options.out else table_text(table, written, cells)
    if options.out:
        replace_file(options.out, text)
    print_whole(write_json(table_json(table)) if options.json else f"{options.out}\n" if options.out else text)
    if written == "csv" and not options.json:  # the rows alone are data; who reads them must know what they leave out
        sys.stderr.writelines(f"{note}\n" for note in table_notes(table, cells))
    return 0
