"""The course of a run: what changed between its steps (frozen layers, layout), the cost, and the speed of the steps in between.

Unknown values are NaN or empty text, so that logs from any version of the program can be read.
"""
import bisect
import dataclasses
import itertools
import math
import statistics
import typing

from .run_log import Line, batches, number, positive, text
from .names import counted, duration_text

NAN = math.nan


@dataclasses.dataclass
class Change:
    """All changes between two steps: frozen layers and layouts, before and after. Costs and steps are in seconds."""
    step: float  # the step before the change
    frozen_before: float = NAN
    frozen: float = NAN
    layout_before: str = ""
    layout: str = ""
    why: str = ""
    cost: float = NAN
    predicted_cost: float = NAN
    moved_bytes: float = NAN  # between ranks
    predicted_step_before: float = NAN
    predicted_step: float = NAN
    measured_step: float = NAN  # some steps later, as compared with the prediction

    def take(self, **known: typing.Any) -> None:
        """Sets the values that are known."""
        for name, value in known.items():
            if value != "" and value == value:
                setattr(self, name, value)

    def fill(self, **known: typing.Any) -> None:
        """Sets values that were unknown."""
        self.take(**{name: value for name, value in known.items() if (now := getattr(self, name)) == "" or now != now})

    def add(self, **known: float) -> None:
        for name, value in known.items():
            before = getattr(self, name)
            self.take(**{name: value if math.isnan(before) else value + before})


@dataclasses.dataclass
class Segment:
    """The steps between two changes, both ends included; steps without a time do not count."""
    first: float
    last: float
    steps: int
    frozen: float  # layers
    layout: str
    seconds: float
    mean: float  # of a step, without the first one if there are others, since it touches new memory
    median: float
    speed_up: float = 1  # the mean of the first segment over this one's


@dataclasses.dataclass
class Course:
    """`layers`: the number in the model, 0 if unknown. `cache`: the last launch's use of the cache."""
    layers: int = 0
    changes: list[Change] = dataclasses.field(default_factory=list)
    segments: list[Segment] = dataclasses.field(default_factory=list)
    notes: list[tuple[float, str]] = dataclasses.field(default_factory=list)  # other decisions, with the step before each
    cache: str = ""

    @property
    def change_seconds(self) -> float:
        return sum(change.cost for change in self.changes if not math.isnan(change.cost))

    @property
    def steps(self) -> int:
        return sum(segment.steps for segment in self.segments)

    @property
    def seconds(self) -> float:
        """Total of all steps and changes; the run's first step counts as an average step."""
        first = self.segments[0].mean * self.segments[0].steps if self.segments else 0
        return first + sum(segment.seconds for segment in self.segments[1:]) + self.change_seconds

    @property
    def speed_up(self) -> float:
        return self.segments[0].mean * self.steps / self.seconds if self.segments else NAN

    def layouts_text(self) -> str:
        """ "pp4xdp1 until step 30, then pp1xdp4"; empty if the layout never changes."""
        parts = [list(part) for _, part in itertools.groupby(self.segments, key=lambda one: one.layout)]
        said = [f"{part[0].layout} until step {part[-1].last:.0f}" for part in parts[:-1]]
        if len(said) > 3:
            said[1:-1] = [f"{len(said) - 2} other layouts"]
        return ", then ".join([*said, parts[-1][0].layout]) if said else ""

    def segment_after(self, change: Change) -> Segment | None:
        """The segment that starts with the step after `change`; None if another change follows directly."""
        segment = next((one for one in self.segments if one.first > change.step), None)
        return None if not segment or any(change.step < other.step < segment.first for other in self.changes) else segment

    def change_text(self, change: Change) -> str:
        """ "0 -> 4 of 12 layers frozen, pp2xdp2 -> pp1xdp4"."""
        layers = " -> ".join(dict.fromkeys(map(layers_text, (change.frozen_before, change.frozen))))
        layout = " -> ".join(dict.fromkeys((change.layout_before, change.layout)))
        return f"{layers}{f' of {self.layers}' if self.layers else ''} layers frozen, {layout}"

    def took_text(self) -> str:
        """ "2 changes, which took 1.5 s"."""
        took = f", which took {duration_text(self.change_seconds)}" if self.change_seconds > 0 else ""
        return counted(len(self.changes), "change") + took

    def text(self) -> str:
        """A paragraph for a terminal; empty for a run without changes or notes."""
        lines = [f"after step {step:.0f}: {note}" for step, note in self.notes] + [self.cache] * bool(self.cache)
        if self.changes:
            lines.append(self.took_text())
            for change in self.changes:
                why = f" ({change.why})" if change.why else ""
                lines += [f"  after step {change.step:.0f}: {self.change_text(change)}{why}", *self._effect(change)]
            if self.segments:
                lines.append(f"  the whole run, including changes: {self.speed_up:.2f}x as fast as at the start")
        return "".join(line + "\n" for line in lines)

    def _effect(self, change: Change) -> list[str]:
        segment = self.segment_after(change)
        said = [("took", change.cost), ("predicted to take", change.predicted_cost), ("steps of", segment.mean if segment else NAN),
                ("predicted steps of", change.predicted_step)]
        parts = [f"{word} {duration_text(value)}" for word, value in said if not math.isnan(value)]
        parts += [f"{segment.speed_up:.2f}x as fast as at the start"] if segment else []
        return [f"    {'; '.join(parts)}"] if parts else []

    def json(self) -> dict[str, typing.Any]:
        """Unknown values are NaN, which JSON writes as null."""
        changes = [{"step": whole(one.step), "frozen_layers_before": whole(one.frozen_before), "frozen_layers": whole(one.frozen),
                    "layout_before": one.layout_before, "layout": one.layout, "why": one.why, "seconds": one.cost,
                    "predicted_s": one.predicted_cost, "moved_bytes": one.moved_bytes,
                    "predicted_step_before_ms": one.predicted_step_before * 1e3, "predicted_step_ms": one.predicted_step * 1e3,
                    "measured_step_ms": one.measured_step * 1e3} for one in self.changes]
        segments = [{"first_step": whole(one.first), "last_step": whole(one.last), "steps": one.steps, "layout": one.layout,
                     "frozen_layers": whole(one.frozen), "mean_step_ms": one.mean * 1e3, "median_step_ms": one.median * 1e3,
                     "speed_up": one.speed_up} for one in self.segments]
        return {"changes": changes, "segments": segments, "speed_up": self.speed_up,
                "notes": [{"step": whole(step), "text": note} for step, note in self.notes]}


def layers_text(layers: float) -> str:
    return "?" if math.isnan(layers) else f"{layers:.0f}"


def whole(value: float) -> float:
    return int(value) if abs(value) < 1e15 else value


def _layers(units: float, ends: list[int]) -> float:
    return NAN if math.isnan(units) or (units > 0 and not ends) else float(bisect.bisect_right(ends, units))


def _is_change(event: Line) -> bool:
    """Whether the event is a change rather than a decision to keep everything."""
    if text(event, "event") == "freeze":
        return "units_before" in event
    return text(event, "event") == "layout" and (text(event, "from") != text(event, "to") or number(event, "seconds") > 0)


def _add_event(event: Line, ends: list[int], change: Change) -> None:
    """Adds a change, or a decision to keep the layout after a freeze, which also predicts the next steps."""
    change.take(why="; ".join(filter(None, (change.why, text(event, "why")))), predicted_step=number(event, "predicted_step_s"))
    if not _is_change(event):
        return
    freezes = text(event, "event") == "freeze"
    if freezes:
        layers = number(event, "layers")
        change.take(frozen_before=_layers(number(event, "units_before"), ends),
                    frozen=_layers(number(event, "units"), ends) if math.isnan(layers) else layers)
    change.fill(layout_before=text(event, "from"), predicted_step_before=number(event, "predicted_step_before_s"))
    change.take(layout=text(event, "layout" if freezes else "to"), predicted_cost=number(event, "predicted_move_s"))
    change.add(cost=number(event, "seconds"), moved_bytes=number(event, "moved_bytes"))


def changes_in(events: list[Line], ends: list[int]) -> dict[float, Change]:
    """The changes in events, by the step before each, excluding refused ones."""
    stepped = [event for event in events if not math.isnan(number(event, "step"))]
    refused = {number(event, "step") for event in stepped if text(event, "event") == "refused"}
    steps = {step for event in stepped if _is_change(event) and (step := number(event, "step")) not in refused}
    changes = {step: Change(step) for step in sorted(steps)}
    for event in sorted(stepped, key=_is_change, reverse=True):
        kind, step = text(event, "event"), number(event, "step")
        if step in changes and (_is_change(event) or kind == "layout"):
            _add_event(event, ends, changes[step])
        if kind == "layout outcome" and (before := [at for at in changes if at < step]):  # the result of the last prediction
            change = changes[max(before)]
            if math.isnan(change.measured_step):
                change.take(predicted_step=number(event, "predicted_step_s"), measured_step=number(event, "measured_step_s"))
    return changes


def _add_seen(lines: list[Line], launches: list[Line], ends: list[int], changes: dict[float, Change]) -> None:
    """Adds changes that appear only in steps, such as a launch that resumes with another layout, and the states before and after each."""
    resumed = {number(launch, "from") for launch in launches}
    known = sorted(changes)
    for before, after in itertools.pairwise(lines):
        step, was, now = number(before, "step"), number(before, "frozen_units"), number(after, "frozen_units")
        at = bisect.bisect_left(known, step)
        change = changes[known[at]] if at < len(known) and known[at] < number(after, "step") else None
        moved = text(before, "layout") and text(after, "layout") and text(before, "layout") != text(after, "layout")
        if not change and (moved or (was != now and not math.isnan(was + now))):
            if step not in changes:
                bisect.insort(known, step)
            change = changes.setdefault(step, Change(step))
            change.take(why="resumed by another launch" if step in resumed else "")
        if change:
            change.fill(layout_before=text(before, "layout"), layout=text(after, "layout"), frozen_before=_layers(was, ends),
                        frozen=_layers(now, ends))


def _segment(lines: list[Line], frozen: float, ends: list[int]) -> Segment | None:
    timed = [line for line in lines if positive(line, "step_ms") > 0]
    if not timed:
        return None
    times, counts, last = [number(line, "step_ms") * 1e-3 for line in timed], list(map(batches, timed)), timed[-1]
    layers = _layers(number(last, "frozen_units"), ends)
    return Segment(number(timed[0], "step") - counts[0] + 1, number(last, "step"), sum(map(int, counts)), frozen if math.isnan(layers) else layers,
                   text(last, "layout"), sum(count * time for count, time in zip(counts, times)), statistics.fmean(times[1:] or times),
                   statistics.median(times))


def _segments(lines: list[Line], changes: list[Change], ends: list[int]) -> list[Segment]:
    starts = [change.step for change in changes]
    parts: list[list[Line]] = [[] for _ in range(len(changes) + 1)]
    for line in lines:
        parts[bisect.bisect_left(starts, number(line, "step"))].append(line)
    frozen = [changes[0].frozen_before, *(change.frozen for change in changes)] if changes else [NAN]
    segments = [one for part, layers in zip(parts, frozen) if (one := _segment(part, layers, ends))]
    for segment in segments[1:]:
        segment.speed_up = segments[0].mean / segment.mean
    return segments


def _decision(event: Line, ends: list[int]) -> str:
    """ "weight gradients left out: 25%, 0% of stages 0 to 1", or whether cached activations are read; empty for other events."""
    shares, units, on, kind = event.get("skipped_by_stage"), number(event, "units"), event.get("on"), text(event, "event")
    if kind == "freeze" and isinstance(shares, list) and shares:
        found = ", ".join(f"{share:.0%}" if isinstance(share, (int, float)) else "?" for share in shares)
        of = "each step" if len(shares) == 1 else f"stages 0 to {len(shares) - 1}"
        ratio = number(event, "predicted_step_ratio")
        return f"weight gradients left out: {found} of {of}" + ("" if math.isnan(ratio) else f"; predicted {ratio:.2f} of a step's time")
    if kind == "cache" and not math.isnan(units) and isinstance(on, bool):
        of = f"{_layers(units, ends):.0f} layers" if ends else f"{units:.0f} units"
        return f"cached activations of the first {of}: {'read' if on else 'not read'}"
    return ""


def _notes(events: list[Line], ends: list[int]) -> list[tuple[float, str]]:
    """Decisions that differ from the previous ones."""
    notes: list[tuple[float, str]] = []
    last: dict[str, str] = {}
    for event in events:
        kind, step, said = text(event, "event"), number(event, "step"), _decision(event, ends)
        if said and said != last.get(kind) and not math.isnan(step):
            last[kind] = said
            why = text(event, "why") if kind == "cache" else ""
            notes.append((step, said + f" ({why})" * bool(why)))
    return notes


def _cache_text(result: Line) -> str:
    """How the last launch used the cache, from result.json; empty if unknown."""
    use = result.get("cache")
    names = ("memory_hits", "disk_hits", "misses", "writes", "faults")
    if not isinstance(use, dict) or any(math.isnan(number(use, name)) for name in names):
        return ""
    memory, disk, misses, writes, faults = (int(number(use, name)) for name in names)
    if not (every := memory + disk + misses):
        why = f"none could be kept ({counted(faults, 'fault')}: see the warnings)" if faults else "none was requested"
        return f"cached activations: {why}"
    said = (f"cached activations: {(memory + disk) / every:.0%} of {every:,} samples with frozen units were read ({memory:,} from memory, "
            f"{disk:,} from disk), {writes:,} written" + (f", {counted(faults, 'fault')}" if faults else ""))
    samples, slots = number(use, "samples"), number(use, "slots")
    if misses and samples > 0:
        said += f"; {misses:,} were computed, each sample at least once"
        said += f": the budgets hold {int(slots):,} of the {int(samples):,} samples of an epoch" if slots < samples else ""
    return said


def course_of(lines: list[Line], events: list[Line], launches: list[Line], ends: list[int], result: Line | None = None) -> Course:
    """The course of a run. `lines`: the lines of metrics.jsonl that describe steps; `ends`: the last unit of each layer, empty if unknown.

    Changes without an event are found in the lines; values that remain unknown are taken from the previous change.
    """
    found = changes_in(events, ends)
    _add_seen(lines, launches, ends, found)
    changes = [found[step] for step in sorted(found)]
    for last, change in zip([None, *changes], changes):
        if last:
            change.fill(layout_before=last.layout, frozen_before=last.frozen)
        change.fill(layout=change.layout_before, frozen=change.frozen_before)
    return Course(len(ends), changes, _segments(lines, changes, ends), _notes(events, ends), _cache_text(result or {}))
