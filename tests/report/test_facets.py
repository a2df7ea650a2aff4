"""What rows and cells are about, as the page's filter and its view of any two cells find it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from make_records import HOSTILE

from factories import make_record, provenance, train_cell, write_records
from transect.analysis.groups import Group, group_records
from transect.domain.cell import Cell
from transect.domain.record import Cause, Record, Status
from transect.report.engine.blocks import digits
from transect.report.engine.build import build_report
from transect.report.engine.cell_facts import packed, unpacked
from transect.report.engine.facets import Facets, facets_of
from transect.report.engine.text import (
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


def rate_record(batch: int, repeat: int = 0, **fields: Any) -> Record:
    cell = train_cell(batch=batch, repeat=repeat)
    return make_record(cell, {"samples_per_second": 1.0}, **fields)


def facts_of(content: dict[str, Any], cell: int) -> dict[tuple[str, str], str]:
    """As the page's script puts them together."""
    at = lambda facts: facts["at"][cell] if "at" in facts else 0  # noqa: E731
    found: dict[tuple[str, str], str] = {}
    for column in content["columns"]:
        if column["values"][at(column)] is not None:
            found[column["group"], column["fact"]] = column["values"][at(column)]
    for facts in content["sets"]:
        for group, fact, value in facts["facts"][at(facts)]:
            found.setdefault((group, fact), value)
    return found


def differing(*records: Record) -> dict[tuple[str, str], tuple[str | None, str | None]]:
    content = json.loads(json.dumps(unpacked(packed(records))))
    first, second = facts_of(content, 0), facts_of(content, 1)
    return {key: (first.get(key), second.get(key)) for key in {*first, *second} if first.get(key) != second.get(key)}


def test_machine_versions_and_settings_are_told_apart() -> None:
    changed = provenance(
        cpu_model="Other CPU", libraries={"numpy": "2.2.0"}, variables={"OMP_NUM_THREADS": "2"}, memory_bytes=32 * 2**30
    )
    found = differing(
        rate_record(1, parameters={"learning_rate": 0.1, "dataset_options": {"noise": 1}}),
        rate_record(
            2,
            parameters={"learning_rate": 0.2, "dataset_options": {"noise": 2}},
            provenance=changed,
            details={"session_options": {"threads": 4}, "disturbed": True},
        ),
    )
    assert found == {
        ("Machine", "CPU model"): ("Synthetic CPU 2.0 GHz", "Other CPU"),
        ("Machine", "memory"): ("16 GiB", "32 GiB"),
        ("Versions", "numpy"): ("2.1.0", "2.2.0"),
        ("Settings", "OMP_NUM_THREADS"): ("1", "2"),
        ("Settings", "batch"): ("1", "2"),
        ("Settings", "learning_rate"): ("0.1", "0.2"),
        ("Settings", "dataset_options.noise"): ("1", "2"),
        ("Settings", "session_options.threads"): (None, "4"),
        ("Result", "disturbed"): (None, "yes"),
    }


@pytest.mark.browser
def test_a_browser_shows_in_what_two_cells_differ(browser: Any, tmp_path: Path) -> None:
    hostile = provenance(cpu_model=HOSTILE, libraries={"<img src=x onerror=alert(1)>": "1"})
    for record in (rate_record(1), rate_record(2), rate_record(3, provenance=hostile)):
        write_records(tmp_path / "s", record)
    build_report(tmp_path / "s", tmp_path / "report.html", title="t", questions=[])
    page = browser.new_page(viewport={"width": 320, "height": 700})
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda asked: wrong.append(asked.url) if asked.url[:4] == "http" else None)
    page.goto((tmp_path / "report.html").as_uri())
    page.evaluate(
        "() => { for (let e = document.querySelector('#differ'); e; e = e.parentElement)"
        " if (e.tagName === 'DETAILS') e.open = true; }"
    )
    status = page.locator("#differ-said")
    page.wait_for_function("() => document.querySelector('#differ-said').textContent !== ''")
    page.get_by_label("One cell", exact=True).select_option(index=0)
    page.get_by_label("The other cell", exact=True).select_option(index=1)
    assert "1 of" in status.inner_text()
    assert page.locator("#differ tr.differs").all_inner_texts() == ["batch\t1\t2"]
    page.get_by_label("also facts that are the same").check()
    assert page.locator("#differ-facts tr").count() > 20
    page.get_by_label("Words in the name of the other").fill("b3")
    page.get_by_label("The other cell", exact=True).select_option(index=0)
    shown = page.locator("#differ-facts").inner_text()
    assert "onerror=alert(1)" in shown and "window.HACKED" in shown
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    page.get_by_label("Words in the name of one cell").fill("nobody")
    assert "No cell" in status.inner_text()
    assert page.evaluate("window.HACKED") is None
    assert page.locator("#differ-facts img").count() == 0
    page.close()
    assert wrong == []
