"""Logs of other programs as runs, so that `concertina compare` and this package put them beside one's own.

What is known stands in log_forms.py. Everything else is left out with a count, or refused: nothing is guessed.
"""
from __future__ import annotations

import collections
import datetime
import json
import math
import pathlib
import re
import sys
import typing

from . import log_files
from .log_forms import COLUMNS, FIGURES, KINDS, TIMES, Columns, Line, known_line

_METRICS = ("loss", "lr", "grad_norm", "tokens_per_s", "step_ms")


class Options(typing.NamedTuple):
    """What a log does not say of itself; `python -m concertina import` has an option for each."""
    columns: dict[str, str] = {}  # what the log calls a figure: {"loss": "my/ce"}
    program: str | None = None    # one of log_forms.PROGRAMS
    decimal: str | None = None    # "." or ","
    devices: int | None = None    # by which a rate per device is multiplied
    run: str | None = None        # of a file with several


def import_run(source: str | pathlib.Path, directory: str | pathlib.Path, columns: dict[str, str] | None = None,
               say: typing.Callable[[str], object] = lambda text: print(text, file=sys.stderr), **options) -> pathlib.Path:
    """Makes the new run `directory` of the log `source`: a file, or a folder of event files or of MLflow.

    `options` are those of `Options`. `say` gets a sentence on each thing that was taken or left out, which imported.json has too.
    """
    source, directory, asked = pathlib.Path(source), pathlib.Path(directory), Options(columns or {}, **options)
    if directory.exists():
        raise FileExistsError(f"{directory} exists already: name a new directory, such as runs/NAME")
    rows, notes = _rows_of(source, asked)
    steps, evaluations = _by_step(rows, "loss", notes), _by_step(rows, "validation_loss", notes)
    if not steps and not evaluations:
        raise ValueError(f"{source} has no losses by step in a form that is known (a CSV is read where its name ends in .csv or .tsv)"
                         + "".join(f"; {note}" for note in notes))
    if rates := [row for row in steps if "device_tokens_per_s" in row]:
        notes.append(f"tokens/s is the figure of a device times {asked.devices}" if asked.devices else
                     "left out: tokens/s, which is the figure of a single device; --devices N makes it the run's")
    for row in rates if asked.devices else []:
        row["tokens_per_s"] = row["device_tokens_per_s"] * typing.cast(int, asked.devices)
    notes += ["no figure of the log is per device, so --devices is without effect"] if asked.devices and not rates else []
    directory.mkdir(parents=True)
    _write(directory / "metrics.jsonl", (
        {"step": row["step"], **{figure: row[figure] if math.isfinite(row[figure]) else None for figure in _METRICS if figure in row},
         **_time_of(row)} for row in steps))
    _write(directory / "events.jsonl", ({"step": row["step"], "event": "validation", "loss": row["validation_loss"], **_time_of(row)}
                                        for row in evaluations))
    _write(directory / "imported.json", [{"source": str(source.resolve()), "notes": notes}])
    for note in notes:
        say(f"{source.name}: {note}.")
    return directory


def _rows_of(source: pathlib.Path, asked: Options) -> tuple[list[dict], list[str]]:
    if source.is_dir() and log_files.mlflow_folders(source):
        return _named(source, log_files.mlflow_table(source, asked.run), asked)
    if source.is_dir() or source.name.startswith("events.out.tfevents"):
        return _named(source, log_files.event_table(source), asked)
    if source.is_file() and open(source, "rb").read(16) == b"SQLite format 3\0":
        return _named(source, log_files.mlflow_table(source, asked.run), asked)
    text = log_files.text_of(source)
    if re.match(r'\s*(\{\s*"|\[\s*\{)', text) and (table := log_files.json_table(text)):
        return _named(source, table, asked)
    if source.suffix.lower() not in (".csv", ".tsv"):
        return _printed(text, asked)
    table = log_files.wandb_export(log_files.csv_table(source, text), asked.run)
    if source.name == "metrics.csv" and ((source.parent / "hparams.yaml").is_file() or source.resolve().parent.name.startswith("version_")):
        table.rows[:] = [row | {"@lightning": 1} for row in table.rows]
    return _named(source, table, asked)


def _printed(text: str, asked: Options) -> tuple[list[dict], list[str]]:
    """The rows of the lines that a program printed."""
    if asked.columns:
        raise ValueError("--column names a column of a table, and the log is printed text; a CSV is read where its name ends in .csv or .tsv")
    rows: list[dict] = []
    forms: dict[str, Line] = {}
    taken: collections.Counter[str] = collections.Counter()
    left: collections.Counter[str] = collections.Counter()
    before: int | None = None        # the last training step
    stepless: list[tuple] = []       # llm.c's "val loss", with the step before
    for line in filter(str.strip, log_files.lines_of(text)):
        found = known_line(line)
        if found is None or asked.program not in (None, found[0].program):
            left["printed rows of transformers without a step: import trainer_state.json" if line.lstrip().startswith("{'") else "other lines"] += 1
            continue
        form, rank, row = found
        row = typing.cast(dict[str, typing.Any], row) | {"@rank": rank}
        if why := _left_out(form, row):
            left[why] += 1
            continue
        forms[form.form], taken[form.form] = form, taken[form.form] + 1
        if "step" not in row:
            stepless.append((row, before))
            continue
        row["step"] = int(row["step"]) + form.add
        if "loss" in row:
            rows += [held | {"step": row["step"] - 1} for held, after in stepless if after in (None, row["step"] - 1)]
            left["held-out losses whose step the lines around them do not tell"] += sum(
                after not in (None, row["step"] - 1) for _, after in stepless)
            before, stepless = int(row["step"]), []
        rows.append(row)
    rows += [held | {"step": after} for held, after in stepless if after is not None]
    if len(programs := sorted({form.program for form in forms.values()})) > 1:
        raise ValueError(f"the log has lines of {' and '.join(programs)}: --program chooses one")
    evaluated = {row["step"] for row in rows if "validation_loss" in row} if programs == ["nanogpt"] else set()
    rows = [{name: value for name, value in row.items() if name != "step_ms" or row["step"] - 1 not in evaluated} for row in rows]
    notes = [f"{taken[name]} lines of {form.program} in the form {name!r}: {form.kind} losses" + (", 1 added to the step" if form.add else "")
             + (f". {form.means}" if form.means else "") for name, form in forms.items()]
    notes += [f"left out: {count} {why}" for why, count in left.items() if count]
    return _of_one_rank(rows, notes), notes


def _left_out(form: Line, row: dict[str, typing.Any]) -> str:
    """Why a known line is left out; empty where it is taken."""
    if form.kind not in ("training", "held-out"):
        return form.kind
    if not {"loss", "validation_loss"} & set(row) or row.get("skipped") and row.get("loss") == 0:
        return "lines without a loss"
    return "losses of -1, which ranks without the last stage print" if form.program == "torchtitan" and row.get("loss") == -1 else ""


def _of_one_rank(rows: list[dict], notes: list[str]) -> list[dict]:
    """Of lines that several ranks printed those of one; refused where ranks printed other losses."""
    ranks = sorted({row["@rank"] for row in rows}, key=lambda rank: (len(rank), rank))
    if len(ranks) > 1:
        printed: dict[tuple, set[float]] = collections.defaultdict(set)
        for row in reversed(rows):  # of a rank that printed a step twice, after a resume, the later line
            for name in {"loss", "validation_loss"} & set(row):
                if not math.isnan(row[name]) and (row["@rank"], name, row["step"]) not in printed:
                    printed[row["@rank"], name, row["step"]] = {row[name]}
                    printed[name, row["step"]].add(row[name])
        if differ := [key[1] for key, values in printed.items() if len(values) > 1]:
            raise ValueError(f"ranks {', '.join(ranks)} printed different losses for step {min(differ)}: keep the lines of one rank, for example with grep")
        notes.append(f"ranks {', '.join(ranks)} printed the same losses; the lines of rank {ranks[0]} count")
    return [row for row in rows if row["@rank"] == ranks[0]]


def _named(source: pathlib.Path, table: log_files.Table, asked: Options) -> tuple[list[dict], list[str]]:
    """The figures of a table's rows under the names that they have here."""
    if not table.rows:
        raise ValueError(f"{source} has no rows")
    names = list(dict.fromkeys(name for row in table.rows for name in row))
    known = next((row for row in COLUMNS if asked.program == row.program or asked.program is None and any(
        signs <= set(names) for signs in row.signs)), None)
    if known is None:
        raise ValueError(f"--program {asked.program}: no columns of it are known")
    chosen = _chosen(source, known, names, table.counter, asked)
    _check_rows(source, known.program, table.rows, chosen, asked)
    place = lambda row, name: f"{source}, {row.get('@at', 'step ' + str(row.get('@step')))}, column {name}"
    cells = [(place(row, name), row[name].strip()) for row in table.rows for figure, name in chosen.items()
             if figure != "time" and isinstance(row.get(name), str)]
    decimal = asked.decimal or log_files.decimal_mark(cells, table.delimiter)
    rows, stepless = [], 0
    for row in table.rows:
        values = {figure: row.get(name) if figure == "time" else log_files.number(place(row, name), row.get(name), decimal)
                  for figure, name in chosen.items()}
        figures: dict[str, typing.Any] = {figure: value for figure, value in values.items() if value is not None}
        if (step := figures.get("step")) is None:
            stepless += 1
            continue
        if not step >= 0 or step != step // 1:
            raise ValueError(f"{place(row, chosen['step'])} has {row[chosen['step']]!r}, which is not a step")
        figures["step"] = int(step) + (0 if "step" in asked.columns else known.add)
        rows.append(({"step_ms": 1e3 * figures["step_s"]} if "step_s" in figures else {}) | figures)
    notes = [f"columns of {known.program}: " + ", ".join(f"{name.strip('@')} as {figure}" for figure, name in chosen.items())
             + (f". {known.means}" if known.means else ""), *table.notes]
    unused = [name for name in names if name not in chosen.values() and not name.startswith("@")]
    notes += [f"left out: the columns {', '.join(unused)}"] if unused else []
    return rows, notes + ([f"left out: {stepless} rows without a step"] if stepless else [])


def _chosen(source: pathlib.Path, known: Columns, names: list[str], counter: str, asked: Options) -> dict[str, str]:
    """The column of each figure that the log has."""
    there = ", ".join(name for name in names if not name.startswith("@"))
    chosen: dict[str, str] = dict(asked.columns)
    if wrong := [f"{figure}={name}" for figure, name in chosen.items() if figure not in FIGURES or name not in names]:
        raise ValueError(f"--column {wrong[0]}: one of {', '.join(FIGURES)}, and a column of {source}: {there}")
    for figure, spellings in {**known.names, "time": TIMES}.items():
        found = [name for name in spellings if name in names] if known.program != "plain" or figure == "time" else [
            name for name in names if re.sub("[/ .-]", "_", name).lower() in spellings and name != counter]
        found = ["@step"] if figure == "step" and "@step" in names else found or (
            [counter] if figure == "step" and "_step" in spellings and counter in names else [])
        if len(found) > 1 and known.program == "plain" and figure not in {"time", *chosen}:
            raise ValueError(f"{source}: {' and '.join(found)} may each be {figure}: --column {figure}=NAME chooses one")
        if found:
            chosen.setdefault(figure, found[0])
    if "step" not in chosen or not {"loss", "validation_loss"} & set(chosen):
        raise ValueError(f"{source} has no {'losses' if 'step' in chosen else 'steps'} under a name that is known, but {there}: "
                         "--column step=NAME and --column loss=NAME name them. W&B's Step and _step count calls of its log()")
    return chosen


def _check_rows(source: pathlib.Path, program: str, rows: list[dict], chosen: dict[str, str], asked: Options) -> None:
    """Refuses losses of several parts of the data or runs in one column, means of an epoch, and what may be of Lightning or not."""
    for name in (name for name in dict.fromkeys(key for row in rows for key in row) if re.split("[/_. ]", name.lower())[-1] in KINDS):
        kinds = sorted({str(row[name]) for row in rows if row.get(name) not in (None, "") and name not in chosen.values() and any(
            row.get(chosen.get(figure, "@")) not in (None, "") for figure in ("loss", "validation_loss"))})
        if len(kinds) > 1 or any(re.search("(?i)val|eval|test|dev|held", kind) for kind in kinds):
            raise ValueError(f"{source}: the rows are of several kinds by their column {name} ({', '.join(kinds[:4])}): keep those of training")
    losses = [row for row in rows if row.get(chosen.get("loss", "@")) not in (None, "") and row.get("epoch") not in (None, "")]
    epochs = [str(row["epoch"]).removesuffix(".0") for row in losses]
    if len(losses) > 1 and all(map(str.isdigit, epochs)) and len(set(epochs)) == len(epochs) and "loss" not in asked.columns:
        raise ValueError(f"{source} has one {chosen['loss']} per epoch, perhaps the mean of the epoch: --column loss={chosen['loss']} takes it")
    if program == "plain" != asked.program and {"epoch", "train_loss"} <= {*chosen.values(), *(name for row in rows for name in row)} and not any(
            row.get("train_loss") and row.get(chosen.get("validation_loss", "@")) for row in rows) and "step" not in asked.columns:
        raise ValueError(f"{source} may be of Lightning, which counts steps from 0: --program lightning or --program plain")


def _by_step(rows: list[dict], figure: str, notes: list[str]) -> list[dict]:
    """The rows that have a figure, by step, with what else the log has of the step. Of one that is there twice the later counts."""
    found: dict[int, dict] = {}
    again, successive, last = 0, 0, None
    for row in rows:
        before = found.get(row["step"], {})
        if figure in row:
            if figure in before:
                again += 1
                successive += row["step"] == last and row[figure] != before[figure]
                before = {}
            found[row["step"]], last = before | row, row["step"]
        elif not {"loss", "validation_loss"} & set(row):  # an event of TensorBoard, a call of W&B's log()
            found[row["step"]] = {**before, **{name: value for name, value in row.items() if name != "time"}}
    result = [row for _, row in sorted(found.items()) if figure in row and (figure == "loss" or math.isfinite(row[figure]))]
    if 2 * successive > len(result):
        raise ValueError(f"step {last} and others have two {figure} in succession: lines of several ranks or runs? Keep those of one")
    name = {"loss": "training", "validation_loss": "held-out"}[figure]
    notes.append(f"{len(result)} {name} losses" + (f" of steps {result[0]['step']} to {result[-1]['step']}" if result else "")
                 + (f"; {again} are there twice, of which the later counts, as after a resume" if again else ""))
    return result


def _time_of(row: dict) -> dict:
    """As utc_text() writes it; nothing where the log has no time, or one without a zone or in another unit."""
    text = str(row.get("time")).strip()
    try:
        if re.fullmatch(r"[\d.]+", text):
            text = datetime.datetime.fromtimestamp(float(text), datetime.timezone.utc).isoformat() if 1e8 < float(text) < 1e10 else ""
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return {}
    utc = moment.astimezone(datetime.timezone.utc)
    return {"time": utc.strftime("%Y-%m-%dT%H:%M:%S.") + f"{utc.microsecond // 1000:03}Z"} if moment.tzinfo else {}


def _write(path: pathlib.Path, lines: typing.Iterable[dict]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
