#!/usr/bin/env python3
"""Tests subcommands written in Python, and how `soak` judges a run by its logs: soak_test.py SOURCE CONCERTINA."""
import dataclasses
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import types
import unittest
from contextlib import redirect_stderr
from unittest import mock

SOURCE, CONCERTINA = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
sys.path.insert(0, str(SOURCE / "experiments" / "python"))
from concertina import commands, soak_report  # noqa: E402
from concertina.commands import soak  # noqa: E402


def program(*words, **environment):
    return subprocess.run([CONCERTINA, *words], capture_output=True, text=True, env={**os.environ, **environment}, check=False)


class Recorded(unittest.TestCase):
    """Logs that grow line by line, like those of a run."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.run_folder = pathlib.Path(self.folder.name)
        self.course = soak.Course(self.run_folder)

    def log(self, at, name, *lines, end="\n"):
        with open(self.run_folder / f"{name}.jsonl", "a", encoding="utf-8") as file:
            file.write("\n".join(map(json.dumps, lines)) + end)
        self.course.follow(at)

    def fault(self, at, **more):
        self.course.faults.append(fault := soak_report.Fault("kill", at, reached=self.course.reached, **more))
        return fault

    def test_a_fault_is_over_with_the_first_new_step_of_a_later_launch(self):
        self.log(1, "launches", {"start": "x"})
        self.log(2, "metrics", {"step": 7})
        fault = self.fault(3)
        self.log(3.1, "metrics", {"step": 8})  # ranks may finish a step after a fault
        self.assertEqual((fault.seen, fault.recovered), (None, None))
        self.log(3.5, "faults", {"fault": "died"})
        self.log(4, "restarts", {"ended_s": 0.2, "reached": 8, "from": 5})
        self.log(5, "launches", {"start": "y"})
        self.log(6, "metrics", {"step": 6})  # repeated
        self.assertEqual((fault.seen, fault.recovered, self.course.repeated), (3.5, None, [3]))
        self.log(7, "metrics", {"step": 9}, end="")  # incomplete
        self.assertIsNone(fault.recovered)
        self.log(8, "metrics", end="\n")
        self.assertEqual(fault.recovered, 8)

    def test_a_restart_says_when_its_fault_was_seen(self):
        early, late = self.fault(1), self.fault(9.9)
        self.log(10, "restarts", {"ended_s": 0.5, "reached": 3, "from": 3}, {"note": "of another version"})
        self.assertEqual((early.seen, late.seen, self.course.repeated), (9.5, None, [0]))

    def test_what_ends_no_launch_is_over_with_the_second_step(self):
        harmless = self.fault(1, harmless=True)
        self.log(2, "metrics", {"step": 1})
        self.assertIsNone(harmless.recovered)
        self.log(3, "metrics", {"step": 2})
        self.assertEqual((harmless.seen, harmless.recovered), (None, 3))

    def test_a_launch_without_the_host_goes_on(self):
        self.log(1, "launches", {"hosts": [{"host": "a"}, {"host": "b"}]})
        there, gone = self.fault(2, host="b"), self.fault(2, host="c")
        self.log(3, "metrics", {"step": 1})
        self.assertEqual((there.recovered, gone.recovered), (None, 3))


class Faults(unittest.TestCase):
    def test_no_checkpoint_is_written_while_the_disk_may_be_stopped(self):
        run = object.__new__(soak.SupervisedRun)
        run.options = types.SimpleNamespace(text=lambda name: name)
        run.folder, run.checkpoints = pathlib.Path("run"), pathlib.Path("checkpoints")
        run.course, run.process = soak.Course(run.folder), types.SimpleNamespace(pid=1)
        run.began, run.next, run.killed, run.name, run.chance, run.plan = 0.0, 0.0, False, "bit-flip", soak.random, lambda: None
        made = mock.Mock(return_value=True)
        with mock.patch.dict(soak.KINDS, {"bit-flip": dataclasses.replace(soak.KINDS["bit-flip"], make=made)}), \
                mock.patch.object(soak, "marked", return_value=[]), redirect_stderr(io.StringIO()):
            for run.ending, calls in (((9e9, ["disk", "fast"]), 0), (None, 1)):
                run.inject()
                self.assertEqual((made.call_count, len(run.course.faults)), (calls, calls))


class Report(unittest.TestCase):
    def result(self, **more):
        faults = [soak_report.Fault("kill", 1, seen=2, recovered=4), soak_report.Fault("stop-launcher", 5, harmless=True, recovered=6)]
        clean = soak_report.Trained("ab", 10, 9, [(1, 0.1), (2, None)], [], [], "")
        return soak_report.Result(clean, dataclasses.replace(clean, faults=faults, repeated=[1, 3], seconds=20, **more))

    def test_it_passes_only_with_the_same_bits_and_nothing_open(self):
        self.assertTrue(self.result().passed)
        for wrong in ({"hash": "cd"}, {"hash": ""}, {"losses": [(1, 0.1), (2, 0.2)]}, {"why": "it ended"}):
            self.assertFalse(self.result(**wrong).passed, wrong)
        result = self.result()
        result.disturbed.faults[0].recovered = None
        self.assertFalse(result.passed)

    def test_text_and_json(self):
        result = self.result()
        found = soak_report.result_json(result)
        self.assertEqual(found["seen_s"], {"p50": 1, "p99": 1, "max": 1})
        self.assertEqual((found["faults"], found["recovered"], found["restarts"], found["useful"]), (2, 2, 2, 0.45))
        self.assertRegex(soak_report.text(result), r"(?s)all +2 +2 +1\.00 +1\.00 +1\.00 +3\.00 +3\.00 +3\.00\n2 restarts, each with 3 repeated steps")
        self.assertIn("the same bits", soak_report.text(result))
        empty = soak_report.Result(result.clean, result.clean)
        self.assertEqual(soak_report.result_json(empty)["seen_s"], {"p50": None, "p99": None, "max": None})
        self.assertIn("no restart", soak_report.text(empty))

    def test_the_page_has_a_line_of_the_faults_that_were_seen(self):
        page = soak_report.content_of(self.result(why="a < b"), 15, "7")
        seen, recovered = page["blocks"][-1]["series"]
        self.assertEqual((seen["x"], seen["y"], recovered["y"]), ([0, 1], [0, 100], [0, 50, 100]))
        self.assertIn("a < b", page["sub"])
        soak_report.content_of(soak_report.Result(self.result().clean, self.result().clean), 15, "7")


class Subcommands(unittest.TestCase):
    def test_the_help_lists_every_kind_of_fault(self):
        text = " ".join(program("soak", "--help").stdout.split())
        listed = re.findall(r"([a-z-]+) \(", text[text.index("are possible):"):text.index(" --mean")])
        self.assertEqual(listed, list(soak.KINDS))

    def test_bad_input_is_one_error(self):
        train = ["--ranks", "1", "--launcher", "env {program} {args}", "--", "train", "data.text=text"]
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            pathlib.Path("json.py").write_text("raise SystemExit('a file of the working directory was imported')", encoding="utf-8")
            for words, error in ((["--faults", "fire"], "unknown fault 'fire'"), (["--faults", "full-disk"], "requires a command that injects it"),
                                 (["--out", "."], "the folder already exists")):
                said = program("soak", *words, *train)
                self.assertEqual(said.returncode, 2, said)
                self.assertIn(error, said.stderr)
                self.assertEqual(said.stderr.count("\n"), 3, said.stderr)
            os.symlink("/usr/bin/env", "env")
            said = program("soak", *train, PATH=folder)
            self.assertEqual((said.returncode, "requires python3" in said.stderr, "apt-get install python3" in said.stderr), (2, True, True), said)
            os.chdir("/")

    def test_a_missing_library_is_one_command(self):
        def main(options):
            raise ModuleNotFoundError("No module named 'pandas'", name="pandas")
        commands.made_up = main
        with redirect_stderr(io.StringIO()) as said:
            self.assertEqual(commands.run("made-up", []), 2)
        self.assertRegex(said.getvalue(), "the Python library pandas is missing\n(?s:.*)  try: .*install")

    def test_options_have_a_word_per_value(self):
        options = commands.Options(["--a=1", "--a=x=y", "--json=true"])
        self.assertEqual((options.all("a"), options.text("a"), options.text("b"), "json" in options, "b" in options),
                         (["1", "x=y"], "x=y", "", True, False))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
