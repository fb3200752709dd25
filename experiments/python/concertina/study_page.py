"""The page of a study, or one that compares several runs: table, curves, time use, trials, settings and environment."""
from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import os
import pathlib
import statistics
import typing

from .files import read_text
from .measures import why_incomparable
from .names import clock_text, counted, duration_text, figure_text, metric_named, trials_text
from .page import SERIES, Block, chart, content, folded, line, run_link, section, smoothed, table, words
from .recorded_steps import CAUSES, MOST_ROWS, cause_bars
from .results import RUN_COLUMN, Cell, Runs, StudyResults, cell_text, metrics_of, titles
from .run_log import PLACES, Curve, RunLog, batches, config_texts, number, positive, read_log
from .run_page import CURVES
from .study_table import StudyTable
from .table_formats import ends_of, table_text

if typing.TYPE_CHECKING:
    from .run_comparison import RunComparison

DASHES: list[list[int]] = [[], [8, 3], [2, 3], [9, 3, 2, 3], [5, 2]]
MOST_CURVES, LEAST_SMOOTHED, MOST_VALUES = 8, 100, 40
FACTS = ("version", "commit", "program", "host", "processor", "device", "isa", "compute", "onednn", "libraries")
COLUMNS = {"loss": CURVES["loss"], "validation_loss": "held-out loss, per target", "tokens_per_s": CURVES["tokens_per_s"],
           "bubble": CURVES["bubble"], "grad_norm": CURVES["grad_norm"]}

Lines = list[tuple[list[str], Curve, list[Curve]]]  # for each line: groups, their mean, and their trials


@dataclasses.dataclass
class StudyPage:
    """`output`: the file of the page; links are relative to its directory."""
    results: StudyResults
    table: StudyTable
    output: str | os.PathLike[str]

    @functools.cached_property
    def shown(self) -> Runs:
        """The table's trials, done or not, in order."""
        runs = [run for row in self.table.rows for run in row.group.done] + self.table.not_done
        return sorted(runs, key=lambda run: run.number)

    @functools.cached_property
    def logs(self) -> dict[int, RunLog]:
        return {run.number: read_log(run.directory) for run in self.results.runs if run.directory and os.path.isdir(run.directory)}

    @functools.cached_property
    def clocks(self) -> dict[str, dict[int, Curve]]:
        """The x axes for loss curves, other than steps. Tokens are omitted if all steps have the same number."""
        tokens = {at: tokens_by_step(log) for at, log in self.logs.items()}
        even = len({round(count - before) for curve in tokens.values() for before, count in itertools.pairwise([0.0, *curve.values()])}) < 2
        seconds = {"seconds of training": {at: log.seconds for at, log in self.logs.items()}}
        return seconds if even else {"tokens": tokens, **seconds}

    def content(self, first: typing.Sequence[Block] = ()) -> Block:
        """`first`: blocks before the table."""
        shown = [[{"kind": "tiles", "tiles": _tiles(self)}, *first],
                 [words("heading", "Table"), {"kind": "html", "html": table_text(self.table, "html", "difference")}], _curves(self)]
        if len(self.table.rows) > MOST_VALUES:  # curves before a long table
            shown.append(shown.pop(1))
        parts = (*shown, _step_times(self.table), _trials(self), _errors(self), _settings(self), _origin(self.shown))
        return content(self.table.study, _subtitle(self.results), list(itertools.chain(*parts)))


def compare_page(compared: RunComparison, output: str | os.PathLike[str]) -> Block:
    """The page that compares several runs, starting with their configs and bits."""
    rows, note = compared.rows(), compared.config_note
    first = [words("heading", "Configs"), *[table(rows[0], rows[1:], left=len(rows[0])) for _ in rows[:1]], *[words("note", note)] * bool(note),
             words("heading", "Bits"), {"kind": "list", "items": compared.bit_lines()}]
    return StudyPage(compared.runs, compared.table, output).content(first)


def _subtitle(results: StudyResults) -> str:
    over = counted(len(results.axes), "key") if len(results.axes) > MOST_CURVES else titles(results.axes)
    if results.loose:
        return f"with configs that differ in {over}" if over and results.axes else "with the same config"
    return f"study over {over if results.axes else 'one trial'}"


def _some_of(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{', '.join(names[:2])} and {len(names) - 2} others"


def _best_tile(shown: StudyTable) -> list[tuple[str, str]]:
    """The best group in the first metric that has one, or a note that there is no clear best."""
    for at, metric in enumerate(shown.metrics):
        best, alike = ([row for row in shown.rows if getattr(row.cells[at], key)] for key in ("best", "like_best"))
        if best:
            names, others = (_some_of([row.label for row in rows]) for rows in (best, alike))
            value = f"{metric.title}: {figure_text(metric.factor * best[0].cells[at].summary.mean)}"
            return [("no clear best", f"{value}, {names}; not significantly different from {others}") if alike else (names, f"the best mean {value}")]
    return []


def _tiles(of: StudyPage) -> list[tuple[str, str]]:
    shown, search, rest, nouns = of.table, of.table.search, of.table.not_done, ("runs", "runs") if of.results.loose else ("trials", "trials done")
    others = "; the search stopped the others" if search and all(run.state == "stopped" for run in rest) else "; others are listed below"
    tiles = [(f"{len(of.shown) - len(rest)} of {len(of.shown)}", nouns[1] + others * bool(rest))]
    if search and search.best:
        metric = metric_named(search.metric)
        value = figure_text(metric.factor * (search.best_metric or 0))
        tiles.append((f"trial {search.best.number}", f"the best of {search.trials}, {metric.title}: {value}"))
    if search and search.steps_of_all:
        tiles.append((f"{search.steps_run / search.steps_of_all:.1%}",
                      f"of the whole grid: {search.steps_run:,} of {search.steps_of_all:,} steps"))
    if not search:
        by = f" by {titles(shown.by)}" if shown.by else ""
        tiles += [(f"{len(shown.rows):,}", f"group{'s' * (len(shown.rows) != 1)}{by}"), *_best_tile(shown)]
    seconds = sum(run.metrics.get("trial_s", run.metrics.get("train_s", 0.0)) for run in of.results.runs)
    return tiles + [(clock_text(seconds), f"for all {nouns[0]} together")] * (seconds > 0)


def tokens_by_step(log: RunLog) -> Curve:
    """The tokens trained on up to the end of each step; empty if the log lacks them."""
    counts = {number(one, "step"): positive(one, "tokens_per_s") * positive(one, "step_ms") * 1e-3 * batches(one) for one in log.metrics}
    if not all(map(math.isfinite, counts.values())):
        return {}
    return dict(zip(sorted(counts), itertools.accumulate(round(counts[step]) for step in sorted(counts))))


def _lines(of: StudyPage, column: str, clocks: dict[int, Curve] | None) -> Lines:
    """With a clock other than steps, two trials have no points in common, so there are no lines if a group has several trials. Equal curves share a line."""
    found: Lines = []
    for row in of.table.rows:
        runs = [run.number for run in row.group.done if run.number in of.logs]
        curves = [of.logs[run].curve(column) for run in runs]
        if clocks is not None and len(runs) > 1:
            return []
        if clocks is not None:
            curves = [{clocks[run][step]: value for step, value in curve.items() if step in clocks[run]} for run, curve in zip(runs, curves)]
        # The mean over the steps that all trials have. A non-finite value leaves a gap, since the mean of the others would hide it.
        steps = sorted(set.intersection(*map(set, curves))) if curves and not why_incomparable(row.group.done, column) else []
        mean = {step: statistics.fmean(curve[step] for curve in curves) for step in steps}
        if same := next((names for names, other, _ in found if other == mean), None):
            same.append(row.label or "all")
        elif sum(map(math.isfinite, mean.values())) > 1:
            found.append(([row.label or "all"], mean, curves))
    return found


def _series(lines: Lines, rates: bool) -> list[Block]:
    series = []
    for at, (names, mean, curves) in enumerate(lines[:MOST_CURVES]):
        values = list(mean.values())
        if len(lines) == 1 and len(curves) > 1:  # next to other lines, trials would be noise
            series += [line("a trial", list(curve), list(curve.values()), faint=True) for curve in curves]
        if len(values) >= LEAST_SMOOTHED:
            values = smoothed(values, max(2.0, 0.02 * len(values)), rates)
        series.append(line(_some_of(names) + " (the same values)" * (len(names) > 1), list(mean), values, SERIES[at],
                           dash=DASHES[at % len(DASHES)], points=len(values) < 30))
    return series


def _curves(of: StudyPage) -> list[Block]:
    charts = []
    for column, title in COLUMNS.items():
        clocks: dict[str, dict[int, Curve] | None] = {"step": None, **(of.clocks if "loss" in column else {})}
        why = why_incomparable([run for row in of.table.rows for run in row.group.done], column)
        for x, clock in clocks.items():
            if lines := _lines(of, column, clock):
                notes = [f"not comparable: {why}"] * bool(why) + [f"the first {MOST_CURVES} of {len(lines)} lines"] * (len(lines) > MOST_CURVES)
                charts.append(chart(title, _series(lines, column == "tokens_per_s"), x=x, note="; ".join(notes), zero="loss" not in column,
                                    share=column == "bubble"))
    return section("Curves", charts, "Mean over the trials of a group, for the steps that all have (from 100 steps on, the "
                   "exponential moving average over 2% of them). Faint, if there is one line: each trial. Click the legend to hide lines.")


def _mean(runs: Runs, column: str) -> float | None:
    values = [one for one in metrics_of(runs, column) if math.isfinite(one)]
    return statistics.fmean(values) if values else None


def _step_times(shown: StudyTable) -> list[Block]:
    """A step of each group (a recorded one if available, otherwise the mean of all): computing, and idle time by cause. Skips groups without data."""
    bars: list[Block] = []
    for row, of in itertools.product(shown.rows, ("recorded.", "")):
        label, runs = row.label or "all", row.group.done
        ms, bubble = _mean(runs, f"{of}median_step_ms"), _mean(runs, f"{of}bubble")
        if ms is None or bubble is None or (bars and bars[-1]["name"] == label):
            continue
        shares = [_mean(runs, f"recorded.bubble_causes.{cause}") if of else None for cause in CAUSES]
        known = any(share is not None for share in shares)
        of_all = _mean(runs, "bubble") if of else None
        idle = [0 if known else ms * bubble, *(ms * max(0.0, share or 0) for share in shares)]
        bars.append({"name": label, "values": [ms * (1 - bubble), *idle],
                     "text": f"{'recorded' if of else 'all'} steps: {duration_text(ms / 1e3)}, bubble {bubble:.1%}"
                             + ("" if of_all is None else f"; all steps: bubble {of_all:.1%}")})
    return section("Use of time", [cause_bars(bars, "ms")] if bars else [], "A step of each group, averaged over trials and ranks: "
                   "the recorded steps if there is a trace, otherwise all. Idle time is by cause, as on a run's page.")


def _link(of: StudyPage, run: int, directory: str) -> typing.Any:
    """The number of a trial, with a link to its page or directory."""
    return run_link(str(run), directory, of.output) if run in of.logs else str(run)


def _shown(cell: Cell, factor: float = 1) -> str:
    return figure_text(factor * cell) if isinstance(cell, float) else cell_text(cell)


def _trials(of: StudyPage) -> list[Block]:
    """A line per trial. For separate runs, differing keys are shown above."""
    loose, metrics, steps = of.results.loose, of.table.metrics, ["steps"] * bool(of.table.search)
    axes = [] if loose else of.results.axes
    rows = []
    for run in of.shown[:MOST_ROWS]:
        took = run.metrics.get("trial_s", run.metrics.get("train_s"))
        rows.append([_link(of, run.number, run.directory), *[run.text(RUN_COLUMN)] * loose, *map(run.text, axes),
                     {"text": run.state, "look": "differs" * (run.state in ("failed", "timeout"))}, *(_shown(run.cell(column)) for column in steps),
                     *(_shown(run.cell(metric.name), metric.factor) for metric in metrics), "" if took is None else clock_text(took)])
    head = [*(("run", "directory") if loose else ("trial",)), *axes, "state", *steps, *(metric.title for metric in metrics),
            "trained" if loose else "took"]
    cut = [words("note", f"The first {MOST_ROWS} of {len(of.shown)} trials; results.csv has all.")] * (len(of.shown) > MOST_ROWS)
    return section("Runs" if loose else "Trials", [table(head, rows, left=2 if loose else 1), *cut])


def _errors(of: StudyPage) -> list[Block]:
    rows = [[trials_text([run.number for run in runs]), state, {"text": error, "look": "text"}]
            for (state, error), runs in ends_of(of.table.not_done).items() if error]
    return section("Errors", [table(["trials", "state", "error"], rows, left=3)] if rows else [])


def _value_row(key: str, values: dict[int, str]) -> tuple[str, str]:
    """The key, and each of its values with the trials that have it."""
    by_value: dict[str, list[int]] = {}
    for trial, value in values.items():
        by_value.setdefault(value, []).append(trial)
    return key, "; ".join(f"{value} ({trials_text(trials)})" for value, trials in sorted(by_value.items()))


def _settings(of: StudyPage) -> list[Block]:
    """Axes and their values; other keys that differ between configs; files of the study and of its first run."""
    rows = []
    for axis in [] if of.results.loose else of.results.axes:
        values = list(filter(None, dict.fromkeys(run.text(axis) for run in of.results.chosen())))
        rows.append((axis, ", ".join(values[:MOST_VALUES]) + f" and {len(values) - MOST_VALUES} more" * (len(values) > MOST_VALUES)))
    runs = [run for run in of.results.runs if run.number in of.logs]
    configs = {run.number: config_texts(run.directory) for run in runs}
    for key in sorted({key for config in configs.values() for key in config} - set(of.results.axes) - set(PLACES)):
        held = {run: config[key] for run, config in configs.items() if key in config}
        rows += [_value_row(key, held)] if len(set(held.values())) > 1 else []
    files = [(pathlib.Path(of.results.directory, "study.toml"), "study.toml")] if of.results.directory else []
    files += [(pathlib.Path(run.directory, "config.toml"), f"config.toml of {'run' if of.results.loose else 'trial'} {run.number}") for run in runs[:1]]
    texts = [block for path, name in files if path.is_file() for block in folded(name, read_text(path))]
    return section("Settings", [*[table([], rows, left=2, look="about")] * bool(rows), *texts])


def _origin(runs: Runs) -> list[Block]:
    facts = {fact: {run.number: text for run in runs if (text := run.facts.get(fact, ""))} for fact in FACTS}
    rows = [_value_row(fact, values) for fact, values in facts.items() if values]
    return section("Environment", [table([], rows, left=2, look="about")] if rows else [])
