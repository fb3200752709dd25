#!/usr/bin/env python3
"""What freezing gives a run, part by part: the same training static, with layers frozen, with the
pipeline cut again, with replicas in place of stages, and with cached activations.

Each rung is one `concertina train` per seed, by turns. The table has the mean and the standard
deviation over seeds of the speed-up over the static pipeline and over the best static layout, what
`concertina plan freeze` predicts from the static run's costs, the ceiling of each rung in closed
form, and the held-out loss. Ends with 1 if a rung misses a bound:

  - a rung reaches less than --share of its own ceiling (0.85), or all parts together less than
    --over-static (3.2) or --over-best (2.5);
  - a prediction is off by more than --bound (5%);
  - the rungs that freeze do not end with the same bits.

Seconds of a run are those from the end of its first step, in which kernels are made, to the end of
its last one, without its evaluations; decisions and changes of the layout are in them. Runs that are
there already, in --out, are not run again. --front adds the speed and the loss of other alphas.
"""
import argparse
import datetime
import hashlib
import json
import os
import shlex
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
LAUNCH = "mpirun -n {} --oversubscribe --bind-to none --mca mpi_yield_when_idle 1"
FRONT = [1 / 5, 1 / 4, 1 / 3, 2 / 5, 1 / 2]


def fail(what, fix):
    sys.exit(f"ladder.py: {what}\n  try: {fix}")


def lines_of(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def time_of(record):
    return datetime.datetime.fromisoformat(record["time"].replace("Z", "+00:00")).timestamp()


class Ladder:
    def __init__(self, options):
        self.options = options
        self.text = os.path.join(options.out, "text.txt")
        os.makedirs(options.out, exist_ok=True)
        with open(options.text, "rb") as file:
            data = file.read(options.bytes)
        if len(data) < options.bytes:
            fail(f"{options.text} has {len(data)} bytes of {options.bytes}", "--bytes or another --text")
        self.claim(data)
        with open(self.text, "wb") as file:
            file.write(data)
        self.keys = [f"data.text={self.text}", f"run.dir={options.out}", *options.set]
        self.steps = self.plan()["steps"]
        self.epoch = self.steps // options.epochs

    def claim(self, data):
        """Refuses a folder with the runs of another ladder: they would be taken for this one's."""
        with open(os.path.join(HERE, "ladder.toml"), encoding="utf-8") as file:
            config = file.read()
        mine = {"config": hashlib.sha256(config.encode()).hexdigest(), "set": self.options.set,
                "text": hashlib.sha256(data).hexdigest(), "ranks": self.options.ranks,
                "epochs": self.options.epochs, "launch": self.options.launch}
        path = os.path.join(self.options.out, "ladder.json")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                there = json.load(file)
            differ = [key for key in mine if there.get(key) != mine[key]]
            if differ:
                fail(f"{self.options.out} has runs of another {' and '.join(differ)}",
                     "another --out, or remove that folder")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(mine, file)

    def command(self, name, *words):
        config = "@" + os.path.join(HERE, "ladder.toml")
        return [self.options.binary, *name.split(), config, *self.keys, *words]

    def plan(self, *words):
        """Of `plan freeze`, predicted from the costs of a run where `words` name one."""
        words = words or ("--rate", "50")  # GFLOP/s: only steps and keys are wanted
        command = self.command("plan freeze", "--policy", "pipetransformer", "--json", "--world",
                               str(self.options.ranks), "--epochs", str(self.options.epochs), *words)
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stderr)
        return json.loads(done.stdout)

    def train(self, name, keys):
        """The directory of the run called `name`, which is trained unless it is there."""
        directory = os.path.join(self.options.out, name)
        if os.path.exists(os.path.join(directory, "result.json")):
            return directory
        launch = shlex.split(self.options.launch.format(self.options.ranks))
        command = launch + self.command("train", f"run.name={name}", f"run.steps={self.steps}",
                                        f"eval.every={self.epoch}", *keys)
        print(f"  {name}", file=sys.stderr, flush=True)
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{shlex.join(command)}\n{done.stdout}{done.stderr}")
        return directory

    def measure(self, directory):
        steps = lines_of(os.path.join(directory, "metrics.jsonl"))
        checks = [one for one in lines_of(os.path.join(directory, "events.jsonl"))
                  if one["event"] == "validation"]
        seconds = time_of(steps[-1]) - time_of(steps[0])
        seconds -= sum(one["seconds"] for one in checks if one["step"] < steps[-1]["step"])
        with open(os.path.join(directory, "result.json"), encoding="utf-8") as file:
            result = json.load(file)
        return {"seconds": seconds, "loss": [one["loss"] for one in checks],
                "hash": result["state_sha256"], "cache": result.get("cache")}

    def seed(self, seed):
        """Every rung at one seed, and what is predicted of it."""
        rungs, base = {}, [f"run.seed={seed}"]
        static = self.train(f"seed{seed}-static", base + ["freeze.policy=none"] + self.no_options())
        rungs["static"] = self.measure(static)
        plan = self.plan("--costs", static)
        for rung in plan["ladder"][1:]:
            rungs[rung["rung"]] = self.measure(
                self.train(f"seed{seed}-{rung['rung']}", base + rung["keys"]))
        best = ["freeze.policy=none", "parallel.pp=1", f"parallel.dp={self.options.ranks}"]
        rungs["best static"] = self.measure(
            self.train(f"seed{seed}-best", base + best + self.no_options()))
        return rungs, plan

    @staticmethod
    def no_options():
        """The options of the freeze policy at their defaults: without it they are refused."""
        return ["freeze.alpha=0.3333333333333333", "freeze.rounding=ceil"]

    def front(self, seeds, static):
        """By alpha: speed-up over the static run and held-out loss of all parts, by seed."""
        keys = self.plan()["ladder"][-1]["keys"]
        rows = []
        for alpha in FRONT:
            runs = []
            for seed in seeds:
                name = f"seed{seed}-cache" if alpha == 1 / 3 else f"seed{seed}-alpha{alpha:.3f}"
                runs.append(self.measure(self.train(
                    name, [f"run.seed={seed}", f"freeze.alpha={alpha}", *keys])))
            rows.append((alpha, [one["seconds"] / run["seconds"] for one, run in zip(static, runs)],
                         [run["loss"][-1] for run in runs]))
        return rows


def spread(values):
    deviation = statistics.stdev(values) if len(values) > 1 else 0
    return f"{statistics.mean(values):.2f} ({deviation:.2f})"


def table(options, seeds):
    """Lines of the table, and what misses its bound."""
    lines, misses = [], []
    head = f"{'rung':<12}{'seconds':>9}{'over static':>14}{'predicted':>11}{'ceiling':>9}{'share':>7}"
    lines.append(head + f"{'over best':>14}{'ceiling':>9}{'held-out loss':>16}")
    for rung in ["static", "best static", "freeze", "repack", "replicas", "cache"]:
        own = [rungs[rung] for rungs, _ in seeds]
        over = [rungs["static"]["seconds"] / rungs[rung]["seconds"] for rungs, _ in seeds]
        best = [rungs["best static"]["seconds"] / rungs[rung]["seconds"] for rungs, _ in seeds]
        said = [one for _, plan in seeds for one in plan["ladder"] if one["rung"] == rung]
        line = f"{rung:<12}{statistics.mean(one['seconds'] for one in own):>9.1f}{spread(over):>14}"
        if said and rung != "static":
            predicted = statistics.mean(one["over_static"] for one in said)
            ceiling = statistics.mean(one["ceiling_over_static"] for one in said)
            share = statistics.mean(over) / ceiling
            line += f"{predicted:>11.2f}{ceiling:>9.2f}{share:>7.0%}{spread(best):>14}"
            line += f"{statistics.mean(one['ceiling_over_best'] for one in said):>9.2f}"
            off = predicted / statistics.mean(over) - 1
            if share < options.share:
                misses.append(f"{rung} reaches {share:.0%} of its ceiling, {options.share:.0%} wanted")
            if abs(off) > options.bound:
                misses.append(f"the prediction of {rung} is off by {off:+.1%}, {options.bound:.0%} allowed")
        else:
            line += f"{'':>27}{spread(best):>14}{'':>9}"
        lines.append(line + f"{spread([one['loss'][-1] for one in own]):>16}")
    over = statistics.mean(r["static"]["seconds"] / r["cache"]["seconds"] for r, _ in seeds)
    best = statistics.mean(r["best static"]["seconds"] / r["cache"]["seconds"] for r, _ in seeds)
    if over < options.over_static:
        misses.append(f"all parts: {over:.2f} over static, {options.over_static} wanted")
    if best < options.over_best:
        misses.append(f"all parts: {best:.2f} over the best static layout, {options.over_best} wanted")
    for number, (rungs, _) in enumerate(seeds, 1):
        if len({rungs[rung]["hash"] for rung in ("freeze", "repack", "replicas", "cache")}) > 1:
            misses.append(f"seed {number}: the rungs that freeze do not end with the same bits")
    return lines, misses


def losses(seeds):
    """Mean held-out loss after each epoch, without freezing and with."""
    lines = ["", f"{'epoch':>5}{'static':>10}{'frozen':>10}"]
    pairs = zip(*[zip(r["static"]["loss"], r["cache"]["loss"]) for r, _ in seeds])
    for epoch, rows in enumerate(pairs, 1):
        static, frozen = (statistics.mean(column) for column in zip(*rows))
        lines.append(f"{epoch:>5}{static:>10.4f}{frozen:>10.4f}")
    return lines


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="build/experiments/concertina")
    parser.add_argument("--launch", default=LAUNCH, help="{} is the number of ranks")
    parser.add_argument("--text", default="build/data/bible.txt")
    parser.add_argument("--bytes", type=int, default=72850,
                        help="of the text, from its start; so many make an epoch of 16 whole steps")
    parser.add_argument("--out", default="runs/ladder", help="where the runs are")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--front", action="store_true", help="also other values of alpha")
    parser.add_argument("--share", type=float, default=0.85)
    parser.add_argument("--bound", type=float, default=0.05)
    parser.add_argument("--over-static", type=float, default=3.2)
    parser.add_argument("--over-best", type=float, default=2.5)
    parser.add_argument("set", nargs="*", metavar="KEY=VALUE", help="on top of ladder.toml")
    options = parser.parse_args()
    for path, fix in ((options.binary, "--binary, or ninja -C build"),
                      (options.text, "--text, or bash experiments/quickstart.sh first")):
        if not os.path.exists(path):
            fail(f"there is no {path}", fix)
    return options


def main():
    options = parse()
    ladder = Ladder(options)
    numbers = range(1, options.seeds + 1)
    seeds = [ladder.seed(number) for number in numbers]
    lines, misses = table(options, seeds)
    fixed = statistics.mean(plan["fixed_share"] for _, plan in seeds)
    print(f"{options.ranks} ranks, {ladder.steps} steps of {options.epochs} epochs, mean (standard "
          f"deviation) of {options.seeds} seeds; c = {fixed:.1%} of a step is outside of the layers\n")
    print("\n".join(lines + losses(seeds)))
    if options.front:
        print(f"\n{'alpha':>6}{'over static':>14}{'held-out loss':>16}")
        for alpha, over, loss in ladder.front(numbers, [rungs["static"] for rungs, _ in seeds]):
            print(f"{alpha:>6.3f}{spread(over):>14}{spread(loss):>16}")
    print()
    print("\n".join("FAIL: " + miss for miss in misses) or "PASS")
    return 1 if misses else 0


if __name__ == "__main__":
    sys.exit(main())
