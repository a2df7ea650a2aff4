"""Properties of verdicts on claims: what scaling, turning round, narrowing and more comparisons do."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import permutations

from hypothesis import assume, given
from hypothesis import strategies as st

from transect.analysis.claim_verdicts import Point, Verdict, gap_of, judged, ordered, together
from transect.domain.claims import Rule
from transect.stats.estimates import Estimate
from transect.stats.samples import Spread

NUMBERS = st.floats(0.01, 100)
FACTORS = st.floats(1, 3)
TESTS = st.sampled_from(["within", "at least"])
VERDICTS = st.sampled_from([Verdict.HOLDS, Verdict.DIRECTION, Verdict.FAILS, Verdict.OPEN])


def interval(value: float, reach: float) -> Estimate:
    return Estimate(value=value, low=value / reach, high=value * reach, spread=Spread.INTERVAL)


def near(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-9)


@given(TESTS, FACTORS, NUMBERS, FACTORS, NUMBERS, st.floats(1.001, 50))
def test_scaling_both_alike_leaves_what_holds(
    test: str, factor: float, value: float, reach: float, published: float, times: float
) -> None:
    rule, here = Rule(test=test, factor=factor), interval(value, reach)
    edges = (published / factor, published * factor)
    assume(not any(near(end, edge) for end in (here.low, here.high) for edge in edges))
    before, after = judged(rule, here, published), judged(rule, interval(value * times, reach), published * times)
    # Which direction it has hangs on 1, which is no matter of scale.
    apart = (Verdict.DIRECTION, Verdict.FAILS)
    assert before is after or (before in apart and after in apart)


@given(TESTS, FACTORS, NUMBERS, FACTORS, NUMBERS, st.floats(0, 1))
def test_a_narrower_interval_around_the_same_value_never_undoes_what_was_decided(
    test: str, factor: float, value: float, reach: float, published: float, share: float
) -> None:
    rule = Rule(test=test, factor=factor)
    wide, narrow = (judged(rule, interval(value, r), published) for r in (reach, reach**share))
    if wide is Verdict.HOLDS:
        assert narrow is Verdict.HOLDS
    if wide is Verdict.DIRECTION:
        assert narrow is Verdict.DIRECTION
    if wide is Verdict.FAILS:
        # What is known better may turn out to have the direction.
        assert narrow in (Verdict.FAILS, Verdict.DIRECTION)


@given(FACTORS, NUMBERS, FACTORS, NUMBERS)
def test_within_is_the_same_from_the_other_side(factor: float, value: float, reach: float, published: float) -> None:
    rule, here = Rule(test="within", factor=factor), interval(value, reach)
    edges = (published / factor, published * factor, 1.0)
    assume(not any(near(end, edge) for end in (here.low, here.high) for edge in edges))
    assume(not near(published / factor, 1) and not near(published * factor, 1))
    assert judged(rule, here, published) is judged(rule, here.inverse, 1 / published)


@given(FACTORS, NUMBERS, FACTORS, NUMBERS)
def test_what_holds_within_holds_at_least_too(factor: float, value: float, reach: float, published: float) -> None:
    here = interval(value, reach)
    if judged(Rule(test="within", factor=factor), here, published) is Verdict.HOLDS:
        assert judged(Rule(test="at least", factor=factor), here, published) is Verdict.HOLDS


@given(st.lists(VERDICTS, min_size=1, max_size=4), TESTS)
def test_of_several_verdicts_their_order_does_not_matter(verdicts: list[Verdict], test: str) -> None:
    rule = Rule(test=test, factor=1)
    assert len({together(rule, each, whole=True) for each in permutations(verdicts)}) == 1


@given(st.lists(VERDICTS, min_size=1, max_size=5))
def test_within_needs_all_and_at_least_needs_one(verdicts: list[Verdict]) -> None:
    within, least = Rule(test="within", factor=1), Rule(test="at least", factor=1)
    every, some = set(verdicts) == {Verdict.HOLDS}, Verdict.HOLDS in verdicts
    assert (together(within, verdicts, whole=True) is Verdict.HOLDS) is every
    assert (together(least, verdicts, whole=True) is Verdict.HOLDS) is some
    # Of what is lacking nobody knows that it holds.
    assert together(within, verdicts, whole=False) is not Verdict.HOLDS
    # That none reaches it is not said while one may.
    if Verdict.OPEN in verdicts:
        assert together(least, verdicts, whole=True) in (Verdict.HOLDS, Verdict.OPEN)


@given(st.lists(st.sampled_from([True, False, None]), min_size=1, max_size=6), st.booleans())
def test_an_order_holds_only_where_every_pair_is_shown(rights: list[bool | None], whole: bool) -> None:
    verdict = ordered(rights, whole=whole)
    assert (verdict is Verdict.HOLDS) is (whole and all(rights))
    if False not in rights:
        assert verdict in (Verdict.HOLDS, Verdict.OPEN)
    else:
        assert verdict in (Verdict.DIRECTION, Verdict.FAILS)
    assert verdict is ordered(rights[::-1], whole=whole)


@given(st.lists(FACTORS, min_size=1, max_size=4), NUMBERS)
def test_the_gap_is_that_of_the_widest_interval(reaches: list[float], value: float) -> None:
    points = [Point(label="", published=1, here=interval(value, reach)) for reach in reaches]
    # Seen four times in five: half the interval, and as much more as a chance of 80 % takes.
    assert math.isclose(gap_of(points) or 0.0, max(reaches) ** (1 + 0.8416 / 1.96) - 1, rel_tol=1e-9, abs_tol=1e-9)


def test_without_an_interval_there_is_no_gap() -> None:
    one = Point(label="", published=1, here=replace(interval(1, 1.1), spread=Spread.SINGLE))
    endless = Point(label="", published=1, here=replace(interval(1, 1.1), high=math.inf))
    assert gap_of([]) is gap_of([Point(label="", published=1)]) is gap_of([one]) is gap_of([endless]) is None
