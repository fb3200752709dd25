"""`concertina study report`: one HTML page on a study, with its table, curves, times and trials, and where they are from.

`page_data` makes all that the page shows, as values of JSON and SVG; study_report.html is its template. The page needs nothing beside it,
and has its numbers as JSON in the element `numbers`.
"""
from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import math
import os
import pathlib
import re
import typing

import jinja2
import numpy as np
import pandas

from .charts import COLOURS, GREY, INK, LINE, PAPER, SOFT, Axis, Chart, Series, draw, save
from .command import print_whole, replace_file, require_output
from .errors import InputError
from .files import read_bytes
from .measures import why_unlike
from .names import digits_for, metric_named, number_text
from .results import RUN_COLUMN, Cell, RunSummary, Runs, StudyResults, cell_text, figures_of, titles
from .run_log import Curve, RunLog, batches, number, read_log
from .run_set import PLACES, config_texts, study_results
from .statistic import PAIRED, WILCOXON, summarize
from .study_folder import write_json
from .study_plot import mean_curve
from .study_power import claim_of
from .study_table import StudyTable, TableOptions, make_table, with_targets
from .table_formats import table_json, table_text
from .texts import counted, grouped, trials_text

if typing.TYPE_CHECKING:
    from .run_comparison import RunComparison
    from .subcommands import Options

Json = dict[str, typing.Any]

_CAUSES = ("schedule", "imbalance", "variation", "transfer", "reduction", "optimizer", "other")
_CAUSE_LOOKS = (6, 7, 4, 3, 2, 5, 1)
_FACTS = ("version", "commit", "program", "host", "processor", "device", "isa", "compute", "onednn", "libraries")
_MOST_CURVES, _MOST_POINTS, _MOST_ROWS, _MOST_VALUES = 8, 500, 256, 40
_MOST_BYTES = 1 << 20  # of a file that the page contains
_LEAST_SMOOTHED = 100  # steps; fewer are read as they are
_CHART_INCHES = 3.6
_VARIABLES = {PAPER: "back", INK: "ink", SOFT: "soft", LINE: "line", GREY: "grey", COLOURS[0]: "blue", COLOURS[6]: "dark"}


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


def load_page(results: StudyResults, options: TableOptions, path: str) -> StudyPage:
    """`path`: of the page; links are relative to its directory."""
    return StudyPage(results, make_table(results, options), _page_runs(results, path))


def comparison_page(found: RunComparison, path: str) -> str:
    """The page of `concertina compare`: configs and bits, then what the page of a study has."""
    return study_page(StudyPage(found.runs, found.table, _page_runs(found.runs, path), found))


def _page_runs(results: StudyResults, path: str) -> dict[int, PageRun]:
    runs = {}
    for run in results.runs:
        if run.directory and os.path.isdir(run.directory):
            report, base = os.path.join(run.directory, "report.html"), os.path.dirname(os.path.abspath(path))
            link = pathlib.Path(os.path.relpath(run.directory, base)).as_posix()
            runs[run.number] = PageRun(read_log(run.directory), run.directory, link, f"{link}/report.html" if os.path.exists(report) else "")
    return runs


def duration_text(seconds: float) -> str:
    for least, unit in ((7200, "h"), (120, "min"), (1, "s"), (1e-3, "ms")):
        if abs(seconds) >= least:
            return f"{seconds / {'h': 3600, 'min': 60, 's': 1, 'ms': 1e-3}[unit]:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def _tile(value: str, text: str) -> Json:
    return {"value": value, "text": text}


def _some_of(names: list[str]) -> str:
    """ "1f1b, zb-v and 3 others"."""
    return ", ".join(names) if len(names) <= 3 else f"{', '.join(names[:2])} and {len(names) - 2} others"


def _best_tile(table: StudyTable) -> list[Json]:
    """The best group of the first metric that has one; where others may be as good, that."""
    for m, metric in enumerate(table.metrics):
        best, alike = ([row for row in table.rows if getattr(row.cells[m], key)] for key in ("best", "like_best"))
        if not best:
            continue
        value = f"{metric.title}: {number_text(metric.factor * best[-1].cells[m].summary.mean, table.digits(m))}"
        names = _some_of([row.label for row in best])
        if alike:
            return [_tile("no clear best", f"{value}, {names}; cannot be told from {_some_of([row.label for row in alike])}")]
        return [_tile(names, f"the best mean {value}")]
    return []


def _tiles(page: StudyPage) -> list[Json]:
    table, search = page.table, page.table.search
    done, not_done = sum(len(row.group.done) for row in table.rows), table.not_done
    others = "; the search stopped the others" if search and all(run.state == "stopped" for run in not_done) else "; the others are below"
    tiles = [_tile(f"{done} of {done + len(not_done)}", "trials done" + others * bool(not_done))]
    if search:
        name = metric_named(search.metric)
        if search.best:
            tiles.append(_tile(f"trial {search.best.number}", f"the best of {search.trials}, {name.title}: {name.factor * search.best_metric:#.5g}"))
        if search.steps_of_all:
            tiles.append(_tile(f"{100 * search.steps_run / search.steps_of_all:.0f}%",
                               f"of the whole grid: {grouped(search.steps_run)} of {grouped(search.steps_of_all)} steps"))
    else:
        tiles.append(_tile(grouped(len(table.rows)), ("group" if len(table.rows) == 1 else "groups") + f" by {titles(table.by)}" * bool(table.by)))
        tiles += _best_tile(table)
    seconds = sum(run.figures.get("trial_s", 0.0) for run in page.results.runs)
    return tiles + [_tile(duration_text(seconds), "of all trials together")] * (seconds > 0)


def _subtitle(page: StudyPage) -> str:
    axes, loose = page.results.axes, page.results.loose
    over = counted(len(axes), "key") if len(axes) > _MOST_CURVES else titles(axes)
    if loose:
        return f"runs whose configs differ in {over}" if axes else "runs of the same config"
    return f"study over {over}" if axes else "study over one trial"


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
    for look, (names, mean, curves) in enumerate(drawn[:_MOST_CURVES]):
        if len(drawn) == 1 and len(curves) > 1:
            of_runs = [Series("", list(curve), [factor * value for value in curve.values()], faint=True, look=look) for curve in curves]
            series += map(_thinned, of_runs)
        mean.name, mean.look, mean.y = f"{_some_of(names)}{' (the same values)' * (len(names) > 1)}", look, [factor * value for value in mean.y]
        series.append(_smoothed(mean, column == "tokens_per_s"))
    why = why_unlike([run for row in page.table.rows for run in row.group.done], column)
    notes = [f"not comparable: {why}"] * bool(why) + [f"the first {_MOST_CURVES} of {len(drawn)} lines"] * (len(drawn) > _MOST_CURVES)
    return Chart("curves", Axis(clock), Axis(metric.label, metric.unit, from_zero=not column.endswith("loss")), series,
                 note="; ".join(notes), width=_CHART_INCHES)


def _curve_charts(page: StudyPage) -> dict[str, Chart]:
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


def _step_times(page: StudyPage) -> list[Json]:
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


def _step_chart(rows: list[Json]) -> Chart:
    parts = ("computing and updating", "idle", *_CAUSES)
    names = [f"{row['label']}\n{row['text'].partition(' of ')[0]}" for row in rows]
    series = [Series(part, names, [row["ms"].get(part, math.nan) for row in rows], look=look) for part, look in zip(parts, (0, -1, *_CAUSE_LOOKS))]
    return Chart("stacks", Axis("a step", "ms"), series=series, width=_CHART_INCHES)


def _inline(chart: Chart, name: str) -> str:
    """The chart as SVG for a page, whose colours it takes, as wide as there is room for."""
    text = save(draw(chart), ".svg", name).decode()
    text = re.sub(r'(<svg[^>]*?) (?:width|height)="[^"]*"([^>]*?) (?:width|height)="[^"]*"', r"\1\2", text[text.index("<svg"):])
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", text, flags=re.DOTALL)
    used = set(re.findall(r'#([\w-]+)["\')]', text))
    text = re.sub(r' id="([^"]*)"', lambda found: found[0] if found[1] in used else "", text)
    for colour, variable in _VARIABLES.items():
        text = text.replace(f": {colour}", f": var(--{variable})")
    return text.replace("<svg ", f'<svg role="img" aria-label="{name}" ', 1).replace("\n", " ")


def _cell(text: str, link: str = "", style: str = "") -> Json:
    return {"text": text, "link": link, "class": style}


def _trial_cell(page: StudyPage, run: RunSummary) -> Json:
    of = page.runs.get(run.number)
    return _cell(f"{run.number}{' (report)' if of and of.report else ''}", (of.report or of.link) if of else "")


def _number_text(cell: Cell, factor: float) -> str:
    if not isinstance(cell, float):
        return cell_text(cell)
    value = factor * cell
    return grouped(round(value)) if 1e4 <= abs(value) < 1e15 else f"{value:.5g}" if math.isfinite(value) else number_text(value, digits_for([], []))


def _trials(page: StudyPage) -> Json:
    loose, axes, metrics = page.results.loose, page.results.axes, page.table.metrics
    head = ["trial"] + ["run"] * loose + [metric_named(axis).title for axis in axes] + ["state"] + ["steps"] * bool(page.table.search)
    head += [metric.title for metric in metrics] + ["took"]
    rows = []
    for run in page.shown[:_MOST_ROWS]:
        row = [_trial_cell(page, run)] + [_cell(run.text(RUN_COLUMN), "", "group")] * loose + [_cell(run.text(axis), "", "group") for axis in axes]
        row += [_cell(run.state, "", f"state-{run.state}")] + [_cell(_number_text(run.cell("steps"), 1))] * bool(page.table.search)
        row += [_cell(_number_text(run.cell(metric.name), metric.factor)) for metric in metrics]
        took = run.figures.get("trial_s")
        rows.append(row + [_cell("" if took is None else duration_text(took))])
    more = len(page.shown) > _MOST_ROWS
    return {"head": head, "rows": rows, "left_out": f"The first {_MOST_ROWS} of {len(page.shown)} trials; results.csv has all." * more}


def _errors(page: StudyPage) -> list[list[Json]]:
    ends: dict[tuple[str, str], Runs] = {}
    for run in page.table.not_done:
        if run.error:
            ends.setdefault((run.state, run.error.rstrip("\n")), []).append(run)
    return [[{"parts": [_trial_cell(page, run) for run in runs]}, _cell(state), _cell(error)] for (state, error), runs in ends.items()]


def _values(key: str, values: dict[int, str]) -> list[Json]:
    """A row that has each value with its trials."""
    by_value: dict[str, list[int]] = {}
    for trial, value in values.items():
        by_value.setdefault(value, []).append(trial)
    return [_cell(key), _cell("; ".join(f"{value} ({trials_text(trials)})" for value, trials in sorted(by_value.items())))]


def _settings(page: StudyPage) -> list[list[Json]]:
    rows = []
    for axis in page.results.axes:
        values = list(filter(None, dict.fromkeys(run.text(axis) for run in page.results.chosen())))
        more = f" and {len(values) - _MOST_VALUES} more" if len(values) > _MOST_VALUES else ""
        rows.append([_cell(axis), _cell(", ".join(values[:_MOST_VALUES]) + more)])
    return rows


def _configs(page: StudyPage) -> list[list[Json]] | None:
    """Keys beside the axes in which the configs of the runs differ; None without a run."""
    configs = {trial: config_texts(run.folder) for trial, run in page.runs.items()}
    keys = sorted({key for config in configs.values() for key in config} - set(page.results.axes) - set(PLACES))
    values = {key: {trial: config[key] for trial, config in configs.items() if key in config} for key in keys}
    return [_values(key, of_key) for key, of_key in values.items() if len(set(of_key.values())) > 1] if configs else None


def _files(page: StudyPage) -> list[Json]:
    """The study's file and a config; a file that cannot be read is left out."""
    found = [("study.toml", pathlib.Path(page.results.directory, "study.toml"))] if page.results.directory else []
    found += [(f"config.toml of trial {trial}", pathlib.Path(run.folder, "config.toml")) for trial, run in list(page.runs.items())[:1]]
    files = []
    for name, path in found:
        with contextlib.suppress(OSError, ValueError):
            files.append({"name": name, "text": read_bytes(path, _MOST_BYTES).decode(errors="replace")})
    return files


def _fitted(table: re.Match[str]) -> str:
    """A table whose cells have the head of their column as data-label, and whose class tells what width of page it needs."""
    text, heads, widths, at = "", [], [], 0  # type: str, list[str], list[int], int
    for part in re.split(r"(?=<t[rdh]\b)", table[0]):
        lines = [re.sub("<[^>]*>|\\s+$", "", line) for line in part.split("<small>")]
        if part.startswith("<tr"):
            at = 0
        elif part.startswith("<th"):
            heads, widths = [*heads, lines[0]], [*widths, max(map(len, lines[0].split()), default=0)]
        elif part.startswith("<td"):
            longest = max(map(len, lines))
            if longest > 40:  # no number
                part = re.sub("^<td>", '<td class="group">', part)
            widths[at] = max(widths[at], min(longest, 24) if not at or 'class="group"' in part or 'text"' in text[:60] else longest)
            part, at = part.replace("<td", f'<td data-label="{heads[at]}"', 1), at + 1
        text += part
    needed = sum(7.2 * width + 18 for width in widths)
    name = next((f"over-{limit}" for limit in (1190, 900, 620) if needed > limit), "")
    return text.replace('class="', f'class="{name} ', 1)


def _comparison(found: RunComparison | None) -> Json | None:
    if not found:
        return None
    rows = [[_cell(text, "", "group") for text in row] for row in found.rows()[1:]]
    return {"head": found.rows()[:1] and found.rows()[0], "rows": rows, "note": found.config_note, "bits": found.bit_lines()}


def page_data(page: StudyPage) -> Json:
    """All that the template shows."""
    charts, steps = _curve_charts(page), _step_times(page)
    facts = {fact: {run.number: text for run in page.shown if (text := run.facts.get(fact, ""))} for fact in _FACTS}
    lines = {title: [{"name": one.name, "x": one.x, "y": one.y} for one in chart.series if not one.faint] for title, chart in charts.items()}
    return {
        "title": page.table.study, "subtitle": _subtitle(page), "tiles": _tiles(page),
        "comparison": _comparison(page.comparison), "table_html": table_text(page.table, "html", "difference"),
        "curves": [{"title": title, "svg": _inline(chart, title)} for title, chart in charts.items()],
        "step_time": _inline(_step_chart(steps), "A step by group") if steps else "",
        "trials": _trials(page), "errors": _errors(page), "settings": _settings(page), "configs": _configs(page), "files": _files(page),
        "origin": [_values(fact, values) for fact, values in facts.items() if values],
        "numbers": {"table": table_json(page.table), "curves": lines, "steps": steps}}


def study_page(page: StudyPage) -> str:
    """The page as HTML, which is XML as well."""
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(pathlib.Path(__file__).parent), autoescape=True, trim_blocks=True,
                                     lstrip_blocks=True)
    environment.policies["json.dumps_function"] = lambda value, **_: write_json(value).rstrip()
    text = environment.get_template("study_report.html").render(page_data(page))
    text = re.sub("<table.*?</table>", _fitted, text, flags=re.DOTALL)
    return re.sub("[\x00-\x08\x0b-\x1f\ufffe\uffff]", "?", text) + "\n"


def table_options(options: Options) -> TableOptions:
    """Of the options that say which trials are in which groups, and how these are compared."""
    claim = None
    if "equivalent" in options:
        claim = claim_of(options.text("equivalent"), options.number("alpha") if "alpha" in options else None)
    elif "alpha" in options:
        raise InputError("--alpha has no effect without --equivalent", "--alpha", "--equivalent as well, or leave out --alpha")
    return TableOptions(options.all("metric"), options.all("by"), options.all("baseline"), options.text("pair"), options.number("confidence"),
                        PAIRED if options.text("test") == "t" else WILCOXON, options.text("correction"), options.all("where"),
                        options.text("sort"), "mixed" in options, "no-notes" not in options, claim=claim, targets=options.all("to"),
                        stopped="stopped" in options)


def main(options: Options) -> int:
    path = options.text("out")
    if path:
        require_output(path, "--out")
    chosen = table_options(options)
    results = study_results(*options.all("study"))
    if results.loose and not path:
        raise InputError("a page on runs has no folder of its own", "--out",
                         "--out PAGE.html; or `concertina compare`, which has their configs and bits too")
    path = path or os.path.join(results.directory, "report.html")
    page = load_page(results, with_targets(results, chosen), path)
    replace_file(path, study_page(page))
    print_whole(write_json(table_json(page.table) | {"report": path}) if "json" in options else f"{path}\n")
    return 0
