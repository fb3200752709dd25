"""The lines and columns of other programs' logs that are known, whole, and what each figure means. A new program is a new row.

A line counts only where all of it is a form of `LINES`, a column only under a name of `COLUMNS`. Each comment names the code that
prints the form.
"""
from __future__ import annotations

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
    Columns("concertina", [{"speed/bubble"}, {"train/bubble"}], {  # its folder for TensorBoard; loggers.py
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
