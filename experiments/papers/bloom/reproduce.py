#!/usr/bin/env python3
"""Predicts the topology trials of BLOOM (48 nodes of 8 A100-80GB) with `concertina plan`: seconds of a
step, memory, what does not fit, and which layout is best. Prints published and predicted figures, the
error, and PASS or FAIL against expected.json.

Two parameters are fitted to the first row, BLOOM's own layout: the rate of large products to its
seconds, and the memory that is no tensor's to its memory. The rest is jean-zay.toml. Ends with 1 on
FAIL."""
import argparse
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
from published import Fit, Planner, Table, program  # noqa: E402

GIB = 2.0 ** 30


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
        self.reserved = own["memory_gib"] - self.tensors(own)

    def at(self, row, rate):
        return self.planner.layout(row, rate)

    def seconds(self, row):
        return self.at(row, self.rate)["step_s"]

    def tensors(self, row):
        memory = self.at(row, self.rate)["memory"]
        return (memory["total_bytes"] - memory["reserved_bytes"]) / GIB

    def memory(self, row):
        return self.tensors(row) + self.reserved

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
        limit, margin = self.expected["memory_limit_gib"], self.expected["memory_margin_gib"]
        return [name_of(row) for row in self.rows
                if (row["seconds"] and self.memory(row) > limit + margin) or
                (not row["seconds"] and self.memory(row) < limit - margin)]

    def ranked(self):
        """The measured layouts at the batch of the best one, as predicted."""
        best = min((row for row in self.rows if row["seconds"] and row["gbs"] == 2048),
                   key=lambda row: row["seconds"])
        same = [row for row in self.rows if row["gbs"] == 2048 and
                self.memory(row) <= self.expected["memory_limit_gib"]]
        return best, sorted(same, key=self.seconds)

    def place_of_best(self, best):
        """Among all layouts of 384 GPUs, also those that nobody tried: (place, how many, seconds of
        the first)."""
        found = self.planner.search(
            [], ["--world", "384", "--recompute", "full", "--schedules", "1f1b", "--chunks", "1",
                 "--top", "1000", "--rate", repr(self.rate * 1e-9)])["layouts"]
        places = [i for i, layout in enumerate(found) if
                  [layout[key] for key in ("tp", "pp", "dp", "microbatch_samples")] ==
                  [best["tp"], best["pp"], best["dp"], best["mbs"]]]
        return places[0] + 1, len(found), found[0]["step_s"], found[0]["text"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", help="the concertina binary; default: on PATH, or build/")
    parser.add_argument("--machine", default=os.path.join(HERE, "jean-zay.toml"),
                        help="another machine file, to see what its figures matter")
    options = parser.parse_args()
    with open(os.path.join(HERE, "expected.json"), encoding="utf-8") as file:
        expected = json.load(file)
    trials = Trials(Planner(program(options.program), os.path.join(HERE, "gpt.toml"),
                            ["--machine", options.machine, "--software", "deepspeed"]), expected)
    table = Table()
    print(f"{expected['source']}\n\nFrom the first row: products at {trials.rate * 1e-12:.1f} TFLOP/s, "
          f"{trials.reserved:.1f} GiB beside the tensors")
    trials.print_rows()
    judged, others = trials.rows[1:trials.judged], trials.rows[1:]
    for rows, bound, what in ((judged, expected["tolerance_mean"], "the rows up to the out of memory"),
                              (others, expected["tolerance_all"], "all other rows")):
        error = trials.mean_error(rows)
        table.claim(f"mean error of {what}: {100 * error:.1f}% (at most {100 * bound:g}%)",
                    error <= bound)
    memory = [abs(trials.memory(row) / row["memory_gib"] - 1) for row in others if row["memory_gib"]]
    memory, bound = sum(memory) / len(memory), expected["tolerance_memory"]
    table.claim(f"mean error of their memory: {100 * memory:.1f}% (at most {100 * bound:g}%)",
                memory <= bound)
    wrong = trials.wrong_verdicts()
    table.claim(f"wrong verdicts on memory at {expected['memory_limit_gib']} GiB, with a margin of "
                f"{expected['memory_margin_gib']}: {', '.join(wrong) or 'none'}", not wrong)
    best, ranked = trials.ranked()
    place = [row is best for row in ranked].index(True) + 1
    table.claim(f"the best measured, {name_of(best)}, is number {place} of the {len(ranked)} measured "
                "at this batch, as predicted (at most 3)", place <= 3)
    place, count, seconds, text = trials.place_of_best(best)
    print(f"  of all {count} layouts that were simulated, measured or not, it is number {place}; number "
          f"1 is {text}, {100 * (1 - seconds / trials.seconds(best)):.1f}% faster\n")
    table.end()


if __name__ == "__main__":
    main()
