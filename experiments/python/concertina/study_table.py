"""The table of a study: a row per group of runs with mean, spread and difference from a baseline for each metric, and notes.

Equal results give equal tables, in whatever order trials finished. Failed trials and non-finite values are listed and never averaged."""
from __future__ import annotations

import dataclasses
import itertools
import math
import typing

from . import comparison as compared
from .comparison import Comparison, add_times_to
from .errors import InputError, library, require_word
from .measures import default_metrics, provenance_notes, same_bits, incomparable_notes, why_incomparable
from .names import Digits, Metric, counted, digits_for, is_time_to, number_or_text, number_text, trials_text
from .results import (RUN_COLUMN, SEED, Claim, Group, Runs, StudyResults, group_label, groups_of, metrics_of, never_came, study_results, titles)
from .statistic import PAIRED, Difference, Equivalence, Summary, interval, summarize, test_equivalence
from .study_claims import Front, Search, make_front, search_of


@dataclasses.dataclass
class TableOptions:
    """The contents of a table. Lists of "COLUMN=VALUE" and columns are as on the command line."""
    metrics: list[str] = dataclasses.field(default_factory=list)  # empty: default_metrics()
    by: list[str] = dataclasses.field(default_factory=list)  # columns that define groups; empty: all axes except run.seed
    baseline: list[str] = dataclasses.field(default_factory=list)  # empty: the first group; ["none"]: no differences
    pair: str = SEED
    confidence: float = 0.95
    test: str = PAIRED
    correction: str = "holm"
    where: list[str] = dataclasses.field(default_factory=list)
    sort: str = ""
    mixed: bool = False
    notes: bool = True
    contests: bool = True  # add notes on groups that are not significantly worse than the best
    claim: Claim | None = None  # None: that of the study's file
    front: list[str] = dataclasses.field(default_factory=list)
    targets: list[str] = dataclasses.field(default_factory=list)  # "METRIC=NUMBER|baseline"
    stopped: bool = False


@dataclasses.dataclass
class TableCell:
    summary: Summary
    missing: int = 0  # runs without the metric
    never: int = 0  # runs that did not reach the target, so there is no mean
    best: bool = False
    like_best: bool = False  # not the best, but not significantly worse
    difference: Difference | None = None  # to the baseline
    p: float | None = None  # of the difference, corrected
    equivalence: Equivalence | None = None

    def numbers(self) -> dict[str, float | None]:
        """The numbers by name; None if absent."""
        summary, moved = self.summary, self.difference or Difference()
        low, high = interval(summary.mean, summary.half_width)
        moved_low, moved_high = interval(moved.difference, moved.half_width)
        return {"mean": summary.mean if summary.n else None, "sd": summary.sd, "ci_low": low, "ci_high": high,
                "difference": moved.difference if self.difference else None, "difference_ci_low": moved_low,
                "difference_ci_high": moved_high, "p_single": moved.p, "p": self.p}


@dataclasses.dataclass
class TableRow:
    """A group with a cell for each metric; `base`: the row that it is compared with."""
    label: str
    group: Group
    cells: list[TableCell]
    baseline: bool = False
    base: TableRow | None = None


@dataclasses.dataclass
class StudyTable:
    """Groups of runs, with data for each metric."""
    study: str
    loose: bool
    by: list[str]
    metrics: list[Metric]
    rows: list[TableRow]
    comparison: Comparison
    not_done: Runs
    correction: str = "holm"
    with_notes: bool = True
    baseline: str = ""  # "1f1b"; empty: no differences
    how: str = ""  # comparison method: "paired t test over 3 pairs of ..."
    notes: list[str] = dataclasses.field(default_factory=list)
    search: Search | None = None
    claim: Claim | None = None
    claim_in_file: bool = False
    front: Front | None = None

    @property
    def confidence(self) -> float:
        return self.comparison.confidence

    def significant(self, p: float | None) -> bool:
        return p is not None and p < 1 - self.confidence

    def digits(self, metric: int) -> Digits:
        """As many digits as the deviations of the metric justify, in its unit."""
        factor, cells = self.metrics[metric].factor, [row.cells[metric] for row in self.rows]
        return digits_for([factor * cell.summary.mean for cell in cells if cell.summary.n], [factor * (cell.summary.sd or 0) for cell in cells])

    def frame(self) -> typing.Any:
        """A pandas.DataFrame with a row per group and, for each metric, the columns n, mean, sd, ci_low, ci_high, p, ..."""
        pandas = library("pandas")
        rows = {row.group.values or "all": {(metric.name, name): value for metric, cell in zip(self.metrics, row.cells)
                                     for name, value in {"n": cell.summary.n, **cell.numbers()}.items()} for row in self.rows}
        frame = pandas.DataFrame.from_dict(rows, orient="index")
        frame.columns = pandas.MultiIndex.from_tuples(list(frame.columns), names=["metric", "figure"])
        frame.index = pandas.Index([group[0] if len(self.by) == 1 else group for group in rows])
        return frame.rename_axis(index=self.by) if self.by else frame


def _metrics(results: StudyResults, options: TableOptions, claim: Claim | None) -> list[Metric]:
    metrics = [results.metric_of(word) for word in options.metrics] if options.metrics else default_metrics(results)
    also = list(options.front)
    if claim:  # no trial may have the claimed metrics yet; as good, but faster
        also = [claim.metric] * (options.claim is not None or results.has(claim.metric)) + ["train_s"] * results.has("train_s") + also
    for word in also:
        metric = results.metric_of(word)
        if metric.name not in [known.name for known in metrics]:
            metrics.append(metric)
    return metrics


def _groups(results: StudyResults, options: TableOptions, runs: Runs) -> tuple[list[str], list[Group]]:
    for column in options.by:
        results.require(column, "--by")
    by = options.by or [axis for axis in results.axes if axis not in (SEED, options.pair)]
    groups = groups_of(runs, by)
    if results.rung_steps:  # the search reports the trials that it stopped
        groups = [group for group in groups if group.done or any(run.state != "stopped" for run in group.others)]
    return by, groups


def _find_baselines(table: StudyTable, wanted: dict[int, str]) -> str:
    """The baseline of a row has the `wanted` values and, in other columns, the row's own. Returns a note about rows without a baseline."""
    rows, without = {row.group.values: row for row in table.rows}, []
    for row in table.rows:
        values = tuple(wanted.get(c, value) for c, value in enumerate(row.group.values))
        row.baseline, base = values == row.group.values, rows.get(values)
        if not row.baseline and base and base.group.done:
            row.base = base
        elif not row.baseline:
            without.append(row.label)
    table.baseline = group_label([table.by[c] for c in sorted(wanted)], [wanted[c] for c in sorted(wanted)])
    return f"no baseline trial to compare with: {'; '.join(without)}" if without else ""


def _compare_with_baselines(table: StudyTable) -> None:
    """Computes differences, their p-values, and the claim's tests."""
    differences: list[list[Difference]] = []
    for m, metric in enumerate(table.metrics):
        cells = []
        for row in table.rows:
            cell = row.cells[m]
            if not row.base or not cell.summary.n or never_came(row.base.group, metric.name) or \
                    why_incomparable([*row.base.group.done, *row.group.done], metric.name):
                continue
            cell.difference = table.comparison.difference(row.base.group, row.group, metric.name)
            cells.append(cell)
            if table.claim and table.claim.metric == metric.name:
                pairs = table.comparison.pairs(row.base.group, row.group, metric.name)
                cell.equivalence = test_equivalence(pairs, table.claim.margin, table.claim.alpha)
        differences.append([cell.difference for cell in cells if cell.difference])
        for cell, p in zip(cells, compared.corrected([one.p for one in differences[-1]], table.correction)):
            cell.p = p
    table.how = compared.comparison_text(differences, table.comparison.pairing, table.correction)


def _named(rows: list[TableRow], most: int = 4) -> str:
    return ", ".join([row.label for row in rows[:most]] + [counted(len(rows) - most, "other")] * (len(rows) > most))


def _mark_best(table: StudyTable, m: int) -> str:
    """Marks the best mean of a metric and those not significantly different from it; returns a note if there are any."""
    metric, sign = table.metrics[m], -1 if table.metrics[m].better == "higher" else 1
    rows = sorted((row for row in table.rows if row.cells[m].summary.n), key=lambda row: sign * row.cells[m].summary.mean)
    if metric.better is None or not rows or why_incomparable([run for row in rows for run in row.group.done], metric.name):
        return ""
    digits, factor = table.digits(m), metric.factor
    printed = [number_text(factor * row.cells[m].summary.mean, digits) for row in rows]
    alike = next((at for at, text in enumerate(printed) if text != printed[0]), 0)  # values that are printed equally are marked equally
    if not alike:
        return ""
    marked, others, best = rows[:alike], rows[alike:], rows[0]
    if not sign * table.comparison.difference(others[0].group, best.group, metric.name).difference < 0:
        return (f"{metric.short}: {best.label} has the best mean, but not among its pairs with {others[0].label}; none is marked")
    for row in marked:
        row.cells[m].best = True
    # Corrected p-values for the best row against each other row; if the table prints the same comparison, its p-value.
    p = compared.corrected([table.comparison.difference(row.group, best.group, metric.name).p for row in others], table.correction)
    p = [row.cells[m].p if row.base is best else best.cells[m].p if best.base is row else of_row for row, of_row in zip(others, p)]
    like = [row for row, of_row in zip(others, p) if not table.significant(of_row)]
    for row in like:
        row.cells[m].like_best = True
    tested = any(of_row is not None for of_row in p)
    return (f"{metric.short}: {_named(marked)} {'is' if len(marked) == 1 else 'are'} the best, but not significantly different from {_named(like)}"
            f"{'' if tested else ': too few trials for a test'}") if like else ""


def _left_out(table: StudyTable, done: Runs) -> typing.Iterator[str]:
    """Omitted values, by metric."""
    for metric in table.metrics:
        kinds: dict[str, list[int]] = {"NaN": [], "never" if is_time_to(metric.name) else "infinite": [], "no finite value": []}
        nan, infinite, absent = kinds.values()
        for run in done:
            value = run.number_in(metric.name)
            (absent if value is None else nan if math.isnan(value) else infinite if math.isinf(value) else []).append(run.number)
        for what, numbers in kinds.items():
            if numbers:
                yield f"{metric.short}: {what} in {trials_text(numbers)}{': its group has no mean' if what == 'never' else ', omitted'}"


def _sort(table: StudyTable, column: str) -> None:
    names = [metric.name for metric in table.metrics]
    require_word(column, [*table.by, *names], f"the table has no column '{column}'", "--sort")

    def key(row: TableRow) -> tuple:
        if column not in names:  # numbers by size, before texts
            text = row.group.values[table.by.index(column)]
            value = number_or_text(text)
            return isinstance(value, str), 0.0 if isinstance(value, str) or math.isnan(value) else value, text
        summary = row.cells[names.index(column)].summary
        sign = -1 if table.metrics[names.index(column)].better == "higher" else 1
        return summary.n == 0, sign * summary.mean if summary.n else 0.0

    table.rows.sort(key=key)


def make_table(results: StudyResults, options: TableOptions) -> StudyTable:
    """The table of results, which already contain the columns for --to. Raises InputError for unknown columns and values.

    A row's baseline is the row with the baseline's values and, in other columns, its own: with parallel.schedule=1f1b, a group with pp = 2 is
    compared with 1f1b at pp = 2."""
    if not 0 < options.confidence < 1:
        raise InputError(f"confidence must be between 0 and 1, got {options.confidence:g}", "--confidence", "0.95")
    if len(options.front) not in (0, 2):
        raise InputError(f"a front needs two metrics, got {len(options.front)}", "--front", "--front train_s,validation_loss")
    runs, claim = results.chosen(options.where), options.claim or results.claim
    metrics, (by, groups) = _metrics(results, options, claim), _groups(results, options, runs)
    pairing = compared.pairing_columns(results, options.pair, by, groups)
    baseline = options.baseline or (claim.baseline if claim else []) or compared.default_baseline(results, by, groups)
    baseline = [] if baseline == ["none"] else baseline
    done = [run for run in runs if run.state == "done"]
    provenance = provenance_notes(done, results, options.mixed)
    rows = [TableRow(group_label(by, group.values), group, []) for group in groups]
    for row, metric in itertools.product(rows, metrics):
        values, never = metrics_of(row.group.done, metric.name), never_came(row.group, metric.name)
        row.cells.append(TableCell(summarize([] if never else values, options.confidence), len(row.group.done) - len(values), never))
    table = StudyTable(results.name, results.loose, by, metrics, rows, Comparison(pairing, options.test, options.confidence),
                       [run for run in runs if run.state != "done"], options.correction, options.notes, notes=list(results.notes),
                       search=search_of(results), claim=claim,
                       claim_in_file=options.claim is None and results.claim is not None and baseline == results.claim.baseline)
    if wanted := compared.baseline_values(results, by, groups, baseline):
        table.notes.append(_find_baselines(table, wanted))
        _compare_with_baselines(table)
    if rows and not any(row.baseline for row in rows) and (options.claim or options.front):
        what, option = ("for the equivalence", "--equivalent") if options.claim else ("for a front", "--front")
        raise InputError(f"no baseline {what}", option, "--baseline COLUMN=VALUE")
    pooled = [axis for axis in compared.pooled_axes(results, by, groups) if axis not in (SEED, options.pair)]
    table.notes += incomparable_notes(done, metrics) + [f"some group has trials with different {titles(pooled)}"] * bool(pooled)
    contests = [_mark_best(table, m) for m in range(len(metrics))]
    of_groups = sorted((run for group in groups for run in group.done), key=lambda run: run.number)
    table.notes += [*contests * options.contests, *_left_out(table, of_groups), *same_bits(done, results.axes), *provenance]
    table.notes = [note for note in table.notes if note]
    if options.sort:
        _sort(table, options.sort)
    if options.front:
        table.front = make_front(table, *map(results.metric_of, options.front))
    return table


def with_targets(results: StudyResults, options: TableOptions) -> TableOptions:
    """Returns `options` with target columns added as metrics, and adds them to runs. Runs that no study launched become separate rows."""
    if options.stopped:
        results.include_stopped()
    by = options.by or ([RUN_COLUMN] if results.loose else [])
    baseline = options.baseline or (results.claim.baseline if results.claim else [])
    columns = add_times_to(results, options.targets, [] if baseline == ["none"] else baseline)
    metrics = options.metrics or ([metric.name for metric in default_metrics(results)] if columns else [])
    return dataclasses.replace(options, by=by, metrics=metrics + columns)


def table(*folders: str, **options: typing.Any) -> StudyTable:
    """The table for a study's folder, or for runs; `options` are those of TableOptions. `.frame()` returns a DataFrame."""
    results = study_results(*folders)
    return make_table(results, with_targets(results, TableOptions(**options)))
