"""The pages of runs show what the logs contain; the live page's server answers only allowed requests."""
import base64
import contextlib
import errno
import hashlib
import http.client
import json
import math
import os
import pathlib
import random
import re
import shutil
import socket
import subprocess
import sys
import threading
import time

import concertina
import pytest
from concertina import commands
from concertina.results import StudyResults
from concertina.study_page import StudyPage, compare_page
from concertina.study_table import TableOptions, make_table
from concertina.errors import InputError
from concertina.files import read_lines, replace_file
from concertina.live import PageServer, Served
from concertina.page import MOST_POINTS, page, reduced, smoothed
from concertina.run_course import course_of
from concertina.commands import Options
from conftest import write_lines

PLACE = pathlib.Path(concertina.__file__).parent.parent
CAUSES = {"schedule": 0.1, "imbalance": 0.05, "variation": 0.02, "transfer": 0.01, "reduction": 0.01, "optimizer": 0.005, "other": 0.005}


def metrics(steps, **more):
    """Lines of metrics.jsonl, one per second; a value of `more` may be a function of the step."""
    own = {"loss": lambda step: 4 - step / 100, "step_ms": 20.0, "tokens_per_s": 5000.0, "bubble": 0.25, "grad_norm": 1.5, "lr": 1e-3,
           "layout": "pp2 1f1b", "frozen_units": 0} | more
    return [{"step": step, "time": f"2026-01-31T{step // 3600:02}:{step // 60 % 60:02}:{step % 60:02}.000Z",
             **{key: value(step) if callable(value) else value for key, value in own.items() if value is not ...}} for step in steps]


def validation(step, loss, **more):
    return {"event": "validation", "step": step, "time": f"2026-01-31T00:{step // 60:02}:{step % 60:02}.000Z", "loss": loss, "seconds": 0.0,
            "tokens": 4096, "data": "d", "measure": "m", **more}


@pytest.fixture
def run(tmp_path):
    def make(name, lines, events=(), config="run.steps = 60\n", **files):
        folder = tmp_path / "runs" / name
        write_lines(folder / "metrics.jsonl", lines)
        write_lines(folder / "events.jsonl", events)
        if config:
            (folder / "config.toml").write_text(config, encoding="utf-8")
        for file, value in files.items():
            (folder / f"{file}.json").write_text(json.dumps(value), encoding="utf-8")
        return folder

    return make


@pytest.fixture
def program(tmp_path, monkeypatch):
    """The program, but `report RUN --data` prints these figures; stores the arguments of the last such call."""
    real = os.environ["CONCERTINA"]

    def make(**figures):
        file = tmp_path / "program"
        file.write_text(f"#!{sys.executable}\nimport os, sys\nif '--data' not in sys.argv: os.execv({real!r}, [{real!r}, *sys.argv[1:]])\n"
                        f"open({str(tmp_path / 'words')!r}, 'w').write(' '.join(sys.argv[1:]))\nprint({json.dumps(figures)!r})\n", encoding="utf-8")
        file.chmod(0o755)
        monkeypatch.setenv("CONCERTINA", str(file))

    make()
    return make


TIMELINE = {"inches": 9, "panels": [{"name": "Predicted: 20 ms", "ranks": 1, "chunks": 1, "makespan": 0.02, "critical_path": [], "rows": [
    {"rank": 0, "boxes": [["forward", 0, 0.008, "F 0 stage 0", 0, 0, 0]]}]}]}


def recorded(ranks=2):
    peak = {"saved_bytes": 3 << 20, "activations": 2, "boundary_bytes": 4096}
    rank = {"bubble": 0.2, "predicted_bubble": 0.15, "causes": CAUSES, "peak": peak, "predicted_peak": peak,
            "memory": [[0, 0, 0], [1, 3 << 20, 4096], [2, 0, 0]], "predicted_memory": [[0, 3 << 20], [2, 0]]}
    return {"run": "x", "schedule": "1f1b", "layout": "pp2", "steps": 4, "recorded_steps": [3, 4, 5, 6], "typical_step": 4, "step_ms": 20.5,
            "predicted_step_ms": 20.0, "prediction_error": 20.0 / 20.5 - 1, "bubble": 0.2, "predicted_bubble": 0.15, "ranks": [rank] * ranks,
            "clock_error_us": 3.0, "layer_ends": [3, 5, 7, 9], "parameters": 12345, "tokens_per_step": 1024, "timeline": TIMELINE,
            "pipelines": [{"microbatches": [0, 8], "stages": [[0, 0, 5], [1, 5, 11]]}]}


def data_of(text):
    """Returns the data of a page."""
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1])


def report(folder, **options):
    concertina.write_report(folder, folder / "page.html", **options)
    return data_of((folder / "page.html").read_text(encoding="utf-8"))


def blocks(data, kind):
    for block in data["blocks"]:
        yield from [block] * (block["kind"] == kind)
        yield from blocks({"blocks": block.get("blocks", [])}, kind)


def chart(data, title, x="step"):
    return next(block for block in blocks(data, "chart") if block["title"].startswith(title) and block["x"] == x)


def series(block, name):
    return next(one for one in block["series"] if one["name"].startswith(name))


def said(data):
    return json.dumps(data, ensure_ascii=False)


def test_what_is_drawn_is_what_the_log_has(run, program):
    dice = random.Random(1)
    lines = metrics(range(1, 61), loss=lambda step: None if step == 30 else dice.uniform(2, 4), grad_norm=lambda step: dice.uniform(1, 2))
    data = report(run("a", lines, [validation(step, 5 / step) for step in (10, 20, 60)]))
    for title, column in (("loss", "loss"), ("tokens", "tokens_per_s"), ("bubble", "bubble"), ("gradient", "grad_norm")):
        drawn = series(chart(data, title), "this step")
        assert drawn["x"] == list(range(1, 61)) and drawn["y"] == [line[column] for line in lines], title
    held = series(chart(data, "loss"), "held out")
    assert held["x"] == [10, 20, 60] and held["y"] == [0.5, 0.25, 5 / 60]
    assert series(chart(data, "loss"), "smoothed")["y"][29] is None and "held out 0.083333" in chart(data, "loss")["note"]


@pytest.mark.parametrize("seed", range(20))
def test_fewer_points_keep_extremes_and_gaps(seed):
    dice = random.Random(seed)
    count = dice.randint(1, 20000)
    y = [dice.gauss(0, 1) for _ in range(count)]
    for at in dice.sample(range(count), min(count, 3)):
        y[at] = dice.choice([math.nan, math.inf, 99.0, -99.0])
    steps, kept = reduced(range(count), y)
    assert len(kept) <= 1.6 * MOST_POINTS and steps == sorted(set(steps)) and steps[0] == 0 and steps[-1] == count - 1
    finite = [value for value in y if math.isfinite(value)]
    there = [value for value in kept if value is not None]
    assert (min(there), max(there)) == (min(finite), max(finite)) if finite else not there
    assert all(value == y[step] if value is not None else not math.isfinite(y[step]) for step, value in zip(steps, kept))
    assert (None in kept) == (len(finite) < count)


def test_a_smoothed_rate_is_all_that_was_done_over_all_that_it_took():
    assert smoothed([10, 10, math.nan, 10], 4)[-1] == pytest.approx(10)
    rates = smoothed([100, 1] * 200, 50, rates=True)
    assert rates[-1] == pytest.approx(2 / (1 / 100 + 1 / 1), rel=0.03) and math.isnan(smoothed([0.0], 5, rates=True)[0])


def test_a_long_run_is_a_small_page(run, program):
    lines = metrics(range(1, 30001), loss=lambda step: 99.5 if step == 20000 else math.sin(step))
    folder = run("long", lines)
    data = report(folder)
    assert 99.5 in series(chart(data, "loss"), "this step")["y"] and (folder / "page.html").stat().st_size < 1 << 20


@pytest.mark.parametrize("damage, said", [("garbage", "it is not JSON"), ('{"step": 9, "loss": NaN}', "NaN is not a JSON number"), ("[1]", "not a JSON object"),
                                          ("", None)])
def test_a_damaged_line_is_skipped_with_one_warning(run, capsys, damage, said):
    folder = run(f"damaged{len(damage)}", metrics(range(1, 21)))
    log = folder / "metrics.jsonl"
    lines = log.read_text().splitlines()
    lines[4] = lines[8] = damage
    log.write_text("\n".join(lines) + "\n" + lines[-1][:30])  # the end of a line that is being written
    for _ in range(2):
        assert [line["step"] for line in read_lines(log)] == [step for step in range(1, 21) if step not in (5, 9)]
    warnings = capsys.readouterr().err
    assert warnings.count("warning") == (1 if said else 0) and (not said or (said in warnings and str(log) in warnings))


def test_what_is_missing_is_no_zero(run, program):
    lines = metrics(range(1, 51), step_ms=0, tokens_per_s=..., bubble=..., grad_norm=..., lr=None, layout=..., frozen_units=...)
    data = report(run("imported", lines, config=""))
    assert [block["title"] for block in blocks(data, "chart")] == ["loss, per target"]
    assert [label for tiles in blocks(data, "tiles") for _, label in tiles["tiles"]] == []
    assert "No step of this run was recorded" in said(data) and not pathlib.Path(os.environ["CONCERTINA"]).with_name("words").exists()


def elastic():
    """Layers freeze after step 20 and the layout follows; a change is rejected after step 40; a launch resumes after step 50."""
    lines = [*metrics(range(1, 21), step_ms=40.0), *metrics(range(21, 51), layout="pp1", frozen_units=5),
             *metrics(range(51, 61), layout="dp2", frozen_units=5)]
    events = [{"event": "freeze", "step": 20, "layers": 2, "units_before": 0, "units": 5, "why": "freeze.at", "layout": "pp2 1f1b",
               "seconds": 0.25},
              {"event": "layout", "step": 20, "from": "pp2 1f1b", "to": "pp1", "why": "faster", "seconds": 0.5, "moved_bytes": 1024,
               "predicted_move_s": 0.4, "predicted_step_s": 0.019, "predicted_step_before_s": 0.03},
              {"event": "layout outcome", "step": 30, "predicted_step_s": 0.018, "measured_step_s": 0.0201},
              {"event": "freeze", "step": 40, "layers": 3, "units_before": 5, "units": 7}, {"event": "refused", "step": 40},
              {"event": "cache", "step": 45, "units": 5, "on": True, "why": "all samples are there"}]
    return lines, events


def test_changes_are_marked_and_counted(run, program):
    lines, events = elastic()
    course = course_of(lines, events, [{"from": 50}], [3, 5, 7, 9])
    first, resumed = course.changes
    assert (first.step, first.frozen_before, first.frozen, first.layout_before, first.layout) == (20, 0, 2, "pp2 1f1b", "pp1")
    assert (first.cost, first.moved_bytes, first.predicted_step, first.measured_step) == (0.75, 1024, 0.018, 0.0201)
    assert (resumed.step, resumed.layout, resumed.why) == (50, "dp2", "resumed by another launch") and math.isnan(resumed.cost)
    assert [(one.first, one.last, one.steps) for one in course.segments] == [(1, 20, 20), (21, 50, 30), (51, 60, 10)]
    assert course.segments[1].speed_up == pytest.approx(2) and course.speed_up == pytest.approx(60 * 0.04 / (20 * 0.04 + 40 * 0.02 + 0.75))
    assert course.notes == [(45, "cached activations of the first 2 layers: read (all samples are there)")]
    program(**recorded())
    data = report(run("e", lines, events))
    assert [mark[:2] for mark in chart(data, "loss")["marks"]] == [[20.5, "1"], [50.5, "2"]]
    assert chart(data, "time of a step")["bands"] == [[20.5, 50.5, 0.5], [50.5, 60, 0.5]]
    assert "0 → 2" in said(data) and "pp2 1f1b → pp1" in said(data) and '"750 ms"' in said(data)


@pytest.mark.parametrize("seed", range(25))
def test_any_events_make_a_course(run, program, seed):
    dice = random.Random(seed)
    words = ["freeze", "layout", "layout outcome", "cache", "refused", 3, None]
    values = [None, "x", 5, -1, 1e300, [1, "a"], {"a": 1}, True]
    keys = ["step", "layers", "units", "units_before", "from", "to", "why", "seconds", "moved_bytes", "skipped_by_stage", "on", "layout"]
    events = [{"event": dice.choice(words), "step": dice.randint(0, 70), **{key: dice.choice(values) for key in dice.sample(keys, 5)}}
              for _ in range(60)]
    folder = run("any", metrics(range(1, 61), step_ms=lambda step: dice.choice([20.0, None, 0, "x"])), events,
                 result={"cache": dice.choice(values), "validation_confusion": dice.choice([values, [[1, 0], [0, 0]]]), "best_step": None,
                         "validation_classes": dice.choice(values), "best_by": dice.choice(values), "mfu": dice.choice(values)})
    nested = json.loads("[" * 300 + "]" * 300)
    write_lines(folder / "launches.jsonl", [{key: dice.choice([*values, nested]) for key in ("command", "hosts", "version", "from", "start")}])
    assert report(folder)["blocks"]


def test_recorded_steps_are_what_the_program_says(run, program, tmp_path):
    program(**recorded())
    folder = run("r", metrics(range(1, 61)))
    data = report(folder)
    bars = next(blocks(data, "bars"))
    assert [name for name, _ in bars["parts"]] == list(CAUSES) and bars["rows"][1]["values"] == [100 * share for share in CAUSES.values()]
    assert bars["rows"][0]["mark"] == 15 and series(chart(data, "rank 1", "ms"), "saved, measured")["y"] == [0, 3, 0]
    assert next(blocks(data, "timeline"))["panels"][0]["rows"][0]["boxes"][0][3] == "F 0 stage 0"
    assert "as predicted, on every rank" in said(data) and "12,345 parameters" in said(data)
    assert (tmp_path / "words").read_text(encoding="utf-8") == f"report {folder} --data"
    with pytest.raises(InputError, match="no trace starts at step 9"):
        report(folder, step=9)
    (folder / "trace-00000009.json").touch()
    report(folder, step=9)
    assert (tmp_path / "words").read_text(encoding="utf-8").endswith("--data --step 9")
    concertina.write_report(folder, tmp_path / "steps.svg")
    assert "Predicted: 20 ms" in re.sub(r"<!-- | -->", "", (tmp_path / "steps.svg").read_text(encoding="utf-8"))
    with pytest.raises(InputError, match="no step of this run was recorded"):
        concertina.write_report(run("log", metrics(range(1, 61)), config=""), tmp_path / "steps.pdf")


def test_no_text_is_markup(run, program):
    evil = "</script><img src=x onerror=alert(1)>&\u2028\0"
    lines = metrics(range(1, 61), layout=evil)
    folder = run("evil", lines, [{"event": evil, "step": 1, "why": evil}],
                 result={"state_sha256": evil, "best_by": evil, "best_step": 1, "best_figure": 2})
    text = page({"title": evil, "sub": evil, "blocks": report(folder)["blocks"]})
    assert "<img" not in text and data_of(text)["title"] == evil
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    assert len(scripts) == 2 and all(f"'sha256-{one}'" in text for one in hashes) and "http:" not in re.sub(r'http://www.w3.org', "", text)


def test_pages_need_python_alone():
    done = subprocess.run([sys.executable, "-c", "import concertina, sys; concertina.write_report, concertina.serve; "
                           "print({'numpy', 'pandas', 'scipy', 'jinja2', 'matplotlib'} & set(sys.modules))"], capture_output=True, text=True,
                          check=False, env=os.environ | {"PYTHONPATH": str(PLACE)})
    assert done.stdout == "set()\n", done


def test_the_command_prints_figures_and_the_page(run, program, capsys):
    folder = run("a", *elastic())
    program(**recorded())
    assert commands.report(Options([f"--run={folder}/", "--json=true"])) == 0
    out = json.loads(capsys.readouterr().out)
    assert out["report"] == f"{folder}/report.html" and out["step_ms"] == 20.5 and "memory" not in out["ranks"][0] and "timeline" not in out
    assert out["all_steps"]["steps"] == 60 and out["course"]["changes"][0]["frozen_layers"] == 2
    assert commands.report(Options([f"--run={folder}", f"--output={folder}/b.html"])) == 0
    assert "recorded step 4: 20.50 ms, predicted 20.00 ms (-2.4%)" in (said := capsys.readouterr().out) and "1 change" not in said
    for words, match in ((["--run=/nowhere"], "not a run directory"), ([f"--run={folder.parent.parent}"], "not a run directory"),
                         ([f"--run={folder.parent}", "--step=3"], "require one run"),
                         ([f"--run={folder}", f"--output={folder}/no/page.html"], "cannot write this file")):
        with pytest.raises(InputError, match=match):
            commands.report(Options(words))


def test_a_folder_of_runs_has_an_index(run, capsys):
    folder = run("b", *elastic()).parent
    run("a", metrics(range(1, 31), loss=2.5), [validation(20, 1.25)])
    (folder / "b" / "report.html").touch()
    (folder / "notes").mkdir()
    assert commands.report(Options([f"--run={folder}"])) == 0 and capsys.readouterr().out == f"{folder}/report.html\n"
    first, other = data_of((folder / "report.html").read_text(encoding="utf-8"))["blocks"][0]["rows"]
    assert first[0] == {"text": "a", "href": "a"} and first[2:6] == ["pp2 1f1b", "30 of 60", "2.5", "1.25"], first
    assert other[0] == {"text": "b (report)", "href": "b/report.html"}
    served = Served(str(folder))
    assert json.loads(served.answer("state", {})[2])["blocks"][0]["rows"][0][0] == {"text": "a", "href": "#a"}
    assert json.loads(served.answer("state", {"trial": "a"})[2])["title"] == "a"
    for name in ("notes", "../runs/a", "..", "/etc"):
        assert served.answer("state", {"trial": name})[0] == 404, name


def test_the_layouts_of_an_elastic_run_are_its_title():
    lines = metrics(range(1, 61), layout=lambda step: "pp4" if step <= 20 else "pp2xdp2" if step <= 40 else "dp4")
    assert course_of(lines, [], [], []).layouts_text() == "pp4 until step 20, then pp2xdp2 until step 40, then dp4"
    assert course_of(metrics(range(1, 61)), [], [], []).layouts_text() == ""


def test_a_full_disk_is_a_failure_and_a_path_without_rights_is_bad_input(tmp_path, monkeypatch):
    for number, code in ((errno.ENOSPC, 1), (errno.EIO, 1), (errno.EACCES, 2), (errno.EROFS, 2), (errno.ENOENT, 2)):
        def replace(*_, number=number):
            raise OSError(number, os.strerror(number))
        monkeypatch.setattr(os, "replace", replace)
        with pytest.raises(InputError, match="cannot write this file") as raised:
            replace_file(tmp_path / "page.html", "")
        assert raised.value.code == code, number


def test_compare_shows_the_runs_beside_each_other(run, program, tmp_path):
    one = run("a", metrics(range(1, 61)), [validation(step, 3 / step) for step in (10, 60)], "run.steps = 60\nlr.peak = 1.0\n")
    other = run("b", metrics(range(1, 61), loss=3.5), [validation(10, 4)], "run.steps = 60\nlr.peak = 2.0\n")
    compared = concertina.compare(one, other)
    data = compare_page(compared, tmp_path / "page.html")
    for x, first in (("step", 1), ("seconds of training", 0)):
        drawn = chart(data, "loss", x)
        assert series(drawn, "b")["y"] == [3.5] * 60 and series(drawn, "a")["x"][0] == first
    assert [block["x"] for block in blocks(data, "chart") if block["title"].startswith("loss")] == ["step", "seconds of training"]
    assert "lr.peak" in said(data) and all(line in said(data) for line in compared.bit_lines()) and '"runs/a"' in said(data)
    assert [row["text"] for row in next(blocks(data, "bars"))["rows"]] == ["all steps: 20 ms, bubble 25.0%"] * 2
    grown = run("c", metrics(range(1, 61), tokens_per_s=lambda step: 5000.0 * (1 + (step > 30))), [validation(10, 4, data="other")])
    data = compare_page(concertina.compare(one, grown), tmp_path / "page.html")
    assert series(chart(data, "loss", "tokens"), "a")["x"][:2] == [100, 200] and "not comparable" in chart(data, "held-out")["note"]
    same = compare_page(concertina.compare(one, shutil.copytree(one, one.parent / "d")), tmp_path / "page.html")
    assert [block["name"] for block in chart(same, "loss")["series"]] == ["a (at step 60), d (at step 60) (the same values)"]


def study_content(results, tmp_path, **options):
    data = StudyPage(results, make_table(results, TableOptions(**options)), tmp_path / "pages" / "page.html").content()
    return data_of(page(data))


def section(data, head):
    at = next(at for at, block in enumerate(data["blocks"]) if block["kind"] == "heading" and block["text"] == head)
    rest = data["blocks"][at + 1:]
    return rest[:next((at for at, block in enumerate(rest) if block["kind"] == "heading"), len(rest))]


GRID = 'seeds = [1, 2, 3]\n[set]\nrun.steps = 36\n[grid]\nparallel.schedule = ["1f1b", "zb-v"]\n'
SCHEDULES = [{"parallel.schedule": name, "run.seed": str(seed)} for seed in (1, 2, 3) for name in ("1f1b", "zb-v")]
SPEED = {"recorded.median_step_ms": 10, "recorded.bubble": 0.25, "bubble": 0.2, "recorded.bubble_causes.schedule": 0.2, "trial_s": 100,
         "recorded.bubble_causes.transfer": 0.05}


def test_a_study_has_table_curves_times_trials_and_errors(study, tmp_path, program):
    folder = study(GRID, [(settings, {"loss": 2.0, **SPEED}) for settings in SCHEDULES])
    for trial in (1, 2, 3, 4):
        write_lines(folder / str(trial) / "run" / "metrics.jsonl", metrics(range(1, 11), loss=3.0))
        (folder / str(trial) / "run" / "config.toml").write_text(f"[lr]\nwarmup = {5 + trial % 2}\n", encoding="utf-8")
    (folder / "1" / "run" / "report.html").touch()
    results = concertina.study_results(folder)
    results.runs[5].state, results.runs[5].error = "failed", "error: <broken>\n  at: rank 3"
    data = study_content(results, tmp_path, by=["parallel.schedule"])
    assert next(blocks(data, "tiles"))["tiles"][0] == ["5 of 6", "trials done; others are listed below"] and '"10 min 0 s"' in said(data)
    assert [row[0] for row in section(data, "Trials")[0]["rows"][:2]] == [{"text": "1 (report)", "href": "../studies/x/1/run/report.html"},
                                                                         {"text": "2", "href": "../studies/x/2/run"}]
    assert section(data, "Errors")[0]["rows"] == [["trial 6", "failed", {"text": "error: <broken>\n  at: rank 3", "look": "text"}]]
    assert ["lr.warmup", "5 (trials 2,4); 6 (trials 1,3)"] in section(data, "Settings")[0]["rows"]
    assert ["processor", "Zen (trials 1-6)"] in section(data, "Environment")[0]["rows"]
    bar = next(blocks(data, "bars"))["rows"][0]
    assert bar["values"] == pytest.approx([7.5, 2, 0.5]) and bar["text"] == "recorded steps: 10 ms, bubble 25.0%; all steps: bubble 20.0%"
    assert [one["name"] for one in chart(data, "loss")["series"]] == ["a trial"] * 2 + ["1f1b, zb-v (the same values)"]


def test_a_study_without_trials_is_a_page(tmp_path):
    data = study_content(StudyResults("nothing"), tmp_path)
    assert "0 of 0" in said(data) and not {"Curves", "Use of time"} & {block["text"] for block in blocks(data, "heading")}


def test_the_headline_is_no_best_that_may_be_chance(study, tmp_path, program):
    results = concertina.study_results(study(GRID, [(settings, {"tokens_per_s": 1.0}) for settings in SCHEDULES]))
    options = {"by": ["parallel.schedule"], "metrics": ["tokens_per_s"]}
    for run in results.runs:
        run.metrics["tokens_per_s"] = 1000.0 + 7 * int(run.settings["run.seed"]) + (500 + run.number) * (run.number % 2 == 0)
    assert ["zb-v", "the best mean Tokens/s: 1518"] in next(blocks(study_content(results, tmp_path, **options), "tiles"))["tiles"]
    for run in results.runs:
        run.metrics["tokens_per_s"] = 1000.0 + run.number % 4
    assert "no clear best" in said(study_content(results, tmp_path, **options))


@contextlib.contextmanager
def serving(folder):
    """Asks the server of a run: status, headers and text."""
    server = PageServer(0, Served(str(folder)).answer)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()

    def ask(path, method="GET", token=server.token, host=None):
        connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
        connection.request(method, f"/{token}/{path}", headers={"Host": host} if host else {})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()

    ask.server = server
    try:
        yield ask
    finally:
        server.shutdown()
        server.server_close()


def test_the_server_answers_those_it_should(run, program):
    with serving(run("a", metrics(range(1, 61)))) as ask:
        port, token = ask.server.server_port, ask.server.token
        status, headers, text = ask("")
        assert status == 200 and data_of(text)["live"] and re.fullmatch("[0-9a-f]{32}", token) and headers["Referrer-Policy"] == "no-referrer"
        assert headers["X-Frame-Options"] == "DENY" and headers["Access-Control-Allow-Origin"] is None
        for path, words in (("", {"token": "0" * 32}), ("state", {"token": token[:-1]}), ("state", {"token": "%00"}), ("metrics.jsonl", {}),
                            ("../config.toml", {}), ("%2e%2e/etc/passwd", {}), ("state?trial=1", {}), ("state/", {})):
            assert ask(path, **words)[0] == 404, (path, words)
        hosts = ("evil.example", f"evil.example:{port}", f"localhost:{port}")
        assert [ask("", host=host)[0] for host in hosts] == [403, 403, 200]
        assert [ask("state", method=method)[0] for method in ("POST", "PUT", "DELETE", "OPTIONS")] == [405] * 4
        assert ask("state", method="HEAD")[2] == "" and ask("report")[0] == 200
        with socket.create_connection(("127.0.0.1", port)) as twice:
            twice.sendall(f"GET /{token}/ HTTP/1.1\r\nHost: localhost:{port}\r\nHost: evil\r\n\r\n".encode())
            assert b" 403 " in twice.recv(100)
        assert ask.server.server_address[0] == "127.0.0.1"


def test_slow_clients_hold_up_nobody(run, program):
    with serving(run("a", metrics(range(1, 61)))) as ask:
        silent = [socket.create_connection(("127.0.0.1", ask.server.server_port)) for _ in range(220)]
        silent[-1].sendall(b"GET / HTT")
        began = time.monotonic()
        assert ask("state")[0] == 200 and time.monotonic() - began < 5
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", ask.server.server_port)) as large:
            large.sendall(b"GET /" + b"x" * 1_000_000)
        assert ask("state")[0] == 200
        for one in silent:
            one.close()


def test_a_live_run_is_followed(run, program):
    folder = run("a", metrics(range(1, 31)), [validation(10, 3.25)], "run.steps = 60\n")
    log = folder / "metrics.jsonl"
    with serving(folder) as ask:
        state = json.loads(ask("state")[2])
        assert state["blocks"][1]["tiles"][:2] == [["30 of 60", "steps"], ["1 s", "left"]] and "ago" in state["sub"]
        assert ["3.25", "held-out loss at step 10"] in state["blocks"][1]["tiles"]
        write_lines(log, metrics(range(1, 46)))  # appends lines
        with log.open("a", encoding="utf-8") as file:
            file.write('{"step": 46, "loss"')  # a line that is being written
        assert series(chart(json.loads(ask("state")[2]), "loss"), "this step")["x"] == list(range(1, 46))
        with log.open("a", encoding="utf-8") as file:
            file.write(": 2.5}\n")
        assert series(chart(json.loads(ask("state")[2]), "loss"), "this step")["y"][-1] == 2.5
        write_lines(log, metrics(range(1, 13)))  # as truncated by a resume
        assert series(chart(json.loads(ask("state")[2]), "loss"), "loss")["x"] == list(range(1, 13))
        write_lines(log, metrics(range(1, 61)))
        (folder / "result.json").write_text("{}", encoding="utf-8")
        assert json.loads(ask("state")[2])["sub"].startswith("finished")
        write_lines(log, metrics(range(1, 61), loss=None, tokens_per_s=0))
        assert [["NaN", "loss"], ["–", "tokens per second"]] == json.loads(ask("state")[2])["blocks"][1]["tiles"][1:3]


@pytest.mark.parametrize("name", ["metrics.jsonl", "events.jsonl", "restarts.jsonl", "launches.jsonl", "config.toml", "result.json"])
@pytest.mark.parametrize("kind", ["pipe", "link", "directory", "unreadable"])
def test_files_of_others_end_nothing(run, program, name, kind):
    folder = run("a", metrics(range(1, 61)), result={}, launches=[], restarts=[])
    other = run("b", metrics(range(1, 61)))
    (folder / name).unlink(missing_ok=True)
    make = {"pipe": os.mkfifo, "link": lambda path: path.symlink_to("/dev/zero"), "directory": os.mkdir,
            "unreadable": lambda path: path.write_bytes(b"\xff\0[" * 9999)}
    make[kind](folder / name)
    (folder / "config.toml").touch() if name == "metrics.jsonl" else None
    with serving(folder) as ask:
        began = time.monotonic()
        for path in ("state", "report", "state"):
            status, _, text = ask(path)
            assert status == 200 or (status == 500 and name in text and "bug" not in text), (path, text)
        assert ask("")[0] == 200 and time.monotonic() - began < 8
    with serving(other) as ask:
        assert ask("state")[0] == 200


def test_a_study_is_followed_with_its_runs(study, program):
    folder = study('[set]\nrun.steps = 60\n[grid]\nmodel.heads = [2, 3]\n', [None, None])
    write_lines(folder / "1" / "run" / "metrics.jsonl", metrics(range(1, 31)))
    (folder / "1" / "run" / "config.toml").write_text("run.steps = 60\n", encoding="utf-8")
    (folder / "1" / "log.txt").write_text("x" * 9000 + "\nthe last words\n", encoding="utf-8")
    with serving(folder) as ask:
        state = json.loads(ask("state")[2])
        rows = next(blocks(state, "table"))["rows"]
        assert rows[0][0] == {"text": "1", "href": "#1"} and rows[0][3:6] == ["pp2 1f1b", "30 of 60", "3.7"] and rows[0][-1] == "1 s"
        assert rows[1][3:] == [""] * 6
        trial = json.loads(ask("state?trial=1")[2])
        assert trial["title"] == "trial 1" and [block["text"] for block in blocks(trial, "fold")] == ["the last words\n"]
        assert ask("state?trial=2")[0] == 500 and ask("state?trial=x")[0] == 404 and ask("state?trial=../1")[0] == 404
        assert ask("report?trial=1")[0] == 200 and "Trials" in said(data_of(ask("report")[2]))


def test_the_server_ends_with_a_signal(run, program):
    folder = run("a", metrics(range(1, 61)))
    words = [sys.executable, "-c", f"import concertina, sys; sys.exit(concertina.serve({str(folder)!r}))"]
    environment = os.environ | {"PYTHONPATH": str(PLACE)}
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as server:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[0-9a-f]{32}/\n", server.stdout.readline())
        server.terminate()
        assert server.wait(10) == 0 and "on this machine only" in server.stderr.read()


def test_serving_needs_something_to_serve(tmp_path):
    with pytest.raises(InputError, match="neither a run nor a study"):
        Served(str(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(InputError, match="cannot use port"):
        PageServer(taken.getsockname()[1], print)


@pytest.mark.skipif(not (BROWSER := shutil.which("chromium") or shutil.which("chromium-headless-shell")), reason="no headless Chromium")
@pytest.mark.parametrize("width", [390, 1400])
def test_a_browser_shows_the_page(run, program, tmp_path, width):
    program(**recorded())
    folder = run("a", *elastic())
    report(folder)
    done = subprocess.run([BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'home'}",
                           f"--window-size={width},2000", "--enable-logging=stderr", "--virtual-time-budget=4000", "--dump-dom", f"file://{folder}/page.html"],
                          capture_output=True, text=True, timeout=90, check=False)
    assert done.stdout.count("<canvas") == 8 and "<h2>Changes</h2>" in done.stdout and "CONSOLE" not in done.stderr, done.stderr[-2000:]
