#!/usr/bin/env python3
"""Predicts table 1 and figure 12 of Narayanan et al. 2021 (Megatron-LM, SC21) with `concertina plan`, and
prints published and predicted TFLOP/s per GPU, the error, and PASS or FAIL against expected.json.

One parameter is fitted, the rate of large products; the rest is machines/a100-80gb.toml. A row of table 1 is
predicted with the rate fitted to the other rows, figure 12 with the rate fitted to its 1F1B point. Exits with
1 on FAIL."""

from published import PAPERS, TOP, Table, fitted_rate, layout, parser, read_expected, says, use_program

HERE = PAPERS / "megatron-sc21"


def main():
    use_program(parser(__doc__).parse_args().program)
    expected, table = read_expected(HERE / "expected.json"), Table()
    common = [f"@{HERE / 'gpt.toml'}", "--machine", expected["machine"], "--software", "megatron"]

    def predicted(row, rate):
        return layout(row, rate, common)["tflops_per_gpu"]

    def rate_of(rows):
        return fitted_rate(lambda row, rate: predicted(row, rate) / row["tflops"], rows)

    rows, tolerance = expected["table_1"]["rows"], expected["table_1"]["tolerance"]
    print(f"{expected['source']}\n\nTable 1, TFLOP/s per GPU: published, predicted from the others")
    errors = []
    for row in rows:
        name = f"{row['name']} tp{row['tp']} pp{row['pp']} dp{row['dp']} mbs {row['mbs']} v{row['v']}"
        rate = rate_of([other for other in rows if other is not row])
        errors.append(abs(table.line(name, row["tflops"], predicted(row, rate), tolerance, "TFLOP/s")))
    figures = f"mean error of TFLOP/s {sum(errors) / len(errors):.1%}", f"maximum {max(errors):.1%}"
    table.claim(f"{', '.join(figures)}; the machine file has the same",
                says(TOP / "experiments" / "machines" / f"{expected['machine']}.toml", "megatron", *figures))
    rate = rate_of(rows)
    print(f"  all rows give products at {rate * 1e-12:.1f} TFLOP/s")

    figure = expected["figure_12"]
    one, interleaved = figure["rows"]
    own = rate_of([one])
    print(f"\nFigure 12, 175B, batch 60: from its 1F1B point (products at {own * 1e-12:.1f} TFLOP/s)")
    for row, bound in ((one, figure["tolerance_1f1b"]), (interleaved, figure["tolerance_interleaved"])):
        table.line(row["name"], row["tflops"], predicted(row, own), bound, "TFLOP/s")
    print(f"  at the rate of table 1: {predicted(one, rate):.1f} and {predicted(interleaved, rate):.1f}\n")
    table.end()


if __name__ == "__main__":
    main()
