"""What rows are about, as the page's filter finds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factories import make_record, train_cell
from transect.analysis.groups import Group, group_records
from transect.domain.cell import Cell
from transect.domain.record import Cause, Record, Status
from transect.report.blocks import digits
from transect.report.facets import Facets, facets_of
from transect.report.text import (
    Quantities,
    Scale,
    Writer,
    factor,
    in_unit,
    number,
    numbers_behind,
    one_decimal,
    percent,
    plain,
    tenths,
)


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


class Own:
    facets = Facets(runtime=("rust",))


@pytest.mark.parametrize(
    ("item", "frameworks"),
    [
        (Row(one_group(ended()), base=one_group(ended(framework="go"))), ("torch",)),
        (Pair(one_group(ended()), one_group(ended(framework="go"))), ("torch", "go")),
        ([one_group(ended()), one_group(ended(framework="go"))], ("torch", "go")),
        (("a name", one_group(ended())), ("torch",)),
        (Spoken("numpy", 4), ("numpy",)),
        (Own(), ()),
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
        (MS, [0.0123456, 0.00234567, None], ("12.3456,2.34567,", "exact")),
        (percent, [0.51234, 0.0512], ("51.234,5.12", "exact")),
        (in_unit("B"), [3.14159 * 2**20, 20.2 * 2**20], ("3.14159,20.2", "exact")),
        (in_unit("s"), [0.0123456, 2.5], ("0.0123456,2.5", "order")),
        (in_unit("s"), [0.0, 0.0123456], ("0,12.3456", "exact")),
        (lambda value: f"{value:.1f} of ours", [2.25, "words"], ("2.25,", "order")),
        (number, [1234567.0], None),
        (number, [1234567.0, 2.345678], ("1.23457e+06,2.34568", "exact")),
        (one_decimal, [0.12345], ("12.345", "exact")),
        (number, [1, 20, 12345], None),
        (tenths, [-0.125], None),
        (factor, [1.0, 0.996], None),
        (plain, [None, "words", True, float("nan")], None),
        (plain, [], None),
    ],
)
def test_numbers_stand_for_what_is_written_where_all_are_in_one_unit(
    write: Writer, values: list[Any], numbers: tuple[str, str] | None
) -> None:
    column = digits("x", lambda value: value, write)
    assert numbers_behind(column.write, values, [column.written(value) for value in values]) == numbers


@given(st.lists(st.floats(1e-9, 1e12), min_size=1), st.sampled_from([number, percent, plain, MS, in_unit("s")]))
def test_kept_numbers_round_to_the_written_ones(values: list[float], write: Writer) -> None:
    column = digits("x", lambda value: value, write)
    made = numbers_behind(write, values, [column.written(value) for value in values])
    if made is None or made[1] == "order":
        return
    for value, kept in zip(values, made[0].split(","), strict=True):
        unit = write.scale(value).factor if isinstance(write, Quantities) else 1.0
        factors = {percent: 100.0, MS: 1000.0}
        assert float(kept) == pytest.approx(value / unit * factors.get(write, 1.0), rel=1e-5)
