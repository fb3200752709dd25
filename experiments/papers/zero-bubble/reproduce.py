#!/usr/bin/env python3
"""The bubbles and throughputs that Qi et al. 2024 (arXiv 2401.10241) publish, predicted by
`concertina schedule simulate` and `schedule search` from the times that the paper measured.

Prints published, predicted and error of each figure, and PASS or FAIL against expected.json, which
has the values, the tolerances and the source of each. Ends with 1 if a figure fails, with 2 if it
cannot run. README.md beside it says by what convention.
"""
import argparse
import itertools
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BUILT = os.path.join(HERE, "..", "..", "..", "build", "experiments", "concertina")


def fail(what, fix):
    print(f"reproduce.py: {what}\n  try: {fix}", file=sys.stderr)
    sys.exit(2)


def concertina(binary, *words):
    """What `concertina schedule WORDS --json` prints."""
    command = [binary, "schedule", *map(str, words), "--json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)
    except OSError as error:
        fail(f"cannot run {binary}: {error.strerror}", "ninja -C build, or --binary PATH")
    except subprocess.CalledProcessError as error:
        fail(f"{' '.join(command)} ended with {error.returncode}:\n{error.stderr}", "that command by itself")


class Setting:
    """One row of the tables: a model, its stages and microbatches, and what they take."""

    def __init__(self, binary, row, model):
        self.binary, self.row, self.model = binary, row, model
        self.stages = model["stages"]
        self.chunks = (model["layers"] + 2) // self.stages  # of 1F1B-I: a layer each
        self.times = [row[key] for key in ("T_F", "T_B", "T_W")]
        self.shape = ["--ranks", self.stages, "--microbatches", row["microbatches"]]

    def costs(self, times, latency):
        return ["--costs", ",".join(map(repr, times)), "--latency", repr(latency)]

    def simulate(self, name, times=None, latency=None, chunks=1):
        costs = self.costs(times or self.times, self.row["T_comm"] if latency is None else latency)
        return concertina(self.binary, "simulate", name, *self.shape, *costs, "--chunks", chunks)

    def search(self, times_stages):
        """With the memory of so many microbatches per stage, of which W keeps a part (table 1)."""
        hidden, heads, sequence = (self.model[key] for key in ("hidden", "heads", "sequence"))
        kept = 32 * hidden / (34 * hidden + 5 * heads * sequence)
        return concertina(self.binary, "search", *self.shape, *self.costs(self.times, self.row["T_comm"]),
                          "--objective", "span", "--memory", times_stages * self.stages, "--kept-for-w", repr(kept), "--max-chunks", 1)

    def interleaved(self, blocking):
        """1F1B-I, whose transfers take a latency or, as in Megatron-LM, the time of their ranks."""
        comm = self.row["T_comm"]
        forward, backward, weight = (time / self.chunks for time in self.times)
        if blocking:
            forward, backward = forward + comm, backward + comm
        return self.simulate("interleaved-1f1b", (forward, backward, weight), 0 if blocking else comm, self.chunks)

    def samples(self, bubble, extra=0):
        """Per GPU and second, if a microbatch keeps a rank busy for its times and `extra`."""
        span = self.row["microbatches"] * (sum(self.times) + extra) / (1 - bubble)
        return 1000 * self.model["microbatch"] * self.row["microbatches"] / self.stages / span


def bubble_of(report):
    return report["bubble"]["definitions"]["zero_bubble"]["value"]


def predict(setting):
    """Bubbles by schedule, and samples per GPU and second before the model's factor."""
    bubble = {"1f1b": bubble_of(setting.simulate("1f1b")),
              "1f1b-i": bubble_of(setting.interleaved(blocking=False)),
              "zb-h1": bubble_of(setting.simulate("zb-h1")),
              "zb-h2": bubble_of(setting.simulate("zb-h2")),
              "zb-1p": bubble_of(setting.search(1)),
              "zb-2p": bubble_of(setting.search(2))}
    samples = {name: setting.samples(bubble[name]) for name in ("1f1b", "zb-1p", "zb-2p")}
    samples["1f1b-i"] = setting.samples(bubble_of(setting.interleaved(blocking=True)), 2 * setting.chunks * setting.row["T_comm"])
    return bubble, samples


def factor_of(settings):
    """What the model's GPUs did of the prediction for 1F1B: the mean over its rows."""
    ratios = [one.row["samples_per_gpu_s"]["1f1b"] / one.samples(bubble_of(one.simulate("1f1b"))) for one in settings]
    return sum(ratios) / len(ratios)


class Table:
    def __init__(self, tolerance):
        self.tolerance, self.failed, self.figures = tolerance, 0, 0
        print(f"{'model':<6} {'m':>4}  {'figure':<24} {'published':>9} {'predicted':>9} {'error':>9}")

    def verdict(self, setting, figure, text, good):
        self.figures += 1
        self.failed += not good
        print(f"{setting.row['model']:<6} {setting.row['microbatches']:>4}  {figure:<24} {text}  "
              f"{'PASS' if good else 'FAIL'}", flush=True)

    def figure(self, setting, kind, name, predicted):
        published = setting.row[kind][name]
        error = predicted - published if kind == "bubble" else predicted / published - 1
        least, most = self.tolerance[kind][name]
        good = (least is None or error >= least) and error <= most
        text = (f"{published:>9.4f} {predicted:>9.4f} {error:>+9.5f}" if kind == "bubble" else
                f"{published:>9.2f} {predicted:>9.2f} {error:>+9.2%}")
        self.verdict(setting, f"{name} {'bubble' if kind == 'bubble' else 'samples/GPU/s'}", text, good)

    def order(self, setting, predicted):
        """The same schedule is faster wherever the published figures differ."""
        published = setting.row["samples_per_gpu_s"]
        wrong = [f"{a} and {b}" for a, b in itertools.combinations(published, 2)
                 if (published[a] - published[b]) * (predicted[a] - predicted[b]) < 0]
        self.verdict(setting, "order of schedules", f"{', '.join(wrong) or 'as published':<29}", not wrong)


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=BUILT, help="concertina (default: that of build/)")
    parser.add_argument("--expected", default=os.path.join(HERE, "expected.json"))
    parser.add_argument("--model", help="this model alone")
    parser.add_argument("--microbatches", type=int, help="rows with so many alone")
    return parser.parse_args()


def main():
    options = read_options()
    try:
        with open(options.expected, encoding="utf-8") as file:
            expected = json.load(file)
    except (OSError, ValueError) as error:
        fail(f"cannot read {options.expected}: {error}", "the expected.json of this folder")
    rows = [Setting(options.binary, row, expected["models"][row["model"]]) for row in expected["rows"]]
    chosen = [one for one in rows if options.model in (None, one.row["model"]) and options.microbatches in (None, one.row["microbatches"])]
    if not chosen:
        fail("no row has this model and so many microbatches",
             "one of: " + ", ".join(f"{one.row['model']} {one.row['microbatches']}" for one in rows))
    table = Table(expected["tolerance"])
    factors = {name: factor_of([one for one in rows if one.row["model"] == name])
               for name in dict.fromkeys(one.row["model"] for one in chosen)}
    for setting in chosen:
        factor = factors[setting.row["model"]]
        bubble, samples = predict(setting)
        samples = {name: factor * value for name, value in samples.items()}
        for name in setting.row["bubble"]:
            table.figure(setting, "bubble", name, bubble[name])
        for name in setting.row["samples_per_gpu_s"]:
            table.figure(setting, "samples_per_gpu_s", name, samples[name])
        table.order(setting, samples)
    print("factors of samples, one per model: " + ", ".join(f"{name} {one:.4f}" for name, one in factors.items()))
    print(f"{table.figures - table.failed} of {table.figures} figures pass")
    return 1 if table.failed else 0


if __name__ == "__main__":
    sys.exit(main())
