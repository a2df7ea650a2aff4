"""Dialogue extraction: which messages are read, and what becomes of names."""

import functools

import pytest

from transect.domain.cell import Cell
from transect.payloads.extract_text import extract
from transect.text.dialogue import dialogue, treated
from transect.text.lines import read_lines, writing_lines

TICKET = {
    "id": "a",
    "messages": [
        {"role": "agent", "text": "Opened by Ann Lee", "people": [[10, 17, "personabcdefgh"]]},
        {"role": "customer", "text": "Dear Ann Lee, it broke", "people": [[5, 12, "personabcdefgh"]]},
        {"text": "no role"},
    ],
}
EMPTY = {"id": "b", "messages": [{"text": ""}]}
# What stands between lines in JSON need not be an end of line elsewhere.
HOSTILE = {"id": "c", "messages": [{"text": "a\u2028b\x85c\x00\u202e <script>\n\ud7ff😀"}]}


@pytest.mark.parametrize(
    ("view", "names", "text", "replaced"),
    [
        ("first", "kept", "Dear Ann Lee, it broke", 0),
        ("first", "pseudonyms", "Dear personabcdefgh, it broke", 1),
        ("first", "removed", "Dear , it broke", 1),
        ("conversation", "kept", "Opened by Ann Lee\nDear Ann Lee, it broke\nno role", 0),
        ("conversation", "removed", "Opened by \nDear , it broke\nno role", 2),
    ],
)
def test_views_and_names(view, names, text, replaced):
    assert dialogue(TICKET, view, names) == (text, replaced)


def test_spans_count_code_points_in_any_order():
    text = "😀Ann and Bo"
    assert treated(text, [[9, 11, "personb"], [1, 4, "persona"]], "pseudonyms") == ("😀persona and personb", 2)


@pytest.mark.parametrize("people", [[[0, 9, "p"]], [[0, 2, "p"], [1, 3, "q"]], [[2, 2, "p"]]])
def test_spans_that_would_leave_parts_of_names_are_a_fault(people):
    with pytest.raises(ValueError, match="span"):
        treated("abcd", people, "removed")


dialogue_cell = functools.partial(Cell.of, stage="extract-text", corpus="one")


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "corpus"
    with writing_lines(folder / "tickets.jsonl") as write:
        for ticket in (TICKET, EMPTY, HOSTILE):
            write(ticket)
    return folder


def test_a_text_for_each_ticket_in_order(corpus, tmp_path):
    spec = {"cell": dialogue_cell(names="removed").axes(), "redacted": False}
    found = extract(spec, {"corpus": corpus}, tmp_path)
    texts = [*read_lines(tmp_path / "texts.jsonl")]
    assert texts == ["Opened by \nDear , it broke\nno role", "", HOSTILE["messages"][0]["text"]]
    assert found["details"] == {
        "tickets": 3,
        "empty": 1,
        "characters": sum(map(len, texts)),
        "people_replaced": 2,
        "tickets_with_people_replaced": 1,
    }


def test_names_that_the_corpus_has_replaced_cannot_be_kept(corpus, tmp_path):
    spec = {"cell": dialogue_cell(names="kept").axes(), "redacted": True}
    found = extract(spec, {"corpus": corpus}, tmp_path)
    assert (found["status"], found["cause"]) == ("skipped", "unsupported")
    assert "tickets.corpora.one has redact: true" in found["message"]
    assert not (tmp_path / "texts.jsonl").exists()
