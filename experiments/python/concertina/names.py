"""Presentation of metrics, settings, numbers and lists: titles, units, whether lower or higher is better, and digits that fit an uncertainty."""
import dataclasses
import functools
import itertools
import math
import pathlib
import re
import tomllib
import typing

Better = typing.Literal["lower", "higher"]

BASELINE_TARGET = "baseline"  # the target that is the baseline's last value; a signed number may follow
_TIME_TO = "time_to_"

_NAMES: dict[str, dict[str, str]] = tomllib.loads(pathlib.Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_FACTORS = {"%": 100, "MiB": 1 / (1 << 20)}  # from the recorded number to the unit
_HIGHER = ("_per_s", "accuracy", "exact_match", "f1", "precision", "recall", "correlation")
_LOWER = ("loss", "bits_per_byte", "_error", "_ms", "_s", "_bytes")


@dataclasses.dataclass(frozen=True)
class Metric:
    """A column and its presentation. `factor`: from the recorded number to the unit, such as bytes to MiB; `better`: if known."""
    name: str
    title: str  # of a table's column, including a unit if needed
    label: str  # of an axis, whose unit is separate
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
    """The column for the training seconds until a metric reaches a target."""
    return f"{_TIME_TO}{metric}_{target}_s"


def is_time_to(column: str) -> bool:
    return column.startswith(_TIME_TO) and column.endswith("_s")


def metric_of_time_to(column: str) -> str:
    """The metric of a time_to() column; other columns are returned unchanged."""
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
    """The presentation of a column. The title of an unknown column is its name, whose suffix determines the unit and whether lower is better."""
    if is_time_to(column):
        return _time_to_named(column)
    if known := _NAMES.get(column):
        short, _, unit = known["title"].removesuffix(")").partition(" (")
        unit = known.get("unit", unit)
        return Metric(column, known["title"], known.get("label", short.lower()), unit, _FACTORS.get(unit, 1), _better(column))
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
    """Format of a column's numbers: a number of decimals, or powers of ten."""
    decimals: int
    powers: bool = False


def _magnitude(value: float) -> int:
    """The power of ten of the first digit: 2 for 123, -1 for 0.5."""
    return math.floor(math.log10(value))


def digits_for(values: typing.Iterable[float], uncertainties: typing.Iterable[float]) -> Digits:
    """Two digits of the median uncertainty above zero, and up to two more if the smallest would be shown as zero.

    Without uncertainties: five digits of the largest value, without decimals if all values are integers."""
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
    """ "26,431.5"; a value that would round to zero as "1e-17"; NaN and infinity by name."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "infinity" if value > 0 else "-infinity"
    if digits.powers and value != 0:
        return f"{value:.3e}"
    text = f"{value:,.{digits.decimals}f}"
    if text.strip("-0,."):
        return text
    return f"{value:.0e}" if value != 0 else text.removeprefix("-")


def pareto_front(points: list[tuple[float, float]], x: Better | None, y: Better | None) -> list[int]:
    """The indices, sorted by x, of points that no other point dominates (is as good on both axes and better on one); of equal points, only the first."""
    if not x or not y:
        return []
    costs = [(a if x == "lower" else -a, b if y == "lower" else -b, at) for at, (a, b) in enumerate(points) if math.isfinite(a + b)]
    front: list[int] = []
    least = math.inf
    for _, cost, at in sorted(costs):
        if cost < least:
            least, front = cost, [*front, at]
    return front if x == "lower" else front[::-1]


_NUMBER = re.compile(r"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|-?(?:inf|infinity|nan)", re.IGNORECASE)


@functools.lru_cache(maxsize=1 << 16)
def number_or_text(text: str) -> float | str:
    """The number if `text` is one that a double can represent, such as "0.001" or "inf"; otherwise the text."""
    if not _NUMBER.fullmatch(text):
        return text
    value = float(text)
    digits = text.lower().partition("e")[0]
    overflow = value in (float("inf"), float("-inf")) and "inf" not in text.lower()
    return text if overflow or (value == 0 and digits.strip("-0.") != "") else value


def plain(value: float) -> str:
    """The shortest text that reads back as the same number: 3, 0.1, 1e-05."""
    return repr(float(value)).removesuffix(".0")


def duration_text(seconds: float) -> str:
    """ "12.3 ms"; a dash for NaN."""
    size = abs(seconds)
    if not size >= 1e-9:
        return "–" if math.isnan(size) else "0"
    factor, unit = (1e6, "µs") if size < 1e-3 else (1e3, "ms") if size < 1 else (1, "s")
    return f"{factor * seconds:.3g} {unit}"


def clock_text(seconds: float) -> str:
    """ "1 h 2 min", "12.3 s"."""
    if not 60 <= seconds < 1e15:
        return "–" if math.isnan(seconds) else f"{seconds:.0f} s" if seconds >= 10 else duration_text(seconds)
    whole = round(seconds)
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600:,} h {whole % 3600 // 60} min"


def bytes_text(count: float) -> str:
    """ "6.7 MiB"."""
    size, unit = next(((1 << shift, unit) for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")) if count >= 1 << shift), (1, "B"))
    return f"{count / size:.4g} {unit}" if size > 1 else f"{count:.0f} B"


def figure_text(value: float) -> str:
    """Five digits, or all digits of a large integer: "0.57333", "26,431"; NaN and infinity by name."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "infinity" if value > 0 else "-infinity"
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.5g}"


def counted(count: int, noun: str) -> str:
    """ "1 rank", "1,024 microbatches"."""
    return f"1 {noun}" if count == 1 else f"{count:,} {noun}{'es' if noun.endswith('ch') else 's'}"


def ranges(numbers: typing.Sequence[int]) -> str:
    """ "1-3,5" for 1, 2, 3, 5."""
    runs = (list(run) for _, run in itertools.groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]))
    return ",".join("-".join(map(str, dict.fromkeys((run[0][1], run[-1][1])))) for run in runs)


def trials_text(numbers: typing.Sequence[int]) -> str:
    return f"trial{'' if len(numbers) == 1 else 's'} {ranges(numbers)}"


def settings_text(columns: typing.Iterable[str], values: typing.Iterable[str]) -> str:
    """ "parallel.schedule=zb-v run.seed=2"."""
    return " ".join(f"{column}={value}" for column, value in zip(columns, values))


def text_table(rows: typing.Sequence[typing.Sequence[str]], left: int) -> str:
    """A line for each row; the first `left` columns are left-aligned, the others right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ("  ".join(cell.ljust(width) if c < left else cell.rjust(width) for c, (cell, width) in enumerate(zip(row, widths))) for row in rows)
    return "".join(line.rstrip(" ") + "\n" for line in lines)
