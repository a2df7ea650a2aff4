"""Lengths of texts: the Gaussian's bound, the empirical one, and which of them to believe."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from transect.payloads.encode import length_of
from transect.text.lengths import Lengths

SOME = st.lists(st.integers(0, 3000), min_size=1, max_size=200)


@given(lengths=SOME, share=st.sampled_from([0.01, 0.5, 0.9, 0.95, 1.0]))
def test_they_are_those_of_numpy(lengths, share):
    summary = Lengths(Counter(lengths))
    assert summary.mean() == pytest.approx(np.mean(lengths))
    assert summary.deviation() == pytest.approx(np.std(lengths))
    assert summary.quantile(share) == np.quantile(lengths, share, method="inverted_cdf")
    assert np.mean(np.array(lengths) <= summary.quantile(share)) >= share
    if share < 1:
        bound = stats.norm(np.mean(lengths), np.std(lengths)).ppf(share) if summary.deviation() else lengths[0]
        assert summary.gaussian(share) == pytest.approx(bound, abs=1e-9)


def test_the_distance_is_that_of_kolmogorov_and_smirnov():
    lengths = np.random.default_rng(4).poisson(30, 300)
    normality = Lengths.of(lengths).normality()
    fitted = stats.norm(lengths.mean(), lengths.std())
    assert normality["distance"] == pytest.approx(stats.kstest(lengths, fitted.cdf).statistic)
    assert normality["skewness"] == pytest.approx(stats.skew(lengths))
    assert normality["excess_kurtosis"] == pytest.approx(stats.kurtosis(lengths))
    # Table of Lilliefors (1967) for n = 30: 0.161.
    assert Lengths.of(lengths[:30]).normality()["critical_05"] == pytest.approx(0.161, abs=0.002)


@pytest.mark.parametrize("lengths", [[], [0], [7, 7, 7]])
def test_lengths_that_do_not_vary_have_no_distance(lengths):
    summary = Lengths(Counter(lengths))
    assert summary.normality() is None and summary.deviation() == 0
    assert summary.facts()["largest"] == max(lengths, default=0)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"rule": "fixed", "words": 7}, 7),
        ({"rule": "quantile", "share": 0.95}, 95),
        ({"rule": "quantile", "share": 1.0}, 100),
        # 50.5 + 1.6449 · 28.866 = 97.98
        ({"rule": "gaussian", "share": 0.95}, 98),
        ({"rule": "gaussian", "share": 1.0}, 512),
        ({"rule": "gaussian", "share": 0.01}, 1),
        ({"rule": "quantile", "share": 0.95, "most": 60}, 60),
    ],
)
def test_the_length_that_a_rule_gives(rule, expected):
    lengths = Lengths.of(np.arange(1, 101))
    assert length_of(lengths, {"words": None, "most": 512} | rule) == expected
