#!/usr/bin/env python3
"""Holds every statistic of a study against scipy and statsmodels: means, deviations and intervals,
paired and Welch's t tests, Wilcoxon's, Holm's correction, two one-sided tests, and their power.

  statistics_check.py studies/NAME [options of `study table`]

Needs numpy, scipy and statsmodels (pip install scipy statsmodels). Prints how many figures were
compared and the worst difference, relative to the larger of both; ends with 1 if that is above 1e-9.
Trials pair up by run.seed alone: groups that pool other axes are left to `study table`.
"""
import argparse
import csv
import json
import os
import subprocess
import sys

import numpy as np
from scipy import integrate, stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import ttost_paired

POWER = [(2, 0.004, 0.005, 0.05, 0.0), (3, 0.004, 0.005, 0.05, 0.0), (5, 0.004, 0.005, 0.05, 0.002),
         (8, 0.004, 0.005, 0.025, -0.001), (40, 1.0, 0.5, 0.05, 0.0), (200, 1.0, 0.2, 0.1, 0.05)]


class Comparison:
    def __init__(self):
        self.count, self.worst, self.of = 0, 0.0, ""

    def same(self, ours, theirs, of):
        scale = max(abs(ours), abs(theirs), 1e-12)  # a p below that is 0 to a reader
        off = abs(ours - theirs) / scale
        self.count += 1
        if not off <= self.worst:
            self.worst, self.of = off, f"{of}: {ours!r}, scipy has {theirs!r}"


def call(binary, *words):
    done = subprocess.run([binary, "study", *words, "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def interval(differences, confidence):
    error = stats.sem(differences)
    return stats.t.interval(confidence, len(differences) - 1, loc=np.mean(differences), scale=error)


def power(pairs, deviation, margin, alpha, difference):
    freedom, error = pairs - 1, deviation / np.sqrt(pairs)
    t, root = stats.t.ppf(1 - alpha, freedom), np.sqrt(freedom)

    def chance(share):
        low, high = -margin + t * share * error, margin - t * share * error
        return root * stats.chi.pdf(share * root, freedom) * (
            stats.norm.cdf((high - difference) / error) - stats.norm.cdf((low - difference) / error))

    end = min(margin / (t * error), 12)
    inner = [at for at in (0.5, 0.8, 1, 1.2, 1.5) if at < end]
    return integrate.quad(chance, 0, end, points=inner, epsabs=1e-13, epsrel=1e-12, limit=500)[0]


def spread(compare, cell, values, confidence, of):
    compare.same(cell["mean"], np.mean(values), of + " mean")
    if len(values) < 2 or "sd" not in cell or cell["sd"] == 0:
        return
    compare.same(cell["sd"], np.std(values, ddof=1), of + " sd")
    for ours, theirs in zip((cell["ci_low"], cell["ci_high"]), interval(values, confidence)):
        compare.same(ours, theirs, of + " interval")


def paired(base, own):
    """Values of both, by seed."""
    seeds = [seed for seed in own if seed in base]
    return np.array([base[seed] for seed in seeds]), np.array([own[seed] for seed in seeds])


def difference(compare, cell, base, own, confidence, of):
    a, b = paired(base, own)
    test = cell.get("test")
    if test == "Welch's t test":
        result = stats.ttest_ind(list(own.values()), list(base.values()), equal_var=False)
        ends = result.confidence_interval(confidence)
    elif test == "Wilcoxon signed rank test":
        moved = b - a
        result, ends = stats.wilcoxon(moved[moved != 0], mode="exact"), None
    elif test == "paired t test" and np.std(b - a) > 0:
        result, ends = stats.ttest_rel(b, a), interval(b - a, confidence)
    else:
        return
    compare.same(cell["p_single"], result.pvalue, of + " p")
    if ends is not None:
        compare.same(cell["difference_ci_low"], ends[0], of + " difference, low")
        compare.same(cell["difference_ci_high"], ends[1], of + " difference, high")


def equivalence(compare, ours, base, own, claim, of):
    a, b = paired(base, own)
    if "p" not in ours or np.std(b - a) == 0:
        return
    compare.same(ours["p"], ttost_paired(b, a, -claim["margin"], claim["margin"])[0], of + " p")
    for end, theirs in zip(("ci_low", "ci_high"), interval(b - a, 1 - 2 * claim["alpha"])):
        compare.same(ours[end], theirs, of + " " + end)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="build/experiments/concertina")
    parser.add_argument("study")
    options, more = parser.parse_known_args()
    table = call(options.binary, "table", options.study, *more)
    with open(os.path.join(options.study, "results.csv"), encoding="utf-8", newline="") as file:
        trials = {int(row["trial"]): row for row in csv.DictReader(file)}
    compare, confidence = Comparison(), table["confidence"]
    baselines = [group for group in table["groups"] if group["baseline"]]

    def values(group, metric):
        found = {}
        for number in group["trials"]:
            text = trials[number].get(metric, "")
            if text and np.isfinite(float(text)):
                found[trials[number].get("run.seed", number)] = float(text)
        return found

    for metric in (one["name"] for one in table["metrics"]):
        ps = []
        for group in table["groups"]:
            cell, own = group["metrics"][metric], values(group, metric)
            of = f"{metric} of {' '.join(group['values'].values())}"
            if len(own) != cell["n"] or not own:
                continue  # a column that is not in results.csv, or several trials of a seed
            spread(compare, cell, list(own.values()), confidence, of)
            if len(baselines) != 1 or group["baseline"]:
                continue
            base = values(baselines[0], metric)
            difference(compare, cell, base, own, confidence, of)
            if "p_single" in cell:
                ps.append((cell["p_single"], cell["p"]))
            if "equivalence" in cell:
                equivalence(compare, cell["equivalence"], base, own, table["claim"],
                            of + " equivalence")
        if ps and "Holm" in table["comparison"]:
            for (_, ours), theirs in zip(ps, multipletests([p for p, _ in ps], method="holm")[1]):
                compare.same(ours, theirs, metric + " p by Holm")
    for pairs, deviation, margin, alpha, moved in POWER:
        said = call(options.binary, "power", options.study, "--equivalent", f"loss={margin}",
                    "--alpha", str(alpha), "--deviation", str(deviation), "--seeds", str(pairs),
                    "--difference", str(moved))
        compare.same(said["cases"][0]["power"], power(pairs, deviation, margin, alpha, moved),
                     f"power of {pairs} pairs")
    print(f"{compare.count} figures, the worst is off by {compare.worst:.1e} ({compare.of})")
    return 1 if compare.worst > 1e-9 else 0


if __name__ == "__main__":
    sys.exit(main())
