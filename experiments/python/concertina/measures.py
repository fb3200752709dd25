"""Checks whether values of runs have the same measure, program and machine, and provides notes to show with them.

Values not known to come from the same data and share a unit are not compared: no best is marked and no difference is shown."""
import json
import typing

from .errors import InputError
from .names import Metric, metric_of_time_to, ranges, settings_text, trials_text
from .results import BITS_PER_BYTE, NO_CONFIG, SEED, Group, RunSummary, Runs, StudyResults, groups_of

_DATA, _MEASURE = "validation_data", "validation_measure"
_OTHER_UNIT = "the tasks or the tokenizers differ"
# Tables show the first of these task metrics that exists.
_OF_TASKS = ("validation_accuracy", "validation_exact_match", "validation_entity_f1", "validation_subset_accuracy",
             "validation_pearson_correlation")


def _differ(runs: Runs, column: str) -> bool:
    return len({text for run in runs if (text := run.text(column))}) > 1


def _all_know(runs: Runs, column: str) -> bool:
    return all(run.text(column) for run in runs)


def _why_other_config(runs: Runs) -> str:
    """Why the configs make metrics incomparable; empty if they do not. Files with equal content and tokenizers with equal tokens may have different paths."""
    if any(NO_CONFIG in run.facts for run in runs):
        return "their data is not recorded"
    if _differ(runs, "text"):
        return "the data differs"
    same_text, same_unit = _all_know(runs, "text"), _all_know(runs, _MEASURE)
    # Keys that affect a loss other than through the quality of the training.
    of_data = ("data.", "eval.", "model.task", "model.label_smoothing", "distill.")
    for key in sorted({key for run in runs for key in run.settings if key.startswith(of_data)}):
        is_path = key == "data.text" or key.endswith("files")
        if (is_path and same_text) or (key == "data.tokenizer" and same_unit):
            continue
        if _differ(runs, key) or not _all_know(runs, key):
            return f"the configs differ in {key}"
    return ""


def _why_other_evaluation(runs: Runs, metric: str) -> str:
    if not _all_know(runs, _DATA):
        if why := _why_other_config(runs):
            return why
    elif _differ(runs, _DATA):
        return "the held-out data differs"
    if metric == BITS_PER_BYTE:
        return ""
    if _differ(runs, _MEASURE):
        return _OTHER_UNIT
    return "the evaluations use different parts of the held-out data" if _differ(runs, "validation_tokens") else ""


def why_incomparable(runs: typing.Iterable[RunSummary], column: str) -> str:
    """Why the values in `column` are not comparable between the runs that have one; empty if they are."""
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
    if metric == "loss":
        return _why_other_config(having)
    if any(NO_CONFIG in run.facts for run in having) and not _all_know(having, _MEASURE):
        return "their tokens are not recorded"
    return "the tokenizers differ" if _differ(having, "data.tokenizer") and not _all_know(having, _MEASURE) else ""


def incomparable_notes(runs: Runs, metrics: typing.Iterable[Metric]) -> list[str]:
    """For each reason, a line with the metrics in which these runs are not comparable."""
    by_reason: dict[str, list[str]] = {}
    for metric in metrics:
        if why := why_incomparable(runs, metric.name):
            by_reason.setdefault(why, []).append(metric.short)
    return [f"{', '.join(names)}: not comparable, so no best is marked: {why}" for why, names in sorted(by_reason.items())]


def default_metrics(results: StudyResults) -> list[Metric]:
    """Bits per byte if tokenizers differ; the study's metric, or the held-out loss; the task's metric; loss and speed."""
    done = [run for run in results.runs if run.state == "done"]
    by_text = why_incomparable(done, "validation_loss") and not why_incomparable(done, BITS_PER_BYTE)
    words = [BITS_PER_BYTE if by_text else "", results.metric or "validation_loss", next(filter(results.has, _OF_TASKS), ""),
             "loss", "tokens_per_s", "median_step_ms", "bubble", "peak_bytes"]
    return [results.metric_of(word) for word in dict.fromkeys(words) if word and results.has(word)]


# Facts, and the config key that sets each. Values with different facts among the first four are only combined on request.
_STRICT = {"version": "", "commit": "", "processor": "", "text": "data.text"}
_WARNED = {"program": "", "isa": "numerics.isa", "libraries": "", "onednn": "", "device": "run.device", "compute": "numerics.compute"}
_BIT_COLUMNS = ("loss", "validation_loss", "grad_norm", "state_sha256")
_MOST_ODD = 8  # layouts named in a line


def is_layout_key(key: str) -> bool:
    """Whether the key affects how a step is computed, not its result."""
    return key.startswith("parallel.") or key in ("ranks", "run.threads")


def _libraries(text: str) -> dict[str, str]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    versions = found.items() if isinstance(found, dict) else ()
    return {name: version if isinstance(version, str) else json.dumps(version) for name, version in versions}


def _kinds(runs: Runs, values: typing.Iterable[str]) -> str:
    """ "A (trials 1-3), B (trial 4)"; empty if all `values` are the same."""
    kinds: dict[str, list[int]] = {}
    for run, value in zip(runs, values):
        kinds.setdefault(value, []).append(run.number)
    said = (f"{value[:80] + '...' * (len(value) > 80) or 'not recorded'} ({trials_text(numbers)})" for value, numbers in kinds.items())
    return ", ".join(said) if len(kinds) > 1 else ""


def provenance_notes(runs: Runs, results: StudyResults, mixed: bool) -> list[str]:
    """Raises InputError if runs differ in program, processor or text, unless `mixed`; then returns a line about each difference.

    Runs that record none of these, such as those from other programs, are named once."""
    notes, where = [], results.directory or results.name
    unknown = [run.number for run in runs if not any(run.text(fact) for fact in _STRICT | _WARNED)]
    if unknown and len(unknown) < len(runs):
        which = f"{trials_text(unknown)} {'does' if len(unknown) == 1 else 'do'} not record a program or a machine, unlike others"
        if not mixed:
            raise InputError(which, where, "--mixed to combine all")
        notes.append(f"mixed: {which}")
        runs = [run for run in runs if run.number not in unknown]
    for fact, key in (_STRICT | _WARNED).items():
        if key and (key in results.axes or any(key in run.settings for run in results.runs)):
            continue  # the study requests it
        values = {fact: [run.text(fact) for run in runs]}
        if fact == "libraries":
            libraries = list(map(_libraries, values[fact]))
            values = {name: [one.get(name, "") for one in libraries] for name in sorted({name for one in libraries for name in one})}
        for name in values:
            kinds = _kinds(runs, values[name])
            if kinds and fact in _STRICT and not mixed:
                raise InputError(f"the trials differ in {fact}: {kinds}", where, f"--where {fact}=... to select some, or --mixed to combine all")
            notes += [f"{'mixed' if fact in _STRICT else 'warning'}: the trials differ in {name}: {kinds}"] * bool(kinds)
    return notes


def _listed(words: list[str]) -> str:
    """ "a, b and c"."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def _short(bits: str) -> str:
    return bits[:12] if len(bits) > 32 else bits


def _odd_ones(group: Group, layout: list[str], column: str) -> str:
    """Names the runs in the group whose bits differ from those of most runs; empty if there are none."""
    by_bits: dict[str, Runs] = {}
    for run in group.done:
        by_bits.setdefault(run.text(column) or "nothing", []).append(run)
    if len(by_bits) < 2:
        return ""
    most = max(sorted(by_bits), key=lambda bits: (len(by_bits[bits]), -by_bits[bits][0].number))
    odd = [f"{settings_text(layout, same.values)} (trial {ranges([run.number for run in same.done])}) has {_short(bits)}"
           for bits, runs in sorted(by_bits.items()) if bits != most for same in groups_of(runs, layout)]
    more = f" and {len(odd) - _MOST_ODD} more" if len(odd) > _MOST_ODD else ""
    return f"{', '.join(odd[:_MOST_ODD])}{more}; {len(by_bits[most])} of {len(group.done)} trials have {_short(most)}"


def _same_line(columns: list[str], layout: list[str], others: list[str], groups: list[Group], runs: Runs) -> str:
    layouts = len(groups_of(runs, layout))
    least = min(len(groups_of(group.done, layout)) for group in groups)
    count = f"all {layouts}" if least == layouts else f"{least} to {layouts} of {layouts}"
    line = f"{_listed(columns)}: the same bits in {count} groups of {_listed(layout)}"
    if others == [SEED]:
        return line + (" for the one seed" if len(groups) == 1 else f" for each of {len(groups)} seeds")
    return line + (f" for each of {len(groups)} values of {_listed(others)}" if others else "")


def same_bits(runs: Runs, axes: list[str]) -> list[str]:
    """A line about what is bit-identical in all layouts, and one for each combination of the other axes at which something differs."""
    layout, others = [axis for axis in axes if is_layout_key(axis)], [axis for axis in axes if not is_layout_key(axis)]
    groups = [group for group in groups_of(runs, others) if len(groups_of(group.done, layout)) > 1]
    if not layout or not groups:
        return []
    same, lines = [], []
    for column in _BIT_COLUMNS:
        if not any(run.text(column) for run in runs):
            continue
        odd = [(group, of_group) for group in groups if (of_group := _odd_ones(group, layout, column))]
        lines += [f"{column} differs{' at ' if others else ''}{settings_text(others, group.values)}: {of_group}" for group, of_group in odd]
        same += [] if odd else [column]
    return ([_same_line(same, layout, others, groups, runs)] if same else []) + lines
