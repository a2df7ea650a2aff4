"""What is explored has odd names, infinite numbers, ends in one row, and more rows than the page."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from pages import UNFOLD, hash_to

from transect.report.comparison.page import page_of
from transect.report.engine.blocks import MAX_ROWS, Body, Lead, digits, table, words
from transect.report.engine.collect import MadeSection
from transect.report.engine.facets import Facets

pytestmark = pytest.mark.browser

NAMES = ["\U0001f680 one", "\U0001f681 two", "a#b%20&c=d?e+f;g", "quo'te\"s", "~sort~down", "训练", "b\\d"]
MAX_LENGTH = "-".join(["workload"] * 28)[:246] + "~0123abcd"
VALUES = [3.0, math.inf, -1.5, None, -math.inf, 12_345.6, 2e-9]


@dataclass(frozen=True)
class Row:
    """A row of a made-up table."""

    name: str
    value: float | None
    facets: Facets

    @property
    def ends(self) -> str:
        """Two numbers in one place."""
        return "1.20 – 1.31"


ROWS = [
    Row(name, value, Facets(workload=(name,), cell=(MAX_LENGTH if place == 2 else f"{place}~0000000{place}",)))
    for place, (name, value) in enumerate(zip(NAMES, VALUES, strict=True))
]
COLUMNS = [
    words("Name", lambda row: row.name),
    digits("Value", lambda row: row.value),
    digits("Ends", lambda row: row.ends),
    words("Kind", lambda row: "of its own"),
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    many = [Row(NAMES[0], 1.0, Facets(workload=(NAMES[0],)))] * (MAX_ROWS + 40)
    body = Body.of([Lead("Odd."), table(ROWS, COLUMNS, caption="few"), table(many, COLUMNS, caption="many")])
    assert body is not None
    output = tmp_path_factory.mktemp("odd") / "odd.html"
    made = MadeSection(key="odd", title="Odd", body=body)
    output.write_bytes(page_of([made], kind="odd", title="Odd", about=(), chips=()))
    return output


@pytest.fixture
def odd(explored_context: Any, path: Path) -> Iterator[Any]:
    complaints: list[str] = []
    page = explored_context.new_page()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(path.as_uri())
    page.evaluate(UNFOLD)
    yield page
    assert complaints == []
    page.close()


def named(page: Any) -> list[str]:
    """Return the names in the rows of the first table that are shown."""
    return page.evaluate(
        "[...document.querySelectorAll('#odd-few tbody tr:not([hidden]) td:first-child')].map((one) => one.textContent)"
    )


def test_an_address_holds_any_name(odd: Any, path: Path) -> None:
    assert sorted(odd.evaluate("explore.values[0]")) == sorted(NAMES)
    for name in NAMES:
        odd.evaluate(
            "(name) => explore.change((state) => { state.chosen[0] = new Set([explore.values[0].indexOf(name)]); })",
            name,
        )
        address = odd.url
        odd.goto("about:blank")
        odd.goto(address)
        assert named(odd) == [name]
        assert not odd.is_visible(".filter-ignored")


def test_infinite_numbers_are_sorted_as_numbers_and_what_is_missing_stays_last(odd: Any) -> None:
    button = odd.locator("#odd-few").get_by_role("button", name="Value")
    button.click()
    rising = [NAMES[place] for place in (4, 2, 6, 0, 5, 1)]
    assert named(odd) == [*rising, NAMES[3]]
    button.click()
    assert named(odd) == [*reversed(rising), NAMES[3]]


def saved(page: Any, name: str) -> tuple[str, list[list[str]]]:
    with page.expect_download() as waiting:
        page.get_by_role("button", name=f"Download {name} as CSV").click()
    text = Path(waiting.value.path()).read_text(encoding="utf-8-sig")
    return waiting.value.suggested_filename, list(csv.reader(io.StringIO(text)))


def test_a_download_keeps_both_ends_of_one_row_and_its_name_tells_what_it_lacks(odd: Any) -> None:
    name, (head, *rows) = saved(odd, "few")
    assert name == "study-odd-few.csv" and head == ["Name", "Value", "Ends", "Kind", "Cell id"]
    assert [row[1] for row in rows] == ["3", "Infinity", "-1.5", "", "-Infinity", "12345.6", "2e-9"]
    hash_to(odd, f"#?workload={quote(NAMES[0])}")
    name, (head, *rows) = saved(odd, "few")
    assert name == f"study-odd-few-1-of-{len(ROWS)}-rows.csv"
    assert head[2] == "Ends" and [row[2] for row in rows] == ["1.20 – 1.31"]
    assert saved(odd, "many")[0] == f"study-odd-many-{MAX_ROWS}-of-{MAX_ROWS + 40}-rows.csv"


def test_a_filter_says_that_rows_are_not_in_the_page(odd: Any) -> None:
    hash_to(odd, f"#?workload={quote(NAMES[1])}")
    assert "40 more" in odd.inner_text(".filter-said")
    # What is not here may match: the table stays, and says how many those are.
    assert "No row" in odd.inner_text("#odd")
    assert odd.get_by_text("40 more rows").is_visible()
