"""The report's files: complete, deterministic, inert, and made from whatever there is; failures, glossary, sentences."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from make_records import make_record
from pages import Page

from factories import train_cell
from transect.analysis.load import Loaded
from transect.analysis.table import COLUMNS
from transect.domain.record import Cause, Record, Status
from transect.report.engine.blocks import Facts, Failure, Lead
from transect.report.engine.build import build_report, write_page
from transect.report.engine.context import Context
from transect.report.engine.glossary import glossary_parts
from transect.report.engine.report import Made
from transect.report.engine.shell import SCRIPTS, coded, script_json
from transect.report.engine.text import clean, quantity
from transect.report.topics.study.failures import failures_body


def test_summary_counts_every_record_and_names_what_failed(summary: dict[str, Any]) -> None:
    assert summary["counts"]["failed"] == 2
    assert summary["counts"]["skipped"] == 1
    assert sum(summary["by_stage"]["train"].values()) == 86
    causes = {failure["cause"] for failure in summary["failures"]}
    assert causes == {"wrong-result", "out-of-memory", "missing-dependency"}
    assert len(summary["problems"]) == 1
    assert "broken.cell" in summary["problems"][0]
    for finding in summary["findings"]:
        assert finding["confidence"] in ("confirmed", "provisional", "inconclusive")
        assert finding["text"].endswith(".")
        assert finding["evidence"]


def test_parquet_holds_a_row_per_record_and_metric(report: Path, summary: dict[str, Any]) -> None:
    table = pd.read_parquet(report.parent / "records.parquet")
    others = ["load", "micro_batches", "sessions"]
    assert list(table.columns) == [*COLUMNS, *others], "other axes follow those of always"
    assert table.drop_duplicates(["stage", "cell"]).shape[0] == sum(summary["counts"].values())
    assert table[table["status"] == "skipped"]["metric"].isna().all()


def test_equal_records_give_equal_bytes(report: Path, synthetic_again: Made, tmp_path: Path) -> None:
    write_page(synthetic_again, tmp_path / "report.html")
    for file in ("report.html", "summary.json", "records.parquet"):
        assert (tmp_path / file).read_bytes() == (report.parent / file).read_bytes()


def test_foreign_text_becomes_no_tag_and_nothing_is_fetched(report: Path) -> None:
    page = report.read_text(encoding="utf-8")
    tags = Page.read(page).soup.find_all(True)
    names = [tag.name for tag in tags]
    data = page.count('<script type="application/json"')
    assert names.count("script") == data + len(SCRIPTS) == 1 + len(SCRIPTS), "data, and our own"
    policy = str(next(tag["content"] for tag in tags if tag.get("http-equiv")))
    assert policy.count("'sha256-") == len(SCRIPTS), "each script of ours has its hash"
    assert "img" not in names and "b" not in names and "i" not in names
    for tag in tags:
        assert not [name for name in tag.attrs if name.startswith("on")]
        for name in ("src", "href", "xlink:href"):
            assert str(tag.get(name) or "#").startswith(("#", "data:,"))
    assert "<script>window.HACKED" not in page
    assert "{{ 7*7 }}" in page, "log text is no template"
    assert "url(http" not in page and "@import" not in page
    assert "\x00" not in page and "\x1b" not in page


def test_what_the_page_holds_as_data_cannot_end_its_script() -> None:
    assert not set("<>\u2028\u2029") & set(script_json({"a": "</script>\u2028\u2029"}))


@pytest.mark.parametrize("folder", ["absent", "hollow"])
def test_a_study_without_records_still_has_a_report(tmp_path: Path, folder: str) -> None:
    (tmp_path / "hollow").mkdir()
    output = tmp_path / "out" / "report.html"
    summary = build_report(tmp_path / folder, output, title="t", questions=[])
    assert summary["counts"] == {"ok": 0, "failed": 0, "skipped": 0}
    assert "no record" in summary["findings"][0]["text"]
    sections = Page.read(output).sections
    assert "failures" in sections and "runtimes" not in sections, "an empty section is not there"
    assert list(pd.read_parquet(output.parent / "records.parquet").columns) == list(COLUMNS)


def test_clean_shows_what_hides() -> None:
    assert clean("\x1b[31mred\x1b[0m\x00\u202eabc\r\n") == "red\\x00\\u202eabc\n"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(0.00123, "s", "1.23 ms"), (2.5e9, "B/s", "2.5 GB/s"), (None, "s", "–"), (2048, "B", "2 KiB")],
)
def test_quantities_read_well(value: float | None, unit: str, text: str) -> None:
    assert quantity(value, unit) == text


def failed(cause: Cause, message: str, batch: int = 1, status: Status = Status.FAILED) -> Record:
    cell = train_cell(workload="w", batch=batch)
    return make_record(cell, status=status, cause=cause, message=message, log_tail=f"log {batch}")


def blocks_of(*records: Record) -> list[Failure]:
    made = Context(Loaded(study="my study", records=list(records)), title="t")
    return [part for part in failures_body(made) if isinstance(part, Failure)]


def test_each_cause_is_one_block_with_meaning_step_and_command() -> None:
    made = blocks_of(
        *(failed(Cause.TIMEOUT, f"ended after its limit of {n} s", n) for n in range(1, 31)),
        failed(Cause.UNSUPPORTED, "rank 0 does not train", 31, Status.SKIPPED),
    )
    assert [block.cause for block in made] == ["timeout", "unsupported"]
    assert [re.findall(r"\d+|train", block.amount) for block in made] == [["30", "30", "train"], ["1", "1", "train"]]
    assert "limits.seconds" in made[0].action
    assert made[0].command == "make report STUDY='my study'"
    assert len(made[0].messages.rows) == 1
    assert [log for _, log in made[0].logs] == ["log 1", "log 10", "log 11"]


def test_the_glossary_has_the_terms_that_are_used_and_no_others() -> None:
    lead, facts = glossary_parts(["the Speed-up of a", "a wrong result"])
    assert isinstance(lead, Lead) and isinstance(facts, Facts)
    assert [term for term, _ in facts.items] == ["speed-up", "wrong result"]
    assert list(glossary_parts(["nothing"])) == []


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("`a < b`", "<code>a &lt; b</code>"),
        ("<b>cell</b>", "&lt;b&gt;cell&lt;/b&gt;"),
        ("STUDY and un`closed", "STUDY and un`closed"),
    ],
)
def test_sentences_are_escaped_before_anything_else(text: str, written: str) -> None:
    assert str(coded(text)) == written
