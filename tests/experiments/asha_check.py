#!/usr/bin/env python3
"""Checks whether successive halving finds the same as the whole grid, and at what cost.

Trains 27 configs of a small model (learning rate x width x dropout) to the end, and the same 27 with
`method = "asha"`, for three seeds. PASS: the same best config for each seed, with at most 40% of the
grid's steps. Takes minutes on two cores. usage: asha_check.py [--dir DIR] [--jobs N] [--text FILE]
"""

import argparse
import csv
import pathlib
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
STEPS, LOWEST = 90, 10

STUDY = """name = "{name}"
[set]
data.text = "{text}"
model.layers = 2
model.heads = 2
model.context = 32
batch.global = 8
batch.microbatches = 4
run.steps = {steps}
run.threads = 1
run.seed = {seed}
lr.schedule = "constant"
lr.warmup = 4
parallel.pp = 1
parallel.dp = 1
log.trace = 0
log.tensorboard = false
[grid]
optimizer.lr = [1e-5, 1e-4, 1e-3]
model.width = [16, 32, 64]
model.dropout = [0.0, 0.2, 0.5]
{search}
"""
ASHA = '[search]\nmethod = "asha"\nmetric = "validation_loss"\nmin_steps = {}\n'.format(LOWEST)


def run(folder, name, text, seed, search, jobs):
    """Returns the rows of results.csv."""
    file = folder / (name + ".toml")
    file.write_text(STUDY.format(name=name, text=text, steps=STEPS, seed=seed, search=search))
    command = [str(TOP / "build/experiments/concertina"), "study", "run", str(file), "--dir", str(folder), "--jobs", str(jobs)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 1):  # 1: a trial diverged, which is a result
        sys.exit(done.stderr)
    with open(folder / name / "results.csv", newline="") as rows:
        return list(csv.DictReader(rows))


def best(rows):
    whole = [row for row in rows if row["state"] == "done"]
    return min(whole, key=lambda row: float(row["validation_loss"]))


def described(row):
    return ", ".join(f"{key} {row[key]}" for key in ("optimizer.lr", "model.width", "model.dropout"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", default="studies/asha_check", help="folder for the studies")
    parser.add_argument("--jobs", type=int, default=2, help="number of parallel trials")
    parser.add_argument("--text", default="build/data/bible.txt", help="training text")
    options = parser.parse_args()
    folder = pathlib.Path(options.dir)
    folder.mkdir(parents=True, exist_ok=True)
    text = pathlib.Path(options.text).resolve()
    if not text.is_file():
        sys.exit(f"asha_check.py: {text} does not exist; use --text FILE")
    passed = True
    for seed in (1, 2, 3):
        grid = run(folder, f"grid{seed}", text, seed, "", options.jobs)
        asha = run(folder, f"asha{seed}", text, seed, ASHA, options.jobs)
        spent = sum(float(row["steps"] or 0) for row in asha) / sum(float(row["steps"] or 0) for row in grid)
        here, there = best(asha), best(grid)
        same = here["trial"] == there["trial"]
        ok = same and spent <= 0.40
        passed = passed and ok
        print(f"seed {seed}: best of the grid trial {there['trial']} ({described(there)})"
              f" with {float(there['validation_loss']):.4f}; asha: trial {here['trial']}"
              f" with {float(here['validation_loss']):.4f} for {spent:.1%} of its steps: {'PASS' if ok else 'FAIL'}")
    print("PASS" if passed else "FAIL")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
