"""Published measurements: values read from outputs, the entries that tables show, and measure.py with a small catalogue."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests"))
import results  # noqa: E402

OUT = 'begins\nrate 1,234.5 and rate 2.5\nPASS\n{"old": 1}\n{"a": {"b": [{"name": "x 1/3", "ms": 4}, {"name": "y", "ms": 8}]},\n "n": null}\n'


@pytest.mark.parametrize(("source", "wanted"), [
    (["seconds", "s"], 3.0),
    (["seconds", "minutes", 60], 0.05),
    ([["a", "b", 1, "ms"], "ms"], 8),
    ([["a", "b", "name={arm}", "ms"], "ms"], 4),
    ([["a", "b", 0, "ms"], "", ["a", "b", 1, "ms"]], 0.5),
    (["re:^(PASS|FAIL)$", ""], "PASS"),
    (["re:rate ([0-9.,]+)", "", 10], [123.45, 0.25]),
])
def test_values_are_read(source, wanted):
    assert results.values_of({"values": {"v": source}}, OUT, 3.0, {"arm": "x 1/3"}) == {"v": [wanted, source[1]]}


@pytest.mark.parametrize("source", [
    ["re:speed ([0-9]+)", ""], [["n"], ""], [["a", "c"], ""], [["a", "b", 2], ""], [["a", "b", "name=z", "ms"], ""], [["a", "b", 0, "ms"], "", 0],
    ["re:(PASS)", "", 100],
])
def test_a_value_that_cannot_be_read_is_an_error(source):
    with pytest.raises(results.Failed, match="cannot read v"):
        results.values_of({"values": {"v": source}}, OUT, 3.0, {})


def test_a_command_that_takes_too_long_is_ended(tmp_path):
    pid = tmp_path / "pid"
    with pytest.raises(results.Failed, match="did not end within"):
        results.shell(f"sleep 600 & echo $! > {pid}; wait", 3)
    process = pathlib.Path("/proc", pid.read_text(encoding="utf-8").strip(), "cmdline")
    for _ in range(100):  # until it is reaped
        if not process.exists() or not process.read_bytes():
            return
        time.sleep(0.05)
    pytest.fail("the command still runs")


def entry(**more):
    return {"name": "r", "case": {"size": "small"}, "command": "c", "commit": "abcdef12", "processor": "CPU (Zen 4)", "isa": "avx2", "cores": 2,
            "date": "2026-11-29", "load": 0.1, "values": {"v": [2.0, "ms"]}, **more}


@pytest.fixture
def made(monkeypatch):
    """Makes a catalogue with the result "r", entries and a history in which the commits `old` are old."""
    def make(data, old=(), history=True):
        result = {"needs": [], "full": {}, "minutes": 1, "command": "c", "cases": [{"size": ["small", "large"]}], "values": {"v": [["v"], "ms"]},
                  "columns": {"size": "{size}", "ms": "{v:.1f}"}}
        monkeypatch.setattr(results, "RESULTS", {"r": result})
        monkeypatch.setattr(results, "entries", lambda name: data)
        monkeypatch.setattr(results, "has_history", lambda: history)
        monkeypatch.setattr(results, "is_old", old.__contains__)
    return make


def rows(before=""):
    return results.table("r", before).splitlines()[2:]


def test_a_table_shows_the_newest_entry_of_each_case_and_processor(made):
    made([entry(case={"size": "large"}), entry(), entry(values={"v": [[3.0, 5.0, 4.0], "ms"]}, commit="1234567"), entry(processor="CPU (Zen 5)")])
    assert rows()[:3] == ["|small|3.0 to 5.0|Zen 4, `1234567`|", "|small|2.0|Zen 5, `abcdef12`|", "|large|2.0|Zen 4, `abcdef12`|"]
    made([])
    assert results.table("r", "") == "Not measured yet.\n"


def test_old_and_disturbed_measurements_are_marked(made):
    made([entry(load=2.0)], old=["abcdef12"])
    assert rows()[0] == "|small|2.0|Zen 4, `abcdef12` † ‡|"
    assert rows()[2] == "Command: `c`."
    made([entry(load=None)])
    assert rows()[0] == "|small|2.0|Zen 4, `abcdef12`|"


def test_marks_stay_without_history(made):
    made([entry(), entry(case={"size": "large"}, commit="1234567")], history=False)
    assert rows("|small|2.0|Zen 4, `abcdef12` †|")[:2] == ["|small|2.0|Zen 4, `abcdef12` †|", "|large|2.0|Zen 4, `1234567`|"]


def test_a_commit_out_of_the_history_is_old():
    if not results.has_history():
        pytest.skip("the checkout has no history")
    assert results.is_old("0" * 12) and not results.is_old("HEAD")


@pytest.mark.parametrize(("change", "fault"), [
    ({"values": {"v": [2.0, "s"]}}, "'s'"), ({"values": {"w": [2.0, "ms"]}}, "w in 'ms'"), ({"values": {"v": [float("nan"), "ms"]}}, "nan"),
    ({"commit": "HEAD"}, "HEAD"), ({"date": "today"}, "today"), ({"name": "other"}, "another name"), ({"extra": 1}, "extra"),
])
def test_faults_of_entries_are_named(made, change, fault):
    made([])
    assert list(results.entry_faults("r", entry())) == []
    assert fault in " ".join(results.entry_faults("r", entry(**change)))


def test_quantities_in_prose_are_found():
    table = "<!-- table: result x -->\n|4 times|\n<!-- end of table -->\n<img width=\"100%\">"
    assert results.stray_numbers(f"2.5 times, 3 ms and 7 points, 90 %, 8 minutes; 16 types, dp=2, 1F1B\n{table}") == ["2.5 times", "3 ms", "7 points", "90 %", "8 minutes"]


CATALOGUE = """
[processors]
[needs]
nothing = { test = "true", missing = "" }
moon = { test = "false", missing = "the moon is needed" }
[r]
about = "numbers"
command = "echo '{\\"v\\": {n}, \\"size\\": \\"{size}\\"}' {more}"
full = { n = "3", more = "" }
tiny = { n = "1", more = "" }
minutes = 1
needs = ["nothing"]
cases = [{ size = ["small"] }, { size = ["large"], needs = ["moon"] }, { size = ["odd"], command = "echo '{}'" }]
[r.values]
v = [["v"], "ms"]
[r.columns]
"size" = "{size}"
[headline]
rows = []
"""


@pytest.fixture
def checkout(tmp_path):
    """Makes a checkout with measure.py and the small catalogue; its tables are "written" by a stub that says so."""
    folder = tmp_path / "experiments" / "results"
    (folder / "data").mkdir(parents=True)
    (tmp_path / "tests").mkdir()
    shutil.copy(TOP / "experiments" / "results" / "measure.py", folder)
    shutil.copy(TOP / "experiments" / "env.sh", folder.parent)
    for name in ("results.py", "measuring.py"):
        shutil.copy(TOP / "tests" / name, tmp_path / "tests")
    (tmp_path / "tests" / "guide_tables.py").write_text("print('tables written')\n", encoding="utf-8")
    (folder / "catalogue.toml").write_text(CATALOGUE, encoding="utf-8")
    (tmp_path / "build" / "experiments").mkdir(parents=True)
    os.symlink(os.environ["CONCERTINA"], tmp_path / "build" / "experiments" / "concertina")

    def measure(*words):
        done = subprocess.run([sys.executable, folder / "measure.py", *words], capture_output=True, text=True, check=False)
        data = folder / "data" / "r.json"
        return done.returncode, done.stdout + done.stderr, json.loads(data.read_text(encoding="utf-8")) if data.exists() else []
    return measure


def test_measurements_become_entries_and_are_compared(checkout):
    code, said, data = checkout("r/small")
    assert code == 0 and "tables written" in said and "v: 3.0 ms\n" in said and len(data) == 1
    assert tuple(data[0]) == results.FIELDS and data[0]["values"] == {"v": [3.0, "ms"]}
    assert data[0]["processor"] and data[0]["isa"] and data[0]["load"] >= 0 and data[0]["command"] == """echo '{"v": 3, "size": "small"}' """
    code, said, data = checkout("r/small")
    assert "(1.00 times that of " in said and len(data) == 2


def test_what_cannot_be_measured_is_said(checkout):
    code, said, data = checkout()
    assert code == 1 and len(data) == 1 and "1 of 2 measured" in said
    assert "not measured: r, 1 of 3 cases: the moon is needed" in said
    assert "error: cannot read v (['v'])" in said
    code, said, data = checkout("--minutes", "0.5", "r/small")
    assert code == 0 and len(data) == 1 and "it takes about 1 minutes, and 0.5 of --minutes 0.5 are left" in said
    code, said, data = checkout("--tiny", "r/small")
    assert code == 0 and len(data) == 1 and "v: 1.0 ms" in said
    code, said, _ = checkout("--list", "r/sm")
    assert code == 0 and said == "r: numbers\n  small: about 1 minutes: echo '{\"v\": 3, \"size\": \"small\"}' \n"
    code, said, _ = checkout("r/none")
    assert code == 2 and "no measurement is named r/none" in said


def variants(*words):
    return subprocess.run([sys.executable, TOP / "tests" / "bench" / "variants.py", "--rounds", "3", "--value", "ms", *words],
                          capture_output=True, text=True, check=False)


def test_variants_are_compared_in_each_round():
    done = variants("--variants", "2 3", "--", "sh", "-c", 'echo text; echo "{\\"ms\\": $0}"')
    assert json.loads(done.stdout) == {"2": {"value": 2, "ratio": 1.0}, "3": {"value": 3, "ratio": 1.5}}
    assert "round 3 of 3: 2, 3" in done.stderr


@pytest.mark.parametrize(("command", "said"), [("echo '{\"s\": 1}'", "prints no ms; it prints s"), ("echo no >&2; exit 3", "exit code 3")])
def test_variants_without_a_value_are_an_error(command, said):
    done = variants("--variants", "2 3", "--", "sh", "-c", command)
    assert done.returncode == 1 and said in done.stderr
