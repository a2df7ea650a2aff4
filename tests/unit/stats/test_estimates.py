"""Ratios of two samples, and the noise that they are held against: one estimate for verdict, claim and evidence."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factories import bare_record, train_cell
from transect.analysis.groups import Floors, group_records
from transect.stats.comparisons import Comparison, Verdict, compare, compare_paired
from transect.stats.estimates import RATIO, RATIO_OF_PAIRS, Estimate, ratio_of
from transect.stats.noise import middle
from transect.stats.samples import NoiseFloor, Spread, noise_floor

positive = st.floats(0.01, 100.0)


def test_few_values_have_a_range_and_one_a_side_nothing() -> None:
    few, single = ratio_of([2.0, 3.0], [1.0] * 9), ratio_of([2.0], [4.0])
    assert few is not None and single is not None
    assert (few.low, few.high, few.spread) == (2.0, 3.0, Spread.RANGE)
    assert (single.value, single.low, single.high, single.spread) == (0.5, 0.5, 0.5, Spread.SINGLE)


@pytest.mark.parametrize("sides", [([], [1.0]), ([1.0], []), ([1.0], [0.0]), ([-1.0], [1.0])])
def test_what_has_no_ratio_is_none(sides: tuple[list[float], list[float]]) -> None:
    assert ratio_of(*sides) is None


SIDES = st.lists(positive, min_size=1, max_size=9)


def inside(found: Estimate) -> bool:
    return found.low * (1 - 1e-9) <= found.value <= found.high * (1 + 1e-9)


def inverted(found: Estimate, inverse: Estimate) -> bool:
    """Whether one is the other seen from the other side."""
    ends = zip((found.value, found.low, found.high), (inverse.value, inverse.high, inverse.low), strict=True)
    return all(math.isclose(x, 1 / y, rel_tol=1e-6) for x, y in ends)


@given(SIDES, SIDES)
def test_a_ratio_lies_inside_its_ends_and_is_inverted_from_the_other_side(a: list[float], b: list[float]) -> None:
    found, inverse = ratio_of(a, b), ratio_of(b, a)
    assert found is not None and inverse is not None
    assert inside(found) and inverted(found, inverse)
    assert inverted(found, found.inverse)
    assert math.isclose(found.value, middle(a) / middle(b), rel_tol=1e-9)


def compared(a: list[float], b: list[float], *, paired: bool, floor: NoiseFloor | None) -> Comparison | None:
    if paired:
        return compare_paired(dict(enumerate(a)), dict(enumerate(b)), floor=floor)
    return compare(a, b, floor=floor)


@given(SIDES, SIDES)
def test_what_a_ratio_comes_to_has_its_sign_and_lies_inside_its_ends(a: list[float], b: list[float]) -> None:
    found = ratio_of(a, b)
    assert found is not None
    more = found.beyond(3.0)
    assert more.low <= more.value + 1e-9 and more.value <= more.high + 1e-9
    pairs = ((more.low, found.low), (more.value, found.value), (more.high, found.high))
    assert all((x > 0) == (y > 1) for x, y in pairs)


@given(SIDES, SIDES, st.booleans(), st.booleans())
def test_verdict_claim_and_evidence_are_of_one_ratio(a: list[float], b: list[float], paired: bool, noisy: bool) -> None:
    quiet = [[1.0, 1.02, 0.99], [2.0, 2.1, 1.97], [3.0, 3.01, 2.95]]
    floor = noise_floor(quiet) if noisy else None
    forwards, backwards = (compared(*sides, paired=paired, floor=floor) for sides in ((a, b), (b, a)))
    assert forwards is not None and backwards is not None
    assert forwards.ratio is not None and backwards.ratio is not None
    assert inside(forwards.ratio) and inverted(forwards.ratio, backwards.ratio)
    if forwards.decision is not None:
        name = RATIO_OF_PAIRS if paired else RATIO
        assert (value := forwards.ratio.value) == forwards.decision.ratio and f"{name} {value:.3g}" in forwards.reason
    # Less is better: who is better is so by this very ratio.
    expected = {Verdict.BETTER: forwards.ratio.value < 1, Verdict.WORSE: forwards.ratio.value > 1}
    assert expected.get(forwards.verdict, True)
    seen = {Verdict.BETTER: Verdict.WORSE, Verdict.WORSE: Verdict.BETTER}
    assert backwards.verdict is seen.get(forwards.verdict, Verdict.SAME)


@given(st.lists(SIDES.filter(lambda side: len(side) > 2), min_size=2, max_size=5), st.booleans())
def test_who_is_ranked_first_is_never_the_worse_of_two(sides: list[list[float]], noisy: bool) -> None:
    floor = noise_floor(sides) if noisy else None
    first, *others = sorted(sides, key=middle)
    for rival in others:
        comparison = compare(first, rival, floor=floor)
        assert comparison is not None and comparison.verdict is not Verdict.WORSE


RATE = "samples_per_second"
FRAMEWORKS = ("numpy", "torch", "keras", "jax")
# Of one run: what it gave, and whether somebody disturbed it.
Run = tuple[float, bool]

CELLS = st.lists(
    st.lists(st.tuples(st.floats(1.0, 100.0), st.booleans()), max_size=5), min_size=1, max_size=len(FRAMEWORKS)
)


def floor_of(cells: list[list[Run]], *, paired: bool = False) -> NoiseFloor | None:
    groups = group_records(
        bare_record(train_cell(name, n), {RATE: rate}, details={"disturbed": disturbed})
        for name, runs in zip(FRAMEWORKS, cells, strict=False)
        for n, (rate, disturbed) in enumerate(runs)
    )
    if not groups:
        return None
    floors, kind = Floors(groups), groups[0].kind
    if paired:
        return floors.paired("train", "iris-mlp", RATE, kind)
    return floors.get("train", "iris-mlp", RATE, kind)


def quiet_pairs(cells: list[list[Run]]) -> int:
    return sum(math.comb(sum(not disturbed for _, disturbed in runs), 2) for runs in cells)


def test_one_disturbed_run_costs_its_cell_nothing_else() -> None:
    quiet = [(100.0, False), (101.0, False), (99.0, False)]
    loud = [[(100.0 * n, False), (104.0 * n, False), (500.0 * n, True)] for n in (1, 2, 3)]
    floor = floor_of([quiet, *loud])
    assert floor is not None and floor.pairs == 3 + 3
    assert floor.relative == pytest.approx(0.04)
    # Where no cell has two quiet runs, what others did is a part of all that is known.
    floor = floor_of([[(100.0, True), (150.0, True)], [(100.0, False)]])
    assert floor is not None and floor.relative == pytest.approx(0.5)


@given(CELLS, st.integers(0, len(FRAMEWORKS) - 1), st.floats(1.0, 100.0), st.booleans())
def test_another_undisturbed_run_never_lowers_the_count(
    cells: list[list[Run]], at: int, rate: float, paired: bool
) -> None:
    if not quiet_pairs(cells):
        return
    before = floor_of(cells, paired=paired)
    at %= len(cells)
    more = [[*runs, (rate, False)] if n == at else runs for n, runs in enumerate(cells)]
    after = floor_of(more, paired=paired)
    assert before is not None and after is not None
    assert before.pairs == quiet_pairs(cells) <= after.pairs == quiet_pairs(more)
    # A disturbed one changes nothing.
    loud = [[*runs, (rate, True)] if n == at else runs for n, runs in enumerate(cells)]
    assert floor_of(loud, paired=paired) == before


@given(CELLS)
def test_a_floor_is_what_undisturbed_runs_of_one_cell_differ_by(cells: list[list[Run]]) -> None:
    if not quiet_pairs(cells):
        return
    floor = floor_of(cells)
    widest = max(
        abs(math.log(x / y))
        for runs in cells
        for x, y in itertools.combinations([rate for rate, disturbed in runs if not disturbed], 2)
    )
    assert floor is not None and floor.relative <= math.expm1(widest) * (1 + 1e-9) + 1e-12
