"""Any two cells side by side: what is packed, and what a browser makes of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from make_records import HOSTILE

from factories import make_record, provenance, train_cell, write_records
from transect.domain.record import Record
from transect.report.build import build_report
from transect.report.cell_facts import packed, unpacked


def rate_record(batch: int, repeat: int = 0, **fields: Any) -> Record:
    cell = train_cell(batch=batch, repeat=repeat)
    return make_record(cell, {"samples_per_second": 1.0}, **fields)


def facts_of(content: dict[str, Any], cell: int) -> dict[tuple[str, str], str]:
    """As the page's script puts them together."""
    at = lambda one: one["at"][cell] if "at" in one else 0  # noqa: E731
    found: dict[tuple[str, str], str] = {}
    for column in content["columns"]:
        if column["values"][at(column)] is not None:
            found[column["group"], column["fact"]] = column["values"][at(column)]
    for one in content["sets"]:
        for group, fact, value in one["facts"][at(one)]:
            found.setdefault((group, fact), value)
    return found


def differing(*records: Record) -> dict[tuple[str, str], tuple[str | None, str | None]]:
    content = json.loads(json.dumps(unpacked(packed(records))))
    one, other = facts_of(content, 0), facts_of(content, 1)
    return {key: (one.get(key), other.get(key)) for key in {*one, *other} if one.get(key) != other.get(key)}


def test_machine_versions_and_settings_are_told_apart() -> None:
    other = provenance(
        cpu_model="Other CPU", libraries={"numpy": "2.2.0"}, variables={"OMP_NUM_THREADS": "2"}, memory_bytes=32 * 2**30
    )
    found = differing(
        rate_record(1, parameters={"learning_rate": 0.1, "dataset_options": {"noise": 1}}),
        rate_record(
            2,
            parameters={"learning_rate": 0.2, "dataset_options": {"noise": 2}},
            provenance=other,
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
    for one in (rate_record(1), rate_record(2), rate_record(3, provenance=hostile)):
        write_records(tmp_path / "s", one)
    build_report(tmp_path / "s", tmp_path / "report.html", title="t", questions=[])
    page = browser.new_page(viewport={"width": 320, "height": 700})
    wrong: list[str] = []
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda asked: wrong.append(asked.url) if asked.url[:4] == "http" else None)
    page.goto((tmp_path / "report.html").as_uri())
    page.evaluate(
        "() => { for (let e = document.querySelector('#differ'); e; e = e.parentElement)"
        " if (e.tagName === 'DETAILS') e.open = true; }"
    )
    said = page.locator("#differ-said")
    page.wait_for_function("() => document.querySelector('#differ-said').textContent !== ''")
    page.get_by_label("One cell", exact=True).select_option(index=0)
    page.get_by_label("The other cell", exact=True).select_option(index=1)
    assert "1 of" in said.inner_text()
    assert page.locator("#differ tr.differs").all_inner_texts() == ["batch\t1\t2"]
    page.get_by_label("also facts that are the same").check()
    assert page.locator("#differ-facts tr").count() > 20
    page.get_by_label("Words in the name of the other").fill("b3")
    page.get_by_label("The other cell", exact=True).select_option(index=0)
    shown = page.locator("#differ-facts").inner_text()
    assert "onerror=alert(1)" in shown and "window.HACKED" in shown
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    page.get_by_label("Words in the name of one cell").fill("nobody")
    assert "No cell" in said.inner_text()
    assert page.evaluate("window.HACKED") is None
    assert page.locator("#differ-facts img").count() == 0
    page.close()
    assert wrong == []
