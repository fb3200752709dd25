"""Shared by the reproductions of published results: running the program, predictions of layouts by
`concertina plan search`, a fit of the rate of products, and a table of published and predicted values."""
import argparse
import functools
import json
import math
import os
import pathlib
import shutil
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
PAPERS = TOP / "experiments" / "papers"
BUILT = TOP / "build" / "experiments" / "concertina"
sys.path.insert(0, str(TOP / "experiments" / "python"))
from concertina import InputError, call  # noqa: E402

RATES = [150e12, 220e12, 320e12]  # FLOP/s; rows are predicted at these to fit the rate


def parser(about):
    made = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--program", "--binary", help="the concertina binary; default: on PATH, or build/")
    return made


def use_program(given):
    """Makes ask() run the binary of --program, on PATH, or in this checkout's build directory."""
    found = given or shutil.which("concertina") or (BUILT if BUILT.exists() else None)
    if not found:
        sys.exit("no `concertina` on PATH\n  try: . experiments/env.sh, or --program FILE")
    os.environ["CONCERTINA"] = str(pathlib.Path(found).absolute())


def fail(what, fix, code=2):
    print(f"{pathlib.Path(sys.argv[0]).name}: {what}\n  try: {fix}", file=sys.stderr)
    sys.exit(code)


@functools.cache
def ask(*words):
    """Returns what `concertina WORDS --json` prints."""
    try:
        return json.loads(call(*words, "--json").splitlines()[-1])
    except OSError as error:
        fail(f"cannot run {os.environ['CONCERTINA']}: {error.strerror}", "ninja -C build, or --program PATH")
    except InputError as error:
        sys.exit(f"concertina {' '.join(map(str, words))}\n{error}")


def read_expected(path):
    try:
        return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        fail(f"cannot read {path}: {error}", "the expected.json of this folder")


def says(machine_file, software, *figures):
    """Returns whether `compared` of a machine file has a sentence about `software` with these values."""
    lines = pathlib.Path(machine_file).read_text(encoding="utf-8").splitlines()
    said = [line for line in lines if line.strip().startswith(f'"{software}: ')]
    return len(said) == 1 and all(figure in said[0] for figure in figures)


def layout(row, rate, common):
    """Predicts one published row at a rate of products in FLOP/s, without a memory limit. `common`: config and options."""
    chunks = row.get("v", 1)
    sizes = {"--world": row["gpus"], "--tp": row["tp"], "--pp": row["pp"], "--microbatch": row["mbs"], "--chunks": chunks,
             "--schedules": "interleaved-1f1b" if chunks > 1 else "1f1b", "--recompute": "full", "--top": 1, "--device-memory": "100TiB",
             "--rate": repr(rate * 1e-9)}
    keys = {"model.layers": row["layers"], "model.width": row["hidden"], "model.heads": row["heads"], "batch.global": row["gbs"],
            "batch.microbatches": row["gbs"]}
    return ask("plan", "search", *common, *(f"{key}={value}" for key, value in keys.items()),
               *(word for size in sizes.items() for word in size))["layouts"][0]


def fitted_rate(ratio, rows):
    """Returns the rate of products at which `ratio(row, rate)`, predicted over published speed, has
    the geometric mean 1 over the rows.

    log(ratio) is modeled as a parabola of log(rate) through predictions at three rates.
    """
    x = [math.log(rate) for rate in RATES]
    y = [sum(math.log(ratio(row, rate)) for row in rows) for rate in RATES]
    slopes = [(y[1] - y[0]) / (x[1] - x[0]), (y[2] - y[1]) / (x[2] - x[1])]
    bend = (slopes[1] - slopes[0]) / (x[2] - x[0])
    # Newton's form: y0 + slope (x - x0) + bend (x - x0) (x - x1) = 0; the larger denominator gives the closest root.
    slope = slopes[0] - bend * (x[1] - x[0])
    return math.exp(x[0] - 2 * y[0] / (slope + math.copysign(math.sqrt(slope**2 - 4 * bend * y[0]), slope)))


class Table:
    """Prints published and predicted values, and whether each is within its tolerance."""

    def __init__(self):
        self.missed = []

    def line(self, name, published, predicted, tolerance, unit):
        error = predicted / published - 1
        self.claim(f"{name:<44} {published:>9.2f} {predicted:>9.2f} {unit:<8} {100 * error:>+6.1f}%  (at most {100 * tolerance:g}%)",
                   abs(error) <= tolerance, " ", name)
        return error

    def claim(self, text, holds, mark=":", name=None):
        if not holds:
            self.missed.append(name or text)
        print(f"  {text}{mark} {'PASS' if holds else 'FAIL'}", flush=True)

    def end(self):
        if self.missed:
            sys.exit("FAIL: " + "; ".join(self.missed))
        print("PASS")
