#!/usr/bin/env python3
"""Writes metrics.json: metrics of labels and predictions, computed by scikit-learn and scipy.

python3 tests/golden/make_metrics.py      (scikit-learn, scipy, numpy)
"""
import json
import pathlib
import warnings

import numpy
import scipy
import sklearn
from sklearn import metrics

warnings.simplefilter("ignore")  # about classes that were never predicted


def classes(name, labels, predictions, count):
    labels, predictions = [int(x) for x in labels], [int(x) for x in predictions]
    figures = {"accuracy": metrics.accuracy_score(labels, predictions),
               "matthews_correlation": metrics.matthews_corrcoef(labels, predictions)}
    parts = {"precision": metrics.precision_score, "recall": metrics.recall_score, "f1": metrics.f1_score}
    for part, score in parts.items():
        if count == 2:
            figures[part] = score(labels, predictions)
        else:
            figures["macro_" + part] = score(labels, predictions, average="macro")
    return {"name": name, "classes": count, "labels": labels, "predictions": predictions,
            "confusion": metrics.confusion_matrix(labels, predictions, labels=range(count)).tolist(),
            "figures": {key: float(value) for key, value in figures.items()}}


def noisy(rng, labels, count, share):
    return numpy.where(rng.random(len(labels)) < share, rng.integers(0, count, len(labels)), labels)


def scores(name, told, right):
    """Metrics of [rows, columns]; correlations are means over the columns, 0 for a constant one."""
    def correlation(of):
        each = [of(told[:, k], right[:, k]).statistic for k in range(told.shape[1])]
        return float(numpy.mean(numpy.nan_to_num(each)))
    return {"name": name, "columns": told.shape[1], "told": told.ravel().tolist(), "right": right.ravel().tolist(),
            "figures": {"mean_squared_error": metrics.mean_squared_error(right, told),
                        "mean_absolute_error": metrics.mean_absolute_error(right, told),
                        "pearson_correlation": correlation(scipy.stats.pearsonr),
                        "spearman_correlation": correlation(scipy.stats.spearmanr)}}


def label_sets(name, told, right):
    return {"name": name, "columns": told.shape[1], "told": told.ravel().tolist(), "right": right.ravel().tolist(),
            "figures": {"subset_accuracy": metrics.accuracy_score(right, told),
                        "micro_f1": metrics.f1_score(right, told, average="micro"),
                        "macro_f1": metrics.f1_score(right, told, average="macro")}}


def more(rng):
    a = rng.normal(size=(150, 1))
    b = (0.6 * a + rng.normal(size=(150, 1))).round(1)  # with ties
    wide = rng.normal(size=(80, 3))
    constant = wide.copy()
    constant[:, 1] = 2.5
    sets = (rng.random((120, 6)) < [0.5, 0.3, 0.1, 0.02, 0, 0.9]).astype(int)
    noise = numpy.where(rng.random(sets.shape) < 0.2, 1 - sets, sets)
    return {"scores": [scores("one column", a, b), scores("the same", a, a), scores("reversed", -b, b),
                       scores("three columns", wide + rng.normal(size=wide.shape), wide),
                       scores("a constant column", wide, constant)],
            "labels": [label_sets("noisy", noise, sets), label_sets("perfect", sets, sets),
                       label_sets("none told", 0 * sets, sets), label_sets("two classes", sets[:, :2], noise[:, :2])]}


def main():
    rng = numpy.random.default_rng(20261125)
    two = rng.integers(0, 2, 200)
    rare = (rng.random(300) < 0.05).astype(int)
    seven = rng.integers(0, 7, 250)
    some = rng.choice([0, 2, 5], 120)  # some of eight classes
    cases = [classes("two", two, noisy(rng, two, 2, 0.4), 2),
             classes("rare", rare, noisy(rng, rare, 2, 0.1), 2),
             classes("all of one label", [1] * 20, [0] * 5 + [1] * 15, 2),
             classes("one prediction", two[:50], [0] * 50, 2),
             classes("perfect", two, two, 2),
             classes("seven", seven, noisy(rng, seven, 7, 0.5), 7),
             classes("three of eight", some, rng.choice([0, 2, 5, 6], 120), 8)]
    path = pathlib.Path(__file__).with_name("metrics.json")
    path.write_text(json.dumps({"scikit-learn": sklearn.__version__, "scipy": scipy.__version__, "classes": cases} | more(rng), separators=(",", ":")) + "\n")


main()
