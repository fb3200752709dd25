"""`concertina report`: a page with what a run's steps were predicted to be, and what they were; with --serve, one that follows a run."""
from __future__ import annotations

import typing

from ..errors import InputError
from ..live import serve
from ..run_report import report_json, report_text, write_report

if typing.TYPE_CHECKING:
    from ..subcommands import Options


def main(options: Options) -> int:
    run = options.text("run").rstrip("/") or options.text("run")
    if "serve" in options:
        return serve(run, int(options.number("port")))
    if not run:
        raise InputError("no run is named", "command line", "concertina report runs/NAME; or --serve")
    path = options.text("output") or f"{run}/report.html"
    files = write_report(run, path, options.text("beside"), int(options.number("step")) if "step" in options else None)
    options.print_result(f"{report_text(files)}{path}\n", report_json(files) | {"report": path})
    return 0
