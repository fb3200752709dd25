#!/usr/bin/env python3
"""Runs tests/papers/pipetransformer/reproduce.py from start to end on made-up sentences and a model
of width 16: data, pretraining, a study of few arms, tables, figures and verdicts. Speeds are
meaningless here. Usage: reproduce_test.py CONCERTINA MPIRUN ARGUMENTS..."""
import contextlib
import io
import json
import os
import random
import re
import sys
import tempfile
import types
import unittest

binary, *mpirun = sys.argv[1:]
binary = os.path.abspath(binary)  # the test changes the working directory
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "papers", "pipetransformer"))
import reproduce  # noqa: E402

ARMS = ["static gpipe", "static", "static, 2 epochs", "top 6 layers", "ladder: freeze", "ladder: + cache"]


class Tiny(reproduce.Bert):
    pretrain_steps, vocabulary, held_out = 4, 300, 40

    def pretrain_keys(self):
        return [*super().pretrain_keys(), "model.width=16", "model.heads=2", "model.context=16",
                "data.most_overlap=1"]

    def finetune_keys(self):
        return {**super().finetune_keys(), "lr.warmup": 2, "data.most_overlap": 1}


def write_sentences(path, count, draw):
    with open(path, "w", encoding="utf-8") as file:
        file.write("sentence\tlabel\n")
        for i in range(count):
            label = draw.randrange(2)
            words = [draw.choice(["dull", "bad"] if label == 0 else ["fine", "good"]), draw.choice(["film", "plot"])]
            file.write(f"a {' '.join(words)} {i}\t{label}\n{' '.join(words)}\t{label}\n")


class Reproduce(unittest.TestCase):
    def reproduce(self, *words):
        """Returns its output and its exit code, or a text for a failure."""
        sys.argv = ["reproduce.py", "bert", "--data", ".", "--out", "out", "--program", binary, "--mpirun",
                    " ".join([*mpirun, "-n", "2"]), *words]
        said, end = io.StringIO(), None
        with contextlib.redirect_stdout(said):
            try:
                reproduce.main()
            except SystemExit as failed:
                end = failed.code
        return said.getvalue(), end

    def test_from_data_to_verdicts(self):
        said, end = self.reproduce("--arms", *ARMS)
        with open("out/bert/sentences.tsv", encoding="utf-8") as file:
            self.assertEqual(len(file.readlines()), 1 + 200 + 80, "phrases contained in longer ones are omitted")
        self.assertIn("have the same bits, with each of 3 seeds: PASS", said)
        for text in ("ladder, freeze:", "ladder, cache:", "of its ceiling of", "seconds to "):
            self.assertIn(text, said)
        self.assertTrue(end is None or str(end).startswith("FAIL"), end)
        for name in ("studies/explore/report.html", "explore-front.svg"):
            self.assertTrue(os.path.exists(f"out/bert/{name}"), name)
        with open("out/bert/explore-front.svg", encoding="utf-8") as file:
            drawn = " ".join(re.findall(r"<t(?:ext|span)[^>]*>([^<]+)", file.read()))  # labels may have several lines
        self.assertIn("speed-up of training time, 95% intervals", drawn)
        self.assertIn("change of validation accuracy, 90% intervals", drawn)
        results = "out/bert/studies/explore/results.csv"
        with open(results, encoding="utf-8") as file:
            before = file.read()
        self.assertEqual(before.count("done"), 3 * len(ARMS))
        self.assertEqual(self.reproduce("--arms", *ARMS)[1], end)
        with open(results, encoding="utf-8") as file:
            self.assertEqual(file.read(), before, "existing results are not recomputed")

    def test_the_rule_gets_the_schedules_and_rates_that_its_rivals_get(self):
        work = object.__new__(reproduce.Reproduction)
        work.options, work.form = types.SimpleNamespace(arms=None), "confirm"
        work.task = types.SimpleNamespace(layers=12, epochs=10, steps=62.5)
        with open(os.path.join(reproduce.PAPER, "expected.json"), encoding="utf-8") as file:
            work.expected = json.load(file)["tasks"]["vit"]
        found = work.arms()
        for epochs in (5, 3):
            short, plain = found[f"alpha 1/3, {epochs} epochs"], found[f"static, {epochs} epochs"]
            self.assertEqual(short["run.steps"], plain["run.steps"])
            self.assertEqual(short["freeze.policy"], "pipetransformer")
        for kind in ("static, ", "top 6 layers, ", "alpha 1/3, "):
            rates = [arm for name, arm in found.items() if name.startswith(kind) and "lr 0.00" in name]
            self.assertTrue(rates, kind)
            self.assertTrue(all(1e-3 <= arm["optimizer.lr"] <= 2e-3 for arm in rates), kind)

    def verdicts(self, gains, reached):
        """What --confirm of vit says, and its exit, for arms with gains over gpipe and the best static layout, and with seconds to a half
        point below the final accuracy of the unfrozen run, which it alone reaches."""
        with open(os.path.join(reproduce.PAPER, "expected.json"), encoding="utf-8") as file:
            expected = json.load(file)["tasks"]["vit"]
        work = types.SimpleNamespace(form="confirm", study="", expected=expected, task=types.SimpleNamespace(epochs=10), arms=dict)
        judge, said, end = reproduce.verdicts.Verdicts(work), io.StringIO(), None
        judge.front = lambda baseline: {
            name: {"gain": gain[baseline == "static"], "equivalence": {"verdict": "equivalent"}} for name, gain in gains.items()}
        judge.seconds_to = lambda target: reached if "-" in target else {"static": reached["static"]}
        judge.hashes = dict
        with contextlib.redirect_stdout(said):
            try:
                judge.say()
            except SystemExit as failed:
                end = failed.code
        return said.getvalue(), end

    def test_the_published_table_passes(self):
        gains = {"static gpipe": (1, 0.79), "static": (1.26, 1), "static, 3 epochs": (4.22, 3.34), "static, 2 epochs": (6.23, 4.93),
                 "alpha 1/3": (3.88, 3.08), "top 4 layers": (3.83, 3.03), "top 6 layers, 5 epochs": (4.96, 3.93),
                 "top 4 layers, 5 epochs": (7.29, 5.78)}
        reached = {"static": 8.6, "static, 3 epochs": 4.3, "alpha 1/3": 4.3, "top 4 layers, 5 epochs": 1.9}
        said, end = self.verdicts(gains, reached)
        self.assertIsNone(end)
        self.assertTrue(said.endswith("\nPASS\n") and "FAIL" not in said, said)
        self.assertIn("top 4 layers: equivalent, 3.00 x", self.verdicts({**gains, "top 4 layers": (3.0, 1.5)}, reached)[1])
        self.assertIn("seconds to 0.005 below", self.verdicts(gains, {**reached, "static, 3 epochs": 1.5})[1])
        del gains["top 4 layers"]
        self.assertIn("top 4 layers: was not run", self.verdicts(gains, reached)[1])

    def test_refusals_say_what_to_try(self):
        self.assertIn("try: --arms of: static gpipe", self.reproduce("--arms", "none")[1])
        self.assertIn("try: --quick", self.reproduce("--confirm")[1])
        self.assertIn("nowhere/sst2/train.tsv does not exist", self.reproduce("--data", "nowhere")[1])


if __name__ == "__main__":
    reproduce.TASKS["bert"] = Tiny
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.mkdir("sst2")
        random_words = random.Random(1)
        write_sentences("sst2/train.tsv", 200, random_words)
        write_sentences("sst2/dev.tsv", 40, random_words)
        done = unittest.main(argv=sys.argv[:1], exit=False)
        os.chdir("/")
    sys.exit(not done.result.wasSuccessful())
