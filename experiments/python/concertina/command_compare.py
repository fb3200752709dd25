"""concertina compare: runs beside each other."""
from __future__ import annotations

import argparse

from .command import Options, print_whole, replace_file, require_output
from .command_study_table import add_group_options, table_options

HELP = "runs beside each other: configs, metrics, and where their bits first differ"


def add_options(parser: argparse.ArgumentParser) -> None:
    add_group_options(parser)
    parser.add_argument("--same", action="store_true", help="exit code 1 unless all runs have the same bits")
    parser.add_argument("--out", default="compare.html", metavar="FILE", help="the page (default: compare.html)")
    parser.add_argument("--json", action="store_true", help="print one JSON object, nothing else")


def run(options: Options) -> int:
    from .page import page
    from .run_comparison import compare
    from .study_folder import write_json
    from .study_page import compare_page
    require_output(options.out, "--out")
    found = compare(*options.study, options=table_options(options))
    replace_file(options.out, page(compare_page(found, options.out)))
    print_whole(write_json(found.json() | {"page": options.out}) if options.json else f"{found.text()}{options.out}\n")
    return 1 if options.same and not found.same else 0
