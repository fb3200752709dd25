"""Imports logs from other programs as runs, so that `concertina compare` and this package can compare them.

The known formats are in log_forms.toml. Everything else is skipped and counted, or refused; nothing is guessed.
"""
import collections
import datetime
import json
import math
import pathlib
import re
import sys
import typing

from . import log_files
from .log_forms import COLUMNS, FIGURES, TIMES, Columns, Line, by_step, check_epochs, known_line, last_run, once

_NO_STAGE = "losses of -1, printed by ranks without the last stage"
_METRICS = ("loss", "lr", "grad_norm", "tokens_per_s", "step_ms", "batches")


class Options(typing.NamedTuple):
    """Information that a log may lack; `python -m concertina import` has an option for each."""
    columns: dict[str, str] = {}  # names of metrics in the log: {"loss": "my/ce"}
    program: str | None = None    # one of log_forms.PROGRAMS
    decimal: str | None = None    # "." or ","
    devices: int | None = None    # factor for a rate per device
    run: str | None = None        # name of one of several runs in a file


def import_run(source: str | pathlib.Path, directory: str | pathlib.Path, columns: dict[str, str] | None = None,
               say: typing.Callable[[str], object] = lambda text: print(text, file=sys.stderr), **options) -> pathlib.Path:
    """Creates the new run `directory` from the log `source`: a file, an event-file folder or an MLflow folder.

    `options` are those of `Options`. `say` is called with a sentence about each thing imported or skipped; imported.json also contains these sentences.
    """
    source, directory, asked = pathlib.Path(source), pathlib.Path(directory), Options(columns or {}, **options)
    if directory.exists():
        raise FileExistsError(f"{directory} already exists; name a new directory, such as runs/NAME")
    rows, notes = _rows_of(source, asked)
    steps, evaluations = by_step(rows, "loss", notes), by_step(rows, "validation_loss", notes)
    if not steps and not evaluations:
        raise ValueError(f"{source} has no losses by step in a known form (a CSV must be named .csv or .tsv)"
                         + "".join(f"; {note}" for note in notes))
    if steps and evaluations and evaluations[-1]["step"] < steps[-1]["step"]:
        notes.append(f"the last held-out loss is from step {evaluations[-1]['step']}; training ends at step {steps[-1]['step']}")
    if rates := [row for row in steps if "device_tokens_per_s" in row]:
        notes.append(f"tokens/s per device was multiplied by {asked.devices}" if asked.devices else
                     "skipped: tokens/s, which is per device; --devices N converts it")
    for row in rates if asked.devices else []:
        row["tokens_per_s"] = row["device_tokens_per_s"] * typing.cast(int, asked.devices)
    notes += ["no metric in the log is per device, so --devices has no effect"] if asked.devices and not rates else []
    done = 0
    for row in steps:  # a row with a rate represents all steps since the previous one
        batches = max(1, row["step"] - done)
        done += batches
        row |= {"batches": batches} if batches > 1 and {"step_ms", "tokens_per_s"} & set(row) else {}
    directory.mkdir(parents=True)
    _write(directory / "metrics.jsonl", (
        {"step": row["step"], **{figure: row[figure] for figure in _METRICS if figure in row}, **_time_of(row)} for row in steps))
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
    """The rows read from the lines that a program printed."""
    if asked.columns:
        raise ValueError("--column requires a table, but the log is printed text; a CSV must be named .csv or .tsv")
    rows: list[dict[str, typing.Any]] = []
    forms: dict[str, Line] = {}
    taken: collections.Counter[str] = collections.Counter()
    left: collections.Counter[str] = collections.Counter()
    before: int | None = None        # the last training step
    stepless: list[tuple] = []       # llm.c's "val loss", with the previous step
    *lines, last = log_files.lines_of(text)
    left["incomplete last lines without a newline"] += bool(last.strip())
    for line in filter(str.strip, lines):
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
            left["held-out losses without a known step"] += sum(after not in (None, row["step"] - 1) for _, after in stepless)
            before, stepless = int(row["step"]), []
        rows.append(row)
    rows += [held | {"step": after} for held, after in stepless if after is not None]
    if len(programs := sorted({form.program for form in forms.values()})) > 1:
        raise ValueError(f"the log contains lines from {' and '.join(programs)}: choose one with --program")
    evaluated = {row["step"] for row in rows if "validation_loss" in row} if programs == ["nanogpt"] else set()
    rows = [{name: value for name, value in row.items() if name != "step_ms" or row["step"] - 1 not in evaluated} for row in rows]
    notes = [f"{taken[name]} lines from {form.program} in the form {re.sub(':[^} ]+}', '}', name)!r}: {form.kind} losses"
             + (", 1 added to the step" if form.add else "") + (f". {form.means}" if form.means else "") for name, form in forms.items()]
    notes += [f"skipped: {count} {why}" for why, count in left.items() if count]
    return last_run(once(rows, notes), notes), notes


def _left_out(form: Line, row: dict[str, typing.Any]) -> str:
    """Why a known line is skipped; empty if it is not."""
    if form.kind not in ("training", "held-out"):
        return form.kind
    if not {"loss", "validation_loss"} & set(row) or row.get("skipped") and row.get("loss") == 0:
        return "lines without a loss"
    return _NO_STAGE if form.program == "torchtitan" and -1 in (row.get("loss"), row.get("validation_loss")) else ""


def _named(source: pathlib.Path, table: log_files.Table, asked: Options) -> tuple[list[dict], list[str]]:
    """The values of a table's rows under the names used here."""
    if not table.rows:
        raise ValueError("; ".join([f"{source} has no rows", *table.notes]))
    names = list(dict.fromkeys(name for row in table.rows for name in row))
    names += ["@wandb"] if table.counter else []
    if "@lightning" not in names and asked.program is None and "step" not in asked.columns and _is_lightning(source, table.rows, names):
        names.append("@lightning")
    known = next((row for row in COLUMNS if asked.program == row.program or asked.program is None and any(
        set(signs) <= set(names) for signs in row.signs)), None)
    if known is None:
        raise ValueError(f"--program {asked.program}: its columns are not known")
    chosen = _chosen(source, known, names, table.counter, asked)
    _check_rows(source, known.program, table, chosen, asked)
    place = lambda row, name: f"{source}, {row.get('@at', 'step ' + str(row.get('@step')))}, column {name}"
    cells = [(place(row, name), row[name].strip(), figure) for row in table.rows for figure, name in chosen.items()
             if figure != "time" and isinstance(row.get(name), str)]
    decimal = asked.decimal or log_files.decimal_mark(cells, table.delimiter)
    epoch = next((name for name in names if re.search(r"(^|_)ep(och)?s?(_(num|nr|no|id|idx|index))?$", log_files.words(name))), "@")
    rows, stepless, no_stage = [], 0, 0
    for row in table.rows:
        values = {figure: row.get(name) if figure == "time" else log_files.number(place(row, name), row.get(name), decimal)
                  for figure, name in chosen.items()}
        metrics: dict[str, typing.Any] = {name: value for name, value in values.items() if value is not None and not (
            known.program == "torchtitan" and value == -1)}
        no_stage += known.program == "torchtitan" and -1 in values.values()
        if (step := metrics.get("step")) is None:
            stepless += 1
            continue
        if not step >= 0 or step != step // 1:
            raise ValueError(f"{place(row, chosen['step'])} has {row[chosen['step']]!r}, which is not a step")
        metrics["step"] = int(step) + (0 if "step" in asked.columns else known.add)
        rows.append(({"step_ms": 1e3 * metrics["step_s"]} if "step_s" in metrics else {}) | metrics | {"@epoch": row.get(epoch)})
    check_epochs(source, rows, chosen["step"])
    notes = [f"columns of {known.program}: " + ", ".join(f"{name.strip('@')} as {figure}" for figure, name in chosen.items())
             + (f". {known.means}" if known.means else ""), *table.notes]
    unused = [name for name in names if name not in chosen.values() and not name.startswith("@")]
    notes += [f"skipped: the columns {', '.join(unused)}"] if unused else []
    notes += [f"skipped: {count} {what}" for count, what in ((stepless, "rows without a step"), (no_stage, _NO_STAGE)) if count]
    unsure = known.program in ("plain", "lightning") or chosen.get("loss") == "loss" and "@log_history" not in names
    return last_run(rows, notes, source if unsure else None), notes


def _chosen(source: pathlib.Path, known: Columns, names: list[str], counter: str, asked: Options) -> dict[str, str]:
    """The column of each metric that the log has."""
    there = ", ".join(name for name in names if not name.startswith("@"))
    chosen: dict[str, str] = dict(asked.columns)
    if wrong := [f"{figure}={name}" for figure, name in chosen.items() if figure not in FIGURES or name not in names]:
        raise ValueError(f"--column {wrong[0]}: expected one of {', '.join(FIGURES)}, and a column of {source}: {there}")
    for figure, spellings in {**known.names, "time": TIMES}.items():
        by_word = figure != "time" and known.program in ("plain", "lightning")
        found = [name for name in names if log_files.words(name) in spellings and name != counter] if by_word else [
            name for name in spellings if name in names]
        found = [name for name in found if name not in asked.columns.values()]
        found = [name for name in found if by_word and log_files.words(name).endswith(("loss_step", "trainer_global_step"))] or found
        found = ["@step"] if figure == "step" and "@step" in names else found or (
            [counter] if figure == "step" and "_step" in spellings and counter in names else [])
        if len(found) > 1 and by_word and figure not in chosen:
            raise ValueError(f"{source}: {' and '.join(found)} may each be {figure}; choose one with --column {figure}=NAME")
        if found:
            chosen.setdefault(figure, found[0])
    if "step" not in chosen or not {"loss", "validation_loss"} & set(chosen):
        raise ValueError(f"{source} has no {'losses' if 'step' in chosen else 'steps'} under a known name, but {there}: "
                         "name them with --column step=NAME and --column loss=NAME. W&B's Step and _step count calls of its log()"
                         + (f". {known.means}" if "skipped" in known.means else ""))
    return chosen


def _is_lightning(source: pathlib.Path, rows: list[dict], names: list[str]) -> bool:
    """Whether losses appear with integer epochs and with steps that count the previous updates (49 and 99, or all from 0)."""
    lightning = next(row.names for row in COLUMNS if row.program == "lightning")
    place, epoch = (next((name for name in names if log_files.words(name) in words), "@") for words in (("@step", "step"), ("epoch",)))
    epochs = [str(row[epoch]) for row in rows if row.get(epoch) not in (None, "")]
    for figure in ("loss", "validation_loss"):
        losses = [name for name in names if log_files.words(name) in lightning[figure]]
        steps = {re.sub(r"\.0+$", "", str(row.get(place))) for row in rows if any(row.get(name) not in (None, "") for name in losses)}
        if steps and epochs and all(re.fullmatch(r"\d+(\.0+)?", text) for text in epochs) and all(map(str.isdigit, steps)):
            break
    else:
        return False
    counts = sorted(map(int, steps))
    gap = math.gcd(*(step - counts[0] for step in counts)) or 10
    if gap == 1 and counts[0] > 1:
        raise ValueError(f"{source} may be from Lightning, which counts steps from 0; add --program lightning or --program plain")
    return counts[0] == 0 if gap == 1 else (counts[0] + 1) % gap == 0


def _check_rows(source: pathlib.Path, program: str, table: log_files.Table, chosen: dict[str, str], asked: Options) -> None:
    """Refuses columns that mix several parts of the data or several runs, held-out losses that look like training losses, and means over epochs."""
    has = lambda row, name: row.get(name) not in (None, "")
    rows = [row for row in table.rows if any(has(row, chosen.get(figure, "@")) for figure in ("loss", "validation_loss"))]
    for name in dict.fromkeys(name for row in rows for name in row if not name.startswith("@") and name not in chosen.values()):
        kinds = sorted({str(row[name]) if has(row, name) else "" for row in rows})
        if log_files.are_mixed(name, kinds):
            raise ValueError(f"{source}: the column {name} has several kinds of rows ({', '.join(kinds[:4])}); keep those of training")
    only_loss = program in ("plain", "lightning") and chosen.keys() & {"loss", "validation_loss"} - asked.columns.keys() == {"loss"}
    if only_loss and "train" not in log_files.words(chosen["loss"]) and (held_out := log_files.held_out_place(table.place or source)):
        raise ValueError(f"{source}: {chosen['loss']} may be held-out data, since it is in {held_out}; --column loss={chosen['loss']} imports it as "
                         f"the training loss, --column validation_loss={chosen['loss']} as the held-out one")
    losses = [row for row in rows if has(row, chosen.get("loss", "@")) and has(row, "epoch")]
    epochs = [str(row["epoch"]).removesuffix(".0") for row in losses]
    if len(losses) > 1 and all(map(str.isdigit, epochs)) and len(set(epochs)) == len(epochs) and "loss" not in asked.columns:
        raise ValueError(f"{source} has one {chosen['loss']} per epoch, perhaps the mean of the epoch; --column loss={chosen['loss']} imports it")


def _time_of(row: dict) -> dict:
    """The time in the format of utc_text(); nothing if the log has no time, or one without a time zone or in another unit."""
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
    finite = ({name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in line.items()} for line in lines)
    path.write_text("".join(json.dumps(line) + "\n" for line in finite), encoding="utf-8")
