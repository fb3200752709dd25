#!/usr/bin/env python3
"""Trains a small model with each arm of arms.py on 1, 2 and 4 ranks, kills runs at random times and continues
them, possibly on another number of ranks, and reports whether each ends with the bits of a run on one rank
without cache and layout policy. Takes minutes and needs no data: the images are made up. Exits with 1 on
FAIL.

Two arms are special. `weights-only` plans what it skips for its first layout, so it starts on 2 ranks and
continues on others. The weights of `growing batch` depend on measured times, so they are not compared."""
import argparse
import json
import os
import random
import re
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "papers", "pipetransformer"))
import arms  # noqa: E402
from reproduce import MPIRUN, PAPER  # noqa: E402
from published import Table, use_program  # noqa: E402

RANKS = [1, 2, 4]
SAMPLES, HELD_OUT, BATCH, EPOCHS = 80, 16, 16, 10


def chosen_arms():
    found = arms.arms_of({"shorter_epochs": [3], "top_layers": [(4, EPOCHS)]}, layers=12, epochs=EPOCHS, steps=(SAMPLES - HELD_OUT) // BATCH)
    del found["growing batch"]
    for arm in found.values():
        if arm.get("elastic.policy") == "predicted":
            arm["elastic.least_gain"] = 0  # a run this small would never move otherwise
    return found


def make_images(folder):
    """Each class has its own picture, with noise added."""
    draw = random.Random(1)
    pictures = [draw.randbytes(28 * 28) for _ in range(10)]
    labels = [draw.randrange(10) for _ in range(SAMPLES)]
    pixels = b"".join(bytes((one + other) // 2 for one, other in zip(pictures[label], draw.randbytes(28 * 28)))
                      for label in labels)
    paths = [os.path.join(folder, name) for name in ("images", "labels")]
    for path, header, body in zip(paths, [(2051, SAMPLES, 28, 28), (2049, SAMPLES)], [pixels, bytes(labels)]):
        with open(path, "wb") as file:
            file.write(struct.pack(f">{len(header)}I", *header) + body)
    return paths


def children_of(parent):
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                if int(file.read().rsplit(")", 1)[1].split()[1]) == parent:
                    found.append(int(name))
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def lines_of(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return file.readlines()


class Runs:
    def __init__(self, options, folder):
        use_program(options.program)
        self.options, self.folder, self.binary = options, folder, os.environ["CONCERTINA"]
        self.data = arms.toml_value(make_images(folder))
        size = {"model.width": 16, "model.heads": 2, "model.classes": 10, "model.vit.patch": 14,
                "run.steps": 10, "batch.global": BATCH}
        self.train("pretrained", 1, ["@" + os.path.join(PAPER, "pretrain-vit.toml"),
                                     *(f"{key}={value}" for key, value in size.items())])

    def path(self, name, file):
        return os.path.join(self.folder, name, file)

    def command(self, name, ranks, words):
        mpirun = shlex.split(self.options.mpirun)
        mpirun[mpirun.index("-n") + 1] = str(ranks)
        return [*mpirun, self.binary, "train", *words, f"data.files={self.data}", f"run.dir={self.folder}",
                f"run.name={name}"]

    def words(self, arm, ranks):
        """The arm on these ranks: with its number of stages, if they are enough, and as many replicas as fit."""
        keys = {key: value for key, value in arm.items() if key != "parallel.dp"}
        keys.update({"parallel.pp": min(ranks, arm["parallel.pp"]), "model.from": self.path("pretrained", ""),
                     "data.validation": HELD_OUT / SAMPLES, "batch.global": BATCH, "lr.warmup": 4,
                     "checkpoint.every": 3, "log.every": 1, "run.seed": self.options.seed})
        return ["@" + os.path.join(PAPER, "finetune-vit.toml"),
                *(f"{key}={arms.toml_value(value)}" for key, value in keys.items())]

    def train(self, name, ranks, words):
        """Returns the final hash, or how the run failed."""
        command = self.command(name, ranks, words)
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        if done.returncode == 2 and "--from-scratch to restart" in done.stderr:
            print(f"  {name} was killed before its first checkpoint: --from-scratch, as the program suggests")
            command.append("--from-scratch")
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        if done.returncode != 0:
            print(shlex.join(command) + "\n" + done.stderr)
            return f"exit {done.returncode}"
        with open(self.path(name, "result.json"), encoding="utf-8") as file:
            return json.load(file)["state_sha256"][:12]

    def kill(self, name, ranks, words, step, pause, choose):
        """Kills the run `pause` seconds after `step`: those processes that `choose` selects from
        the launcher and its ranks. Returns False if the run had ended."""
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        launcher = subprocess.Popen(self.command(name, ranks, words), **quiet)
        while launcher.poll() is None and len(lines_of(self.path(name, "metrics.jsonl"))) < step:
            time.sleep(0.003)
        time.sleep(pause)
        for process in choose([launcher.pid, *children_of(launcher.pid)]):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        launcher.wait(timeout=300)
        return not os.path.exists(self.path(name, "result.json"))

    def figures(self, names):
        """Returns how much these runs tested: an event that did not occur was not tested."""
        events = [json.loads(line) for name in names for line in lines_of(self.path(name, "events.jsonl"))]
        freezes = sum(event["event"] == "freeze" and "units_before" in event for event in events)
        layouts = sum(event["event"] == "layout" and event["from"] != event["to"] for event in events)
        cached = 0
        for name in names:
            with open(self.path(name, "result.json"), encoding="utf-8") as file:
                cached += json.load(file).get("cache", {}).get("memory_hits", 0)
        return f"{freezes} freezes, {layouts} layouts, {cached} cached"


def plain(arm):
    """Returns what an arm trains, without cache and layout policy: all that its bits may depend on."""
    return {key: value for key, value in arm.items() if not key.startswith(("cache.", "elastic."))}


def compare_ranks(runs, chosen, table):
    """Returns the hash expected of each arm: that of the plain run, shared by arms that train the same."""
    wanted, known = {}, {}
    for name, arm in chosen.items():
        first = 2 if name == "weights-only" else 1  # number of ranks at the start
        words = runs.words(plain(arm), first)
        trained = " ".join(word for word in words if not word.startswith("parallel."))
        if trained not in known:
            known[trained] = runs.train(f"plain-{len(known)}", first, words)
        wanted[name], slug, hashes = known[trained], re.sub("[^a-z0-9]+", "-", name), []
        for ranks in RANKS:
            if first == 2 and ranks != 2:
                runs.kill(f"{slug}-{ranks}", 2, runs.words(arm, 2), 5, 0, lambda processes: processes)
            hashes.append(runs.train(f"{slug}-{ranks}", ranks, runs.words(arm, ranks)))
        same = set(hashes) == {wanted[name]}
        tried = runs.figures([f"{slug}-{ranks}" for ranks in RANKS]) if same else f"not {wanted[name]}"
        table.claim(f"{name:<20} {' '.join(hashes)}  {tried}", same)
    return wanted


def compare_kills(runs, chosen, wanted, table):
    draw, killed, same = random.Random(runs.options.seed), 0, 0
    while killed < runs.options.kills:
        name, after, seen = draw.choice(list(chosen)), draw.choice(RANKS), draw.random()
        before = 2 if name == "weights-only" else draw.choice(RANKS)
        whom, victim, pause = draw.choice(["all", "one rank"]), draw.random(), 0.1 * draw.random()
        step, run = 1 + int(seen * (chosen[name]["run.steps"] - 2)), f"kill-{killed + 1}"

        def choose(processes):
            return processes if whom == "all" or len(processes) < 2 else \
                [processes[1 + int(victim * (len(processes) - 1))]]

        if not runs.kill(run, before, runs.words(chosen[name], before), step, pause, choose):
            shutil.rmtree(runs.path(run, ""))  # it had ended: try again
            continue
        killed += 1
        got = runs.train(run, after, runs.words(chosen[name], after))
        same += got == wanted[name]
        print(f"  kill {killed}: {name} on {before}, {whom} after step {step}, continues on {after}: {got}"
              f"{'' if got == wanted[name] else ', not ' + wanted[name]}", flush=True)
    table.claim(f"the same bits after a kill: {same} of {killed}", same == killed)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", help="the concertina binary; default: on PATH, or build/")
    parser.add_argument("--mpirun", default=MPIRUN, help="launches ranks; the number after -n is replaced")
    parser.add_argument("--seed", type=int, default=1, help="seed of the runs and of the kills")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--arms", nargs="+", metavar="NAME", help="these alone")
    options = parser.parse_args()
    folder, table = tempfile.mkdtemp(prefix="bits-"), Table()
    runs, chosen = Runs(options, folder), chosen_arms()
    if options.arms:
        chosen = {name: arm for name, arm in chosen.items() if name in options.arms}
    print(f"seed {options.seed}, runs in {folder}; by arm, state_sha256 on {RANKS} ranks")
    wanted = compare_ranks(runs, chosen, table)
    compare_kills(runs, chosen, wanted, table)
    table.end()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
