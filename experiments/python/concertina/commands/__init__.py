"""The subcommands that are written in Python: each is a function with its name that takes the options and returns the exit code.

Longer ones are the `main` of the module with their name in this folder. `concertina NAME` runs `python3 concertina --parsed NAME
--OPTION=VALUE...`. The program has declared and checked the options; all are passed, including defaults, one argument per value. Each
function imports only what it needs.
"""
from __future__ import annotations

import importlib
import json
import os
import pathlib
import re
import subprocess
import sys
import typing

from ..errors import FAILURES, LIBRARIES, InputError, missing_library, require_word
from ..files import json_text, replace_file

if typing.TYPE_CHECKING:
    from ..study_table import TableOptions


class Options:
    """The values of the options, by long name without dashes."""

    def __init__(self, words: typing.Iterable[str]):
        self._values: dict[str, list[str]] = {}
        for word in words:
            name, _, value = word.removeprefix("--").partition("=")
            self._values.setdefault(name, []).append(value)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def all(self, name: str) -> list[str]:
        return self._values.get(name, [])

    def text(self, name: str) -> str:
        """The value, or empty."""
        return (self.all(name) or [""])[-1]

    def number(self, name: str) -> float:
        return float(self.text(name))

    def optional(self, name: str) -> float | None:
        return self.number(name) if name in self else None

    def whole(self, name: str) -> int | None:
        return int(self.number(name)) if name in self else None

    def print_result(self, text: str, value: object) -> None:
        """Prints one line of JSON with --json, otherwise the text."""
        sys.stdout.write(json_text(value) + "\n" if "json" in self else text)
        sys.stdout.flush()


def _table_options(options: Options) -> TableOptions:
    from ..statistic import PAIRED, WILCOXON
    from ..study_power import claim_of
    from ..study_table import TableOptions
    claim = claim_of(options.text("equivalent"), options.optional("alpha")) if "equivalent" in options else None
    return TableOptions(
        metrics=options.all("metric"), by=options.all("by"), baseline=options.all("baseline"), pair=options.text("pair"),
        confidence=options.number("confidence"), test=PAIRED if options.text("test") == "t" else WILCOXON,
        correction=options.text("correction"), where=options.all("where"), sort=options.text("sort"), mixed="mixed" in options,
        notes="no-notes" not in options, claim=claim, front=options.all("front"), targets=options.all("to"), stopped="stopped" in options)


def study_table(options: Options) -> int:
    """Prints means, spreads and differences over a study's trials."""
    from ..results import study_results
    from ..study_table import make_table, with_targets
    from ..table_formats import CELLS, FORMATS, default_cells, table_json, table_notes, table_text
    written, kind, output = options.text("format"), options.text("cells"), options.text("out")
    require_word(written, FORMATS, f"unknown table format '{written}'", "--format")
    kind = require_word(kind or default_cells(written), CELLS, f"unknown kind of cells '{kind}'", "--cells")
    results, chosen = study_results(*options.all("study")), _table_options(options)
    table = make_table(results, with_targets(results, chosen))
    if output:
        replace_file(output, table_text(table, written, kind))
    options.print_result(f"{output}\n" if output else table_text(table, written, kind), table_json(table) if "json" in options else None)
    if written == "csv" and "json" not in options:  # CSV contains only the rows, so the notes on omitted values go to stderr
        sys.stderr.writelines(f"{note}\n" for note in table_notes(table, kind))
    return 0


def study_report(options: Options) -> int:
    from ..page import page
    from ..results import study_results
    from ..study_page import StudyPage
    from ..study_table import make_table, with_targets
    from ..table_formats import table_json
    results, output = study_results(*options.all("study")), options.text("out")
    if results.loose and not output:
        raise InputError("a page of runs needs an output file", "--out",
                         "--out PAGE.html, or `concertina compare`, which also compares configs and bits")
    output = output or f"{results.directory}/report.html"
    table = make_table(results, with_targets(results, _table_options(options)))
    replace_file(output, page(StudyPage(results, table, output).content()))
    options.print_result(f"{output}\n", table_json(table) | {"report": output})
    return 0


def study_power(options: Options) -> int:
    """Computes the probability that a planned study with its number of seeds shows an equivalence."""
    from ..study_power import power
    found = power(options.text("study"), pilot=options.text("pilot"), deviation=options.optional("deviation"),
                  difference=options.number("difference"), wanted=options.number("power"), seeds=options.whole("seeds"),
                  equivalent=options.text("equivalent"), alpha=options.optional("alpha"), baseline=options.all("baseline"))
    options.print_result(found.text(), found.json())
    return 0


def study_plot(options: Options) -> int:
    from ..chart import FORMATS, save
    from ..study_plot import plot
    from ..study_power import claim_of
    path = options.text("out")
    ending = pathlib.Path(path).suffix.lower()
    why = f"'{ending}' is not a chart format" if ending else "a chart's file name needs an extension"
    require_word(ending, FORMATS, why, path)
    given: dict[str, typing.Any] = {name: options.all(name) for name in ("group", "where", "baseline")}
    given |= {name.replace("-", "_"): options.text(name) for name in ("kind", "x", "y", "title", "spread", "x-scale", "y-scale") if name in options}
    given |= {name: options.number(name) for name in ("confidence", "width", "height") if name in options}
    given |= {name: name in options for name in ("mixed", "stopped")}
    plotted = plot(*options.all("study"), **given, claim=claim_of(options.text("equivalent")) if "equivalent" in options else None)
    replace_file(path, save(plotted.figure(), ending))
    options.print_result("".join(f"{note}\n" for note in plotted.notes) + f"{path}\n", plotted.json() | {"figure": path})
    return 0


def compare(options: Options) -> int:
    from ..page import page
    from ..run_comparison import compare as compare_runs
    from ..study_page import compare_page
    output = options.text("out")
    found = compare_runs(*options.all("study"), options=_table_options(options))
    replace_file(output, page(compare_page(found, output)))
    options.print_result(f"{found.text()}{output}\n", found.json() | {"page": output})
    return 1 if "same" in options and not found.same else 0


def report(options: Options) -> int:
    """Writes a page with the predicted and measured steps of a run, or an index of a folder's runs; with --serve, serves a live page."""
    from ..live import LiveRun, index_page, runs_in, serve
    from ..page import page, run_link
    from ..run_report import report_json, report_text, write_report
    run = options.text("run").rstrip("/") or options.text("run") or "runs"
    if "serve" in options:
        return serve(run, options.whole("port") or 0)
    path = options.text("output") or f"{run}/report.html"
    if runs := runs_in(pathlib.Path(run)):
        if "step" in options or not path.endswith(".html"):
            raise InputError("--step and pictures require one run, but this is a folder of runs", run, f"{runs[0]}, or --output FILE.html")
        replace_file(path, page(index_page(pathlib.Path(run), lambda one: LiveRun(one).look(), lambda one: run_link(one.name, one, path))))
        options.print_result(f"{path}\n", {"runs": list(map(str, runs)), "report": path})
        return 0
    files = write_report(run, path, options.whole("step"))
    options.print_result(f"{report_text(files)}{path}\n", report_json(files) | {"report": path})
    return 0


def monitor(options: Options) -> int:
    from ..monitoring import drift, drift_page, drift_text
    log, reference, least = options.text("log"), options.text("reference"), options.number("least")
    rows = drift(log, reference, options.whole("window") or 0, least)
    if "out" in options:
        replace_file(options.text("out"), drift_page(rows, log, reference, least))
    drifts = any(row.drifts for row in rows)
    options.print_result(drift_text(rows), {"drifts": drifts, "rows": [row._asdict() for row in rows]})
    return 1 if drifts else 0


def schedule_draw(options: Options) -> int:
    """Draws the predicted steps in the input. `note` is shown below the picture in a page."""
    path = pathlib.Path(options.text("out"))
    if path.suffix.lower() != ".html":
        from ..chart import save  # before the input is read, since another Python may have to take over
        from ..timeline import draw_timelines
        replace_file(path, save(draw_timelines(json.load(sys.stdin)), path.suffix.lower()))
        return 0
    from ..page import content, page, words
    from ..steps import timeline_block
    given = json.load(sys.stdin)
    title = "Predicted timelines of " + ", ".join(panel["name"] for panel in given["panels"])
    replace_file(path, page(content(title, "", [timeline_block(given), words("note", options.text("note"))])))
    return 0


def _use_other_python(missing: str) -> None:
    """Replaces this process with the system's Python if that has a library which this one lacks."""
    other = "/usr/bin/python3"
    if missing in LIBRARIES and os.access(other, os.X_OK) and not os.path.samefile(sys.executable, other) and \
            subprocess.run([other, "-c", f"import {missing}"], capture_output=True, check=False).returncode == 0:
        os.execv(other, [other, *sys.argv])


def _as_input_error(error: Exception, name: str) -> InputError | None:
    """The InputError for an error that a user can fix; None for a bug in this package."""
    if isinstance(error, InputError):
        return error
    if isinstance(error, ModuleNotFoundError):
        missing = (error.name or "").partition(".")[0]
        _use_other_python(missing)
        return None if missing == "concertina" else missing_library(missing)
    if isinstance(error, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # otherwise Python reports the error again when it flushes
        return InputError("cannot write the output", "stdout", code=1)
    if isinstance(error, (ImportError, ValueError)):
        return InputError(str(error), f"concertina {name.replace('-', ' ')}")
    code = 1 if getattr(error, "errno", None) in FAILURES else 2
    return InputError(error.strerror or str(error), str(error.filename or ""), code=code) if isinstance(error, OSError) else None


def run(name: str, words: typing.Iterable[str]) -> int:
    """Runs the subcommand `name`, such as "study-table"; returns its exit code."""
    try:
        command = globals().get(word := name.replace("-", "_"))
        return int((command if callable(command) else importlib.import_module(f".{word}", __name__).main)(Options(words)))
    except Exception as error:
        known = _as_input_error(error, name)
        if known is None:
            raise
        text = re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", lambda found: f"\\x{ord(found[0]):02x}", str(known))
        sys.stderr.write(f"concertina: error: {text}\n")
        return known.code
