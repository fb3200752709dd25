"""concertina report: one page with what a run's steps were predicted to be, and what they were; with --serve, one that follows a run."""
from __future__ import annotations

import typing

from .command import print_whole
from .errors import InputError
from .page import write_json
from .run_report import report_json, report_text, write_report


class ParsedOptions(typing.Protocol):
    """Options that the program has declared and checked, by their long names without dashes."""

    def text(self, name: str) -> str: ...


def main(options: ParsedOptions) -> int:
    run = options.text("run").rstrip("/") or options.text("run")
    if options.text("serve") == "true":
        from .live import serve
        return serve(run, int(options.text("port") or 0))
    if not run:
        raise InputError("no run is named", "command line", "concertina report runs/NAME; or --serve")
    path, step = options.text("out") or options.text("output") or f"{run}/report.html", options.text("step")
    files = write_report(run, path, options.text("beside"), int(step) if step and int(step) >= 0 else None)
    print_whole(write_json(report_json(files) | {"report": path}) + "\n" if options.text("json") == "true" else f"{report_text(files)}{path}\n")
    return 0
