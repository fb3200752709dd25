#!/usr/bin/env python3
"""What being supervised costs a run without a fault: pairs of `train` and `run -- train`, alternating.

cost_without_faults.py PROGRAM TEXT [PAIRS]   (20 pairs, 2 ranks, about 15 minutes with nothing beside it)
Prints the median over pairs of the ratio of seconds per step, supervised over not, with the interval of 95% of it:
of the steps themselves (step_ms), and of the time from one step's end to the next one's.
"""
import datetime
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile

WARM_UP = 20  # steps
LAUNCHER = "mpirun --oversubscribe --bind-to none -n {ranks} {program} {args}"
KEYS = ["model.layers=4", "model.width=128", "model.heads=4", "model.context=64", "batch.global=32", "batch.microbatches=4",
        "run.steps=220", "run.threads=1", "parallel.pp=2", "parallel.dp=1", "checkpoint.every=100000"]


def seconds_per_step(folder):
    """The medians of step_ms, and of the time between steps, in seconds."""
    with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as lines:
        steps = [json.loads(line) for line in lines][WARM_UP:]
    ends = [datetime.datetime.fromisoformat(step["time"].rstrip("Z")).timestamp() for step in steps]
    return statistics.median(step["step_ms"] for step in steps) / 1e3, (ends[-1] - ends[0]) / (len(ends) - 1)


def train(program, text, folder, name, supervised):
    words = ["train", f"data.text={text}", *KEYS, f"run.dir={folder}", f"run.name={name}"]
    command = ([program, "run", "--ranks", "2", "--launcher", LAUNCHER, "--", *words] if supervised else
               ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", "2", program, *words])
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return seconds_per_step(os.path.join(folder, name))


def interval(ratios):
    """95% of the medians of samples drawn again."""
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(2000))
    return medians[50], medians[1949]


def main():
    program, text = os.path.realpath(sys.argv[1]), os.path.realpath(sys.argv[2])
    pairs = int(sys.argv[3]) if len(sys.argv) > 3 else 20
    ratios = {"step": [], "from step to step": []}
    with tempfile.TemporaryDirectory() as folder:
        for pair in range(pairs):
            order = [False, True] if pair % 2 == 0 else [True, False]
            found = {supervised: train(program, text, folder, f"{pair}-{supervised}", supervised) for supervised in order}
            for what, alone, supervised in zip(ratios, found[False], found[True]):
                ratios[what].append(supervised / alone)
            print(f"{pair + 1} of {pairs} pairs", file=sys.stderr)
    for what, values in ratios.items():
        low, high = interval(values)
        print(f"{what}: {statistics.median(values):.4f} ({low:.4f} to {high:.4f}), {pairs} pairs")


if __name__ == "__main__":
    main()
