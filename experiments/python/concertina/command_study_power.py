"""concertina study power: the probability that a study's seeds show an equivalence, before it is launched."""
from __future__ import annotations

import argparse

from .command import Options, number, print_whole, whole_number, words

HELP = "the probability that a study's seeds show an equivalence, before it is launched"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", metavar="STUDY.toml|FOLDER", help="the study's file, or the folder of one that began")
    parser.add_argument("--pilot", default="", metavar="STUDY", help="a study whose pairs say how much their differences vary")
    parser.add_argument("--deviation", type=number(0, 1e9), help="standard deviation of the differences of pairs, in the metric's own unit")
    parser.add_argument("--difference", type=number(-1e9, 1e9), default=0.0, help="true difference, in the metric's own unit (default: 0)")
    parser.add_argument("--power", type=number(0.01, 0.9999), default=0.8, help="wanted power (default: 0.8)")
    parser.add_argument("--seeds", type=whole_number(2, 1 << 20), help="number of seeds (default: those of the study)")
    parser.add_argument("--equivalent", default="", metavar="METRIC=MARGIN", help="claim (default: the study's [equivalence])")
    parser.add_argument("--alpha", type=number(1e-6, 0.49), help="significance level for --equivalent (default: 0.05)")
    parser.add_argument("--baseline", action="extend", type=words, default=[], metavar="COLUMN=VALUE,...",
                        help="baseline of the pilot (default: that of [equivalence])")
    parser.add_argument("--json", action="store_true", help="print one JSON object, nothing else")


def run(options: Options) -> int:
    from .study_folder import write_json
    from .study_power import power
    options.excludes("--deviation", "--pilot", bool(options.pilot))
    options.needs("--alpha", "--equivalent")
    found = power(options.study, pilot=options.pilot, deviation=options.deviation, difference=options.difference, wanted=options.power,
                  seeds=options.seeds, equivalent=options.equivalent, alpha=options.alpha, baseline=options.baseline)
    print_whole(write_json(found.json()) if options.json else found.text())
    return 0
