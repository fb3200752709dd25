"""What is read from studies and runs, and what tables show of it."""
import itertools
import json
import math
import os
import pathlib
import random
import re
import subprocess
import sys

import concertina
import pandas
import pytest
from concertina import commands
from concertina.results import RunSummary, StudyResults
from concertina.study_table import TableOptions, make_table
from concertina.table_formats import CELLS, FORMATS, table_json, table_text
from conftest import write_lines, write_trial

GRID = 'seeds = [1, 2, 3]\n[set]\nrun.steps = 36\n[grid]\nparallel.schedule = ["1f1b", "zb-v"]\n'
FIGURES = {"loss": 4, "tokens_per_s": 50, "step_ms": 20, "bubble": 0.25, "grad_norm": 2}

PACKAGE = pathlib.Path(concertina.__file__).parent
DEFAULTS = ["--pair=run.seed", "--test=t", "--correction=holm", "--confidence=0.95", "--format=text"]


def grid(dice):
    """Returns six trials in the order of the study: all schedules for each seed."""
    return [({"parallel.schedule": name, "run.seed": str(seed)}, {"loss": round(dice.uniform(2, 3), 6), "tokens_per_s": dice.randint(1, 9) * 1.0})
            for seed in (1, 2, 3) for name in ("1f1b", "zb-v")]


def run_python(*words, **options):
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, **options)


def test_the_package_needs_python_alone():
    said = run_python("-c", "import concertina, concertina.imports, sys; print({'numpy', 'pandas', 'scipy'} & set(sys.modules))")
    assert said.stdout == "set()\n", said
    blocked = "import sys; sys.modules['numpy'] = None; import concertina; concertina.table"
    assert "the Python library numpy is missing" in run_python("-c", blocked).stderr


def test_each_name_is_imported_from_where_it_is():
    stub = pathlib.Path(concertina.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    typed = {(home, name) for home, names in re.findall(r"^from \.(\w+) import (.*)$", stub, re.MULTILINE) for name in re.findall(r"as (\w+)", names)}
    assert typed == {(home, name) for home, names in concertina._HOMES.items() for name in names}
    assert all(getattr(concertina, name) for name in concertina.__all__)


def test_a_table_is_pandas_groupby(study):
    folder = study(GRID, grid(random.Random(1)))
    frame = concertina.Study(folder).trials
    assert list(frame.index) == [1, 2, 3, 4, 5, 6] and list(frame["run.seed"]) == [1, 1, 2, 2, 3, 3]
    theirs = frame.groupby("parallel.schedule", sort=False)["loss"].agg(n="count", mean="mean", sd="std")
    ours = concertina.table(str(folder), metrics=["loss"]).frame()["loss"][["n", "mean", "sd"]]
    pandas.testing.assert_frame_equal(ours, theirs, check_names=False, check_index_type=False, check_column_type=False)


def test_open_trials_are_in_the_table(study):
    trials = grid(random.Random(2))
    folder = study(GRID, [trials[0], None, trials[2], None, None, None])
    table = concertina.table(str(folder))
    assert [run.number for run in table.not_done] == [2, 4, 5, 6] and table.not_done[0].settings == trials[1][0]
    assert [len(row.group.others) for row in table.rows] == [1, 3]


@pytest.mark.parametrize("seed", range(10))
def test_the_order_in_which_trials_finished_is_nothing(seed):
    dice = random.Random(seed)
    runs = [RunSummary(at, settings, "done", metrics=figures) for at, (settings, figures) in enumerate(grid(dice), 1)]
    axes, results = ["parallel.schedule", "run.seed"], []
    for _ in range(3):
        dice.shuffle(runs)
        results.append(table_text(make_table(StudyResults("x", axes=axes, runs=list(runs)), TableOptions())))
    assert len(set(results)) == 1


@pytest.mark.parametrize("absent", ["left out", None, 0])
@pytest.mark.parametrize("subset", range(32))
def test_a_missing_number_is_not_zero_and_never_the_best(tmp_path, subset, absent):
    there = {name for at, name in enumerate(FIGURES) if subset >> at & 1}
    for run, names in (("one", there), ("all", set(FIGURES))):
        lines = [{"step": step} | {name: value for name, value in FIGURES.items() if name in names} for step in (1, 2, 3)]
        if absent != "left out":
            gone = {name: absent for name in FIGURES if name not in names and (absent is None or name in ("tokens_per_s", "step_ms"))}
            lines = [line | gone for line in lines]
        write_lines(tmp_path / run / "metrics.jsonl", lines)
    columns = ["loss", "tokens_per_s", "median_step_ms", "bubble", "grad_norm"]
    table = concertina.table(str(tmp_path / "one"), str(tmp_path / "all"), metrics=columns, mixed=True)
    for cell, name in zip(table.rows[0].cells, FIGURES):
        assert cell.summary.n == (name in there) and not cell.best
        assert math.isnan(cell.summary.mean) or cell.summary.mean == pytest.approx(FIGURES[name])
    for cells in table_json(table)["groups"][0]["metrics"].values():
        assert ("mean" in cells) == (cells["n"] == 1)


@pytest.mark.parametrize("facts", [{"validation_data": "b"}, {"validation_measure": "b"}])
def test_unlike_measures_are_not_compared(study, facts):
    trials = [(settings, {"validation_loss": 1.0 + at}) for at, (settings, _) in enumerate(grid(random.Random(0)))]
    folder = study(GRID, trials, facts={"validation_data": "a", "validation_measure": "a"})
    assert any(cell.best for row in concertina.table(str(folder)).rows for cell in row.cells)
    write_trial(folder, 2, *trials[1], facts={"validation_data": "a", "validation_measure": "a"} | facts)
    table = concertina.table(str(folder), baseline=["parallel.schedule=1f1b"])
    assert not any(cell.best or cell.difference for row in table.rows for cell in row.cells)
    assert any("not comparable, so no best is marked" in note for note in table.notes)


def test_the_readme_makes_tables(study, tmp_path, monkeypatch):
    folder = study(GRID + '[equivalence]\nmetric = "loss"\nmargin = 0.1\nbaseline = "parallel.schedule=1f1b"\n', grid(random.Random(6)))
    folder.rename(tmp_path / "studies" / "schedules")
    (tmp_path / "schedules.toml").write_text((tmp_path / "studies" / "schedules" / "study.toml").read_text())
    for name in ("first", "again"):
        write_lines(tmp_path / "runs" / name / "metrics.jsonl", [{"step": 1, "loss": 3.0}])
    monkeypatch.chdir(tmp_path)
    readme = pathlib.Path(__file__).parents[2].joinpath("experiments", "python", "README.md").read_text(encoding="utf-8")
    block = next(block for block in re.findall(r"```python\n(.*?)```", readme, re.DOTALL) if "concertina.table" in block)
    names = {"concertina": concertina}
    exec(compile(block, "README.md", "exec"), names)
    assert list(names["table"].frame()["loss"].columns[:3]) == ["n", "mean", "sd"]


def test_runs_that_record_no_program_are_named_once(tmp_path):
    write_lines(tmp_path / "theirs" / "metrics.jsonl", [{"step": 1, "loss": 3}])
    write_lines(tmp_path / "own" / "metrics.jsonl", [{"step": 1, "loss": 2}])
    write_lines(tmp_path / "own" / "launches.jsonl", [{"version": "1", "commit": "c", "device": "cpu", "hosts": [{"processor": "Zen"}]}])
    found = concertina.compare(tmp_path / "own", tmp_path / "theirs")
    assert [note for note in found.table.notes if "record" in note and "program" in note] == [
        "mixed: trial 2 does not record a program or a machine, unlike others"]
    assert not any("not recorded (trial" in note for note in found.table.notes) and "have no config" in found.config_note


@pytest.mark.parametrize("name", ["a|b", "<b>", "50%_$&#{}", "größe µ", "\x07\n", "[x]*", "\\"])
def test_markup_is_well_formed(name):
    runs = [RunSummary(at, {"arm": name if at % 2 else "z", "run.seed": str(at)}, "failed" if at == 4 else "done", f"{name}\n",
                       metrics={"loss": 1.0 * at}) for at in range(1, 5)]
    table = make_table(StudyResults("x", axes=["arm", "run.seed"], runs=runs), TableOptions())
    for form, cells in itertools.product(FORMATS, CELLS):
        text = table_text(table, form, cells)
        if form == "html":
            import xml.dom.minidom
            xml.dom.minidom.parseString(f"<p>{text}</p>")
        if form == "markdown":
            rows = [line for line in text.splitlines() if line.startswith("|")]
            assert len({line.replace("\\|", "").count("|") for line in rows}) == 1, text
    assert json.loads(json.dumps(table_json(table)))["groups"][0]["values"] == {"arm": name}


def test_commands_refuse(study, tmp_path, capsys):
    folder = study(GRID, grid(random.Random(5)))
    for words, part in ((["--metric=los"], "try: loss"), (["--where=run.seed=9"], "no trial has"), (["--format=pdf"], "one of: text, csv"),
                        ([f"--study={tmp_path}"], "no run in this folder"),
                        ([f"--out={folder}"], "cannot write this file")):
        code, said = commands.run("study-table", [f"--study={folder}", *DEFAULTS, *words]), capsys.readouterr()
        assert code == 2 and part in said.err and not said.out, said
        assert said.err.startswith("concertina: error: ") and said.err.count("\n") <= 3
    said = run_python(PACKAGE, "--parsed", "study-table", f"--study={folder}", *DEFAULTS, f"--out={tmp_path}/t.md", "--format=markdown")
    assert said.stdout == f"{tmp_path}/t.md\n" and "| zb-v | 3 |" in (tmp_path / "t.md").read_text(encoding="utf-8")
