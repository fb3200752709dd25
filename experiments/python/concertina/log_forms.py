"""The lines and columns of other programs' logs that are known, whole, and what each figure means. A new program is a new row.

A line counts only where all of it is a form of `LINES`, a column only under a name of `COLUMNS`. Each comment names the code that
prints the form.
"""
from __future__ import annotations

import collections
import itertools
import math
import pathlib
import re
import typing


class Line(typing.NamedTuple):
    """`form`: {figure} and {} are numbers, {figure:4|6} has 4 or 6 decimals, {figure:6,} 6 or more, {figure:6E} an exponent
    too, [...] may be absent, {*} is any "name: value |", of which `fields` are taken.

    Decimals are those of the program's format string: a number that was cut off has fewer. `kind`: training, held-out, or why such
    a line is left out. `add`: 1 where the program gives its first update the number 0.
    """
    program: str
    kind: str
    form: str
    add: int = 0
    means: str = ""
    fields: dict[str, str] = {}


_MEGATRON = {"lm loss": "loss:6E", "learning rate": "lr", "grad norm": "grad_norm", "elapsed time per iteration (ms)": "step_ms",
             "number of skipped iterations": "skipped"}
LINES = [
    # nanoGPT, train.py: both have the number of updates before; mfu since 2023-02.
    Line("nanogpt", "training", "iter {step}: loss {loss:4}, time {step_ms}ms[, mfu {}%]", 1,
         "The loss is that of the last microbatch of rank 0; times of iterations that evaluate are left out"),
    Line("nanogpt", "held-out", "step {step}: train loss {}, val loss {validation_loss:4}"),
    # llm.c: train_gpt2.cu, train_gpt2.py, train_gpt2.c, and main.log of llmc/logger.h (lr and norm since 2024-07).
    Line("llm.c", "training", "step {step}/{} | loss {loss:6} ({}z)| norm {grad_norm} ({}z)| lr {lr} | {step_ms} ms | {}% bf16 MFU"
         " | {} tok/s", 0, "tok/s is a moving average, and is left out"),
    Line("llm.c", "training", "step {step}/{} | train loss {loss:6} | norm {grad_norm} | lr {lr} | ({step_ms} ms | {tokens_per_s} tok/s)"),
    Line("llm.c", "training", "step {step}: train loss {loss:6} (took {step_ms} ms)", 1),
    Line("llm.c", "held-out", "val loss {validation_loss:6,}", 0, "Its step is that of the training lines around it"),
    Line("llm.c", "training", "s:{step} trl:{loss:4|6}[ lr:{lr} norm:{grad_norm:2}]", 1),
    Line("llm.c", "held-out", "s:{step} tel:{validation_loss:4|6}"),
    Line("llm.c", "accuracies of HellaSwag", "s:{step} eval:{}"),
    # torchtitan, components/metrics.py: grad_norm since 2025-07, N/A since 2026; train.py of 2024 with wps.
    Line("torchtitan", "training", "step: {step} loss: {loss:4|5}[ grad_norm: {grad_norm}] memory: {}GiB({}%) tps: {device_tokens_per_s}"
         "[ tflops: {,}] mfu: {%}"),
    Line("torchtitan", "training", "step: {step} loss: {loss:4|5} memory: {}GiB({}%) wps: {device_tokens_per_s} mfu: {%}"),
    Line("torchtitan", "held-out", "validate step: {step} loss: {validation_loss:4|5} memory: {}GiB({}%) tps: {,}"),
    # Megatron-LM, training/training.py: training_log(), evaluate_and_print_results(); Megatron-DeepSpeed has more fields.
    Line("megatron", "training", "iteration {step}/{} |{*}", 0, "Losses and times are means since the line before", _MEGATRON),
    Line("megatron", "held-out", "validation loss at iteration {step} |{*}", fields={"lm loss value": "validation_loss:6E"}),
    *(Line("megatron", f"evaluations {at}", f"validation loss at {at} |{{*}}") for at in (
        "iteration {} on validation set", "iteration {} on test set", "the end of training for val data",
        "the end of training for test data")),
]
_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|nan|NAN|inf|INF)"
_KINDS = {"step": r"\d+", "device_tokens_per_s": r"(?:\d{1,3}(?:,\d{3})+|\d+)", ",": r"(?:\d{1,3}(?:,\d{3})*|\d+)(?:\.\d*)?",
          "%": r"(?:[\d.]+%|nan%|inf%|N/A)"}
_PAIR = re.compile(r" *([^|:]+): *([^|]*?) *\|")
# What launchers and loggers put before a line: the rank, a time, the logger's name and level.
_PREFIX = re.compile(r"""\[(?:rank|default)(\d+)\]:\s* | (\d+):\ + | \[\d+,(\d+)\]<std(?:out|err)>:\s* | \[titan\]\s+ | \s+
    | \[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[-+]\d\d:?\d\d)?\]?\s+ | (?:-\ [\w.]+\ )?-\ INFO\ -\ + | \[?INFO\]?:?\s+""", re.X)
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def _number(name: str) -> tuple[str, str]:
    """The figure of `FIGURE:DECIMALS`, and what its number looks like."""
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
    """The form of a printed line, the rank before it ("" without), and its figures; None where it is not known."""
    text, rank, at = _COLOURS.sub("", text).rstrip(), "", 0
    while (found := _PREFIX.match(text, at)) is not None:
        rank, at = next(filter(None, found.groups()), rank), found.end()
    for line, pattern in _COMPILED:
        if (match := pattern.fullmatch(text, at)) is None:
            continue
        named = match.groupdict()
        pairs = _PAIR.findall(named.pop("pairs", None) or "")
        taken = [(*_number(line.fields[name]), value) for name, value in pairs if name in line.fields]
        if len(dict(pairs)) < len(pairs) or not all(re.fullmatch(number, value) for _, number, value in taken) or pairs and len(
                re.findall(r"\biteration +\d", text)) > 1:  # two lines that ranks wrote into each other
            return None
        listed = {figure: value for figure, _, value in taken}
        return line, rank, {name: float(value.replace(",", "")) for name, value in {**named, **listed}.items() if value}
    return None


class Columns(typing.NamedTuple):
    """`signs`: names that identify the program, all of one of the sets. `names`: what it calls each figure; the first that is there."""
    program: str
    signs: list[set[str]]
    names: dict[str, list[str]]
    add: int = 0
    means: str = ""


# Of any other program, and Lightning: other spellings of the same words ("train/loss", "Train Loss", "trainLoss").
_PLAIN = {
    "step": ["step", "iteration", "iter", "global_step"], "loss": ["loss", "train_loss", "loss_train", "training_loss"],
    "validation_loss": ["validation_loss", "val_loss", "valid_loss", "eval_loss", "loss_validation", "loss_val", "loss_eval"],
    "lr": ["lr", "learning_rate", "train_lr", "train_learning_rate"], "grad_norm": ["grad_norm", "gradient_norm", "train_grad_norm"],
    "tokens_per_s": ["tokens_per_s", "tokens_per_second"], "step_ms": ["step_ms", "step_time_ms"], "step_s": ["step_s", "step_time_s"],
}
# "@step" and "@time" are given by the file itself; "@lightning" and "@log_history" mark files that one program alone
# writes, "@wandb" the CSV of a chart.
COLUMNS = [
    Columns("concertina", [{"speed/bubble"}, {"train/bubble"}], {  # its folder for TensorBoard; run.py
        "step": ["_step"], "loss": ["train/loss"], "validation_loss": ["validation/loss"], "lr": ["train/lr"],
        "grad_norm": ["train/grad_norm"], "tokens_per_s": ["speed/tokens_per_s", "train/tokens_per_s"], "step_ms": ["train/step_ms"]}),
    Columns("torchtitan", [{"loss_metrics/global_avg_loss"}, {"validation_metrics/loss"}], {  # components/metrics.py: log(metrics, step)
        "step": ["step", "_step"], "loss": ["loss_metrics/global_avg_loss"], "validation_loss": ["validation_metrics/loss"],
        "lr": ["lr"], "grad_norm": ["grad_norm"], "device_tokens_per_s": ["throughput(tps)", "wps"]}),
    Columns("megatron", [{"lm loss"}], {  # training_log(): log(..., iteration)
        "step": ["_step"], "loss": ["lm loss"], "validation_loss": ["lm loss validation"], "lr": ["learning-rate"],
        "grad_norm": ["grad-norm"], "step_s": ["iteration-time"]}),
    Columns("nanogpt", [{"iter", "train/loss", "val/loss"}, {"@wandb", "iter", "train/loss"}], {"step": ["iter"], "validation_loss": ["val/loss"]}, 0,
            "train/loss is a mean over batches of the evaluation, not the loss of a step, and is left out"),
    Columns("lightning", [{"@lightning"}, {"trainer/global_step"}], {
        "step": ["trainer_global_step", "step"], "loss": [*(f"{name}_step" for name in _PLAIN["loss"]), *_PLAIN["loss"]],
        "validation_loss": [*_PLAIN["validation_loss"], *(f"{name}_epoch" for name in _PLAIN["validation_loss"])],
        "lr": _PLAIN["lr"], "grad_norm": _PLAIN["grad_norm"]}, 1, "Its first update is step 0 there, step 1 here"),
    Columns("transformers", [{"train/global_step"}, {"train/epoch"}, {"loss", "learning_rate", "epoch"}, {"@log_history"}], {
        "step": ["train/global_step", "step"], "loss": ["train/loss", "loss"], "validation_loss": ["eval/loss", "eval_loss"],
        "lr": ["train/learning_rate", "learning_rate"], "grad_norm": ["train/grad_norm", "grad_norm"]}, 0,
        "Losses are means over the steps since the log before; train_loss, the mean of the run, is left out"),  # trainer.py, rewrite_logs()
    Columns("plain", [set()], _PLAIN, 0, "Steps are as written"),
]
TIMES = ["@time", "time", "timestamp", "_timestamp", "wall_time"]
# Columns that say of what a row's loss is: rows of several kinds are not one curve.
KINDS = {"split", "phase", "mode", "stage", "set", "subset", "partition", "type", "kind", "event", "dataset", "fold", "rank", "worker",
         "process", "run", "seed", "model", "experiment", "trial", "tag", "name", "task", "part", "source", "prefix", "context", "scope",
         "loader", "dataloader", "node", "host"}
FIGURES = [*COLUMNS[-1].names, "device_tokens_per_s", "time"]
PROGRAMS = sorted({row.program for row in COLUMNS} | {line.program for line in LINES})


def once(rows: list[dict], notes: list[str]) -> list[dict]:
    """Of lines that several ranks printed, each loss once; refused where ranks printed different ones for a step."""
    ranks = sorted({row["@rank"] for row in rows}, key=lambda rank: (len(rank), rank))
    names = ", ".join(rank or "(none)" for rank in ranks[:8]) + (f" and {len(ranks) - 8} more" if len(ranks) > 8 else "")
    printed: dict[tuple[str, int], dict[str, str]] = collections.defaultdict(dict)
    for row in rows:  # of a rank that printed a step twice, after a resume, the later line counts
        for name in {"loss", "validation_loss"} & set(row):
            printed[name, row["step"]][row["@rank"]] = str(row[name])
    if differ := [step for (_, step), values in printed.items() if len(set(values.values())) > 1]:
        raise ValueError(f"ranks {names} printed different losses for step {min(differ)}: keep the lines of one rank, for example with grep")
    single = sum(len(values) == 1 for values in printed.values())
    if len(ranks) > 1:
        notes.append(f"ranks {names} printed the same losses; the lines of rank {ranks[0]} count"
                     if all(len(values) == len(ranks) for values in printed.values()) else
                     f"the lines of ranks {names} are one curve: {single} losses were printed by one rank, {len(printed) - single} by several, which agree")
    first = {key: min(values, key=lambda rank: (len(rank), rank)) for key, values in printed.items()}
    return [row for row in rows if any(first.get((name, row["step"])) == row["@rank"] for name in ("loss", "validation_loss") if name in row)]


def last_run(rows: list[dict], notes: list[str], source: pathlib.Path | None = None) -> list[dict]:
    """The rows without what a resume did again, and without earlier runs in the same log; these are refused where `source` is given."""
    losses = [row["step"] for row in rows if "loss" in row]
    if len(losses) > 2 and all(one > other for one, other in itertools.pairwise(losses)):
        rows = rows[::-1]  # the newest first
    falls, runs = _falls(rows)
    for figure in ("loss", "validation_loss"):
        count, times = sum(figure in row for row in rows), sum(figure in rows[at] and ("loss" in rows[at] or figure in rows[at - 1]) for at in falls)
        if times and (2 * times >= count or times > 1 and 4 * times >= count):
            raise ValueError(f"steps have two {figure} in succession or fall back, {times} times in {count}: lines of several ranks or runs? "
                             "Keep those of one")
    if not falls:
        return rows
    again = f"the steps fall back {len(falls)} times, the last time to {rows[max(falls)]['step']}"
    if runs and source is not None:
        raise ValueError(f"{source}: {again}, where another run or epoch begins: keep the rows of one run (of TensorBoard, one event file), "
                         "or name the step of the run with --column step=NAME")
    kept: list[dict] = []
    near = floor = held_out = math.inf  # steps that were done again later begin here; `near` holds back to the loss before
    for at in range(len(rows) - 1, -1, -1):
        row, step = rows[at], rows[at]["step"]
        floor = near if "loss" in row else floor
        if step < floor and step <= abs(near) and (step < held_out or "loss" in row or "validation_loss" not in row):
            kept.append(row)
        if at in falls and "loss" in row:
            near = -step if at in runs else min(near, step)
        elif at in falls:
            held_out = min(held_out, step)
    notes.append(again + (f": the run that begins at step {rows[max(runs)]['step']} counts alone" if runs else
                          ": the later lines count, as after a resume") + f"; left out: {len(rows) - len(kept)} earlier lines")
    return kept[::-1]


def _falls(rows: list[dict]) -> tuple[set[int], set[int]]:
    """Which rows do a step again with another result: all of them, and those that begin another run, at the first steps of the log."""
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
    """Refuses steps that count within an epoch: they fall back, or stay, where the epoch grows."""
    for figure in ("loss", "validation_loss"):
        points = [(float(found[0].replace(",", ".")), row["step"]) for row in rows if figure in row and (
            found := re.match(r"\d+([.,]\d+)?", str(row.get("@epoch"))))]
        for (before, last), (epoch, step) in itertools.pairwise(points):
            if epoch > before and step <= last:
                raise ValueError(f"{source}: {name} counts within an epoch, as it goes from {last} to {step} where the epoch grows: "
                                 "--column step=NAME names the step of the run")


def by_step(rows: list[dict], figure: str, notes: list[str]) -> list[dict]:
    """The rows that have a figure, by step, with what else the log has of the step."""
    found: dict[int, dict] = {}
    for row in rows:
        if figure in row or not {"loss", "validation_loss"} & set(row):  # the latter is an event of TensorBoard, a call of W&B's log()
            found[row["step"]] = found.get(row["step"], {}) | {name: value for name, value in row.items() if name != "time" or figure in row}
    result = [row for _, row in sorted(found.items()) if figure in row]
    name = {"loss": "training", "validation_loss": "held-out"}[figure]
    bad = [row["step"] for row in result if not math.isfinite(row[figure])]
    notes.append(f"{len(result)} {name} losses" + (f" of steps {result[0]['step']} to {result[-1]['step']}" if result else "")
                 + (f", of which {len(bad)} are not finite" + (", the last one too" if bad[-1] == result[-1]["step"] else "") if bad else ""))
    return result
