"""The runs and charts of the page of a study: curves by step, tokens and seconds, and the parts of a step."""
from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import re
import typing

import numpy as np
import pandas

from .chart import COLOURS, GREY, INK, LINE, PAPER, SOFT, Axis, Chart, Series
from .charts import draw, save
from .measures import why_unlike
from .names import metric_named
from .results import Runs, StudyResults, figures_of
from .run_log import Curve, RunLog, batches, number
from .statistic import summarize
from .study_series import mean_curve
from .study_table import StudyTable

if typing.TYPE_CHECKING:
    from .run_comparison import RunComparison

_CAUSES = ("schedule", "imbalance", "variation", "transfer", "reduction", "optimizer", "other")
_CAUSE_LOOKS = (6, 7, 4, 3, 2, 5, 1)
MOST_CURVES, _MOST_POINTS = 8, 500
_LEAST_SMOOTHED = 100  # steps; fewer are read as they are
_CHART_INCHES = 3.6
_VARIABLES = {PAPER: "back", INK: "ink", SOFT: "soft", LINE: "line", GREY: "grey", COLOURS[0]: "blue", COLOURS[6]: "dark"}
Json = dict[str, typing.Any]


@dataclasses.dataclass
class PageRun:
    """The run of a trial, as far as the page shows it."""
    log: RunLog
    folder: str
    link: str  # to its directory; `report`: to its page, where there is one
    report: str
    curves: dict[str, Curve] = dataclasses.field(default_factory=dict)  # that were asked for

    def curve(self, column: str) -> Curve:
        if column not in self.curves:
            self.curves[column] = self.log.curve(column)
        return self.curves[column]

    @functools.cached_property
    def tokens(self) -> Curve:
        """The tokens trained up to each step; empty where a line lacks what they follow from."""
        of_step = {number(line, "step"): number(line, "tokens_per_s") * number(line, "step_ms") * 1e-3 * batches(line)
                   for line in self.log.metrics}
        if not all(map(math.isfinite, of_step.values())):
            return {}
        steps = sorted(of_step)
        return dict(zip(steps, itertools.accumulate(float(round(of_step[step])) for step in steps)))


@dataclasses.dataclass
class StudyPage:
    results: StudyResults
    table: StudyTable
    runs: dict[int, PageRun]  # by number of the trial
    comparison: RunComparison | None = None  # what the page of `concertina compare` begins with

    @property
    def shown(self) -> Runs:
        """The trials of the table, done or not, in order."""
        runs = [run for row in self.table.rows for run in row.group.done] + self.table.not_done
        return sorted(runs, key=lambda run: run.number)


def duration_text(seconds: float) -> str:
    for least, unit in ((7200, "h"), (120, "min"), (1, "s"), (1e-3, "ms")):
        if abs(seconds) >= least:
            return f"{seconds / {'h': 3600, 'min': 60, 's': 1, 'ms': 1e-3}[unit]:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def some_of(names: list[str]) -> str:
    """ "1f1b, zb-v and 3 others"."""
    return ", ".join(names) if len(names) <= 3 else f"{', '.join(names[:2])} and {len(names) - 2} others"


# The charts: what is drawn by what.
_CURVES = [(column, clock) for column in ("loss", "validation_loss") for clock in ("step", "tokens", "seconds of training")] + \
    [(column, "step") for column in ("tokens_per_s", "bubble", "grad_norm")]


def _timed(run: PageRun, column: str, clock: str) -> Curve:
    """The run's curve, by this clock."""
    curve = run.curve(column)
    times = {"step": None, "tokens": run.tokens, "seconds of training": run.log.seconds}[clock]
    if times is None:
        return curve
    at, seen = np.searchsorted(list(times), list(curve), "right"), [0.0, *times.values()]
    return {seen[done]: value for done, value in zip(at, curve.values()) if done}


def _smoothed(series: Series, rates: bool) -> Series:
    """Long curves are read better without the noise of single steps."""
    values = pandas.Series(series.y, np.array(series.x, float), dtype=float).dropna()
    if len(series.x) >= _LEAST_SMOOTHED:
        mean = (1 / values if rates else values).ewm(alpha=1 / max(2.0, 0.02 * len(series.x))).mean()
        values = 1 / mean if rates else mean
    return _thinned(dataclasses.replace(series, x=values.index.tolist(), y=values.tolist(), low=[], high=[]))


def _thinned(series: Series) -> Series:
    """No reader can see more than some hundred points."""
    at = np.unique(np.linspace(0, len(series.x) - 1, min(len(series.x), _MOST_POINTS)).round().astype(int))
    return dataclasses.replace(series, x=[series.x[one] for one in at], y=[series.y[one] for one in at])


def _curve_chart(page: StudyPage, column: str, clock: str) -> Chart | None:
    """None where there is nothing to show. By another clock than steps two trials have no point in common."""
    drawn: list[tuple[list[str], Series, list[Curve]]] = []  # groups with the same numbers are one line
    for row in page.table.rows:
        curves = [_timed(page.runs[run.number], column, clock) for run in row.group.done if run.number in page.runs]
        if clock != "step" and len(curves) > 1:
            return None
        mean = mean_curve([] if why_unlike(row.group.done, column) else curves, None)
        same = next((names for names, other, _ in drawn if (other.x, other.y) == (mean.x, mean.y)), None)
        if same:
            same.append(row.label)
        elif np.isfinite(mean.y).sum() > 1:
            drawn.append(([row.label], mean, curves))
    if not drawn:
        return None
    metric = metric_named(column)
    factor = metric.factor
    series: list[Series] = []
    for look, (names, mean, curves) in enumerate(drawn[:MOST_CURVES]):
        if len(drawn) == 1 and len(curves) > 1:
            of_runs = [Series("", list(curve), [factor * value for value in curve.values()], faint=True, look=look) for curve in curves]
            series += map(_thinned, of_runs)
        mean.name, mean.look, mean.y = f"{some_of(names)}{' (the same values)' * (len(names) > 1)}", look, [factor * value for value in mean.y]
        series.append(_smoothed(mean, column == "tokens_per_s"))
    why = why_unlike([run for row in page.table.rows for run in row.group.done], column)
    notes = [f"not comparable: {why}"] * bool(why) + [f"the first {MOST_CURVES} of {len(drawn)} lines"] * (len(drawn) > MOST_CURVES)
    return Chart("curves", Axis(clock), Axis(metric.label, metric.unit, from_zero=not column.endswith("loss")), series,
                 note="; ".join(notes), width=_CHART_INCHES)


def curve_charts(page: StudyPage) -> dict[str, Chart]:
    """By title. Where all steps have as many tokens, the chart by tokens would be that by step."""
    found: dict[str, Chart] = {}
    even = all(np.ptp(np.diff([0.0, *run.tokens.values()]) / np.diff([0.0, *run.tokens])) <= 1 for run in page.runs.values() if run.tokens)
    for column, clock in _CURVES:
        chart = None if clock == "tokens" and even else _curve_chart(page, column, clock)
        if chart:
            found[f"{metric_named(column).short} by {clock}"] = chart
    return found


def _mean(runs: Runs, column: str) -> float | None:
    summary = summarize(figures_of(runs, column), 0.95)
    return summary.mean if summary.n else None


def step_times(page: StudyPage) -> list[Json]:
    """A step of each group: milliseconds of it by what took them; of recorded steps, else of all."""
    rows = []
    for row in page.table.rows:
        runs = row.group.done
        for of, which in (("recorded.", "the recorded"), ("", "all")):
            ms, bubble, of_all = (_mean(runs, column) for column in (f"{of}median_step_ms", f"{of}bubble", "bubble"))
            if ms is None or bubble is None:
                continue
            causes = {cause: _mean(runs, f"recorded.bubble_causes.{cause}") if of else None for cause in _CAUSES}
            known = {cause: ms * max(0.0, share) for cause, share in causes.items() if share is not None}
            also = f" ({100 * of_all:.1f}% of all)" if of and of_all is not None else ""
            rows.append({"label": row.label, "text": f"{duration_text(ms * 1e-3)}, bubble {100 * bubble:.1f}% of {which} steps{also}",
                         "ms": {"computing and updating": ms * (1 - bubble), **(known or {"idle": ms * bubble})}})
            break
    return rows


def step_chart(rows: list[Json]) -> Chart:
    parts = ("computing and updating", "idle", *_CAUSES)
    names = [f"{row['label']}\n{row['text'].partition(' of ')[0]}" for row in rows]
    series = [Series(part, names, [row["ms"].get(part, math.nan) for row in rows], look=look) for part, look in zip(parts, (0, -1, *_CAUSE_LOOKS))]
    return Chart("stacks", Axis("a step", "ms"), series=series, width=_CHART_INCHES)


def inline(chart: Chart, name: str) -> str:
    """The chart as SVG for a page, whose colours it takes, as wide as there is room for."""
    text = save(draw(chart), ".svg", name).decode()
    text = re.sub(r'(<svg[^>]*?) (?:width|height)="[^"]*"([^>]*?) (?:width|height)="[^"]*"', r"\1\2", text[text.index("<svg"):])
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", text, flags=re.DOTALL)
    used = set(re.findall(r'#([\w-]+)["\')]', text))
    text = re.sub(r' id="([^"]*)"', lambda found: found[0] if found[1] in used else "", text)
    for colour, variable in _VARIABLES.items():
        text = text.replace(f": {colour}", f": var(--{variable})")
    return text.replace("<svg ", f'<svg role="img" aria-label="{name}" ', 1).replace("\n", " ")
