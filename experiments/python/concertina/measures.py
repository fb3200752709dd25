"""Whether numbers of runs are of one measure: of the same data, in the same unit.

Numbers of which that is not known are not compared: no best is marked and no difference is shown.
"""
from __future__ import annotations

import typing

from .names import Metric, metric_of_time_to
from .results import BITS_PER_BYTE, NO_CONFIG, RunSummary, Runs, StudyResults

_DATA, _MEASURE = "validation_data", "validation_measure"
_OTHER_UNIT = "the tasks or the tokenizers differ"
# Of what a task counts beside its loss, tables show the first that there is.
_OF_TASKS = ("validation_accuracy", "validation_exact_match", "validation_entity_f1", "validation_subset_accuracy",
             "validation_pearson_correlation")


def _differ(runs: Runs, column: str) -> bool:
    return len({text for run in runs if (text := run.text(column))}) > 1


def _all_know(runs: Runs, column: str) -> bool:
    return all(run.text(column) for run in runs)


def _is_data_key(key: str) -> bool:
    """Whether a loss depends on the key, besides how well the model was trained."""
    return key.startswith(("data.", "eval.")) or key in ("model.task", "model.label_smoothing")


def _why_other_config(runs: Runs) -> str:
    """Files with the same content, and tokenizers that make the same tokens, may have other paths."""
    if any(NO_CONFIG in run.facts for run in runs):
        return "it is not recorded which data they are of"
    if _differ(runs, "text"):
        return "the data differ"
    same_text, same_unit = _all_know(runs, "text"), _all_know(runs, _MEASURE)
    for key in sorted({key for run in runs for key in run.settings if _is_data_key(key)}):
        is_path = key == "data.text" or key.endswith("files")
        if (is_path and same_text) or (key == "data.tokenizer" and same_unit):
            continue
        if _differ(runs, key) or not _all_know(runs, key):
            return f"the configs differ in {key}"
    return ""


def _why_other_tokens(runs: Runs) -> str:
    if _all_know(runs, _MEASURE):
        return ""
    if any(NO_CONFIG in run.facts for run in runs):
        return "it is not recorded what their tokens are"
    return "the tokenizers differ" if _differ(runs, "data.tokenizer") else ""


def _why_other_evaluation(runs: Runs, metric: str) -> str:
    if not _all_know(runs, _DATA):
        if why := _why_other_config(runs):
            return why
    elif _differ(runs, _DATA):
        return "the held-out data differ"
    if metric == BITS_PER_BYTE:
        return ""
    if _differ(runs, _MEASURE):
        return _OTHER_UNIT
    return "the evaluations are over different parts of the held-out data" if _differ(runs, "validation_tokens") else ""


def why_unlike(runs: typing.Iterable[RunSummary], column: str) -> str:
    """Why the numbers in `column` cannot be compared between the runs that have one; empty: they can."""
    metric = metric_of_time_to(column)
    held_out = metric.startswith("validation_")
    if not held_out and metric not in ("loss", "tokens_per_s"):
        return ""
    having = [run for run in runs if isinstance(run.cell(column), float)]
    if len(having) < 2:
        return ""
    if held_out:
        return _why_other_evaluation(having, metric)
    if _differ(having, _MEASURE):
        return _OTHER_UNIT
    return _why_other_config(having) if metric == "loss" else _why_other_tokens(having)


def unlike_notes(runs: Runs, metrics: typing.Iterable[Metric]) -> list[str]:
    """A line for the metrics that these runs cannot be compared in, for each reason."""
    by_reason: dict[str, list[str]] = {}
    for metric in metrics:
        if why := why_unlike(runs, metric.name):
            by_reason.setdefault(why, []).append(metric.short)
    return [f"{', '.join(names)}: not compared, no best is marked: {why}" for why, names in sorted(by_reason.items())]


def default_metrics(results: StudyResults) -> list[Metric]:
    """Bits per byte where tokenizers differ; the study's metric, else the held-out loss; what the task counts; loss and speed."""
    done = [run for run in results.runs if run.state == "done"]
    by_text = why_unlike(done, "validation_loss") and not why_unlike(done, BITS_PER_BYTE)
    words = [BITS_PER_BYTE if by_text else "", results.metric or "validation_loss", next(filter(results.has, _OF_TASKS), ""),
             "loss", "tokens_per_s", "median_step_ms", "bubble", "peak_bytes"]
    return [results.metric_of(word) for word in dict.fromkeys(words) if word and results.has(word)]
