"""The log of a run: its original lines, the clock of its training, and curves by step.

The clock counts training but not evaluations, across launches. Values that a line lacks are NaN."""
import bisect
import dataclasses
import datetime
import functools
import json
import math
import pathlib
import statistics
import tomllib
import typing

from .errors import InputError, one_of
from .files import flat, read_lines, read_text
from .names import metric_named

Line = dict[str, typing.Any]
Curve = dict[float, float]  # by step, ascending

HELD_OUT = "validation_"
PLACES = ("run.name", "run.dir", "checkpoint.dir", "cache.dir")  # keys that only determine where a run is stored
COURSE_COLUMNS = ("loss", "lr", "grad_norm", "tokens_per_s", "step_ms", "bubble")


def number(line: Line, key: str) -> float:
    """NaN if the line contains no finite number."""
    value: typing.Any = line.get(key)
    return float(value) if type(value) in (float, int) and abs(value) < 1e308 else math.nan


def positive(line: Line, key: str) -> float:
    """A measured number is positive; 0 in a log means that it was not measured."""
    value = number(line, key)
    return value if value > 0 else math.nan


def text(line: Line, key: str) -> str:
    value = line.get(key)
    return value if isinstance(value, str) else ""


def batches(line: Line) -> float:
    """The number of steps that a line of metrics.jsonl covers."""
    count = number(line, "batches")
    return count if 1 <= count < 1e6 else 1


def is_run(folder: pathlib.Path) -> bool:
    return (folder / "metrics.jsonl").is_file() or (folder / "config.toml").is_file()


def config_texts(folder: str | pathlib.Path) -> dict[str, str]:
    """The keys of config.toml as "table.key", with their values as text; empty if the file is missing or not TOML."""
    file = pathlib.Path(folder) / "config.toml"
    try:
        table = tomllib.loads(read_text(file)) if file.is_file() else {}
    except tomllib.TOMLDecodeError:
        return {}
    return {key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for key, value in flat(table).items()}


@dataclasses.dataclass
class RunLog:
    """The lines of metrics.jsonl and the evaluations of events.jsonl that have a step, and the lines of launches.jsonl."""
    metrics: list[Line] = dataclasses.field(default_factory=list)
    validations: list[Line] = dataclasses.field(default_factory=list)
    launches: list[Line] = dataclasses.field(default_factory=list)

    @functools.cached_property
    def seconds(self) -> Curve:
        """The training seconds up to the end of each step; empty if the time of a step or an evaluation is missing.

        The clock starts at the end of the first step, and is stopped between launches and during the first step of each launch. For a
        repeated step, the last time counts."""
        starts = sorted(text(launch, "start") for launch in self.launches)
        evaluations = sorted((text(line, "time"), number(line, "seconds")) for line in self.validations)
        ends = [time for time, _ in evaluations]
        clock: Curve = {}
        elapsed, before = 0.0, ("", math.inf)  # time and step of the previous line
        for line in self.metrics:
            now, step = text(line, "time"), number(line, "step")
            if not now:
                return {}
            if before[0] and step <= before[1]:  # repeated by another launch
                clock = {done: at for done, at in clock.items() if done < step}
                elapsed = max(clock.items())[1] if clock else 0
            if before[0] and bisect.bisect_right(starts, before[0]) >= bisect.bisect_right(starts, now):
                elapsed += _seconds(now) - _seconds(before[0])
                for _, took in evaluations[bisect.bisect_right(ends, before[0]):bisect.bisect_right(ends, now)]:
                    elapsed -= took
                if math.isnan(elapsed):
                    return {}
            clock[step] = elapsed
            before = now, step
        return clock

    def curve(self, column: str) -> Curve:
        """A column of metrics.jsonl, or a metric such as validation_loss from evaluations that cover as much text as the first evaluation."""
        points: Curve = {}
        if column.startswith(HELD_OUT) and self.validations:
            figure = column.removeprefix(HELD_OUT)
            of = _tokens(self.validations[0])
            for line in self.validations:
                if _tokens(line) == of and (figure == "loss" or not math.isnan(number(line, figure))):
                    points[number(line, "step")] = number(line, figure)
            if points:
                return dict(sorted(points.items()))
        if column not in COURSE_COLUMNS:
            if column.startswith(HELD_OUT) and not self.validations:
                return {}
            raise InputError(f"no run has '{column}' by step", "--y", one_of(column, [*COURSE_COLUMNS, "validation_loss"]))
        of_line = positive if column in ("tokens_per_s", "step_ms") else number
        return dict(sorted((number(line, "step"), of_line(line, column)) for line in self.metrics))

    def seconds_to(self, column: str, target: float) -> float | None:
        """The training seconds until `column` is as good as `target`; infinity if it never is, None without such evaluations."""
        curve, clock = self.curve(column), self.seconds
        if not curve or not clock:
            return None
        higher = metric_named(column).better == "higher"
        for step, value in curve.items():
            if value >= target if higher else value <= target:
                done = bisect.bisect_right(list(clock), step)
                return list(clock.values())[done - 1] if done else 0
        return math.inf


def _tokens(line: Line) -> int:
    count = number(line, "tokens")
    return int(count) if 0 <= count < 1e18 else 0


@functools.lru_cache(maxsize=64)
def _seconds(time: str) -> float:
    """Seconds since 1970 for a time such as 2026-01-31T23:59:59.123Z."""
    try:
        return datetime.datetime.fromisoformat(time).replace(tzinfo=datetime.timezone.utc).timestamp()
    except ValueError:
        return math.nan


def read_log(directory: str | pathlib.Path) -> RunLog:
    """The log in a run directory; empty for an empty name."""
    if not str(directory):
        return RunLog()
    folder = pathlib.Path(directory)
    has_step = lambda line: not math.isnan(number(line, "step"))  # noqa: E731
    events = read_lines(folder / "events.jsonl")
    return RunLog(list(filter(has_step, read_lines(folder / "metrics.jsonl"))),
                  [line for line in events if line.get("event") == "validation" and has_step(line)],
                  read_lines(folder / "launches.jsonl"))


def totals(lines: list[Line]) -> dict[str, float]:
    """For all steps: number and seconds, tokens per second, median step time and bubble, each over the steps that record it."""
    rows = [(batches(line), positive(line, "step_ms") * 1e-3, positive(line, "tokens_per_s"), number(line, "bubble")) for line in lines]
    timed = [row for row in rows if row[1] > 0]
    found: dict[str, float] = {}
    if timed:
        found = {"steps": sum(int(count) for count, *_ in timed), "steps_s": sum(count * time for count, time, *_ in timed)}
    if rated := [row for row in timed if row[2] > 0]:
        found["tokens_per_s"] = sum(count * time * rate for count, time, rate, _ in rated) / sum(count * time for count, time, *_ in rated)
    elif rated := [row for row in rows if row[2] > 0]:  # steps with equally many tokens
        found["tokens_per_s"] = sum(row[0] for row in rated) / sum(count / rate for count, _, rate, _ in rated)
    if timed:
        found["median_step_ms"] = statistics.median(time for _, time, *_ in timed) * 1e3
    if idle := [row for row in timed if not math.isnan(row[3])]:
        found["bubble"] = sum(count * time * bubble for count, time, _, bubble in idle) / sum(count * time for count, time, *_ in idle)
    elif idle := [row for row in rows if not math.isnan(row[3])]:
        found["bubble"] = sum(count * bubble for count, _, _, bubble in idle) / sum(row[0] for row in idle)
    return found
