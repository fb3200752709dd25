#!/usr/bin/env python3
"""Runs a command with each of several arguments in turn, and compares a number that it prints.

    python3 tests/bench/variants.py --value step_ms --rounds 5 --variants "numerics.leaves=1 numerics.leaves=2" -- \\
        concertina bench step --json --steps 5

The command prints a JSON object in its last line that starts with "{". A round runs every variant once, so that changes of the
machine's speed affect all of them. Prints one JSON object: for each variant the median of the value, and the median over the rounds
of its ratio to the first variant.
"""
import argparse
import json
import statistics
import subprocess
import sys


def value_of(command, key):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        sys.exit(f"variants.py: exit code {done.returncode}: {' '.join(command)}\n{done.stderr[-2000:]}")
    found = json.loads(lines[-1])
    if key not in found:
        sys.exit(f"variants.py: {' '.join(command)} prints no {key}; it prints {', '.join(found)}")
    return found[key]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--value", required=True, metavar="KEY", help="key of the printed object")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each variant (default: 5)")
    parser.add_argument("--variants", required=True, help="arguments separated by spaces, one per variant")
    parser.add_argument("command", nargs="+", help="command, after --")
    options = parser.parse_args()
    variants = options.variants.split()
    if options.rounds < 1 or len(variants) < 2:
        parser.error("--rounds must be at least 1, and --variants at least 2 arguments")
    rounds = []
    for number in range(options.rounds):
        rounds.append([value_of([*options.command, variant], options.value) for variant in variants])
        print(f"round {number + 1} of {options.rounds}: {', '.join(f'{value:.4g}' for value in rounds[-1])}", file=sys.stderr)
    print(json.dumps({variant: {"value": statistics.median(row[at] for row in rounds), "ratio": statistics.median(row[at] / row[0] for row in rounds)}
                      for at, variant in enumerate(variants)}))


main()
