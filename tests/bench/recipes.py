#!/usr/bin/env python3
"""Measures on SST-2 what recipes do to the accuracy of bert-sst2.toml: averages, distillation, adapters, pruning, int8 weights.

  tests/bench/recipes.py PROGRAM SST2 [--seeds N] [--steps N]

Each seed trains one model, with a moving average, and keeps its last checkpoints. Another model learns from it (distilled). Its export is
pruned by half and fine-tuned, and so is the model itself, for as many steps: the difference is what pruning costs. The ONNX export is
quantized by onnxruntime, calibrated on training rows. A masked-language model is pretrained once; each seed fine-tunes all of its weights
(full), and adapters of rank 8 (lora). The result `ensemble` of the catalogue combines the models of all seeds. Needs onnx, onnxruntime, numpy, scipy and pandas. Prints
JSON: for each recipe the mean accuracy, the mean difference from its baseline with a 95% interval over the seeds, the seconds and the
bytes."""
import argparse
import concurrent.futures
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "experiments/python"))

import onnxruntime  # noqa: E402, F401  (before the training)
from concertina.quantization import quantize  # noqa: E402
from concertina.statistic import summarize  # noqa: E402

CALIBRATION_ROWS = 512


class Seed:
    def __init__(self, options, seed):
        self.options, self.seed, self.folder = options, seed, options.work / str(seed)
        self.data = [f"data.files={options.data}/train.tsv", f"data.validation_files={options.data}/dev.tsv",
                     f"data.tokenizer={options.work}/bpe", "run.threads=1", f"run.dir={self.folder}", f"run.seed={seed}", "log.every=1000000"]

    def call(self, *words):
        done = subprocess.run([self.options.program, *map(str, words)], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(map(str, words))}: {done.stderr}")
        return done.stdout

    def train(self, name, steps, *keys, recipe="bert-sst2"):
        began = time.monotonic()
        self.call("train", f"@{TOP}/experiments/recipes/{recipe}.toml", *self.data, f"run.name={name}", f"run.steps={steps}", "eval.every=0", *keys)
        return time.monotonic() - began

    def accuracy(self, name, *words):
        return json.loads(self.call("eval", self.folder / name, "--json", *words))["accuracy"]

    def measure(self):
        tuned, rules = self.options.steps // 4, ["optimizer.name=adamw", "optimizer.lr=5e-4"]
        every = max(1, self.options.steps // 40)
        kept = [f"checkpoint.every={every}", "checkpoint.keep=5"]
        found = {"plain": {"seconds": self.train("plain", self.options.steps, "optimizer.ema=0.995", *kept), "accuracy": self.accuracy("plain")}}
        found["average"] = {"accuracy": self.accuracy("plain", "--average"), "of": "plain", "seconds": found["plain"]["seconds"]}
        self.call("checkpoint", "average", self.folder / "plain", "--last", 5, "--out", self.folder / "mean")
        found["mean"] = {"accuracy": self.accuracy("mean"), "of": "plain", "seconds": found["plain"]["seconds"]}
        seconds = self.train("distilled", self.options.steps, f"distill.teacher={self.folder}/plain", f"run.seed={100 + self.seed}")
        found["distilled"] = {"seconds": seconds, "accuracy": self.accuracy("distilled"), "of": "plain"}
        for name, keys in (("full", []), ("lora", ["lora.rank=8", "optimizer.name=adamw", "optimizer.lr=5e-3"])):
            seconds = self.train(name, self.options.steps, f"model.from={self.options.work}/0/masked", *keys)
            found[name] = {"seconds": seconds, "accuracy": self.accuracy(name)}
        found["lora"]["of"] = "full"
        half = self.folder / "half"
        self.call("checkpoint", "export", self.folder / "plain", "--prune", 0.5, "--out", half)
        seconds = self.train("tuned", tuned, f"model.from={self.folder}/plain", *rules)
        found["tuned"] = {"seconds": seconds, "accuracy": self.accuracy("tuned")}
        seconds = self.train("sparse", tuned, f"model.from={half}", "optimizer.keep_zeros=true", *rules)
        found["sparse"] = {"seconds": seconds, "accuracy": self.accuracy("sparse"), "of": "tuned"}
        model = self.folder / "model.onnx"
        self.call("checkpoint", "export", self.folder / "plain", "--onnx", "--out", model)
        self.call("eval", self.folder / "plain", "--logits", self.folder / "logits")
        rows = self.folder / "calibration.tsv"
        rows.write_text("".join((self.options.data / "train.tsv").read_text().splitlines(keepends=True)[:CALIBRATION_ROWS + 1]))
        self.call("eval", self.folder / "plain", "--files", rows, "--logits", self.folder / "calibration")
        for kind, calibrate in (("dynamic", None), ("static", self.folder / "calibration")):
            began = time.monotonic()
            before, after = quantize(model, self.folder / f"{kind}.onnx", self.folder / "logits", calibrate)
            found["onnx"] = {"accuracy": before["accuracy"], "bytes": before["bytes"], "seconds": 0}
            found[kind] = {"accuracy": after["accuracy"], "bytes": after["bytes"], "of": "onnx", "seconds": time.monotonic() - began}
        return found


NAMES = {"plain": "plain training", "average": "moving average", "mean": "mean of 5 checkpoints", "distilled": "distillation",
         "full": "full fine-tuning", "lora": "adapters, rank 8", "tuned": "fine-tuning without pruning", "sparse": "half of the weights pruned",
         "onnx": "fp32", "dynamic": "int8, dynamic", "static": "int8, static"}


def summary(seeds):
    result = {}
    for name in seeds[0]:
        mean = {key: statistics.mean(seed[name][key] for seed in seeds) for key in ("accuracy", "seconds", "bytes") if key in seeds[0][name]}
        if base := seeds[0][name].get("of"):
            changes = [seed[name]["accuracy"] - seed[base]["accuracy"] for seed in seeds]
            found = summarize(changes, 0.95)
            mean |= {"of": NAMES[base], "change": found.mean, "half_width": found.half_width}
        result[NAMES[name]] = mean
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("data", type=pathlib.Path, help="folder with train.tsv and dev.tsv")
    parser.add_argument("--seeds", type=int, default=5, help="number of seeds (default: 5)")
    parser.add_argument("--steps", type=int, default=2000, help="steps of each model (default: 2000)")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("build/recipes"), help="new folder for all runs")
    options = parser.parse_args()
    options.work.mkdir(parents=True)
    subprocess.run([options.program, "data", "train-tokenizer", str(options.data / "train.tsv"), "--vocabulary", "4000", "--prefix-space",
                    "--out", str(options.work / "bpe"), *(word for token in ("PAD", "CLS", "SEP", "MASK") for word in ("--special", f"[{token}]"))],
                   check=True, stdout=subprocess.DEVNULL)
    with concurrent.futures.ThreadPoolExecutor(max(1, (os.cpu_count() or 1))) as pool:
        Seed(options, 0).train("masked", 5 * options.steps, recipe="bert-sst2-masked")
        seeds = list(pool.map(lambda seed: Seed(options, seed).measure(), range(1, options.seeds + 1)))
    print(json.dumps(summary(seeds)))


if __name__ == "__main__":
    main()
