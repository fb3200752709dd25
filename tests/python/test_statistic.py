"""Compares the statistics of studies with scipy's."""
import math

import numpy as np
import pytest
from concertina import statistic
from scipy import integrate, stats

SEEDS = range(60)


def pairs_of(seed):
    dice = np.random.default_rng(seed)
    n, scale = int(dice.integers(2, 40)), 10.0 ** dice.integers(-6, 9)
    first = scale * (1 + dice.choice([1e-6, 0.1, 3]) * dice.normal(size=n))
    return dice, first, first + scale * dice.choice([0, 1e-3, 1]) * dice.normal(0.3, 1, size=n)


@pytest.mark.parametrize("seed", SEEDS)
def test_means_and_tests_are_those_of_scipy(seed):
    dice, first, second = pairs_of(seed)
    confidence = dice.uniform(0.5, 0.999)
    summary = statistic.summarize([*first, math.nan, math.inf], confidence)
    assert (summary.n, summary.nan, summary.infinite) == (len(first), 1, 1)
    assert [summary.mean, summary.sd] == pytest.approx([first.mean(), first.std(ddof=1)], rel=1e-9)
    ends = stats.t.interval(confidence, len(first) - 1, loc=first.mean(), scale=stats.sem(first))
    assert statistic.interval(summary.mean, summary.half_width) == pytest.approx(ends, rel=1e-7, abs=1e-7 * abs(first).max())
    welch, theirs = statistic.compare_samples(first, second, confidence), stats.ttest_ind(second, first, equal_var=False)
    assert welch.p == pytest.approx(theirs.pvalue, rel=1e-7, abs=1e-12)
    if (second != first).any():
        paired = statistic.compare_pairs(list(zip(first, second)), statistic.PAIRED, confidence)
        assert paired.p == pytest.approx(stats.ttest_rel(second, first).pvalue, rel=1e-7)
        signed = statistic.compare_pairs(list(zip(first, second)), statistic.WILCOXON, confidence)
        assert signed.p == pytest.approx(stats.wilcoxon(second - first, method="exact").pvalue, rel=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_equivalence_and_holm_are_those_of_their_definitions(seed):
    dice, first, second = pairs_of(seed)
    p = dice.uniform(size=9) ** 3
    assert statistic.holm(p) == pytest.approx([min(1, max((len(p) - (p < q).sum()) * q for q in p if q <= one)) for one in p], rel=1e-12)
    margin, alpha = abs(second - first).max() * dice.uniform(0.1, 2) + 1e-9, dice.uniform(0.001, 0.4)
    result = statistic.test_equivalence(list(zip(first, second)), margin, alpha)
    if (second != first).any():
        moved = second - first
        theirs = max(stats.ttest_1samp(moved, -margin, alternative="greater").pvalue, stats.ttest_1samp(moved, margin, alternative="less").pvalue)
        assert result.p == pytest.approx(theirs, rel=1e-6, abs=1e-12)
    assert (result.verdict == "equivalent") == (-margin < result.ci_low and result.ci_high < margin)


def integrated_power(pairs, deviation, margin, alpha, difference):
    freedom, error = pairs - 1, deviation / np.sqrt(pairs)
    t, root = stats.t.ppf(1 - alpha, freedom), np.sqrt(freedom)

    def chance(share):
        low, high = -margin + t * share * error, margin - t * share * error
        return root * stats.chi.pdf(share * root, freedom) * (
            stats.norm.cdf((high - difference) / error) - stats.norm.cdf((low - difference) / error))

    end = min(margin / (t * error), 12)
    return integrate.quad(chance, 0, end, points=[at for at in (0.5, 0.8, 1, 1.2, 1.5) if at < end], epsabs=1e-13, epsrel=1e-12, limit=500)[0]


@pytest.mark.parametrize("design", [(2, 0.004, 0.005, 0.05, 0.0), (3, 0.004, 0.005, 0.05, 0.0), (5, 0.004, 0.005, 0.05, 0.002),
                                    (8, 0.004, 0.005, 0.025, -0.001), (40, 1.0, 0.5, 0.05, 0.0), (200, 1.0, 0.2, 0.1, 0.05)])
def test_power_is_the_integral_over_chi(design):
    pairs, *of = design
    assert statistic.equivalence_power(pairs, statistic.Design(*of)) == pytest.approx(integrated_power(*design), rel=1e-7)
    wanted = 0.999 * min(integrated_power(*design), 0.9)
    needed = statistic.pairs_for_power(wanted, statistic.Design(*of))
    assert needed <= pairs and statistic.equivalence_power(needed, statistic.Design(*of)) >= wanted


def test_values_without_spread_have_no_formula():
    same = [(1.1, 1.1 + 1e-3)] * 3
    assert statistic.compare_pairs([(0.1, 0.1)] * 3, statistic.PAIRED, 0.95).p == 1
    assert statistic.compare_pairs([(1.0, 2.0)] * 3, statistic.PAIRED, 0.95).p == 0
    assert statistic.summarize([0.1] * 7, 0.95) == statistic.Summary(7, 0, 0, 0.1, 0.0, 0)
    assert statistic.test_equivalence(same, 0.01, 0.05).verdict == "equivalent"
    assert statistic.test_equivalence(same[:1], 0.01, 0.05).verdict == "too few pairs"
    assert statistic.summarize([math.nan], 0.95).n == 0 and statistic.compare_samples([1], [2, 3], 0.95).p is None
