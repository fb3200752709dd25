#!/usr/bin/env python3
"""Predicts table 1 and figure 12 of Narayanan et al. 2021 (Megatron-LM, SC21) with `concertina plan`,
and prints published and predicted TFLOP/s per GPU, the error, and PASS or FAIL against expected.json.

One parameter is fitted, the rate of large products; the rest is machines/a100-80gb.toml. A row of
table 1 is predicted at the rate that the other rows give, figure 12 at the rate that its 1F1B point
gives. Ends with 1 on FAIL."""
import argparse
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
from published import Fit, Planner, Table, program, says  # noqa: E402

MACHINES = os.path.join(HERE, "..", "..", "machines")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", help="the concertina binary; default: on PATH, or build/")
    options = parser.parse_args()
    with open(os.path.join(HERE, "expected.json"), encoding="utf-8") as file:
        expected = json.load(file)
    planner = Planner(program(options.program), os.path.join(HERE, "gpt.toml"),
                      ["--machine", expected["machine"], "--software", "megatron"])

    def predicted(row, rate):
        return planner.layout(row, rate)["tflops_per_gpu"]

    def ratio(row, rate):
        return predicted(row, rate) / row["tflops"]

    table, fit = Table(), Fit(ratio)
    rows = expected["table_1"]["rows"]
    print(f"{expected['source']}\n\nTable 1, TFLOP/s per GPU: published, predicted from the others")
    errors = []
    for row in rows:
        rate = fit.rate([other for other in rows if other is not row])
        errors.append(abs(table.line(f"{row['name']} tp{row['tp']} pp{row['pp']} dp{row['dp']} mbs {row['mbs']} v{row['v']}",
                   row["tflops"], predicted(row, rate), expected["table_1"]["tolerance"], "TFLOP/s")))
    figures = f"{sum(errors) / len(errors):.1%} off in the mean", f"{max(errors):.1%} at worst"
    table.claim(f"{', '.join(figures)}; the machine file has the same",
                says(os.path.join(MACHINES, expected["machine"] + ".toml"), "megatron", *figures))
    rate = fit.rate(rows)
    print(f"  all rows give products at {rate * 1e-12:.1f} TFLOP/s")

    figure = expected["figure_12"]
    one, interleaved = figure["rows"]
    rate_of_one = fit.rate([one])
    print(f"\nFigure 12, 175B, batch 60: from its 1F1B point (products at {rate_of_one * 1e-12:.1f} TFLOP/s)")
    table.line(one["name"], one["tflops"], predicted(one, rate_of_one), figure["tolerance_1f1b"], "TFLOP/s")
    table.line(interleaved["name"], interleaved["tflops"], predicted(interleaved, rate_of_one), figure["tolerance_interleaved"], "TFLOP/s")
    print(f"  at the rate of table 1: {predicted(one, rate):.1f} and {predicted(interleaved, rate):.1f}\n")
    table.end()


if __name__ == "__main__":
    main()
