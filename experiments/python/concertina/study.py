"""Studies: trials as a DataFrame, and their runs."""
from __future__ import annotations

import functools
import pathlib

import pandas as pd

from .files import read_json
from .run import NotARun, Run


class Study:
    """The folder of a study, studies/NAME."""

    def __init__(self, path: str | pathlib.Path):
        self.path = pathlib.Path(path)
        if not (self.path / "study.toml").is_file():
            raise NotARun(f"{self.path} is no folder of a study: it has no study.toml")

    @functools.cached_property
    def trials(self) -> pd.DataFrame:
        """A row per trial that has ended, by number: state, settings, figures, facts and why it failed."""
        rows = []
        for file in sorted(self.path.glob("*/trial.json"), key=lambda file: int(file.parent.name)):
            record = read_json(file)
            rows.append({"trial": record["trial"], "state": record["state"],
                         **{key: _number(value) for key, value in record["settings"].items()},
                         **record["figures"], **record["facts"], "error": record.get("error", "")})
        return pd.DataFrame(rows).set_index("trial") if rows else pd.DataFrame()

    @property
    def runs(self) -> dict[int, Run]:
        """The runs of all trials that began one, by number."""
        found = {}
        for folder in self.path.glob("*/run"):
            if folder.parent.name.isdigit() and (folder / "config.toml").is_file():
                found[int(folder.parent.name)] = Run(folder)
        return dict(sorted(found.items()))

    def __repr__(self) -> str:
        return f"Study({self.path.name}: {len(self.trials)} trials, {self.path})"


def _number(text: str):
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return text
