#!/usr/bin/env python3
"""Writes metrics.json: figures of labels and predictions as scikit-learn computes them.

  python3 tests/golden/make_metrics.py      (scikit-learn, numpy)
"""
import json
import pathlib
import warnings

import numpy
import sklearn
from sklearn import metrics

warnings.simplefilter("ignore")  # of classes that nobody predicted


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


def main():
    rng = numpy.random.default_rng(20261125)
    two = rng.integers(0, 2, 200)
    rare = (rng.random(300) < 0.05).astype(int)
    seven = rng.integers(0, 7, 250)
    some = rng.choice([0, 2, 5], 120)  # of eight classes
    cases = [classes("two", two, noisy(rng, two, 2, 0.4), 2),
             classes("rare", rare, noisy(rng, rare, 2, 0.1), 2),
             classes("all of one label", [1] * 20, [0] * 5 + [1] * 15, 2),
             classes("one prediction", two[:50], [0] * 50, 2),
             classes("perfect", two, two, 2),
             classes("seven", seven, noisy(rng, seven, 7, 0.5), 7),
             classes("three of eight", some, rng.choice([0, 2, 5, 6], 120), 8)]
    path = pathlib.Path(__file__).with_name("metrics.json")
    path.write_text(json.dumps({"scikit-learn": sklearn.__version__, "classes": cases}, separators=(",", ":")) + "\n")


main()
