"""What rows and cells are about, as the page's filter and its view of any two cells find it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factories import make_record, train_cell
from transect.analysis.groups import Group, group_records
from transect.domain.cell import Cell
from transect.domain.record import Cause, Record, Status
from transect.report.engine.facets import Facets, facets_of
from transect.report.engine.text import (
    Scale,
    Writer,
    factor,
    in_unit,
    number,
    numbers_behind,
    percent,
    plain,
    tenths,
    with_ends,
)
from transect.stats.estimates import Estimate
from transect.stats.samples import Spread


def allreduce(framework: str = "torch", repeat: int = 0, ranks: int = 2) -> Cell:
    return train_cell(framework, repeat, strategy="mpi-allreduce", ranks_per_node=ranks)


def ended(status: Status = Status.OK, **axes: Any) -> Record:
    cause = None if status is Status.OK else Cause.CRASH
    return make_record(allreduce(**axes), status=status, cause=cause)


def one_group(*records: Record) -> Group:
    [made] = group_records(records)
    return made


def test_a_group_is_about_its_cell_and_all_that_became_of_its_repeats() -> None:
    found = facets_of(one_group(ended(repeat=0), ended(Status.FAILED, repeat=1)))
    assert found == Facets(
        workload=("iris-mlp",),
        framework=("torch",),
        strategy=("mpi-allreduce",),
        ranks=("2",),
        status=("failed", "ok"),
        cell=(allreduce().id,),
    )


@dataclass
class Row:
    group: Group
    base: Group | None = None


class Pair(NamedTuple):
    a: Group
    b: Group
    status: str = "suspicious"


@dataclass
class Spoken:
    framework: str
    ranks: int
    runtime: Any = None


@pytest.mark.parametrize(
    ("item", "frameworks"),
    [
        (Row(one_group(ended()), base=one_group(ended(framework="go"))), ("torch",)),
        (Pair(one_group(ended()), one_group(ended(framework="go"))), ("torch", "go")),
        ([one_group(ended()), one_group(ended(framework="go"))], ("torch", "go")),
        (("a name", one_group(ended())), ("torch",)),
        (Spoken("numpy", 4), ("numpy",)),
        (Facets(framework=("rust",)), ("rust",)),
        ("torch", ()),
        (None, ()),
        (3.0, ()),
        ({"a": 1}, ()),
        (object(), ()),
    ],
)
def test_a_row_is_about_what_it_says_it_is(item: Any, frameworks: tuple[str, ...]) -> None:
    assert facets_of(item).framework == frameworks


# ---- the numbers behind the written ones ----
MS = Scale(factor=1e-3, unit="ms")


@pytest.mark.parametrize(
    ("write", "values", "numbers"),
    [
        (MS, [0.0123456, 0.00234567, None], ["", 12.3456, 2.34567, None]),
        (percent, [0.51234, 0.0512], ["%", 51.234, 5.12]),
        (tenths, [-0.125], ["%", -12.5]),
        (in_unit("B"), [3 * 2**20, 20.5 * 2**20], ["B", 3145728, 21495800.0]),
        (in_unit("s"), [0.0123456, 2.5], ["s", 0.0123456, 2.5]),
        (lambda value: f"{value:.1f} of ours", [2.25, "words"], [None, 2.25, None]),
        (number, [1234567.0, math.inf], ["", 1234570.0, math.inf]),
        (plain, [1, 20, 1234567], ["", 1, 20, 1234567]),
        (factor, [1.0, 0.996], ["", 1.0, 0.996]),
        (plain, [None, "words", True, float("nan")], None),
        (with_ends, [Estimate(value=2.0, low=1.0, high=3.0, spread=Spread.INTERVAL)], [None, 2.0]),
        (plain, [], None),
    ],
)
def test_a_column_keeps_its_numbers_in_the_unit_in_which_they_are_written(
    write: Writer, values: list[Any], numbers: list[Any] | None
) -> None:
    assert numbers_behind(write, values) == numbers


@given(st.lists(st.floats(1e-9, 1e12), min_size=1), st.sampled_from([number, percent, plain, MS, in_unit("s")]))
def test_kept_numbers_round_to_the_written_ones(values: list[float], write: Writer) -> None:
    made = numbers_behind(write, values)
    assert made is not None
    by = {percent: 100.0, MS: 1000.0}.get(write, 1.0)
    assert made[1:] == pytest.approx([value * by for value in values], rel=1e-5)
