"""Studies: trials as a DataFrame, and their runs."""
from __future__ import annotations

import functools
import pathlib

import pandas as pd

from .results import StudyResults
from .run import NotARun, Run
from .study_folder import STUDY_FILE, read_study


class Study:
    """The folder of a study, studies/NAME."""

    def __init__(self, path: str | pathlib.Path):
        self.path = pathlib.Path(path)
        if not (self.path / STUDY_FILE).is_file():
            raise NotARun(f"{self.path} is not the folder of a study: it has no {STUDY_FILE}")

    @functools.cached_property
    def results(self) -> StudyResults:
        """All trials, with those that are open, and what the study claims and searches."""
        return read_study(self.path)

    @property
    def trials(self) -> pd.DataFrame:
        """A row per trial that has ended, by number: state, settings, figures, facts and why it failed."""
        frame = self.results.frame()
        return frame[frame["state"] != "open"]

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
