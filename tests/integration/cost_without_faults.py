#!/usr/bin/env python3
"""Measures how much supervision slows down the steps of a run without faults, within one run, since machines' speeds drift.

cost_without_faults.py PROGRAM TEXT [PAIRS]   (40 pairs, 2 ranks, about 5 minutes on an idle machine)
Prints the median ratio, with its 95% interval, of step times: in windows with the supervisor relative to adjacent windows in
which a signal has stopped it; and, with a snapshot after every tenth step, of ten such steps relative to ten without. By
default, snapshots take 0.2% of the time.
"""
import datetime
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

WINDOW = 3  # seconds
EVERY = 10  # steps from one snapshot to the next
LAUNCHER = "mpirun --oversubscribe --bind-to none -n {ranks} {program} {args}"
KEYS = ["model.layers=4", "model.width=128", "model.heads=4", "model.context=64", "batch.global=32", "batch.microbatches=4",
        "run.steps=100000", "run.threads=1", "parallel.pp=2", "checkpoint.every=100000", f"checkpoint.snapshot_every={EVERY}"]


def ends_of_steps(path):
    with open(path, encoding="utf-8") as lines:
        return [datetime.datetime.fromisoformat(json.loads(line)["time"].replace("Z", "+00:00")).timestamp() for line in lines]


def interval(values):
    """Returns the 95% interval of the medians of resampled data."""
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(2000))
    return f"{statistics.median(values):.4f} ({medians[50]:.4f} to {medians[1949]:.4f})"


def seconds_per_step(ends, begin, end):
    """Returns the times of steps within the window, except its first moment."""
    inside = [at for at in ends if begin + 0.2 < at < end]
    return (inside[-1] - inside[0]) / (len(inside) - 1)


def watched(program, text, folder, pairs):
    """Trains; returns the ends of the steps, and each window's begin, end, whether the supervisor
    was active, and the share of a core that it used."""
    command = [program, "run", "--ranks", "2", "--launcher", LAUNCHER, "--", "train", f"data.text={text}", *KEYS,
               f"run.dir={folder}", "run.name=run"]
    supervisor = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    metrics = os.path.join(folder, "run", "metrics.jsonl")
    while supervisor.poll() is None and not (os.path.exists(metrics) and len(ends_of_steps(metrics)) > 20):
        time.sleep(0.1)
    def cpu_seconds():
        with open(f"/proc/{supervisor.pid}/schedstat", encoding="utf-8") as stat:
            return int(stat.read().split()[0]) / 1e9

    windows, before = [], cpu_seconds()
    for window in range(2 * pairs):
        there = window % 4 in (0, 3)  # a drift of the machine's speed favors neither
        supervisor.send_signal(signal.SIGCONT if there else signal.SIGSTOP)
        begin = time.time()
        time.sleep(WINDOW)
        windows.append((begin, time.time(), there))
    share = (cpu_seconds() - before) / (pairs * WINDOW)
    supervisor.send_signal(signal.SIGCONT)
    supervisor.send_signal(signal.SIGUSR1)
    supervisor.wait()
    return ends_of_steps(metrics), windows, share


def main():
    program, text = os.path.realpath(sys.argv[1]), os.path.realpath(sys.argv[2])
    pairs = int(sys.argv[3]) if len(sys.argv) > 3 else 40
    with tempfile.TemporaryDirectory() as folder:
        ends, windows, share = watched(program, text, folder, pairs)
    ratios = []
    for one, other in zip(windows[::2], windows[1::2]):
        found = {there: seconds_per_step(ends, begin, end) for begin, end, there in (one, other)}
        ratios.append(found[True] / found[False])
    took = [after - before for before, after in zip(ends, ends[1:])]  # for step 2 and later
    excess = []
    for first in range(EVERY - 2, len(took) - EVERY, EVERY):  # ten steps, the first with the snapshot
        ten = took[first:first + EVERY]
        usual = statistics.median(ten[2:])
        excess.append(1 + (ten[0] + ten[1] - 2 * usual) / (EVERY * usual))
    print(f"supervisor: {100 * share:.2f}% of a core while there; steps {interval(ratios)}, {pairs} pairs of {WINDOW} s")
    print(f"snapshots, one in {EVERY} steps: {interval(excess)}, {len(excess)} of them")


if __name__ == "__main__":
    main()
