"""concertina report --serve: a live page of a run, or of a study or folder with its runs. Reads only new log data.

The server listens only on this machine, answers GET requests under an address with a random token, and never writes. Slow clients do not block
others: each has a thread and a few seconds for its request.
"""
from __future__ import annotations

import http.server
import math
import os
import pathlib
import re
import secrets
import signal
import statistics
import sys
import threading
import time
import typing
import urllib.parse

from .errors import InputError, library
from .files import Follower, read_lines, read_tail
from .page import Block, content, page, section, table, words, write_json
from .run_course import Course, changes_in
from .results import study_results
from .run_report import load_run
from .run_log import Curve, Line, config_texts, is_run, number, positive, text
from .run_page import CURVES, change_marks, plain_text, report_page, training_charts
from .names import clock_text, counted, figure_text, settings_text

_NOW = "current report"
MOST_NOTES, MOST_NOTE_TEXT, TAIL, CLIENT_SECONDS = 30, 240, 8 << 10, 10
COLUMNS = ["state", "layout", "steps", "training loss", "held-out loss", "tokens/s", "time left"]  # of LiveRun.row()
Answer = tuple[int, str, str]  # status, type and text
Handler = typing.Callable[[str, dict[str, str]], Answer]  # receives the path after the token, and the query
_HEADERS = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY"}


class LiveRun:

    def __init__(self, directory: pathlib.Path):
        self.path = directory
        self._metrics, self._events = Follower(directory / "metrics.jsonl"), Follower(directory / "events.jsonl")
        self._cuts, self.steps = 0, math.nan
        self._begin()

    def _begin(self) -> None:
        self.curves: dict[str, Curve] = {column: {} for column in CURVES}
        self.events: list[Line] = []
        self.last: Line = {}

    def look(self) -> LiveRun:
        lines = self._metrics.look()
        if self._cuts != self._metrics.cuts:
            self._cuts, self._events = self._metrics.cuts, Follower(self.path / "events.jsonl")
            self._begin()
        for line in lines:
            if not math.isnan(step := number(line, "step")):
                for column, curve in self.curves.items():
                    curve[step] = (positive if column in ("tokens_per_s", "step_ms") else number)(line, column)
                self.last = line
        self.events += self._events.look()
        if math.isnan(self.steps):
            self.steps = float(config_texts(self.path).get("run.steps") or "nan")
        return self

    @property
    def done(self) -> float:
        return number(self.last, "step") if self.last else 0

    @property
    def ended(self) -> bool:
        return (self.path / "result.json").exists() and not self.done < self.steps

    @property
    def left(self) -> str:
        """The estimated time left, based on the median time of the last steps; a dash if it is unknown or the run has ended."""
        times = [one for one in list(self.curves["step_ms"].values())[-50:] if math.isfinite(one)]
        if self.ended or not times or math.isnan(self.steps):
            return "–"
        return clock_text(round(max(0.0, self.steps - self.done) * statistics.median(times) / 1e3))

    @property
    def state(self) -> str:
        if self.ended or not self.last:
            return "finished" if self.ended else "no step yet"
        return f"last step {clock_text(max(0, round(time.time() - self._metrics.written)))} ago"

    @property
    def held_out(self) -> list[Line]:
        return [line for line in self.events if line.get("event") == "validation" and not math.isnan(number(line, "step"))]

    def row(self) -> list[str]:
        return [self.state, text(self.last, "layout"), f"{int(self.done):,} of {_count(self.steps)}", _value(self.last, "loss"),
                _value((self.held_out or [{}])[-1], "loss"), _value(self.last, "tokens_per_s"), self.left]

    def content(self, name: str, more: typing.Sequence[Block] = ()) -> Block:
        held, restarts = self.held_out, len(read_lines(self.path / "restarts.jsonl"))
        said = [self.state, text(self.last, "layout"), f"restarts: {restarts}" if restarts else ""]
        tiles = [(f"{int(self.done):,} of {_count(self.steps)}", "steps"), *[(self.left, "left")] * (not self.ended),
                 (_value(self.last, "loss"), "loss"), (_value(self.last, "tokens_per_s"), "tokens per second")]
        tiles += [(_value(held[-1], "loss"), f"held-out loss at step {number(held[-1], 'step'):.0f}")] if held else []
        tiles.append((f"{os.getloadavg()[0]:.3g}", f"load of {os.cpu_count()} cores"))
        share = self.done / self.steps if self.steps > 0 else 0
        changes = changes_in(self.events, [])
        marks = change_marks(Course(changes=[changes[step] for step in sorted(changes)]))
        return content(name, ", ".join(filter(None, said)), [
            {"kind": "progress", "share": min(1.0, share)}, {"kind": "tiles", "tiles": tiles}, *training_charts(self.curves, held, marks),
            *self._notes(), *more])

    def _notes(self) -> list[Block]:
        events = [event for event in self.events if event.get("event") not in ("validation", "checkpoint")][-MOST_NOTES:]
        rows = []
        for event in reversed(events):
            said = plain_text({key: value for key, value in event.items() if key not in ("step", "time", "event")})
            step = "" if math.isnan(number(event, "step")) else f"{number(event, 'step'):.0f}"
            short = said[:MOST_NOTE_TEXT] + "..." * (len(said) > MOST_NOTE_TEXT)
            rows.append([text(event, "time")[11:19], step, text(event, "event"), {"text": short, "look": "text"}])
        return section("Events", [table(["time", "step", "event", ""], rows, left=4)] if rows else [])


def _count(value: float) -> str:
    return "?" if math.isnan(value) else f"{int(value):,}"


def _value(line: Line, key: str) -> str:
    """The value, or a dash if it is absent or 0, that is, not measured; null means not finite."""
    value = (number if key == "loss" else positive)(line, key)
    return figure_text(value) if math.isfinite(value) or line.get(key, "") is None else "–"


def runs_in(folder: pathlib.Path) -> list[pathlib.Path]:
    """The runs in a folder that is not a run itself, by name."""
    return sorted(filter(is_run, folder.iterdir())) if folder.is_dir() and not is_run(folder) else []


def index_page(folder: pathlib.Path, live: typing.Callable[[pathlib.Path], LiveRun], link: typing.Callable[[pathlib.Path], Block]) -> Block:
    """A row for each run in `folder`. `link` returns the cell with the run's name."""
    rows = [[link(run), *live(run).row()] for run in runs_in(folder)]
    return content(folder.resolve().name, counted(len(rows), "run"), [table(["run", *COLUMNS], rows, left=3)])


class Served:
    """Serves one run, or a study or folder with its runs."""

    def __init__(self, directory: str):
        self.path = pathlib.Path(directory)
        self.is_study = (self.path / "study.toml").is_file()
        self.runs: dict[pathlib.Path, LiveRun] = {}
        if not self.is_study and not runs_in(self.path) and not is_run(self.path):
            raise InputError("neither a run nor a study, nor a folder of runs", directory, "runs/NAME, runs or studies/NAME")

    def answer(self, path: str, query: dict[str, str]) -> Answer:
        trial = query.get("trial", "")
        known = re.fullmatch("[1-9][0-9]{0,8}", trial) if self.is_study else self.path / trial in runs_in(self.path)
        if path not in ("", "state", "report") or (trial and not known):
            return 404, "text/plain", "not found\n"
        if not path:
            waits = content(self.path.resolve().name, "loading", [], live=True)
            return 200, "text/html", page(waits)
        if path == "report":
            return 200, "text/html", self._report(trial)
        return 200, "application/json", write_json(
            self._trial(trial) if trial else self._study() if self.is_study else
            index_page(self.path, self._live, lambda run: {"text": run.name, "href": f"#{urllib.parse.quote(run.name)}"}) if not is_run(self.path) else
            self._live(self.path).content(self.path.resolve().name, [_link(_NOW, "report")]))

    def _report(self, trial: str) -> str:
        if self.is_study and not trial:
            library("numpy")
            from .study_page import StudyPage
            from .study_table import TableOptions, make_table
            results = study_results(self.path)
            return page(StudyPage(results, make_table(results, TableOptions(mixed=True)), self.path / "report.html").content())
        return page(report_page(load_run(self._run(trial) if trial else self.path)))

    def _run(self, trial: str) -> pathlib.Path:
        return self.path / trial / ("run" if self.is_study else "")

    def _live(self, directory: pathlib.Path) -> LiveRun:
        return self.runs.setdefault(directory, LiveRun(directory)).look()

    def _trial(self, trial: str) -> Block:
        folder, run = self.path / trial, self._run(trial)
        if self.is_study and not (run / "config.toml").exists():
            raise InputError(f"trial {trial} has no run yet", str(folder), "a trial that has started")
        log: Block = {"kind": "fold", "summary": "end of its log", "text": read_tail(folder / "log.txt", TAIL), "blocks": []}
        return self._live(run).content(f"trial {trial}" if self.is_study else trial, [log] * bool(log["text"]) + [
            _link(_NOW, f"report?trial={urllib.parse.quote(trial)}"), _link("all trials" if self.is_study else "all runs", "#")])

    def _study(self) -> Block:
        study, rows, ended = study_results(self.path), [], 0
        for trial in study.runs:
            ended += trial.state != "open"
            run, settings = self._run(str(trial.number)), settings_text(trial.settings, trial.settings.values())
            began = (run / "config.toml").exists()
            state = "runs" if began and trial.state == "open" else trial.state + (f": {trial.error}" if trial.error else "")
            rest = self._live(run).row()[1:] if began else [""] * (len(COLUMNS) - 1)
            first = {"text": f"{trial.number}"} | ({"href": f"#{trial.number}"} if began else {})
            rows.append([first, {"text": settings, "look": "text"}, {"text": state, "look": "text"}, *rest])
        return content(study.name, f"{ended} of {counted(len(rows), 'trial')} have finished", [
            {"kind": "progress", "share": ended / max(1, len(rows))}, words("heading", "Trials"),
            table(["trial", "settings", *COLUMNS], rows, left=4), _link("current page of the study", "report")])


def _link(label: str, href: str) -> Block:
    return {"kind": "link", "text": label, "href": href}


class _Request(http.server.BaseHTTPRequestHandler):
    server: PageServer
    timeout = CLIENT_SECONDS

    def setup(self) -> None:
        """Also drops clients that send their requests byte by byte."""
        super().setup()
        self._end = threading.Timer(CLIENT_SECONDS, self.server.shutdown_request, [self.connection])
        self._end.daemon = True
        self._end.start()

    def finish(self) -> None:
        self._end.cancel()
        super().finish()

    def do_GET(self) -> None:
        status, kind, text = self._answer()
        body = text.encode(errors="replace")
        self.send_response(status)
        for name, value in ({"Content-Type": f"{kind}; charset=utf-8", "Content-Length": str(len(body))} | _HEADERS).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_GET

    def _answer(self) -> Answer:
        server = self.server
        if self.headers.get_all("Host") not in [[f"{name}:{server.server_port}"] for name in ("127.0.0.1", "localhost")]:
            return 403, "text/plain", "wrong host\n"
        if self.command not in ("GET", "HEAD"):
            return 405, "text/plain", "only GET is supported\n"
        path, _, query = self.path.partition("?")
        token, _, path = path.removeprefix("/").partition("/")
        if not secrets.compare_digest(token.encode(errors="replace"), server.token.encode()):
            return 404, "text/plain", "not found\n"
        try:
            with server.lock:
                return server.handler(path, dict(urllib.parse.parse_qsl(query, max_num_fields=8)))
        except Exception as error:  # affects only one request
            return 500, "text/plain", f"{error or type(error).__name__}\n"

    def version_string(self) -> str:
        return "concertina"

    def log_message(self, format: str, *args: object) -> None:
        pass


class PageServer(http.server.ThreadingHTTPServer):
    """Answers requests with `handler`, one at a time."""
    block_on_close = False
    request_queue_size = 128  # connections waiting to be accepted

    def __init__(self, port: int, handler: Handler):
        self.handler, self.token, self.lock = handler, secrets.token_hex(16), threading.Lock()
        try:
            super().__init__(("127.0.0.1", port), _Request)
        except OSError as error:
            raise InputError(f"cannot use port {port} of 127.0.0.1: {error.strerror}", "--port", "--port 0 for any free port") from error

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/{self.token}/"

    def get_request(self) -> typing.Any:
        try:
            return super().get_request()
        except OSError:  # no free file descriptor: clients must leave first
            time.sleep(0.25)
            raise

    def handle_error(self, request: typing.Any, client_address: typing.Any) -> None:
        pass  # a client left

    def serve(self, of: str) -> None:
        """Prints the address and answers until a signal arrives."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
            signal.signal(number, lambda *_: threading.Thread(target=self.shutdown).start())
        port = self.server_port
        sys.stderr.write(f"{of} is served at the address below, on this machine only; to forward it: ssh -L {port}:127.0.0.1:{port} HOST; "
                         "Ctrl-C stops it\n")
        print(self.address, flush=True)
        self.serve_forever(0.2)
        self.server_close()


def serve(directory: str = "", port: int = 0) -> int:
    """Serves a live page of the run, of the study or of the runs in a folder (default: runs) until a signal arrives."""
    chosen = directory or "runs"
    PageServer(port, Served(chosen).answer).serve(chosen)
    return 0
