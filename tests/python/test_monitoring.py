"""Drift between a reference and a log: none between samples of one distribution, and each kind that was made."""
import json
import random

import concertina
import pytest
from concertina import commands


def rows_of(seed, count, good=0.5, spread=1.0, unknown=0.01):
    chance = random.Random(seed)
    return [{"index": i, "prediction": "good" if chance.random() < good else "bad", "probability": 1 / (1 + abs(chance.gauss(0, spread))),
             "tokens": chance.randint(3, 60), "unknown": int(chance.random() < unknown), "logits": [0, 1]} for i in range(count)]


@pytest.fixture
def files(tmp_path):
    def write(name, rows):
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path
    return write


def drifting(log, reference, **options):
    return {row.field for row in concertina.drift(log, reference, **options) if row.drifts}


def test_samples_of_one_distribution_do_not_drift(files):
    reference = files("reference", rows_of(0, 2000))
    found = [drifting(files("log", rows_of(seed, 1000)), reference, least=0.0) for seed in range(1, 21)]
    assert sum(map(bool, found)) <= 2  # expected: 0.2


@pytest.mark.parametrize("change, field", [({"good": 0.8}, "prediction"), ({"spread": 3}, "probability"), ({"unknown": 0.3}, "unknown")])
def test_each_kind_of_drift_is_found_in_its_window(files, change, field):
    reference, log = files("reference", rows_of(0, 2000)), files("log", rows_of(1, 1000) + rows_of(2, 1100, **change))
    rows = concertina.drift(log, reference, window=1000)
    assert [(row.first, row.rows) for row in rows if row.field == field] == [(1, 1000), (1001, 1100)]
    assert {(row.first, row.field) for row in rows if row.drifts} == {(1001, field)}
    assert {row.field for row in rows} == {"prediction", "probability", "tokens", "unknown"}


def test_a_new_class_is_drift_and_small_changes_are_not(files):
    reference = files("reference", rows_of(0, 2000))
    other = [row | {"prediction": "other"} if i % 4 == 0 else row for i, row in enumerate(rows_of(1, 2000))]
    (row,) = [row for row in concertina.drift(files("log", other), reference) if row.field == "prediction"]
    assert row.drifts and row.reference == "0.0% other" and row.now == "25.0% other"
    assert drifting(files("close", rows_of(1, 20000, good=0.55)), files("many", rows_of(0, 20000))) == set()


@pytest.mark.parametrize("text, said", [('{"prediction": 1}\n' * 3, "3 rows"), ("{]\n" * 30, ":1: not JSON"), ("[1]\n" * 30, ":1: expected an object"),
                                        ('{"answer": "yes"}\n' * 30, "no common fields"), ('{"prediction": null}\n' * 30, "no common fields")])
def test_bad_files_are_named(files, tmp_path, text, said):
    reference, log = files("reference", rows_of(0, 100)), tmp_path / "log"
    log.write_text(text)
    with pytest.raises(ValueError, match=said):
        concertina.drift(log, reference)


def test_the_command_prints_a_table_and_its_exit_code_is_the_verdict(files, tmp_path, capsys):
    reference, same, other = files("a", rows_of(0, 500)), files("b", rows_of(1, 500)), files("c", rows_of(2, 500, good=0.9))
    page = tmp_path / "page.html"
    for log, code in [(same, 0), (other, 1), (str(same) + "x", 2)]:
        assert commands.run("monitor", [f"--log={log}", f"--reference={reference}", "--least=0.1", "--window=250", f"--out={page}"]) == code
        said = capsys.readouterr()
        assert ("error: " in said.err) == (code == 2)
        assert ("drifts" in said.out) == (code == 1)
    assert "Distance from the reference" in page.read_text() and "fields that drift" in page.read_text()
    assert commands.run("monitor", [f"--log={other}", f"--reference={reference}", "--least=0.1", "--json="]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["drifts"] and {row["field"] for row in found["rows"] if row["drifts"]} == {"prediction"}
