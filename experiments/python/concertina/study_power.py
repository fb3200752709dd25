"""The probability that a planned study with its number of seeds shows an equivalence."""
import dataclasses
import pathlib
import typing

from .errors import InputError
from .names import counted, metric_named, number_or_text
from .results import SEED, Claim, study_results
from .statistic import Design, equivalence_power, pairs_for_power
from .study_table import TableOptions, make_table

@dataclasses.dataclass
class PowerCase:
    """A deviation of paired differences and its source, the power with the study's number of seeds, and the number of seeds needed for the requested power."""
    name: str
    deviation: float
    power: float
    seeds_for_power: int | None


@dataclasses.dataclass
class Power:
    """The power of a claim's tests, given a true difference."""
    claim: Claim
    difference: float
    seeds: int
    wanted_power: float
    cases: list[PowerCase]

    def json(self) -> dict[str, typing.Any]:
        return {"metric": self.claim.metric, "margin": self.claim.margin, "alpha": self.claim.alpha, "difference": self.difference,
                "seeds": self.seeds, "wanted_power": self.wanted_power, "cases": [dataclasses.asdict(case) for case in self.cases]}

    def text(self) -> str:
        name = metric_named(self.claim.metric)
        lines = [f"equivalence of {name.short} within ±{name.in_unit(self.claim.margin, '.4g')}, alpha = {self.claim.alpha:.4g}, at a true "
                 f"difference of {name.in_unit(self.difference, '.4g')}"]
        for case in self.cases:
            needed = "no number of seeds reaches" if case.seeds_for_power is None else f"{counted(case.seeds_for_power, 'seed')} for"
            lines.append(f"deviation {name.in_unit(case.deviation, '.4g')} ({case.name}): power {case.power:.3f} with "
                         f"{counted(self.seeds, 'seed')}; {needed} {self.wanted_power:.4g}")
        return "\n".join(lines) + "\n"


def claim_of(text: str, alpha: float | None = None) -> Claim:
    """Parses the claim "METRIC=MARGIN"."""
    metric, _, margin = text.partition("=")
    number = number_or_text(margin)
    if not metric or isinstance(number, str) or not 0 < number <= 1e9:
        raise InputError(f"'{text}' is not METRIC=MARGIN", "--equivalent", "--equivalent validation_accuracy=0.005")
    return Claim(metric, number, 0.05 if alpha is None else alpha)


def _deviations(pilot: str, claim: Claim) -> list[tuple[str, float]]:
    """The standard deviation of the paired differences between each group in the pilot and its baseline."""
    table = make_table(study_results(pilot), TableOptions([claim.metric], mixed=True, claim=claim, baseline=claim.baseline))
    found = [(f"{row.label}, {counted(test.pairs, 'pair')}", test.deviation) for row in table.rows
             if (test := row.cells[0].equivalence) and test.deviation is not None]
    if not found:
        raise InputError("no group in the pilot has two pairs with its baseline", pilot, "at least two seeds, or --deviation D")
    return found


def power(study: str | pathlib.Path, *, pilot: str = "", deviation: float | None = None, difference: float = 0, wanted: float = 0.8,
          seeds: int | None = None, equivalent: str = "", alpha: float | None = None, baseline: typing.Sequence[str] = ()) -> Power:
    """The power for a study's file or folder. The deviation of paired differences is given, or estimated for each group of the study
    `pilot`."""
    file = study_results(study)
    claim = claim_of(equivalent, alpha) if equivalent else file.claim
    if claim is None:
        raise InputError("the study has no claim of equivalence", str(study), "[equivalence] in the study's file, or --equivalent METRIC=MARGIN")
    claim = dataclasses.replace(claim, baseline=list(baseline) or claim.baseline)
    if deviation is None and not pilot:
        raise InputError("the deviation of paired differences is unknown", "command line",
                         "--pilot studies/NAME, or --deviation D, in the metric's own unit")
    count = len({run.settings[SEED] for run in file.runs if SEED in run.settings}) if seeds is None else seeds
    cases = []
    for name, spread in [("--deviation", deviation)] if deviation is not None else _deviations(pilot, claim):
        design = Design(spread, claim.margin, claim.alpha, difference)
        cases.append(PowerCase(name, spread, equivalence_power(count, design) if count > 1 else 0.0, pairs_for_power(wanted, design)))
    return Power(claim, difference, count, wanted, cases)
