"""What failed, by cause with the next step; the glossary; sentences with commands and terms in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from make_records import make_record
from pages import Page

from factories import train_cell
from transect.analysis.load import Loaded
from transect.domain.record import Cause, Record, Status
from transect.report.blocks import Facts, Failure, Lead
from transect.report.context import Context
from transect.report.glossary import glossary_parts
from transect.report.inline import Inline
from transect.report.sections.failures import failures_body


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
    assert [one.cause for one in made] == ["timeout", "unsupported"]
    assert [re.findall(r"\d+|train", one.amount) for one in made] == [["30", "30", "train"], ["1", "1", "train"]]
    assert "limits.seconds" in made[0].action
    assert made[0].command == "make report STUDY='my study'"
    assert len(made[0].said.rows) == 1 and made[0].cells is not None
    assert len(made[0].cells.rows) == 30
    assert [log for _, log in made[0].logs] == ["log 1", "log 10", "log 11"]
    assert made[1].cells is None, "the one cell stands beside its message"


def test_the_glossary_has_the_terms_that_are_used_and_no_others() -> None:
    lead, facts = glossary_parts(["the Speed-up of a", "<b>wrong-result</b>, stepping"])
    assert isinstance(lead, Lead) and isinstance(facts, Facts)
    assert [term for term, _ in facts.items] == ["speed-up", "wrong result"]
    assert list(facts.ids) == ["term-speed-up", "term-wrong-result"]
    assert list(glossary_parts(["nothing"])) == []


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("`a < b`", "<code>a &lt; b</code>"),
        ("<b>cell</b>", '&lt;b&gt;<a class="term" href="#term-cell">cell</a>&lt;/b&gt;'),
        ("STUDY and un`closed", "STUDY and un`closed"),
        ("all-reduces/cell x-cell", "all-reduces/cell x-cell"),
    ],
)
def test_sentences_are_escaped_before_anything_else(text: str, written: str) -> None:
    assert str(Inline()(text)) == written


def test_every_link_to_a_term_leads_somewhere(report: Path) -> None:
    page = Page.read(report)
    linked = {str(one["href"])[1:] for one in page.soup.select('a[href^="#term-"]')}
    assert len(linked) > 10 and linked <= set(page.ids)
