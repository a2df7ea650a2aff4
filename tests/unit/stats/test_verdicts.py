"""Verdicts: what they say, and that few are wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from transect.stats.comparisons import Confidence, Verdict, compare
from transect.stats.noise import paired_noise, pooled_noise
from transect.stats.samples import noise_floor
from transect.stats.verdicts import (
    Answer,
    Decision,
    chance_of_shift,
    corrected,
    decide,
    decide_logs,
    decide_paired,
    half_width,
    is_confirmed,
    level_of_all,
)

QUIET = [[1.0, 1.002, 0.999], [2.0, 2.003, 1.999], [3.0, 2.995, 3.001], [4.0, 4.01, 4.002]]


def test_three_quiet_runs_tell_the_same_from_different() -> None:
    noise = pooled_noise(QUIET)
    assert noise is not None and noise.freedom > 0
    same = decide([1.0, 1.001, 1.003], [1.01, 1.012, 1.009], noise)
    assert same is not None and same.answer is Answer.SAME and same.low > 0.95
    apart = decide([1.0, 1.001, 1.003], [1.1, 1.102, 1.099], noise)
    assert apart is not None and apart.answer is Answer.DIFFERENT and apart.high < 1
    stricter = decide([1.0, 1.001, 1.003], [1.01, 1.012, 1.009], noise, margin=0.005)
    assert stricter is not None and stricter.answer is Answer.DIFFERENT


def test_loud_runs_are_open_and_one_outlier_of_five_decides_nothing() -> None:
    loud = [[1.0, 1.4, 1.1], [1.2, 1.0, 1.5], [1.1, 1.6, 1.2]]
    decision = decide(loud[0], loud[1], pooled_noise(loud))
    assert decision is not None and decision.answer is Answer.OPEN and decision.low < 1 < decision.high
    five = [1.0, 1.001, 1.002, 0.999, 3.0]
    decision = decide(five, [1.0, 1.002, 0.999, 1.001, 1.0], pooled_noise([*QUIET, five]))
    assert decision is not None and decision.answer is Answer.SAME


def test_what_a_seed_does_to_all_drops_out() -> None:
    seeds = [1.0, 2.0, 0.5, 3.0]
    groups = [{n: t * s * (1 + 0.001 * (n % 2)) for n, s in enumerate(seeds)} for t in (1, 1, 2)]
    noise = paired_noise(groups)
    same, apart = (decide_paired(groups[0], group, noise) for group in groups[1:])
    assert same is not None and same.answer is Answer.SAME and same.pairs == 4
    assert apart is not None and apart.answer is Answer.DIFFERENT
    unpaired = [list(group.values()) for group in groups]
    decision = decide(unpaired[0], unpaired[2], pooled_noise(unpaired))
    assert decision is not None and decision.answer is Answer.OPEN


def test_without_positive_values_there_is_no_verdict() -> None:
    assert decide([0.0], [1.0], None) is None
    assert decide_paired({0: 1.0}, {1: 1.0}, None) is None
    assert pooled_noise([[1.0], [-1.0, 0.0]]) is None
    decision = decide([1.0], [2.0], None)
    assert decision is not None and decision.answer is Answer.OPEN and decision.high == math.inf
    assert half_width([1.0], None) == math.inf and half_width([], None) == math.inf
    far = compare([1e-320] * 3, [1e300] * 3, floor=noise_floor(QUIET))
    assert far is not None and far.verdict is Verdict.BETTER


def test_cells_unlike_in_noise_keep_their_own() -> None:
    alike = pooled_noise([[1.0, 1.02, 0.98]] * 6)
    unlike = pooled_noise([[1.0, 1 + s, 1 - s] for s in (1e-4, 1e-3, 1e-2, 0.1, 0.5)])
    assert alike is not None and unlike is not None and unlike.freedom < 1 < alike.freedom


def decided(p: float, p_other: float = 1.0) -> Decision:
    return Decision(answer=Answer.DIFFERENT, ratio=2.0, low=1.5, high=3.0, p=p, p_other=p_other)


_SHARES = st.floats(min_value=0, max_value=1)


@given(st.lists(st.tuples(_SHARES, _SHARES), max_size=6))
def test_a_correction_makes_nothing_surer_and_keeps_the_order(values: list[tuple[float, float]]) -> None:
    decisions = [decided(*sorted(pair)) for pair in values]
    adjusted = corrected(decisions, [1.0] * len(values))
    assert all(d.p <= q + 1e-14 or q == 1 for d, q in zip(decisions, adjusted, strict=True))
    assert len(values) != 1 or adjusted[0] == pytest.approx(decisions[0].p)
    ordered = [q for _, q in sorted(zip([d.p for d in decisions], adjusted, strict=True))]
    assert ordered == sorted(ordered)
    # Never above Bonferroni's over the comparisons, of whose two hypotheses one is true at most.
    assert all(
        q <= min(1.0, d.p * len(values)) + 1e-14 or any(d.p >= e.p for e in decisions if e is not d)
        for d, q in zip(decisions, adjusted, strict=True)
    )


def test_a_comparison_counts_until_both_of_its_hypotheses_are_rejected() -> None:
    # Its difference alone: it may still be apart by the margin.
    assert corrected([decided(0.001), decided(0.02)], [1, 1]) == [0.002, 0.04]
    # Apart, and by less than the margin: nothing of it is left that could be true.
    assert corrected([decided(0.001, 0.002), decided(0.02)], [1, 1]) == [0.002, 0.02]
    # One that was chosen counts for all that it was chosen from.
    assert corrected([decided(0.01), decided(0.02)], [3, 1]) == [0.04, 0.08]


def test_a_shift_over_seeds_is_tested_as_by_hand() -> None:
    few, many = ([0.02, 0.03, 0.01, 0.02], [0.02, 0.03, 0.01, 0.02, -0.5, 0.025, 0.015, 0.02, 0.03, 0.9])
    chance, by_hand = chance_of_shift(few), scipy.stats.ttest_1samp(few, 0.0)
    assert chance is not None and chance.p == pytest.approx(by_hand.pvalue) and chance.p_other == 1.0
    # Of ten the two at either end are trimmed, by Yuen's formula.
    winsorised = np.clip(many, *np.sort(many)[[2, -3]])
    t = scipy.stats.trim_mean(many, 0.2) / math.sqrt(9 * winsorised.var(ddof=1) / (6 * 5))
    chance = chance_of_shift(many)
    assert chance is not None and chance.p == pytest.approx(2 * scipy.stats.t.sf(t, 5))
    # Without a spread only their signs count; of one seed nothing does.
    equal = chance_of_shift([0.1] * 6)
    assert equal is not None and equal.p == 2 / 2**6
    one_against = chance_of_shift([0.1] * 5 + [-0.1])
    assert one_against is not None and one_against.p == 2 * (1 + 6) / 2**6
    nothing = chance_of_shift([0.0] * 6)
    assert nothing is not None and nothing.p == 1.0
    assert chance_of_shift([0.1]) is None


def test_few_runs_in_a_loud_noise_are_not_confirmed() -> None:
    quiet = compare([1.0, 1.01, 1.02], [2.0, 2.01, 2.02], floor=noise_floor(QUIET))
    assert quiet is not None and quiet.confidence is Confidence.CONFIRMED
    assert quiet.verdict is Verdict.BETTER and quiet.reason
    decision = quiet.decision
    assert decision is not None
    assert not is_confirmed(decision, 2, 0.01)
    assert not is_confirmed(decision, 3, 1.2) and is_confirmed(decision, 5, 1.2)
    assert not is_confirmed(decision, 5, 0.01, often=0.95), "two fifths of all pairs are as far apart"
    assert not is_confirmed(decision, 10, 1.2, upper=0.6), "most pairs of repeats are far apart"
    assert is_confirmed(decision, 10, 0.9, upper=0.6), "but none as far as these two"
    same = compare(QUIET[0], QUIET[0], floor=noise_floor(QUIET))
    assert same is not None and same.decision is not None and same.equal
    assert is_confirmed(same.decision, 10, 0.9) and not is_confirmed(same.decision, 10, 0.9, upper=0.6)


@given(st.lists(st.floats(-0.5, 0.5), min_size=2, max_size=8), st.sampled_from([0.05, 0.1]), st.floats(0.0001, 0.2))
def test_the_interval_says_what_the_verdict_says(logs: list[float], margin: float, level: float) -> None:
    decision = decide_logs(logs, None, margin=margin)
    assert decision is not None
    for verdict in (decision, decision.at(level, margin)):
        within = -math.log1p(margin) <= math.log(verdict.low) and math.log(verdict.high) <= math.log1p(margin)
        apart = not verdict.low <= 1 <= verdict.high
        assert verdict.answer is (Answer.SAME if within else Answer.DIFFERENT if apart else Answer.OPEN)
    assert decision.at(decision.level, margin).answer is decision.answer


def test_of_many_comparisons_as_many_may_be_wrong_as_one_in_twenty_decided() -> None:
    def of(*p: float) -> list[Decision]:
        return [decided(value) for value in p]

    # All are decided: each at its own level. One of twenty: as Bonferroni has it. None: so too.
    assert level_of_all(of(0.01, 0.02, 0.04)) == pytest.approx(0.05)
    assert level_of_all(of(0.001, *[0.5] * 19)) == pytest.approx(0.05 / 20)
    assert level_of_all(of(*[0.5] * 20)) == pytest.approx(0.05 / 20)
    assert level_of_all([]) == pytest.approx(0.05)
