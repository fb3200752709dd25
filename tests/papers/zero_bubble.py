#!/usr/bin/env python3
"""Predicts the bubbles and throughputs published by Qi et al. 2024 (arXiv 2401.10241) with
`concertina schedule simulate` and `schedule search`, from the times measured in the paper.

Prints the published and predicted values and the error, and PASS or FAIL against expected.json, which
has the values, the tolerances and their sources. Exits with 1 if a value fails, with 2 if it
cannot run. experiments/papers/zero-bubble/README.md explains the conventions.
"""
import itertools
import statistics
import sys

from published import PAPERS, ask, fail, parser, read_expected, use_program

HERE = PAPERS / "zero-bubble"


class Setting:
    """One row of the tables: a model, its stages and microbatches, and their times."""

    def __init__(self, row, model):
        self.row, self.model, self.stages = row, model, model["stages"]
        self.chunks = (model["layers"] + 2) // self.stages  # of 1F1B-I: one layer each
        self.times = [row[key] for key in ("T_F", "T_B", "T_W")]

    def bubble(self, *words, times=None, latency=None):
        """Bubble, by the paper's definition, of `concertina schedule WORDS`."""
        latency = self.row["T_comm"] if latency is None else latency
        report = ask("schedule", *words, "--ranks", self.stages, "--microbatches", self.row["microbatches"],
                     "--costs", ",".join(map(repr, times or self.times)), "--latency", repr(latency))
        return report["bubble"]["definitions"]["zero_bubble"]["value"]

    def searched(self, microbatches):
        """Bubble with memory for this number of microbatches per stage, part of which W keeps (table 1)."""
        hidden, heads, sequence = (self.model[key] for key in ("hidden", "heads", "sequence"))
        kept = 32 * hidden / (34 * hidden + 5 * heads * sequence)
        return self.bubble("search", "--objective", "span", "--memory", microbatches * self.stages, "--kept-for-w", repr(kept), "--max-chunks", 1)

    def interleaved(self, blocking):
        """1F1B-I, whose transfers take a latency or, as in Megatron-LM, time of the ranks."""
        comm = self.row["T_comm"] * blocking
        forward, backward, weight = (time / self.chunks for time in self.times)
        return self.bubble("simulate", "interleaved-1f1b", "--chunks", self.chunks, times=(forward + comm, backward + comm, weight),
                           latency=0 if blocking else None)

    def samples(self, bubble, extra=0):
        """Samples per GPU and second, if a microbatch keeps a rank busy for its times and `extra`."""
        span = self.row["microbatches"] * (sum(self.times) + extra) / (1 - bubble)
        return 1000 * self.model["microbatch"] * self.row["microbatches"] / self.stages / span

    def predict(self, factor):
        """Bubbles, and samples per GPU and second, by schedule."""
        bubble = {"1f1b": self.bubble("simulate", "1f1b"), "1f1b-i": self.interleaved(blocking=False), "zb-h1": self.bubble("simulate", "zb-h1"),
                  "zb-h2": self.bubble("simulate", "zb-h2"), "zb-1p": self.searched(1), "zb-2p": self.searched(2)}
        samples = {name: self.samples(bubble[name]) for name in ("1f1b", "zb-1p", "zb-2p")}
        samples["1f1b-i"] = self.samples(self.interleaved(blocking=True), 2 * self.chunks * self.row["T_comm"])
        return bubble, {name: factor * value for name, value in samples.items()}


def factor_of(settings):
    """The speed of the model's GPUs relative to the prediction for 1F1B: the mean over its rows."""
    return statistics.fmean(one.row["samples_per_gpu_s"]["1f1b"] / one.samples(one.bubble("simulate", "1f1b")) for one in settings)


def verdicts(setting, bubble, samples, tolerance):
    """Yields the name of each value of a row, its printed text, and whether it is within its tolerance."""
    for kind, predicted in (("bubble", bubble), ("samples_per_gpu_s", samples)):
        for name, published in setting.row[kind].items():
            is_bubble, value = kind == "bubble", predicted[name]
            error = value - published if is_bubble else value / published - 1
            least, most = tolerance[kind][name]
            text = f"{published:>9.4f} {value:>9.4f} {error:>+9.5f}" if is_bubble else f"{published:>9.2f} {value:>9.2f} {error:>+9.2%}"
            yield f"{name} {'bubble' if is_bubble else 'samples/GPU/s'}", text, (least is None or error >= least) and error <= most
    # The same schedule is faster wherever the published values differ.
    published = setting.row["samples_per_gpu_s"]
    wrong = [f"{a} and {b}" for a, b in itertools.combinations(published, 2) if (published[a] - published[b]) * (samples[a] - samples[b]) < 0]
    yield "order of schedules", f"{', '.join(wrong) or 'as published':<29}", not wrong


def read_options():
    asked = parser(__doc__)
    asked.add_argument("--expected", default=HERE / "expected.json")
    asked.add_argument("--model", help="only this model")
    asked.add_argument("--microbatches", type=int, help="only rows with this number of microbatches")
    return asked.parse_args()


def main():
    options = read_options()
    use_program(options.program)
    expected = read_expected(options.expected)
    rows = [Setting(row, expected["models"][row["model"]]) for row in expected["rows"]]
    chosen = [one for one in rows if options.model in (None, one.row["model"]) and options.microbatches in (None, one.row["microbatches"])]
    if not chosen:
        fail("no row has this model and this number of microbatches",
             "one of: " + ", ".join(f"{one.row['model']} {one.row['microbatches']}" for one in rows))
    print(f"{'model':<6} {'m':>4}  {'figure':<24} {'published':>9} {'predicted':>9} {'error':>9}")
    factors = {name: factor_of([one for one in rows if one.row["model"] == name]) for name in dict.fromkeys(one.row["model"] for one in chosen)}
    good = []
    for setting in chosen:
        name = setting.row["model"]
        for figure, text, holds in verdicts(setting, *setting.predict(factors[name]), expected["tolerance"]):
            good.append(holds)
            print(f"{name:<6} {setting.row['microbatches']:>4}  {figure:<24} {text}  {'PASS' if holds else 'FAIL'}", flush=True)
    print("factors of samples, one per model: " + ", ".join(f"{name} {one:.4f}" for name, one in factors.items()))
    print(f"{sum(good)} of {len(good)} figures pass")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
