"""Statistics of samples: mean, spread and interval, tests of differences and of equivalence, and the power of equivalence tests.

Non-finite values are counted but never averaged. Where a sample is too small, results are None. Distributions are scipy's. The mean and
deviation of equal values, and the p-value of differences without spread, which has no general formula, are exact."""
import bisect
import dataclasses
import functools
import math
import typing

import numpy as np
import pandas as pd
from scipy import special

Pairs = typing.Sequence[tuple[float, float]]

MOST_EXACT = 200  # maximum number of differences for an exact Wilcoxon test
PAIRED, WILCOXON, WELCH, NO_TEST = "paired t test", "Wilcoxon signed rank test", "Welch's t test", "no test"


def _moments(values: typing.Sequence[float]) -> tuple[int, float, float]:
    """The number, mean and variance of the finite values. The mean of equal values is exact, since distances to the first one are summed."""
    sample = np.array(values, np.longdouble)
    sample = sample[np.isfinite(sample)]
    if sample.size < 2:
        return sample.size, float(sample[0]) if sample.size else math.nan, 0
    mean = sample[0] + (sample - sample[0]).mean()
    return sample.size, float(mean), float(np.square(sample - mean).sum() / (sample.size - 1))


@functools.lru_cache(maxsize=4096)
def _t_upper(freedom: float, tail: float) -> float:
    """The value that Student's t exceeds with this probability, from the beta distribution: before scipy 1.12, `stdtrit` gives only nine correct digits."""
    return math.sqrt(freedom * (1 / float(special.betaincinv(freedom / 2, 0.5, 2 * tail)) - 1))


def interval(middle: float, half_width: float | None) -> tuple[float, float] | tuple[None, None]:
    return (None, None) if half_width is None else (middle - half_width, middle + half_width)


@dataclasses.dataclass
class Summary:
    n: int = 0  # number of finite values
    nan: int = 0
    infinite: int = 0
    mean: float = math.nan
    sd: float | None = None
    half_width: float | None = None  # of the confidence interval for the mean


def summarize(values: typing.Sequence[float], confidence: float) -> Summary:
    """Mean, standard deviation, and confidence interval for the mean (Student's t)."""
    n, mean, variance = _moments(values)
    summary = Summary(n, int(np.isnan(values).sum()), int(np.isinf(values).sum()), mean)
    if n > 1:
        summary.sd = math.sqrt(variance)
        summary.half_width = summary.sd / math.sqrt(n) * _t_upper(n - 1, (1 - confidence) / 2)
    return summary


@dataclasses.dataclass
class Difference:
    """The difference between the means of two samples, second minus first."""
    test: str = NO_TEST
    pairs: int = 0  # 0 without pairs
    difference: float = math.nan
    half_width: float | None = None  # of its interval
    p: float | None = None  # two-sided


def _wilcoxon_p(differences: np.ndarray) -> float:
    """Exact over all signs of the ranks for up to MOST_EXACT differences, otherwise normal with corrections for ties and continuity.

    Zero differences are dropped and equal ones get their mean rank. W. J. Conover, Practical Nonparametric Statistics (1999), 5.7."""
    moved = differences[differences != 0]
    ranks = (2 * pd.Series(abs(moved)).rank()).to_numpy(int)  # twice the mean rank of ties is an integer
    total, positive = int(ranks.sum()), int(ranks[moved > 0].sum())
    if moved.size > MOST_EXACT:
        away = max(0.0, abs(positive - total / 2) - 1) / math.sqrt((ranks.astype(float) ** 2).sum() / 4)
        return min(1.0, math.erfc(away / math.sqrt(2)))
    chance = np.zeros(total + 1)
    chance[0] = 1
    for rank in ranks:
        chance = (chance + np.roll(chance, int(rank))) / 2
    return min(1.0, 2 * float(chance[:min(positive, total - positive) + 1].sum()))


def _t_test(test: str, pairs: int, difference: float, error: float, freedom: float, confidence: float) -> Difference:
    """Without spread, p is 1 if there is no difference, and otherwise 0, its limit."""
    t = abs(difference) / error if error > 0 else math.inf
    return Difference(test, pairs, difference, error * _t_upper(freedom, (1 - confidence) / 2),
                      2 * float(special.stdtr(freedom, -t)) if difference else 1)


def compare_pairs(pairs: Pairs, test: str, confidence: float) -> Difference:
    """The paired t test or Wilcoxon's test, for at least two pairs; drops pairs with a non-finite value."""
    values = np.array(pairs, float).reshape(-1, 2)
    moved = np.diff(values[np.isfinite(values).all(axis=1)]).ravel()
    n, mean, variance = _moments(moved)  # type: ignore[arg-type]
    if n < 2:
        return Difference(NO_TEST, n, mean)
    if test == WILCOXON:
        return Difference(test, n, mean, None, _wilcoxon_p(moved))
    return _t_test(test, n, mean, math.sqrt(variance / n), n - 1, confidence)


def compare_samples(first: typing.Sequence[float], second: typing.Sequence[float], confidence: float) -> Difference:
    """Welch's t test, if each sample has two finite values. B. L. Welch, Biometrika 34 (1947)."""
    (n, mean, variance), (m, other, its_variance) = map(_moments, (first, second))
    if n < 2 or m < 2:
        return Difference(difference=other - mean)
    squares = variance / n, its_variance / m
    error = math.sqrt(sum(squares))
    share = squares[0] / sum(squares) if error > 0 else 0.5  # the squared shares do not underflow
    return _t_test(WELCH, 0, other - mean, error, 1 / (share ** 2 / (n - 1) + (1 - share) ** 2 / (m - 1)), confidence)


def holm(p: typing.Sequence[float]) -> list[float]:
    """Corrects each p-value for multiple comparisons. S. Holm, Scandinavian Journal of Statistics 6 (1979)."""
    ascending = pd.Series(p, dtype=float).sort_values(kind="stable")
    return (ascending * np.arange(len(p), 0, -1)).cummax().clip(upper=1).sort_index().tolist()


@dataclasses.dataclass
class Equivalence:
    """Two one-sided paired t tests of whether the mean difference is within a margin. The interval has a confidence of 1 - 2 alpha."""
    pairs: int
    verdict: str = "too few pairs"  # equivalent, undecided, different, not equivalent
    difference: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    deviation: float | None = None  # of the differences
    p: float | None = None  # the larger p-value of the two tests


def test_equivalence(pairs: Pairs, margin: float, alpha: float) -> Equivalence:
    """D. J. Schuirmann, J. Pharmacokinetics and Biopharmaceutics 15 (1987). If all differences are equal, p is 0 or 1."""
    sample = compare_pairs(pairs, PAIRED, 1 - 2 * alpha)
    result = Equivalence(sample.pairs, difference=sample.difference if sample.pairs else None)
    if sample.p is None or sample.half_width is None:
        return result
    freedom, size = sample.pairs - 1, abs(sample.difference)
    error = sample.half_width / _t_upper(freedom, alpha)
    room = margin - size  # to the nearer end of the margin
    result.ci_low, result.ci_high = interval(sample.difference, sample.half_width)
    result.deviation = error * math.sqrt(sample.pairs)
    result.p = float(special.stdtr(freedom, -room / error)) if error > 0 and math.isfinite(room) else float(room <= 0)
    result.verdict = ("equivalent" if result.p < alpha else "not equivalent" if size - sample.half_width >= margin
                      else "different" if sample.p < alpha else "undecided")
    return result


@dataclasses.dataclass(frozen=True)
class Design:
    """Parameters that determine the power of the equivalence test, except the number of pairs."""
    deviation: float  # of the differences of pairs, which are normally distributed
    margin: float
    alpha: float = 0.05
    difference: float = 0  # the true difference


def equivalence_power(pairs: int, design: Design) -> float:
    """The probability of p < alpha. Exact: the normal probability that the tests pass, integrated over the chi distribution of the deviation.

    K. F. Phillips, J. Pharmacokinetics and Biopharmaceutics 18 (1990).
    """
    from scipy import integrate  # importing it takes a third of a second, and tables do not need it
    if not design.deviation > 0:
        return float(abs(design.difference) < design.margin)
    freedom, unit = pairs - 1, design.deviation / math.sqrt(pairs)  # the unit is the true error of the mean
    margin, moved, t = design.margin / unit, design.difference / unit, _t_upper(freedom, design.alpha)
    constant = math.log(2) + freedom / 2 * math.log(freedom / 2) - math.lgamma(freedom / 2)
    wide = 10 / math.sqrt(2 * freedom)  # beyond ten deviations, chi is negligible in double precision
    low, high = max(0.0, 1 - wide), min(margin / t, 1 + wide)
    if high <= low:
        return 0

    def chance(share: float) -> float:  # of the sample's deviation to the true one
        density = math.exp(constant + (freedom - 1) * math.log(share) - freedom * share * share / 2)
        reach = margin - t * share
        return density * float(special.ndtr(reach - moved) - special.ndtr(-reach - moved))

    power = integrate.quad(chance, low, high, epsabs=1e-300, epsrel=1e-13, limit=500, full_output=1)[0]
    return min(max(float(power), 0.0), 1.0)


def pairs_for_power(power: float, design: Design, most: int = 1_000_000) -> int | None:
    """The minimum number of pairs with this power; None if a million are not enough."""
    if abs(design.difference) >= design.margin and power > design.alpha:
        return None  # beyond the margin, the power is at most alpha for any number of pairs
    few = enough = 1
    while enough == 1 or equivalence_power(enough, design) < power:
        if enough == most:
            return None
        few, enough = enough, min(2 * enough, most)
    return few + 1 + bisect.bisect_left(range(few + 1, enough), power, key=lambda pairs: equivalence_power(pairs, design))
