"""Known lines and columns in other programs' logs (log_forms.toml), and which rows of a log count."""
import collections
import itertools
import math
import pathlib
import re
import tomllib
import typing

from .files import read_text

_KNOWN = tomllib.loads(read_text(pathlib.Path(__file__).with_suffix(".toml")))


class Line(typing.NamedTuple):
    program: str
    kind: str
    form: str
    add: int = 0
    means: str = ""
    fields: dict[str, str] = {}


LINES = [Line(**one) for one in _KNOWN["line"]]
_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|nan|NAN|inf|INF)"
_KINDS = {"step": r"\d+", "device_tokens_per_s": r"(?:\d{1,3}(?:,\d{3})+|\d+)", ",": r"(?:\d{1,3}(?:,\d{3})*|\d+)(?:\.\d*)?",
          "%": r"(?:[\d.]+%|nan%|inf%|N/A)"}
_PAIR = re.compile(r" *([^|:]+): *([^|]*?) *\|")
# Prefixes that launchers and loggers add to a line: rank, time, logger name and level.
_PREFIX = re.compile(r"""\[(?:rank|default)(\d+)\]:\s* | (\d+):\ + | \[\d+,(\d+)\]<std(?:out|err)>:\s* | \[titan\]\s+ | \s+
    | \[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[-+]\d\d:?\d\d)?\]?\s+ | (?:-\ [\w.]+\ )?-\ INFO\ -\ + | \[?INFO\]?:?\s+""", re.X)
_COLORS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def _number(name: str) -> tuple[str, str]:
    """The metric in `FIGURE:DECIMALS`, and the pattern that matches its number."""
    figure, _, decimals = name.partition(":")
    digits = "|".join(rf"\d{{{count}}}" for count in decimals.rstrip("E").split("|")) + (r"E[-+]\d\d+" if decimals.endswith("E") else "")
    return figure, rf"[-+]?(?:\d+\.(?:{digits})|(?i:nan|inf))" if decimals else _KINDS.get(figure, _NUMBER)


def _compiled(form: str) -> re.Pattern[str]:
    pattern = ""
    for part in re.split(r"(\{[^}]*\}|\[|\]| +)", form):
        name = part[1:-1]
        if part == "{*}":
            pattern += r"(?P<pairs>(?: *[^|:]+:[^|]*\|)+) *"
        elif part.startswith("{"):
            figure, number = _number(name)
            pattern += f" *(?{f'P<{figure}>' if figure.isidentifier() else ':'}{number})"
        else:
            pattern += {"[": "(?:", "]": ")?"}.get(part, " +" if part.isspace() else re.escape(part))
    return re.compile(pattern)


_COMPILED = [(line, _compiled(line.form)) for line in LINES]


def known_line(text: str) -> tuple[Line, str, dict[str, float]] | None:
    """The form of a printed line, the rank in front of it ("" if absent) and its values; None for other lines."""
    text, rank, at = _COLORS.sub("", text).rstrip(), "", 0
    while (found := _PREFIX.match(text, at)) is not None:
        rank, at = next(filter(None, found.groups()), rank), found.end()
    for line, pattern in _COMPILED:
        if (match := pattern.fullmatch(text, at)) is None:
            continue
        named = match.groupdict()
        pairs = _PAIR.findall(named.pop("pairs", None) or "")
        taken = [(*_number(line.fields[name]), value) for name, value in pairs if name in line.fields]
        if len(dict(pairs)) < len(pairs) or not all(re.fullmatch(number, value) for _, number, value in taken) or pairs and len(
                re.findall(r"\biteration +\d", text)) > 1:  # two lines that ranks interleaved
            return None
        listed = {figure: value for figure, _, value in taken}
        return line, rank, {name: float(value.replace(",", "")) for name, value in {**named, **listed}.items() if value}
    return None


class Columns(typing.NamedTuple):
    program: str
    signs: list[list[str]]
    names: dict[str, list[str]]
    add: int = 0
    means: str = ""


COLUMNS = [Columns(**one) for one in _KNOWN["columns"]]
TIMES, KINDS = _KNOWN["times"], set(_KNOWN["kinds"])
FIGURES = [*COLUMNS[-1].names, "device_tokens_per_s", "time"]
PROGRAMS = sorted({row.program for row in COLUMNS} | {line.program for line in LINES})


def once(rows: list[dict], notes: list[str]) -> list[dict]:
    """Merges losses that several ranks printed; refuses different losses for the same step."""
    ranks = sorted({row["@rank"] for row in rows}, key=lambda rank: (len(rank), rank))
    names = ", ".join(rank or "(none)" for rank in ranks[:8]) + (f" and {len(ranks) - 8} more" if len(ranks) > 8 else "")
    printed: dict[tuple[str, int], dict[str, str]] = collections.defaultdict(dict)
    for row in rows:  # if a rank printed a step twice because it resumed, the later line counts
        for name in {"loss", "validation_loss"} & set(row):
            printed[name, row["step"]][row["@rank"]] = str(row[name])
    if differ := [step for (_, step), values in printed.items() if len(set(values.values())) > 1]:
        raise ValueError(f"ranks {names} printed different losses for step {min(differ)}: keep the lines of one rank, for example with grep")
    single = sum(len(values) == 1 for values in printed.values())
    if len(ranks) > 1:
        notes.append(f"ranks {names} printed the same losses; using the lines of rank {ranks[0]}"
                     if all(len(values) == len(ranks) for values in printed.values()) else
                     f"merged the lines of ranks {names}: {single} losses were printed by one rank, {len(printed) - single} by several, which agree")
    first = {key: min(values, key=lambda rank: (len(rank), rank)) for key, values in printed.items()}
    return [row for row in rows if any(first.get((name, row["step"])) == row["@rank"] for name in ("loss", "validation_loss") if name in row)]


def last_run(rows: list[dict], notes: list[str], source: pathlib.Path | None = None) -> list[dict]:
    """Removes rows repeated after resuming, and earlier runs in the same log; if `source` is given, refuses the latter."""
    losses = [row["step"] for row in rows if "loss" in row]
    if len(losses) > 2 and all(one > other for one, other in itertools.pairwise(losses)):
        rows = rows[::-1]  # newest first
    falls, runs = _falls(rows)
    for figure in ("loss", "validation_loss"):
        count, times = sum(figure in row for row in rows), sum(figure in rows[at] and ("loss" in rows[at] or figure in rows[at - 1]) for at in falls)
        if times and (2 * times >= count or times > 1 and 4 * times >= count):
            raise ValueError(f"the steps go back or have two values of {figure}, {times} times in {count}: the log may mix ranks or runs. "
                             "Keep one of them")
    if not falls:
        return rows
    again = f"the steps go back {len(falls)} times, the last time to {rows[max(falls)]['step']}"
    if runs and source is not None:
        raise ValueError(f"{source}: {again}, where another run or epoch starts; keep the rows of one run (of TensorBoard, one event file), "
                         "or name the step of the run with --column step=NAME")
    kept: list[dict] = []
    near = floor = held_out = math.inf  # steps that were repeated later start here; `near` applies back to the previous loss
    for at in range(len(rows) - 1, -1, -1):
        row, step = rows[at], rows[at]["step"]
        floor = near if "loss" in row else floor
        if step < floor and step <= abs(near) and (step < held_out or "loss" in row or "validation_loss" not in row):
            kept.append(row)
        if at in falls and "loss" in row:
            near = -step if at in runs else min(near, step)
        elif at in falls:
            held_out = min(held_out, step)
    notes.append(again + (f": only the run that starts at step {rows[max(runs)]['step']} counts" if runs else
                          ": the later lines count, as after a resume") + f"; skipped: {len(rows) - len(kept)} earlier lines")
    return kept[::-1]


def _falls(rows: list[dict]) -> tuple[set[int], set[int]]:
    """The rows that repeat a step with a different result, and those among them that start another run at the first steps of the log."""
    falls: set[int] = set()
    runs: set[int] = set()
    held_out: dict[int, str] = {}
    places = [at for at, row in enumerate(rows) if "loss" in row]
    steps = [rows[at]["step"] for at in places]
    for n in range(1, len(steps)):
        if steps[n] < steps[n - 1] or steps[n] == steps[n - 1] and str(rows[places[n]]["loss"]) != str(rows[places[n - 1]]["loss"]):
            falls.add(places[n])
            before, after = (steps[at + 1] - steps[at] if 0 <= at < len(steps) - 1 else 0 for at in (n - 2, n))
            if steps[n] <= steps[places.index(max(runs)) if runs else 0] or steps[n] <= after != before:
                runs.add(places[n])
    for at, row in enumerate(rows):
        if "validation_loss" in row and "loss" not in row:
            if held_out.get(row["step"], value := str(row["validation_loss"])) != value:
                falls.add(at)
            held_out[row["step"]] = value
    return falls, runs


def check_epochs(source: pathlib.Path, rows: list[dict], name: str) -> None:
    """Refuses step numbers that restart at each epoch: they decrease or stay the same when the epoch increases."""
    for figure in ("loss", "validation_loss"):
        points = [(float(found[0].replace(",", ".")), row["step"]) for row in rows if figure in row and (
            found := re.match(r"\d+([.,]\d+)?", str(row.get("@epoch"))))]
        for (before, last), (epoch, step) in itertools.pairwise(points):
            if epoch > before and step <= last:
                raise ValueError(f"{source}: {name} counts within an epoch, since it goes from {last} to {step} when the epoch grows; "
                                 "name the step of the run with --column step=NAME")


def by_step(rows: list[dict], figure: str, notes: list[str]) -> list[dict]:
    """The rows that have a metric, by step, with the other values of the step."""
    found: dict[int, dict] = {}
    for row in rows:
        if figure in row or not {"loss", "validation_loss"} & set(row):  # the latter is a TensorBoard event or a W&B log() call
            found[row["step"]] = found.get(row["step"], {}) | {name: value for name, value in row.items() if name != "time" or figure in row}
    result = [row for _, row in sorted(found.items()) if figure in row]
    name = {"loss": "training", "validation_loss": "held-out"}[figure]
    bad = [row["step"] for row in result if not math.isfinite(row[figure])]
    notes.append(f"{len(result)} {name} losses" + (f" of steps {result[0]['step']} to {result[-1]['step']}" if result else "")
                 + (f", of which {len(bad)} are not finite" + (", including the last one" if bad[-1] == result[-1]["step"] else "") if bad else ""))
    return result
