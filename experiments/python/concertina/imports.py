"""Logs of other programs as runs, so that `concertina compare` and this package put them beside one's own.

Known: lines of JSON and CSV with any of the usual names, TensorBoard's event files, and what nanoGPT, llm.c and torchtitan
print. What a log does not say is left out; nothing is made up.
"""
from __future__ import annotations

import csv
import datetime
import json
import math
import pathlib
import re
import typing

# What others call a figure, the first that is there counts. All in lower case, with "/", " " and "." as "_".
_NAMES = {
    "step": ["step", "iter", "iteration", "global_step", "trainer_global_step", "_step", "steps"],
    "loss": ["loss", "train_loss", "loss_train", "training_loss", "loss_metrics_global_avg_loss", "lm_loss", "train_loss_step"],
    "validation_loss": ["validation_loss", "val_loss", "loss_val", "valid_loss", "eval_loss", "loss_validation",
                        "validation_metrics_loss", "validation_perplexity_loss"],
    "lr": ["lr", "learning_rate", "train_lr", "train_learning_rate", "learning-rate"],
    "grad_norm": ["grad_norm", "gradient_norm", "train_grad_norm", "grad-norm", "norm"],
    "tokens_per_s": ["tokens_per_s", "tokens_per_second", "throughput(tps)", "tps", "tok_s", "train_tokens_per_second"],
    "step_ms": ["step_ms", "dt_ms", "iter_time_ms", "ms", "time_metrics_end_to_end_ms"],
    "step_s": ["step_s", "dt", "step_time", "iteration-time", "time_metrics_end_to_end(s)", "iter_time"],
    "time": ["time", "timestamp", "_timestamp", "wall_time", "created_at"],
}

_NUMBER = r"([-+]?(?:[\d,]+\.?\d*(?:e[-+]?\d+)?|nan|inf))"
# Lines that programs print: a pattern, and what its groups are.
_PRINTED = [
    # nanoGPT: "iter 10: loss 4.1, time 98.2ms, mfu 1.2%" and "step 250: train loss 3.9, val loss 4.0"
    (rf"iter (\d+): loss {_NUMBER}, time {_NUMBER}ms", ("step", "loss", "step_ms")),
    (rf"step (\d+): train loss {_NUMBER}, val loss {_NUMBER}", ("step", "", "validation_loss")),
    # llm.c: "step 1/19560 | loss 11.0 (+nanz)| norm 15.3 (+nanz)| lr 8.57e-07 | 1234.5 ms | 42% bf16 MFU | 424000 tok/s"
    (rf"step\s+(\d+)/\d+ \| loss {_NUMBER}[^|]*\|\s*norm {_NUMBER}[^|]*\|\s*lr {_NUMBER}\s*\|\s*{_NUMBER} ms.*?{_NUMBER} tok/s",
     ("step", "loss", "grad_norm", "lr", "step_ms", "tokens_per_s")),
    # llm.c's main.log: "s:1 trl:10.9", "s:250 tel:6.4"
    (rf"^s:(\d+) trl:{_NUMBER}", ("step", "loss")),
    (rf"^s:(\d+) tel:{_NUMBER}", ("step", "validation_loss")),
    # torchtitan: "step:  1  loss: 8.2  grad_norm: 1.5  memory: ...  tps: 8,000 ..."
    (rf"step:\s*(\d+)\s+loss:\s*{_NUMBER}\s+grad_norm:\s*{_NUMBER}.*?tps:\s*{_NUMBER}", ("step", "loss", "grad_norm", "tokens_per_s")),
    (rf"step:\s*(\d+)\s+loss:\s*{_NUMBER}", ("step", "loss")),
]
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def import_run(source: str | pathlib.Path, directory: str | pathlib.Path, columns: dict[str, str] | None = None) -> pathlib.Path:
    """Makes the new run `directory` of the log `source`: a file, or for TensorBoard a folder of event files.

    `columns` names what the log calls a figure, {"loss": "my/train_ce"}; else the usual names are looked for.
    """
    source, directory = pathlib.Path(source), pathlib.Path(directory)
    if directory.exists():
        raise FileExistsError(f"{directory} is there already: a new directory, such as runs/NAME")
    rows = list(_rows_of(source, columns or {}))
    steps = [row for row in rows if "loss" in row]
    validations = [row for row in rows if "validation_loss" in row]
    if not steps and not validations:
        raise ValueError(f"{source} has no losses by step under any name that is known; columns={{'step': ..., 'loss': ...}}")
    directory.mkdir(parents=True)
    _write(directory / "metrics.jsonl", (_metrics_line(row) for row in _in_order(steps)))
    _write(directory / "events.jsonl",
           ({"step": row["step"], "event": "validation", "loss": _finite(row["validation_loss"]), **_time_of(row)}
            for row in _in_order(validations)))
    (directory / "imported.json").write_text(json.dumps({"source": str(source.resolve())}) + "\n", encoding="utf-8")
    return directory


def _rows_of(source: pathlib.Path, columns: dict[str, str]) -> typing.Iterator[dict]:
    if source.is_dir() or source.name.startswith("events.out.tfevents"):
        yield from (_known(row, columns) for row in _tensorboard(source))
        return
    text = _COLOURS.sub("", source.read_text(encoding="utf-8", errors="replace"))
    first = next((line for line in text.splitlines() if line.strip()), "")
    if first.lstrip().startswith("{"):
        yield from (_known(_flat(row), columns) for row in _json_lines(text))
    elif source.suffix.lower() in (".csv", ".tsv"):
        rows = csv.DictReader(text.splitlines(), delimiter="\t" if source.suffix.lower() == ".tsv" else ",")
        yield from (_known(row, columns) for row in rows)
    else:
        yield from filter(None, map(_printed, text.splitlines()))


def _json_lines(text: str) -> typing.Iterator[dict]:
    for line in text.splitlines():
        try:
            value = json.loads(line)
        except ValueError:  # cut off, or of something else
            continue
        if isinstance(value, dict):
            yield value


def _flat(row: dict, path: str = "") -> dict:
    found: dict = {}
    for key, value in row.items():
        name = f"{path}/{key}" if path else key
        found.update(_flat(value, name) if isinstance(value, dict) else {name: value})
    return found


def _known(row: dict, columns: dict[str, str]) -> dict:
    """The figures of a row under the names that they have here."""
    plain = {re.sub(r"[/ .]", "_", str(key)).strip().lower(): value for key, value in row.items()}
    found: dict[str, typing.Any] = {}
    for figure, names in _NAMES.items():
        value = row.get(columns[figure]) if figure in columns else next((plain[name] for name in names if name in plain), None)
        if figure == "time":
            found |= {"time": value} if value not in (None, "") else {}
        elif (number := _number(value)) is not None:
            found[figure] = number
    if "step" not in found:
        return {}
    found["step"] = int(found["step"])
    if "step_ms" not in found and "step_s" in found:
        found["step_ms"] = 1e3 * found["step_s"]
    return found


def _number(value) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        return float(str(value).replace(",", ""))
    except ValueError:
        return None


def _printed(line: str) -> dict | None:
    for pattern, figures in _PRINTED:
        if match := re.search(pattern, line, re.IGNORECASE):
            row = {figure: _number(text) for figure, text in zip(figures, match.groups()) if figure}
            return row | {"step": int(row["step"] or 0)}
    return None


def _tensorboard(source: pathlib.Path) -> typing.Iterator[dict]:
    try:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    except ImportError as error:
        raise ImportError("event files need TensorBoard: pip install 'concertina[tensorboard]'") from error
    events = EventAccumulator(str(source), size_guidance={"scalars": 0})
    events.Reload()
    rows: dict[int, dict] = {}
    for tag in events.Tags()["scalars"]:
        for scalar in events.Scalars(tag):
            rows.setdefault(scalar.step, {"step": scalar.step, "wall_time": scalar.wall_time})[tag] = scalar.value
    yield from (rows[step] for step in sorted(rows))


def _in_order(rows: list[dict]) -> list[dict]:
    """By step; of one that is there twice, the later line."""
    return [row for _, row in sorted({row["step"]: row for row in rows}.items())]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _time_of(row: dict) -> dict:
    """As utc_text() writes it; nothing where the log has no time, or one that cannot be read."""
    value = row.get("time")
    if value is None:
        return {}
    try:
        seconds = float(value)
        moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc) if seconds > 1e8 else None
    except ValueError:
        try:
            moment = datetime.datetime.fromisoformat(str(value).replace("Z", "+00:00"))
            moment = moment.replace(tzinfo=moment.tzinfo or datetime.timezone.utc).astimezone(datetime.timezone.utc)
        except ValueError:
            moment = None
    return {"time": moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03}Z"} if moment else {}


def _metrics_line(row: dict) -> dict:
    figures = ("loss", "lr", "grad_norm", "tokens_per_s", "step_ms")
    return {"step": row["step"], **{figure: _finite(row[figure]) for figure in figures if figure in row}, **_time_of(row)}


def _write(path: pathlib.Path, lines: typing.Iterable[dict]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
