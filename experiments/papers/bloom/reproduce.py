#!/usr/bin/env python3
"""Predicts the topology trials of BLOOM (48 nodes of 8 A100-80GB) with `concertina plan`: seconds of a
step, memory, what does not fit, and which layout is best. Prints published and predicted figures, the
error, and PASS or FAIL against expected.json.

One parameter is fitted to the first row, BLOOM's own layout: the rate of large products to its
seconds. The rest is jean-zay.toml, whose reserved_bytes judge memory and bound the search. Ends with
1 on FAIL."""
import argparse
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
from published import Fit, Planner, Table, program, says  # noqa: E402

GIB = 2.0 ** 30
OWN_MACHINE = os.path.join(HERE, "jean-zay.toml")


def name_of(row):
    return f"dp{row['dp']} tp{row['tp']} pp{row['pp']} mbs {row['mbs']} gbs {row['gbs']}"


class Trials:
    def __init__(self, planner, expected):
        self.planner, self.expected = planner, expected
        self.rows = [{**expected["model"], **row} for row in expected["rows"] + expected["more_rows"]]
        self.judged = len(expected["rows"])
        own = self.rows[0]
        fit = Fit(lambda row, rate: row["seconds"] / self.at(row, rate)["step_s"])
        self.rate = fit.rate([own])

    def at(self, row, rate):
        return self.planner.layout(row, rate)

    def seconds(self, row):
        return self.at(row, self.rate)["step_s"]

    def memory(self, row):
        return self.at(row, self.rate)["memory"]["total_bytes"] / GIB

    def reserves(self):
        """What each row needed beside the tensors of the model, ascending."""
        reserved = self.at(self.rows[0], self.rate)["memory"]["reserved_bytes"] / GIB
        return sorted(row["memory_gib"] - self.memory(row) + reserved for row in self.rows if row["memory_gib"])

    def mean_error(self, rows):
        errors = [abs(self.seconds(row) / row["seconds"] - 1) for row in rows if row["seconds"]]
        return sum(errors) / len(errors)

    def print_rows(self):
        print(f"  {'':<30} {'seconds':>17} {'error':>8}   {'GiB':>11}  out of memory")
        for row in self.rows:
            seconds, memory = self.seconds(row), self.memory(row)
            published = f"{row['seconds']:.2f}" if row["seconds"] else "-"
            error = f"{100 * (seconds / row['seconds'] - 1):+.1f}%" if row["seconds"] else ""
            used = row["memory_gib"] or "-"
            print(f"  {name_of(row):<30} {published:>8} {seconds:>8.2f} {error:>8}   {used:>5} "
                  f"{memory:>5.1f}  {'no' if row['seconds'] else 'yes':<3} predicted "
                  f"{'yes' if memory > self.expected['memory_limit_gib'] else 'no'}")

    def wrong_verdicts(self):
        limit = self.expected["memory_limit_gib"]
        return [name_of(row) for row in self.rows if (self.memory(row) > limit) == bool(row["seconds"])]

    def ranked(self):
        """The measured layouts at the batch of the best one, as predicted."""
        best = min((row for row in self.rows if row["seconds"] and row["gbs"] == 2048), key=lambda row: row["seconds"])
        same = [row for row in self.rows if row["gbs"] == 2048 and self.memory(row) <= self.expected["memory_limit_gib"]]
        return best, sorted(same, key=self.seconds)

    def search(self):
        """All layouts of 384 GPUs that are predicted to fit, also those that nobody tried."""
        return self.planner.search(
            [], ["--world", "384", "--recompute", "full", "--schedules", "1f1b", "--chunks", "1",
                 "--top", "1000", "--rate", repr(self.rate * 1e-9)])["layouts"]


def places_of(row, layouts):
    """Where a trial's layout stands in a search, from 1; at most one place."""
    return [place for place, layout in enumerate(layouts, 1) if
            [layout[key] for key in ("tp", "pp", "dp", "microbatch_samples")] ==
            [row["tp"], row["pp"], row["dp"], row["mbs"]]]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", help="the concertina binary; default: on PATH, or build/")
    parser.add_argument("--machine", default=OWN_MACHINE, help="another machine file, to see what its figures matter")
    options = parser.parse_args()
    with open(os.path.join(HERE, "expected.json"), encoding="utf-8") as file:
        expected = json.load(file)
    trials = Trials(Planner(program(options.program), os.path.join(HERE, "gpt.toml"),
                            ["--machine", options.machine, "--software", "deepspeed"]), expected)
    table = Table()
    reserves = trials.reserves()
    print(f"{expected['source']}\n\nFrom the first row: products at {trials.rate * 1e-12:.1f} TFLOP/s. "
          f"Beside the tensors: {reserves[0]:.1f} to {reserves[-1]:.1f} GiB, "
          f"{sum(reserves) / len(reserves):.1f} on average")
    trials.print_rows()
    judged, others = trials.rows[1:trials.judged], trials.rows[1:]
    for rows, bound, what in ((judged, expected["tolerance_mean"], "the rows up to the out of memory"),
                              (others, expected["tolerance_all"], "all other rows")):
        error = trials.mean_error(rows)
        table.claim(f"mean error of {what}: {100 * error:.1f}% (at most {100 * bound:g}%)", error <= bound)
    memory = [trials.memory(row) / row["memory_gib"] - 1 for row in trials.rows if row["memory_gib"]]
    error, bound = sum(map(abs, memory)) / len(memory), expected["tolerance_memory"]
    table.claim(f"mean error of memory: {100 * error:.1f}% (at most {100 * bound:g}%)", error <= bound)
    bias, bound = sum(memory) / len(memory), expected["tolerance_memory_bias"]
    table.claim(f"memory is off on average by {100 * bias:+.1f}% (at most {100 * bound:g}% either way)", abs(bias) <= bound)
    off = [abs(trials.seconds(row) / row["seconds"] - 1) for row in others if row["seconds"]]
    figures = f"{sum(off) / len(off):.1%} off in the mean", f"{max(off):.1%} at worst", f"them {error:.1%}, with"
    if options.machine == OWN_MACHINE:
        table.claim(f"the machine file has the same: {'; '.join(figures[:2])}", says(options.machine, "deepspeed", *figures))
    wrong = trials.wrong_verdicts()
    table.claim(f"wrong verdicts on memory at {expected['memory_limit_gib']} GiB, of {len(trials.rows)}: "
                f"{', '.join(wrong) or 'none'}", not wrong)
    best, ranked = trials.ranked()
    place = [row is best for row in ranked].index(True) + 1
    table.claim(f"the best measured, {name_of(best)}, is number {place} of the {len(ranked)} measured "
                "at this batch, as predicted (at most 3)", place <= 3)
    own = {**trials.rows[0], **expected["bloom"]}
    table.line("BLOOM itself, stages of 5, 6 x 10, 5 layers", own["tflops"],
               trials.at(own, trials.rate)["tflops_per_gpu"], own["tolerance"], "TFLOP/s")
    found = trials.search()
    failed = [name_of(row) for row in trials.rows if not row["seconds"] and places_of(row, found)]
    table.claim(f"layouts that ran out of memory, among the {len(found)} that a search shows: "
                f"{', '.join(failed) or 'none'}", not failed)
    print(f"  of all these, measured or not, the best measured is number {places_of(best, found)[0]}; "
          f"number 1 is {found[0]['text']}, "
          f"{100 * (1 - found[0]['step_s'] / trials.seconds(best)):.1f}% faster\n")
    table.end()


if __name__ == "__main__":
    main()
