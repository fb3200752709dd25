#!/usr/bin/env python3
"""Predicts the topology trials of BLOOM (48 nodes of 8 A100-80GB) with `concertina plan`: seconds
per step, memory, what does not fit, and which layout is best. Prints published and predicted
values, the error, and PASS or FAIL against expected.json.

One parameter, the rate of large products, is fitted to the seconds of the first row, BLOOM's own
layout. The rest is jean-zay.toml, whose reserved_bytes affect the memory and limit the search.
Exits with 1 on FAIL."""
import statistics

from published import PAPERS, Table, ask, fitted_rate, layout, parser, read_expected, says, use_program

HERE = PAPERS / "bloom"

GIB = 2.0 ** 30
OWN_MACHINE = str(HERE / "jean-zay.toml")


def name_of(row):
    return f"dp{row['dp']} tp{row['tp']} pp{row['pp']} mbs {row['mbs']} gbs {row['gbs']}"


def print_row(row, limit):
    measured, used = row["seconds"], row["memory_gib"] or "-"
    published, error = (f"{measured:.2f}", f"{row['error']:+.1%}") if measured else ("-", "")
    print(f"  {name_of(row):<30} {published:>8} {row['step_s']:>8.2f} {error:>8}   {used:>5} {row['gib']:>5.1f}  "
          f"{'no' if measured else 'yes':<3} predicted {'yes' if row['gib'] > limit else 'no'}")


def mean_error(rows):
    return statistics.fmean(abs(row["error"]) for row in rows if row["seconds"])


def places_of(row, layouts):
    """The position of a trial's layout in a search, from 1; at most one."""
    return [place for place, found in enumerate(layouts, 1) if [found[key] for key in ("tp", "pp", "dp", "microbatch_samples")] ==
            [row[key] for key in ("tp", "pp", "dp", "mbs")]]


def claim_errors(table, expected, rows, machine):
    """Checks the seconds and the memory of all rows but the first, to which the rate was fitted."""
    others = rows[1:]
    for some, bound, what in ((rows[1:len(expected["rows"])], expected["tolerance_mean"], "the rows up to the out of memory"),
                              (others, expected["tolerance_all"], "all other rows")):
        table.claim(f"mean error of {what}: {mean_error(some):.1%} (at most {100 * bound:g}%)", mean_error(some) <= bound)
    memory = [row["gib"] / row["memory_gib"] - 1 for row in rows if row["memory_gib"]]
    error, bound = statistics.fmean(map(abs, memory)), expected["tolerance_memory"]
    table.claim(f"mean error of memory: {error:.1%} (at most {100 * bound:g}%)", error <= bound)
    bias, bound = statistics.fmean(memory), expected["tolerance_memory_bias"]
    table.claim(f"memory is off on average by {bias:+.1%} (at most {100 * bound:g}% either way)", abs(bias) <= bound)
    worst = max(abs(row["error"]) for row in others if row["seconds"])
    figures = f"mean error of the seconds {mean_error(others):.1%}", f"maximum {worst:.1%}", f"them {error:.1%}, with"
    if machine == OWN_MACHINE:
        table.claim(f"the machine file has the same values: {'; '.join(figures[:2])}", says(machine, "deepspeed", *figures))


def claim_order(table, expected, rows, found):
    """Checks what fits, which layout is best at BLOOM's batch, and what a search of all layouts shows."""
    limit = expected["memory_limit_gib"]
    wrong = [name_of(row) for row in rows if (row["gib"] > limit) == bool(row["seconds"])]
    table.claim(f"wrong verdicts on memory at {limit} GiB, of {len(rows)}: {', '.join(wrong) or 'none'}", not wrong)
    same = [row for row in rows if row["gbs"] == 2048]
    best = min((row for row in same if row["seconds"]), key=lambda row: row["seconds"])
    ranked = sorted((row for row in same if row["gib"] <= limit), key=lambda row: row["step_s"])
    place = ranked.index(best) + 1
    table.claim(f"the best measured, {name_of(best)}, is number {place} of the {len(ranked)} measured at this batch, as predicted (at most 3)",
                place <= 3)
    failed = [name_of(row) for row in rows if not row["seconds"] and places_of(row, found)]
    table.claim(f"layouts that ran out of memory, among the {len(found)} that a search shows: {', '.join(failed) or 'none'}", not failed)
    print(f"  of all these, measured or not, the best measured is number {places_of(best, found)[0]}; number 1 is {found[0]['text']}, "
          f"{1 - found[0]['step_s'] / best['step_s']:.1%} faster")


def main():
    asked = parser(__doc__)
    asked.add_argument("--machine", default=OWN_MACHINE, help="another machine file, to see the effect of its values")
    options = asked.parse_args()
    use_program(options.program)
    expected, table = read_expected(HERE / "expected.json"), Table()
    common = [f"@{HERE / 'gpt.toml'}", "--machine", options.machine, "--software", "deepspeed"]
    rows = [{**expected["model"], **row} for row in expected["rows"] + expected["more_rows"]]
    rate = fitted_rate(lambda row, rate: row["seconds"] / layout(row, rate, common)["step_s"], rows[:1])
    for row in rows:
        predicted = layout(row, rate, common)
        row |= {"step_s": predicted["step_s"], "gib": predicted["memory"]["total_bytes"] / GIB}
        row["error"] = row["step_s"] / row["seconds"] - 1 if row["seconds"] else None
    reserved = layout(rows[0], rate, common)["memory"]["reserved_bytes"] / GIB
    reserves = [row["memory_gib"] - row["gib"] + reserved for row in rows if row["memory_gib"]]
    print(f"{expected['source']}\n\nFrom the first row: products at {rate * 1e-12:.1f} TFLOP/s. Besides the tensors: {min(reserves):.1f} to "
          f"{max(reserves):.1f} GiB, {statistics.fmean(reserves):.1f} on average")
    print(f"  {'':<30} {'seconds':>17} {'error':>8}   {'GiB':>11}  out of memory")
    for row in rows:
        print_row(row, expected["memory_limit_gib"])
    claim_errors(table, expected, rows, options.machine)
    # All layouts of 384 GPUs that are predicted to fit, including untested ones.
    found = ask("plan", "search", *common, "--world", 384, "--recompute", "full", "--schedules", "1f1b", "--chunks", 1, "--top", 1000,
                "--rate", repr(rate * 1e-9))["layouts"]
    claim_order(table, expected, rows, found)
    own = {**rows[0], **expected["bloom"]}
    table.line("BLOOM itself, stages of 5, 6 x 10, 5 layers", own["tflops"], layout(own, rate, common)["tflops_per_gpu"], own["tolerance"], "TFLOP/s")
    table.end()


if __name__ == "__main__":
    main()
