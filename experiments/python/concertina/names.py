"""How metrics and settings read in a paper: title, unit, the better direction, and as many digits as their uncertainty bears."""
from __future__ import annotations

import dataclasses
import functools
import math
import typing

from .texts import number_or_text

Better = typing.Literal["lower", "higher"]

BASELINE_TARGET = "baseline"  # the target that is the baseline's last value; a number with its sign may follow
_TIME_TO = "time_to_"

# Titles, with a unit that a table needs.
_TITLES = {
    "loss": "Training loss", "validation_loss": "Validation loss", "validation_bits_per_byte": "Validation bits/byte",
    "validation_accuracy": "Validation accuracy (%)", "train_s": "Training (s)", "tokens_per_s": "Tokens/s",
    "median_step_ms": "Step time (ms)", "step_ms": "Step time (ms)", "bubble": "Bubble (%)", "mfu": "MFU (%)",
    "peak_bytes": "Peak memory (MiB)", "grad_norm": "Gradient norm", "parameters": "Parameters", "trial_s": "Trial time (s)",
    "lr": "Learning rate", "optimizer.lr": "Learning rate", "optimizer.weight_decay": "Weight decay", "lr.warmup": "Warmup (steps)",
    "arm": "Arm", "parallel.schedule": "Schedule", "parallel.pp": "Stages", "parallel.dp": "Replicas", "parallel.layout": "Layout",
    "layout": "Layout", "batch.global": "Batch", "batch.microbatches": "Microbatches", "model.layers": "Layers", "model.width": "Width",
    "model.heads": "Heads", "model.context": "Context", "model.dropout": "Dropout", "run.seed": "Seed", "run.steps": "Steps",
    "run.threads": "Threads", "ranks": "Ranks", "step": "Step"}
# Labels beside an axis and units that do not follow from the title.
_LABELS = {"loss": "loss", "validation_bits_per_byte": "validation bits per byte", "train_s": "training time", "tokens_per_s": "throughput",
           "mfu": "model FLOPs utilization", "parallel.pp": "pipeline stages"}
_UNITS = {"loss": "per target", "validation_loss": "per target", "tokens_per_s": "tokens/s"}
_FACTORS = {"%": 100, "MiB": 1 / (1 << 20)}  # from the recorded number to the unit
_HIGHER = ("_per_s", "accuracy", "exact_match", "f1", "precision", "recall", "correlation")
_LOWER = ("loss", "bits_per_byte", "_error", "_ms", "_s", "_bytes")


@dataclasses.dataclass(frozen=True)
class Metric:
    """A column, and how it reads. `factor`: from the recorded number to the unit, as from bytes to MiB; `better`: where that is known."""
    name: str
    title: str  # of a table's column, with a unit that is needed there
    label: str  # beside an axis, whose unit stands apart
    unit: str = ""
    factor: float = 1
    better: Better | None = None

    @property
    def short(self) -> str:
        """The title without its unit, for sentences."""
        return self.title.partition(" (")[0]

    def in_unit(self, value: float, form: str) -> str:
        """ "0.5 %"."""
        return f"{self.factor * value:{form}}{' ' if self.unit else ''}{self.unit}"


def time_to(metric: str, target: str) -> str:
    """The column of the training seconds until a metric reaches a target."""
    return f"{_TIME_TO}{metric}_{target}_s"


def is_time_to(column: str) -> bool:
    return column.startswith(_TIME_TO) and column.endswith("_s")


def metric_of_time_to(column: str) -> str:
    """The metric whose target a time_to() is of; of any other column itself."""
    if not is_time_to(column):
        return column
    rest = column[len(_TIME_TO):-2]
    return rest.rpartition("_")[0] or rest


def _better(column: str) -> Better | None:
    if column.endswith(_HIGHER) or column == "mfu":
        return "higher"
    return "lower" if column.endswith(_LOWER) or column == "seconds" or "bubble" in column else None


@functools.lru_cache(maxsize=4096)
def metric_named(column: str) -> Metric:
    """How a column reads; one that is not known is its own title, and its ending tells unit and direction."""
    if is_time_to(column):
        return _time_to_named(column)
    if title := _TITLES.get(column):
        short, _, unit = title.removesuffix(")").partition(" (")
        unit = _UNITS.get(column, unit)
        return Metric(column, title, _LABELS.get(column, short.lower()), unit, _FACTORS.get(unit, 1), _better(column))
    unit = "ms" if column.endswith("_ms") else "s" if column.endswith("_s") and not column.endswith("_per_s") else ""
    return Metric(column, column, column, unit, 1, _better(column))


def _time_to_named(column: str) -> Metric:
    of = metric_of_time_to(column)
    metric, target = metric_named(of), column[len(_TIME_TO) + len(of) + 1:-2]
    said = BASELINE_TARGET if target.startswith(BASELINE_TARGET) else ""
    number = number_or_text(target.removeprefix(said).removeprefix("+"))
    if isinstance(number, float):
        value = metric.factor * number
        said += (f" {value:+.6g}" if said else f"{value:.6g}") + ("%" if metric.unit == "%" else "")
    what = f"time to {metric.label} of {said}"
    return Metric(column, f"T{what[1:]} (s)", what, "s", 1, "lower")


class Digits(typing.NamedTuple):
    """How the numbers of a column are written: with so many decimals, or as powers of ten."""
    decimals: int
    powers: bool = False


def _magnitude(value: float) -> int:
    """The power of ten of the first digit: 2 of 123, -1 of 0.5."""
    return math.floor(math.log10(value))


def digits_for(values: typing.Iterable[float], uncertainties: typing.Iterable[float]) -> Digits:
    """Two digits of the median uncertainty above zero, and up to two more where the smallest would be zero.

    Without uncertainties: five digits of the largest value, none after the point if all values are whole.
    """
    finite = [value for value in values if math.isfinite(value)]
    largest = max(map(abs, finite), default=0.0)
    sizes = sorted(size for size in uncertainties if math.isfinite(size) and size > 0)
    if not sizes and (largest == 0 or all(value == math.floor(value) for value in finite)):
        return Digits(0, largest >= 1e15)
    decimals = 4 - (_magnitude(largest) if largest > 0 else 0)
    if sizes:
        usual = 1 - _magnitude(sizes[len(sizes) // 2])
        decimals = max(usual, min(-_magnitude(sizes[0]), usual + 2))
    if largest > 0:
        decimals = min(decimals, 9 - _magnitude(largest))
    return Digits(min(max(decimals, 0), 9), decimals > 9 or largest >= 1e15)


def number_text(value: float, digits: Digits) -> str:
    """ "26,431.5"; a value that these decimals would round to zero as "1e-17"; NaN and infinity by name."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "infinity" if value > 0 else "-infinity"
    if digits.powers and value != 0:
        return f"{value:.3e}"
    text = f"{value:,.{digits.decimals}f}"
    if text.strip("-0,."):
        return text
    return f"{value:.0e}" if value != 0 else text.removeprefix("-")


def pareto_front(points: list[tuple[float, float]], x: Better | None, y: Better | None) -> list[int]:
    """The points that no other one beats, by x: as good in both and better in one. The first of equal points stays."""
    if not x or not y:
        return []
    costs = [(a if x == "lower" else -a, b if y == "lower" else -b, at) for at, (a, b) in enumerate(points) if math.isfinite(a + b)]
    front: list[int] = []
    least = math.inf
    for _, cost, at in sorted(costs):
        if cost < least:
            least, front = cost, [*front, at]
    return front if x == "lower" else front[::-1]
