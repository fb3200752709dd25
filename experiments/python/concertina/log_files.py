"""Reads log files as rows of named values: CSV in any locale, JSON, TensorBoard event files, MLflow stores and W&B exports."""
import codecs
import csv
import json
import math
import pathlib
import re
import sqlite3
import typing

from .log_forms import KINDS
from .files import flat


class Table(typing.NamedTuple):
    rows: list[dict[str, typing.Any]]  # by name; "@at" is a row's place in the file
    notes: list[str]
    counter: str = ""    # the column that counts calls of a logger
    delimiter: str = ""
    place: pathlib.Path | None = None  # the folder below the given one


_HELD_OUT = r"(val(id)?(ation|ate)?|eval(uat(ion|e|ing))?|test(ing)?|dev|h[eo]ld_?out)\d*"


def words(name: str) -> str:
    """Converts `trainLoss`, `Train Loss` and `train/loss` to train_loss."""
    return re.sub("[/ .-]", "_", re.sub("(?<=[a-z])(?=[A-Z])", "_", name)).lower()


def are_mixed(name: str, kinds: list[str]) -> bool:
    """Whether a column's values show that rows mix parts of the data or runs, or are held-out; "" means no value."""
    held_out = [kind for kind in kinds if re.search(rf"(^|_){_HELD_OUT}(_|$)", words(kind))]
    part = rf"is|in|for|do|mode|phase|train(ing)?|{_HELD_OUT}"
    if words(name).split("_")[-1] in KINDS:
        return bool(held_out) or len({*kinds} - {""}) > 1 or len(kinds) > 1 and "train" in words(kinds[1])
    if kinds != [""] and {kind.lower() for kind in kinds} <= {"", "true", "false", "yes", "no", "0", "1", "0.0", "1.0"}:  # such as "is_training"
        flag, no = words(name.rpartition("/")[2]), kinds[0].lower() in ("false", "no", "0", "0.0")
        return bool(re.fullmatch(f"(_?({part}))+", flag)) and (len(kinds) > 1 or no == ("train" in flag))
    return any(re.fullmatch(rf"(_?({part}|set|data|split|step|loss|\d+))+", words(kind)) for kind in held_out) or bool(held_out) and any(
        "train" in words(kind) for kind in {*kinds} - {*held_out})


def held_out_place(place: pathlib.Path) -> str:
    """The folder or file whose name marks a log as held-out; "test" and "dev" count only for folders."""
    is_file = place.is_file() and not place.name.startswith("events.out")
    for name in [place.stem] * is_file + [place.resolve().name if place.is_dir() else place.resolve().parent.name]:
        found = re.search(rf"(^|_){_HELD_OUT}(_|$)", words(name))
        if found and not (is_file and found[2] in ("test", "testing", "dev")):
            return name
    return ""


def text_of(source: pathlib.Path) -> str:
    """The text of a log: UTF-8, or UTF-16 with a byte order mark."""
    if not source.is_file():
        raise FileNotFoundError(f"{source} is neither a regular file nor a folder")
    data = source.read_bytes()
    text = data.decode("utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig", errors="replace")
    if "\0" in text:
        raise ValueError(f"{source} contains NUL bytes; expected UTF-8, or UTF-16 with a byte order mark")
    return text


def lines_of(text: str) -> list[str]:
    """Splits into lines. A carriage return, as printed by progress bars, also ends a line."""
    return re.split(r"\r\n|\r|\n", text)


def json_table(text: str) -> Table | None:
    """Reads a trainer_state.json, a list of rows, or a row per line; None if there are no rows."""
    def read(part: str) -> typing.Any:
        try:
            return json.loads(part)
        except (ValueError, RecursionError):  # truncated, or not JSON
            return None
    whole = read(text)
    if isinstance(whole, dict) and isinstance(history := whole.get("log_history"), list):
        return Table([row | {"@log_history": 1} for row in history if isinstance(row, dict)], [])
    read_rows = [(f"row {n}", row) for n, row in enumerate(whole, 1)] if isinstance(whole, list) else [
        (f"line {n}", read(line)) for n, line in enumerate(lines_of(text), 1) if line.strip()]
    rows = [flat(row, mark="/") | {"@at": place} for place, row in read_rows if isinstance(row, dict)]
    others = len(read_rows) - len(rows)
    return Table(rows, [f"skipped: {others} lines that are not JSON objects"] if others else []) if rows else None


def csv_table(source: pathlib.Path, text: str) -> Table:
    """The rows of a CSV with a header; a first line `sep=;`, as written by Excel, names the delimiter."""
    lines = lines_of(text)
    named = re.fullmatch(r"sep=(.)", lines[0].strip())
    header = next((line for line in lines[bool(named):] if line.strip()), "")
    cells = {mark: len(next(csv.reader([header], delimiter=mark), [])) for mark in ("\t", ";", ",")}
    delimiter = named[1] if named else max(cells, key=cells.__getitem__)
    reader = csv.reader((line + "\n" for line in lines[bool(named):]), delimiter=delimiter, strict=True)
    try:
        names, *rows = [(f"line {reader.line_num + bool(named)}", [cell.strip() for cell in row]) for row in reader if any(row)] or [("", [])]
    except csv.Error as error:
        raise ValueError(f"{source} is not a CSV: {error}") from error
    notes = []
    if rows and lines[-1] and (len(rows[-1][1]) < len(names[1]) or not lines[-1].endswith('"')):
        notes.append(f"skipped: {rows.pop()[0]}, which may be incomplete, since it has no newline")
    for place, row in rows:
        if len(row) != len(names[1]):
            raise ValueError(f"{source}, {place}: {len(row)} cells, but {len(names[1])} columns. Quote cells that contain {delimiter!r}")
    if twice := {name for name in names[1] if name and names[1].count(name) > 1}:
        raise ValueError(f"{source} has several columns named {twice.pop()!r}")
    return Table([dict(zip(names[1], row)) | {"@at": place} for place, row in rows], notes, "", delimiter)


def wandb_export(table: Table, wanted: str | None) -> Table:
    """Converts a W&B chart's CSV, with columns "RUN - NAME" and their __MIN and __MAX, to columns NAME."""
    named = [name.rpartition(" - ") for name in (table.rows or [{}])[0] if f"{name}__MIN" in table.rows[0]]
    if not named:
        return table
    run = _one_run({of: of for of, _, _ in named}, wanted, "the export")
    rows, means = [], 0
    for row in table.rows:
        values = {name: row[f"{run} - {name}"] for of, _, name in named if of == run}
        single = {name: value for name, value in values.items()
                  if {row[f"{run} - {name}__MIN"], row.get(f"{run} - {name}__MAX")} == {value}}
        means += len(values) - len(single)
        rows.append({name: value for name, value in row.items() if " - " not in name} | single)
    note = [f"skipped: {means} values that represent several points, since __MIN and __MAX differ"] if means else []
    return Table(rows, [*table.notes, f"run {run!r} of the export", *note], "Step", table.delimiter)


def _one_run(runs: dict[str, str], wanted: str | None, what: str) -> str:
    """The key of the run whose key or name is `wanted`, or of the only run."""
    found = [key for key, name in runs.items() if wanted in (None, key, name)]
    if len(found) != 1:
        raise ValueError(f"{what} contains the runs {', '.join(map(repr, list(runs.values())[:8])) or 'none'}: choose one with --run NAME")
    return found[0]


def event_table(source: pathlib.Path) -> Table:
    """Reads the TensorBoard event files of one folder, or one file."""
    try:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    except ImportError as error:
        raise ImportError("reading event files requires TensorBoard: pip install tensorboard") from error
    folders = sorted({path.parent for path in source.rglob("events.out.tfevents*")}) if source.is_dir() else [source.parent]
    if not folders:
        raise ValueError(f"{source} has neither event files nor an active MLflow run")
    if len(folders) != 1:
        raise ValueError(f"{source} has event files in {len(folders)} folders; import one at a time: {', '.join(map(str, folders[:8]))}")
    events = EventAccumulator(str(folders[0] if source.is_dir() else source), size_guidance={"scalars": 0})
    events.Reload()
    points = [(one.step, tag, one.wall_time, one.value) for tag in events.Tags()["scalars"] for one in events.Scalars(tag)]
    lightning = (folders[0] / "hparams.yaml").is_file() or any(point[1] == "hp_metric" for point in points)
    return Table(_rows(points, **({"@lightning": 1} if lightning else {})), [], place=folders[0])


def _rows(points: list[tuple[int, str, float, float]], **mark: int) -> list[dict]:
    """Converts points (step, name, seconds since 1970, value) to rows in time order."""
    return [{"@step": step, "@time": seconds, name: value, **mark} for step, name, seconds, value in sorted(
        points, key=lambda point: (point[2], point[0]))]


def mlflow_folders(source: pathlib.Path) -> list[pathlib.Path]:
    """The run folders in an MLflow folder: a run, an experiment or `mlruns`."""
    found = [path.parent for pattern in ("metrics", "*/metrics", "*/*/metrics") for path in source.glob(pattern)]
    return sorted(path for path in found if (path / "meta.yaml").is_file() and ".trash" not in path.parts and not re.search(
        r"(?m)^lifecycle_stage: *deleted", (path / "meta.yaml").read_text(encoding="utf-8")))


def _mlflow_points(folder: pathlib.Path, notes: list[str]) -> typing.Iterator[tuple[int, str, float, float]]:
    """The points of a run, from a file per metric with lines "MILLISECONDS VALUE STEP" and possibly a dataset and its digest."""
    for path in (path for path in folder.rglob("*") if path.is_file()):
        *lines, last = path.read_text(encoding="utf-8").split("\n")
        if last:
            notes.append(f"skipped: the last line of {path.relative_to(folder)}, which may be incomplete, since it has no newline")
        for at, line in enumerate(lines, 1):
            try:
                time, value, step, *_ = line.split(" ")
                yield int(step), path.relative_to(folder).as_posix(), int(time) / 1e3, float(value)
            except ValueError as error:
                raise ValueError(f"{path}, line {at}: {line!r} is not a time, a value and a step in MLflow's format") from error


def mlflow_table(source: pathlib.Path, wanted: str | None) -> Table:
    """Reads a run from MLflow's database file or folder."""
    notes: list[str] = []
    if source.is_file():
        try:
            database = sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro", uri=True)
            names = dict(database.execute("select run_uuid, name from runs where lifecycle_stage = 'active'"))
            run = _one_run(names, wanted, str(source))
            stored = database.execute("select step, key, timestamp, value, is_nan from metrics where run_uuid = ?", (run,)).fetchall()
        except sqlite3.Error as error:
            raise ValueError(f"{source} is not an MLflow database: {error}") from error
        # Non-finite values are stored as 0 with is_nan, or as the largest number.
        points = [(step, key, time / 1e3, math.nan if nan else math.copysign(math.inf, value) if abs(value) > 1.79e308 else value)
                  for step, key, time, value, nan in stored]
    else:
        folders = {str(path): path for path in mlflow_folders(source)}
        names = {key: (re.findall(r"(?m)^run_name: *(.+)$", (path / "meta.yaml").read_text(encoding="utf-8")) or [path.name])[0]
                 for key, path in folders.items()}
        run = _one_run(names, wanted, str(source))
        points = list(_mlflow_points(folders[run] / "metrics", notes))
    if len(points) > len({point[1] for point in points}) and not any(point[0] for point in points):
        raise ValueError(f"the metrics of run {names[run]} have no steps, because log_metric() was called without step=")
    return Table(_rows(points), [f"run {names[run]!r} of MLflow", *notes])


_GROUP = " \u00a0\u2009\u202f'\u2019"


def _reads(text: str, decimal: str) -> float | None:
    """The number in `text` with this decimal mark and possibly groups of three digits; None if it is not a number."""
    other = "," if decimal == "." else "."
    whole = rf"(?:[1-9]\d{{0,2}}(?P<mark>[{other}{_GROUP}])\d{{3}}(?:(?P=mark)\d{{3}})*|\d+)(?:[{decimal}]\d*)?|[{decimal}]\d+"
    if not re.fullmatch(rf"[-+]?(?:{whole})(?:[eE][-+]?\d+)?", text, re.ASCII):
        return None
    return float(re.sub(f"[{other}{_GROUP}]", "", text).replace(decimal, "."))


def decimal_mark(cells: list[tuple[str, str, str]], delimiter: str) -> str:
    """The decimal mark of the cells (place, text, metric), if any of them is unambiguous."""
    certain: dict[str, str] = {}
    unsure: list[str] = []
    for place, text, figure in cells:
        ways = {mark: value for mark in ".," if (value := _reads(text, mark)) is not None}
        if len(ways) == 1:
            certain.setdefault(next(iter(ways)), f"{place} has {text!r}")
        elif len(set(ways.values())) == 2 and ("," in text or delimiter == ";" or delimiter == "\t" and figure == "step"):
            unsure.append(f"{place} has {text!r}")
    if len(certain) == 2:
        raise ValueError(f"{certain['.']} and {certain[',']}: two decimal marks in one file")
    if unsure and (not certain or delimiter == ";" and "." in certain and any("," in text for text in unsure)):
        raise ValueError(f"{unsure[0]}, which is ambiguous between a decimal comma and a decimal point, and no other cell decides"
                         + (f" (but {certain['.']})" if certain else "") + ": "
                         "--decimal , or --decimal .")
    return next(iter(certain), ".")


def number(place: str, value: typing.Any, decimal: str) -> float | None:
    """The number in a cell or JSON value; None if it is empty."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    text = str(value).strip()
    if text.lower() in ("", "null", "none"):
        return None
    found = float(text) if re.fullmatch(r"[-+]?(nan|inf|infinity)", text, re.I) else _reads(text, decimal)
    if found is None:
        raise ValueError(f"{place} has {text!r}, which is not a number with the decimal mark {decimal!r}")
    return found
