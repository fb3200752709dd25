"""`concertina study report`: one HTML page on a study, with its table, curves, times and trials, and where they are from.

`page_data` makes all that the page shows, as values of JSON and SVG; study_report.html is its template. The page needs nothing beside it,
and has its numbers as JSON in the element `numbers`.
"""
from __future__ import annotations

import contextlib
import math
import os
import pathlib
import re
import typing

import jinja2

from .command import print_whole, replace_file, require_output
from .errors import InputError
from .files import read_bytes
from .names import digits_for, metric_named, number_text
from .results import RUN_COLUMN, Cell, RunSummary, Runs, StudyResults, cell_text, titles
from .run_log import read_log
from .run_set import PLACES, config_texts, study_results
from .statistic import PAIRED, WILCOXON
from .study_folder import write_json
from .study_page import Json, PageRun, StudyPage, curve_charts, duration_text, inline, some_of, step_chart, step_times, MOST_CURVES
from .study_power import claim_of
from .study_table import StudyTable, TableOptions, make_table, with_targets
from .table_formats import table_json, table_text
from .texts import counted, grouped, trials_text

if typing.TYPE_CHECKING:
    from .run_comparison import RunComparison
    from .subcommands import Options

_FACTS = ("version", "commit", "program", "host", "processor", "device", "isa", "compute", "onednn", "libraries")
_MOST_ROWS, _MOST_VALUES = 256, 40  # that the page shows
_MOST_BYTES = 1 << 20  # of a file that the page contains


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


def _tile(value: str, text: str) -> Json:
    return {"value": value, "text": text}


def _best_tile(table: StudyTable) -> list[Json]:
    """The best group of the first metric that has one; where others may be as good, that."""
    for m, metric in enumerate(table.metrics):
        best, alike = ([row for row in table.rows if getattr(row.cells[m], key)] for key in ("best", "like_best"))
        if not best:
            continue
        value = f"{metric.title}: {number_text(metric.factor * best[-1].cells[m].summary.mean, table.digits(m))}"
        names = some_of([row.label for row in best])
        if alike:
            return [_tile("no clear best", f"{value}, {names}; cannot be told from {some_of([row.label for row in alike])}")]
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
    over = counted(len(axes), "key") if len(axes) > MOST_CURVES else titles(axes)
    if loose:
        return f"runs whose configs differ in {over}" if axes else "runs of the same config"
    return f"study over {over}" if axes else "study over one trial"


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
    charts, steps = curve_charts(page), step_times(page)
    facts = {fact: {run.number: text for run in page.shown if (text := run.facts.get(fact, ""))} for fact in _FACTS}
    lines = {title: [{"name": one.name, "x": one.x, "y": one.y} for one in chart.series if not one.faint] for title, chart in charts.items()}
    return {
        "title": page.table.study, "subtitle": _subtitle(page), "tiles": _tiles(page),
        "comparison": _comparison(page.comparison), "table_html": table_text(page.table, "html", "difference"),
        "curves": [{"title": title, "svg": inline(chart, title)} for title, chart in charts.items()],
        "step_time": inline(step_chart(steps), "A step by group") if steps else "",
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
