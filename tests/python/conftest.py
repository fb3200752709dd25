"""Studies and runs on disk, in the program's format."""
import hashlib
import json
import pathlib

import pytest

FACTS = {"version": "1", "commit": "c", "processor": "Zen"}


def dumped(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def write_trial(folder, number, settings, figures, state="done", common="run.steps 2 36\n", **more):
    """`common`: the text shared by all trials of the study."""
    record = {"trial": number, "state": state, "settings": settings, "directory": "", "figures": figures, "facts": FACTS | more.pop("facts", {}),
              **more, "study": hashlib.sha256(common.encode()).hexdigest()}
    record["digest"] = hashlib.sha256(dumped(record).encode()).hexdigest()
    place = pathlib.Path(folder, str(number))
    place.mkdir(parents=True, exist_ok=True)
    (place / "trial.json").write_text(json.dumps(record, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def write_lines(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


@pytest.fixture
def study(tmp_path):
    """Makes the study of `text` with a trial for each (settings, metrics); with None, it is not finished."""
    def make(text, trials, **more):
        folder = tmp_path / "studies" / "x"
        folder.mkdir(parents=True)
        (folder / "study.toml").write_text(text, encoding="utf-8")
        for number, trial in enumerate(trials, 1):
            if trial:
                write_trial(folder, number, *trial, **more)
        return folder

    return make
