"""What experiments/papers/megatron-sc21/reproduce.py and experiments/papers/bloom/reproduce.py share: one layout's
prediction by `concertina plan search`, a fit of the rate of products, a table of errors."""
import json
import math
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def program(given):
    """The binary: --program, on PATH, or of the build directory of this checkout."""
    built = os.path.join(HERE, "..", "..", "build", "experiments", "concertina")
    found = given or shutil.which("concertina") or (built if os.path.exists(built) else None)
    if not found:
        sys.exit("no `concertina` on PATH\n  try: . experiments/env.sh, or --program FILE")
    return found


def says(machine_file, software, *figures):
    """Whether `compared` of a machine file has a sentence on `software` with these figures."""
    with open(machine_file, encoding="utf-8") as file:
        said = [line for line in file if line.strip().startswith(f'"{software}: ')]
    return len(said) == 1 and all(figure in said[0] for figure in figures)


class Planner:
    """Predictions of layouts of one machine. `common`: what every call has besides."""

    def __init__(self, binary, config, common):
        self.binary, self.config, self.common, self.known = binary, config, common, {}

    def search(self, keys, options):
        command = [self.binary, "plan", "search", "@" + self.config, *keys, "--json", *self.common, *options]
        if tuple(command) not in self.known:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                sys.exit(" ".join(command) + "\n" + done.stderr)
            self.known[tuple(command)] = json.loads(done.stdout.splitlines()[-1])
        return self.known[tuple(command)]

    def layout(self, row, rate):
        """The prediction for one published row, at a rate of products in FLOP/s, with all the memory
        it wants."""
        options = ["--world", str(row["gpus"]), "--tp", str(row["tp"]), "--pp", str(row["pp"]),
                   "--microbatch", str(row["mbs"]), "--chunks", str(row.get("v", 1)),
                   "--schedules", "interleaved-1f1b" if row.get("v", 1) > 1 else "1f1b",
                   "--recompute", "full", "--top", "1", "--device-memory", "100TiB", "--rate", repr(rate * 1e-9)]
        keys = [f"model.layers={row['layers']}", f"model.width={row['hidden']}",
                f"model.heads={row['heads']}", f"batch.global={row['gbs']}", f"batch.microbatches={row['gbs']}"]
        return self.search(keys, options)["layouts"][0]


RATES = [150e12, 220e12, 320e12]  # at which rows are predicted in order to fit


class Fit:
    """The rate of products at which `ratio(row, rate)` of predicted over published speed has the
    geometric mean 1 over some rows: one parameter. Each row is predicted at three rates; between
    them log(ratio) is a parabola of log(rate)."""

    def __init__(self, ratio):
        self.ratio, self.known = ratio, {}

    def at(self, row, x):
        if id(row) not in self.known:
            self.known[id(row)] = [math.log(self.ratio(row, rate)) for rate in RATES]
        nodes, total = [math.log(rate) for rate in RATES], 0
        for i, value in enumerate(self.known[id(row)]):
            others = [node for node in nodes if node is not nodes[i]]
            total += value * math.prod((x - node) / (nodes[i] - node) for node in others)
        return total

    def rate(self, rows):
        low, high = math.log(RATES[0] / 2), math.log(RATES[-1] * 2)
        for _ in range(60):
            middle = (low + high) / 2
            if sum(self.at(row, middle) for row in rows) < 0:
                low = middle
            else:
                high = middle
        return math.exp(low)


class Table:
    """Lines with published and predicted figures, and whether each is within its tolerance."""

    def __init__(self):
        self.missed = []

    def line(self, name, published, predicted, tolerance, unit):
        error = predicted / published - 1
        within = abs(error) <= tolerance
        if not within:
            self.missed.append(name)
        print(f"  {name:<44} {published:>9.2f} {predicted:>9.2f} {unit:<8} {100 * error:>+6.1f}%"
              f"  (at most {100 * tolerance:g}%)  {'PASS' if within else 'FAIL'}")
        return error

    def claim(self, text, holds):
        if not holds:
            self.missed.append(text)
        print(f"  {text}: {'PASS' if holds else 'FAIL'}")

    def end(self):
        if self.missed:
            sys.exit("FAIL: " + "; ".join(self.missed))
        print("PASS")
