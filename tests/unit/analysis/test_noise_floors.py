"""What a noise floor rests on: the undisturbed runs of all cells, none of them lost to a neighbour's disturbed one."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factories import bare_record, train_cell
from transect.analysis.groups import Floors, group_records
from transect.analysis.statistics import NoiseFloor

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
    assert floor is not None and (floor.pairs, floor.groups) == (3 + 3, 4)
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
