"""The page of a run: the sections derived from its files."""
import math
import re
import typing

from .files import read_text
from .page import LEAST_SMOOTHED, Block, Mark, chart, content, folded, line, section, smoothed, table, unzipped, words
from .recorded_steps import MOST_ROWS, bubble, memory, timeline
from .run_course import Course, layers_text
from .run_report import RunFiles
from .run_log import Curve, Line, config_texts, number, text
from .names import bytes_text, clock_text, counted, duration_text, figure_text

MOST_CLASSES = 30  # that a picture can name
CURVES = {"loss": "loss, per target", "tokens_per_s": "tokens per second", "step_ms": "time of a step, ms",
          "bubble": "bubble, share of a step", "grad_norm": "gradient norm, before clipping", "lr": "learning rate"}


def report_page(run: RunFiles) -> Block:
    course = run.course
    unrecorded = "No step of this run was recorded (log.trace), so there is no timeline, bubble by cause or memory over a step."
    recorded = timeline(run) + bubble(run) + memory(run) if run.ranks else [words("note", unrecorded)]
    changes = _changes(course)  # come first if there are any
    return content(run.name, _subtitle(run), [
        {"kind": "tiles", "tiles": _tiles(run)}, *(changes if course.changes else []), *recorded,
        *_training(run, course), *_classes(run.result), *([] if course.changes else changes), *_about(run), *_setup(run)])


def _subtitle(run: RunFiles) -> str:
    layouts = run.course.layouts_text()
    if run.ranks:
        known = run.recorded
        return (f"{layouts or known['layout']}, on {counted(len(run.ranks), 'rank')}, schedule {known['schedule']}, "
                f"{known['pipelines'][-1]['microbatches'][1]} microbatches; {counted(known['steps'], 'step')} recorded"
                + f" with {known['layout']}" * bool(layouts))
    layout = layouts or text(run.log.metrics[-1], "layout") if run.log.metrics else ""
    return layout or "a run from another program" if run.log.metrics else "no step yet"


def _tiles(run: RunFiles) -> list[tuple[str, str]]:
    every, known, result = run.totals, run.recorded, run.result
    tiles = []
    if "steps" in every:
        over = f"{int(every['steps']):,}" + " with all layouts" * bool(run.course.layouts_text())
        tiles.append((duration_text(every["median_step_ms"] / 1e3), f"per step, median of all {over}"))
    if run.ranks:
        first, last = known["recorded_steps"][0], known["recorded_steps"][-1]
        steps = f"{first:,}" if first == last else f"{first:,} to {last:,}"
        predicted = f"predicted {duration_text(known['predicted_step_ms'] / 1e3)} ({100 * known['prediction_error']:+.1f}%)"
        tiles.append((duration_text(known["step_ms"] / 1e3),
                      f"step {known['typical_step']:,}, the median of the recorded steps ({steps}); {predicted}"))
        tiles.append((f"{known['bubble']:.1%}", f"bubble of steps {steps}, averaged over ranks; predicted {known['predicted_bubble']:.1%}"
                      + (f"; of all steps {every['bubble']:.1%}" if "bubble" in every else "")))
    elif "bubble" in every:
        tiles.append((f"{every['bubble']:.1%}", "bubble of all steps"))
    if "tokens_per_s" in every:
        tiles.append((figure_text(every["tokens_per_s"]), "tokens per second: all tokens over the seconds of all steps"))
    if run.log.validations and math.isfinite(number(run.log.validations[-1], "loss")):
        last_one = run.log.validations[-1]
        of = f", over {int(number(last_one, 'tokens')):,} targets" if number(last_one, "tokens") > 0 else ""
        tiles.append((f"{number(last_one, 'loss'):.4f}", f"held-out loss at step {number(last_one, 'step'):.0f}, per target{of}"))
    if not math.isnan(number(result, "best_step") + number(result, "best_figure")):
        early = "; then the run stopped (run.patience)" if result.get("ended_by") == "run.patience" else ""
        tiles.append((f"{number(result, 'best_figure'):.4f}",
                      f"best {text(result, 'best_by')}, at step {number(result, 'best_step'):.0f}{early}"))
    if not math.isnan(number(result, "mfu")):
        meaning = "three times the products of a step's forward pass over its mean time and the devices' peak rate"
        tiles.append((f"{number(result, 'mfu'):.1%}", f"model FLOPs utilization (MFU) of the last launch: {meaning}"))
    if run.ranks:
        exact = all(rank["peak"]["saved_bytes"] == rank["predicted_peak"]["saved_bytes"] for rank in run.ranks)
        tiles.append((bytes_text(max(rank["peak"]["saved_bytes"] for rank in run.ranks)), "saved activations at the peak "
                      f"({max(rank['peak']['activations'] for rank in run.ranks)} microbatch-stages); "
                      + ("as predicted, on every rank" if exact else "not as predicted")))
    return tiles


def change_marks(course: Course) -> list[Mark]:
    return [(change.step + 0.5, str(at), f"after step {change.step:.0f}: {course.change_text(change)}")
            for at, change in enumerate(course.changes[:MOST_ROWS], 1)]


def training_charts(curves: dict[str, Curve], validations: list[Line], marks: list[Mark]) -> list[Block]:
    """A chart for each column with a value: every step and, if there are many, a smoothed curve."""
    blocks = []
    for column, title in CURVES.items():
        curve = curves.get(column, {})
        steps, values, finite = list(curve), list(curve.values()), [one for one in curve.values() if math.isfinite(one)]
        if len(curve) < 2 or not finite:
            continue
        series, rates = [line(title, steps, values)], column == "tokens_per_s"
        if len(curve) >= LEAST_SMOOTHED and column != "lr":
            mean = smoothed(values, max(2.0, round(0.02 * len(curve))), rates)
            series = [line("this step", steps, values, faint=True), line("smoothed", steps, mean)]
        share = column == "bubble"
        note = "last " + ("no number" if not math.isfinite(values[-1]) else f"{values[-1]:.1%}" if share else figure_text(values[-1]))
        if column == "loss" and validations:
            held = [(number(one, "step"), number(one, "loss")) for one in validations if one.get("tokens") == validations[0].get("tokens")]
            series.append(line("held out", *unzipped(held), "vermillion", points=True))
            note += f"; held out {figure_text(number(validations[-1], 'loss'))}"
        more: dict[str, typing.Any] = {"marks": marks} if column in ("loss", "step_ms") else {}
        if column == "step_ms":  # the longest would hide the others
            more["high"] = 1.15 * sorted(finite)[int(0.98 * (len(finite) - 1))]
            longer = sum(one > more["high"] for one in finite)
            note += f"; {counted(longer, 'step')} beyond the chart" if longer else ""
        blocks.append(chart(title, series, note=note, zero=column != "loss", share=share, **more))
    return blocks


def _training(run: RunFiles, course: Course) -> list[Block]:
    if len(run.log.metrics) < 2:
        return []
    charts = training_charts({column: run.log.curve(column) for column in CURVES}, run.log.validations, change_marks(course))
    for block in charts:
        if block["title"] == CURVES["step_ms"]:
            _add_segments(block, course)
    first, last = (run.log.validations[at] if run.log.validations else {} for at in (0, -1))
    some, every, note = number(first, "tokens"), number(last, "tokens"), []
    if 0 < some != every:
        note = [words("note", f"The held-out curve covers the first {int(some):,} targets of the held-out data, as evaluated "
                      f"during training; the final loss over {int(every):,} targets is {number(last, 'loss'):.4f}.")]
    marks = " Dashed: changes, numbered above." * bool(course.changes)
    shaded = f" Shaded: frozen layers (full height: all {course.layers})." * bool(course.changes and course.layers)
    return section("Training", [*charts, *note], "Faint: every step. Strong: exponential moving average over about 2% of the steps (tokens per "
                   f"second: total tokens over total seconds).{marks}{shaded}")


def _add_segments(block: Block, course: Course) -> None:
    """Adds the means between changes, and the share of frozen layers."""
    means = [(at, 1e3 * mean) for one in course.segments for at, mean in (
        (one.first, one.mean), (one.last, one.mean), (one.last + 0.5, math.nan))][:-1]
    if course.changes and means:
        block["series"][0]["faint"] = True
        block["series"].append(line("mean between two changes", *unzipped(means), "vermillion"))
        block["high"] = max([block["high"], *(1150 * one.mean for one in course.segments)])
    if course.layers and course.changes and means:
        ends = [means[0][0], *(change.step + 0.5 for change in course.changes), means[-1][0]]
        frozen = [course.changes[0].frozen_before, *(change.frozen for change in course.changes)]
        block["bands"] = [(one, other, layers / course.layers) for one, other, layers in zip(ends, ends[1:], frozen) if layers > 0]


def _classes(result: Line) -> list[Block]:
    counts, names = result.get("validation_confusion"), result.get("validation_classes", [])
    if not isinstance(counts, list) or not 2 <= len(counts) <= MOST_CLASSES or not all(
            isinstance(row, list) and len(row) == len(counts) and all(isinstance(one, (int, float)) for one in row) for row in counts):
        return []
    names = [str(names[at]) if isinstance(names, list) and at < len(names) else str(at) for at in range(len(counts))]
    heat = {"kind": "heat", "corner": "label, by prediction", "columns": names, "unit": "%",
            "rows": [f"{name} ({int(sum(row)):,})" for name, row in zip(names, counts)],
            "values": [[100 * one / sum(row) if sum(row) else None for one in row] for row in counts]}
    return section("Classes", [heat], "Predictions for held-out samples of each label at the end of the run, as shares of the label (number of "
                   "samples) in percent.")


def _change_rows(course: Course) -> typing.Iterator[list[typing.Any]]:
    for at, one in enumerate(course.changes[:MOST_ROWS], 1):
        after = course.segment_after(one)
        measured = after.mean if math.isnan(one.measured_step) and after else one.measured_step
        both = [before if before == now else f"{before} → {now}" for before, now in (
            (layers_text(one.frozen_before), layers_text(one.frozen)), (one.layout_before, one.layout))]
        yield [str(at), f"{one.step:.0f}", *both, duration_text(one.predicted_cost), duration_text(one.cost), "–" if math.isnan(one.moved_bytes) else
               bytes_text(one.moved_bytes), duration_text(one.predicted_step), duration_text(measured)]
        if one.why:
            yield [{"text": one.why, "look": "text", "span": 9}]


def _segment_rows(course: Course) -> list[list[typing.Any]]:
    rows = [[f"{one.first:.0f} to {one.last:.0f}", one.layout, layers_text(one.frozen), duration_text(one.mean), duration_text(one.median),
             f"{one.speed_up:.2f}×"] for one in course.segments[:MOST_ROWS]]
    every = ["all, including changes", "", "", duration_text(course.seconds / course.steps), "", f"{course.speed_up:.2f}×"] if rows else []
    return [*rows, every]


def _changes(course: Course) -> list[Block]:
    items = [f"after step {step:.0f}: {note}" for step, note in course.notes[:MOST_ROWS]]
    items += [f"{course.cache} in the last launch"] * bool(course.cache)
    notes: list[Block] = [{"kind": "list", "items": items}] if items else []
    if not course.changes:
        return section("Changes", notes)
    took = ", in addition to the steps" if course.change_seconds > 0 else ""
    of = f" of {course.layers}" if course.layers else ""
    head = ["change", "after step", f"frozen layers{of}", "layout", "cost, predicted", "measured", "moved", "next steps, predicted", "measured"]
    cut = [words("note", f"The first {MOST_ROWS} of {len(course.changes)} changes.")] * (len(course.changes) > MOST_ROWS)
    blocks = [table(head, _change_rows(course), left=4), *cut]
    if course.segments:
        blocks += [table(["steps", "layout", "frozen layers", "mean step", "median", "speed-up"], _segment_rows(course), left=3),
                   words("note", "Speed-up over the first segment. A segment's mean excludes its first step, which touches new memory; the "
                         "last row covers all steps but the run's first one, and the changes.")]
    advice = " Faster steps do not show what freezing costs in loss: concertina compare RUN UNFROZEN, both with eval.every."
    return section("Changes", blocks + notes, f"{course.took_text()}{took}." + advice * any(one.frozen > 0 for one in course.segments))


def plain_text(value: typing.Any, depth: int = 8) -> str:
    """Returns text unchanged and anything else as a list; empty if there is nothing."""
    if isinstance(value, (dict, list)):
        pairs = value.items() if isinstance(value, dict) else [("", one) for one in value]
        return ", ".join(f"{key} {said}".strip() for key, one in pairs if (said := plain_text(one, depth - 1))) if depth else "..."
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return figure_text(value)
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def _filled(text_: str, values: dict[str, str]) -> str:
    return re.sub(r"\{([a-z.]+)\}", lambda found: values.get(found[1], "?"), text_)


def _about(run: RunFiles) -> list[Block]:
    """The program, hosts, times and model, if known."""
    log, config, launches, every = run.log, config_texts(run.path), run.log.launches, run.totals
    rows = []
    if launches:
        last, command, hosts = launches[-1], launches[-1].get("command"), launches[-1].get("hosts")
        rows = [("program", f"concertina {plain_text(last.get('version'))}, commit {plain_text(last.get('commit'))}"),
                ("command", " ".join(map(plain_text, command)) if isinstance(command, list) else plain_text(command)),
                *(("host", plain_text(host)) for host in (hosts if isinstance(hosts, list) else [])),
                ("launches", f"{len(launches)}, the last one from step {plain_text(last.get('from'))}" if len(launches) > 1 else "")]
    if log.metrics:
        rows += [("first step ended", text(log.metrics[0], "time")), ("last step ended", text(log.metrics[-1], "time"))]
    if "steps" in every:
        rows.append(("duration", f"{clock_text(every['steps_s'])} for {counted(int(every['steps']), 'step')}"))
    if "parameters" in run.recorded:
        sizes = ("{model.family}, {model.layers} layers, width {model.width}, {model.heads} heads, context {model.context}, "
                 "vocabulary {model.vocab}")
        step = "{batch.global} samples, {tokens} tokens, in {batch.microbatches} microbatches"
        rows += [("model", f"{_filled(sizes, config)}: {run.recorded['parameters']:,} parameters"),
                 ("step", _filled(step, config | {"tokens": f"{run.recorded['tokens_per_step']:,}"}))]
    if config:
        rows.append(("numbers", _filled("{numerics.compute} on {run.device}, seed {run.seed}", config)))
    rows.append(("state_sha256", text(run.result, "state_sha256")))
    return section("Run", [table([], [row for row in rows if row[1]], left=2, look="about")])


def _setup(run: RunFiles) -> list[Block]:
    config = run.path / "config.toml"
    blocks, rows = folded("config.toml", read_text(config) if config.is_file() else ""), []
    for at, pipeline in enumerate(run.recorded.get("pipelines", [])):
        first, last = pipeline["microbatches"]
        rows += [[str(at), str(stage), str(rank), f"{begin} to {end - 1}", f"{first} to {last - 1}"]
                 for stage, (rank, begin, end) in enumerate(pipeline["stages"])]
    if not rows:
        return blocks
    cut = [words("note", f"The first {MOST_ROWS} of {len(rows)} stages.")] * (len(rows) > MOST_ROWS)
    clock = (f"Ranks' clocks were compared by ping-pong before and after the recorded steps; times of different ranks are accurate to "
             f"{duration_text(run.recorded['clock_error_us'] / 1e6)}. Open trace.json of the same directory in Perfetto.")
    return [words("heading", "Layout of the recorded steps, and config"), table(["pipeline", "stage", "rank", "units", "microbatches"], rows[:MOST_ROWS]), *cut,
            *blocks, words("note", clock)]
