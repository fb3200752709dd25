"""The page of runs beside each other: configs, bits, table, curves, where the time went, runs and where they are from."""
from __future__ import annotations

import math
import os
import pathlib
import statistics

from .files import read_text
from .measures import why_unlike
from .names import Metric
from .page import SERIES, Block, chart, content, folded, line, smoothed, table, words
from .recorded_steps import CAUSES, cause_bars
from .results import RUN_COLUMN, Cell, Group, RunSummary, cell_text, figures_of, titles
from .run_comparison import RunComparison
from .run_log import Curve, RunLog, batches, number, positive, read_log
from .run_page import CURVES
from .table_formats import table_text
from .texts import clock_text, duration_text, figure_text, share_text

DASHES: list[list[int]] = [[], [8, 3], [2, 3], [9, 3, 2, 3], [5, 2]]
MOST_CURVES, LEAST_SMOOTHED, MOST_RUNS = 8, 100, 256
FACTS = ("version", "commit", "program", "host", "processor", "device", "isa", "compute", "onednn", "libraries")
COLUMNS = {"loss": CURVES["loss"], "validation_loss": "held-out loss, per target", "tokens_per_s": CURVES["tokens_per_s"],
           "bubble": CURVES["bubble"], "grad_norm": CURVES["grad_norm"]}

Curves = list[tuple[str, Curve]]  # with the names of the lines


def compare_page(compared: RunComparison, output: str | os.PathLike[str]) -> Block:
    """The content of the page at `output`: links are relative to it."""
    runs, shown = compared.runs, compared.table
    keys = f"{len(runs.axes)} keys" if len(runs.axes) > MOST_CURVES else titles(runs.axes)
    logs = {run.number: read_log(run.directory) for run in runs.runs}
    blocks = [{"kind": "tiles", "tiles": _tiles(compared)}, words("heading", "Configs")]
    rows = compared.rows()
    blocks += [table(rows[0], rows[1:], left=len(rows[0]))] if rows else []
    blocks += [words("note", compared.config_note)] if compared.config_note else []
    blocks += [words("heading", "Bits"), {"kind": "list", "items": compared.bit_lines()}, words("heading", "Table"),
               {"kind": "html", "html": table_text(shown, "html", "difference")}]
    groups = [(row.label or "all", row.group) for row in shown.rows]
    blocks += _curves(groups, logs) + _step_times(groups) + _runs(compared, output) + _settings(compared) + _origin(runs.runs)
    return content(shown.study, f"whose configs differ in {keys}" if runs.axes else "of the same config", blocks)


def _tiles(compared: RunComparison) -> list[tuple[str, str]]:
    shown = compared.table
    tiles = [(str(len(compared.runs.runs)), "runs"), ("same" if compared.same else "differ", "bits, as far as they are known")]
    for at, metric in enumerate(shown.metrics):
        if best := [row for row in shown.rows if row.cells[at].best]:
            value = figure_text(metric.factor * best[0].cells[at].summary.mean)
            tiles.append((" and ".join(row.label for row in best[:3]), f"best {metric.title}: {value}"))
            break
    seconds = sum(run.figures.get("train_s", 0) for run in compared.runs.runs)
    return tiles + ([(clock_text(seconds), "of training in all runs together")] if seconds else [])


def _mean_curve(curves: list[Curve]) -> Curve:
    """Of the steps that all have. One value that is not finite makes a gap: the others' mean would hide it."""
    common = sorted(set.intersection(*(set(curve) for curve in curves))) if curves else []
    return {step: statistics.fmean(curve[step] for curve in curves) for step in common}


def tokens_by_step(log: RunLog) -> Curve:
    """The tokens trained up to the end of each step; empty of a log that does not say them."""
    counts = {number(one, "step"): positive(one, "tokens_per_s") * positive(one, "step_ms") * 1e-3 * batches(one) for one in log.metrics}
    total, curve = 0.0, {}
    for step in sorted(counts):
        curve[step] = total = total + (round(counts[step]) if math.isfinite(counts[step]) else math.nan)
    return {} if math.isnan(total) else curve


def _clocked(curve: Curve, clock: Curve) -> Curve:
    return {clock[step]: value for step, value in curve.items() if step in clock}


def _group_curves(groups: list[tuple[str, Group]], logs: dict[int, RunLog], column: str, clocks: dict[int, Curve] | None) -> Curves:
    """By another clock than steps two runs have no point in common: none where a group has several. Equal curves are one line."""
    found: Curves = []
    for label, group in groups:
        curves = [logs[run.number].curve(column) for run in group.done]
        if clocks is not None and len(curves) > 1:
            return []
        curves = curves if clocks is None else [_clocked(curve, clocks[run.number]) for run, curve in zip(group.done, curves)]
        mean = _mean_curve(curves)
        if sum(map(math.isfinite, mean.values())) < 2:
            continue
        same = next((at for at, (_, other) in enumerate(found) if other == mean), None)
        if same is None:
            found.append((label, mean))
        else:
            found[same] = f"{found[same][0]}, {label}", mean
    return [(label if label in dict(groups) else f"{label} (the same values)", curve) for label, curve in found]


def _series(curves: Curves, rates: bool) -> list[Block]:
    series = []
    for at, (label, curve) in enumerate(curves[:MOST_CURVES]):
        values = list(curve.values())
        if len(values) >= LEAST_SMOOTHED:
            values = smoothed(values, max(2.0, 0.02 * len(values)), rates)
        series.append(line(label, list(curve), values, SERIES[at], dash=DASHES[at % len(DASHES)], points=len(values) < 30))
    return series


def _curves(groups: list[tuple[str, Group]], logs: dict[int, RunLog]) -> list[Block]:
    tokens = {at: tokens_by_step(log) for at, log in logs.items()}
    per_step = {round(count / step) for curve in tokens.values() for step, count in curve.items() if step}
    clocks: list[tuple[str, dict[int, Curve] | None]] = [("step", None), ("seconds of training", {at: log.seconds for at, log in logs.items()})]
    if len(per_step) > 1:  # else a picture by tokens is that by steps
        clocks.insert(1, ("tokens", tokens))
    charts = []
    for column, title in COLUMNS.items():
        unlike = why_unlike([run for _, group in groups for run in group.done], column)
        for x, clock in clocks if "loss" in column else clocks[:1]:
            curves = _group_curves(groups, logs, column, clock)
            note = f"the first {MOST_CURVES} of {len(curves)}" if len(curves) > MOST_CURVES else ""
            if unlike and curves:
                note = "; ".join(filter(None, (note, f"not of one measure: {unlike}")))
            if curves:
                charts.append(chart(title, _series(curves, column == "tokens_per_s"), x=x, note=note, zero="loss" not in column,
                                    share=column == "bubble"))
    lead = ("The mean over the runs of a group, of the steps that all of them have (of 100 steps and more, the exponential mean over 2% of "
            "them). The legend hides lines.")
    return [words("heading", "Curves"), words("lead", lead), *charts] if charts else []


def _mean(runs: list[RunSummary], column: str) -> float | None:
    values = [one for one in figures_of(runs, column) if math.isfinite(one)]
    return statistics.fmean(values) if values else None


def _step_times(groups: list[tuple[str, Group]]) -> list[Block]:
    """A step of each group, of the recorded steps, else of all: computing, and idle by cause. Groups that say neither are left out."""
    bars = []
    for label, group in groups:
        for of in ("recorded.", ""):
            ms, bubble = _mean(group.done, f"{of}median_step_ms"), _mean(group.done, f"{of}bubble")
            if ms is None or bubble is None:
                continue
            shares = [_mean(group.done, f"{of}bubble_causes.{cause}") if of else None for cause in CAUSES]
            known = any(share is not None for share in shares)
            bars.append({"name": label, "values": [ms * (1 - bubble), 0 if known else ms * bubble,
                                                   *(ms * max(0.0, share or 0) for share in shares)],
                         "text": f"{duration_text(ms / 1e3)}, bubble {share_text(bubble)} of {'recorded' if known else 'all'} steps"})
            break
    lead = ("A step of each group, mean over its runs and over ranks: of the recorded steps where a trace was kept, else of all. Idle time is "
            "by cause, as on the page of a run.")
    return [words("heading", "Where the time went"), words("lead", lead), cause_bars(bars, "ms")] if bars else []


def _shown(cell: Cell, metric: Metric) -> str:
    return figure_text(metric.factor * cell) if isinstance(cell, float) else cell_text(cell)


def _runs(compared: RunComparison, output: str | os.PathLike[str]) -> list[Block]:
    """A line per run, with a link to its directory or page."""
    metrics, rows = compared.table.metrics, []
    base = pathlib.Path(output).resolve().parent
    for run in compared.runs.runs[:MOST_RUNS]:
        report = pathlib.Path(run.directory, "report.html")
        link = os.path.relpath((report if report.is_file() else report.parent).resolve(), base)
        took = run.figures.get("train_s")
        rows.append([{"text": f"{run.number}{' (report)' if report.is_file() else ''}", "href": link}, run.text(RUN_COLUMN),
                     run.state, *(_shown(run.cell(metric.name), metric) for metric in metrics), "" if took is None else clock_text(took)])
    head = ["run", "directory", "state", *(metric.title for metric in metrics), "trained"]
    cut = [words("note", f"The first {MOST_RUNS} of {len(compared.runs.runs)} runs.")] * (len(compared.runs.runs) > MOST_RUNS)
    return [words("heading", "Runs"), table(head, rows, left=2), *cut]


def _settings(compared: RunComparison) -> list[Block]:
    """The config of the first run that has one: the others differ in the keys above."""
    for run in compared.runs.runs:
        path = pathlib.Path(run.directory, "config.toml")
        if path.is_file():
            return folded(f"config.toml of {run.name}", read_text(path))
    return []


def _origin(runs: list[RunSummary]) -> list[Block]:
    """Programs and machines, and which runs are from each."""
    rows = []
    for fact in FACTS:
        values: dict[str, list[str]] = {}
        for run in runs:
            if said := run.facts.get(fact):
                values.setdefault(said, []).append(run.name)
        if values:
            rows.append([fact, "; ".join(said if len(values) == 1 and len(names) == len(runs) else f"{said} ({', '.join(names)})"
                                         for said, names in values.items())])
    return [words("heading", "Where it is from"), table([], rows, left=2, look="about")] if rows else []
