"""Tickets in rows of a CSV: what is read, what is rejected and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_ticket_formats import file, read, texts  # noqa: F401

from transect.domain.errors import BadInput

HEADER = "id,text,author,role,time,owner,queue,language\n"


def test_rows_with_one_id_are_one_ticket(file: Path):
    rows = (
        'T-1,"a, ""b""\nc",Bob,customer,2023-01-02,,it,en\n'
        "T-1,d,Anna,agent,2023-01-03,Anna,,\n"
        "T-2,e,,,,,,\n"
        ",f,,,,,,\n,g,,,,,,\n"
    )
    tickets, wrong = read("csv", file, HEADER + rows)
    assert not wrong
    assert texts(tickets) == [['a, "b"\nc', "d"], ["e"], ["f"], ["g"]]
    first = tickets[0]
    assert (first.id, first.owner, first.queue, first.language) == ("T-1", "Anna", "it", "en")
    assert [m.author for m in first.messages] == ["Bob", "Anna"]
    assert first.messages[0].time == "2023-01-02T00:00:00+00:00"


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_delimiters_and_line_ends(file: Path, delimiter: str, end: str):
    lines = ["id,text,queue", '1,"a,b;c|d",x', "2,e,y", ""]
    content = end.join(lines[:1]).replace(",", delimiter) + end
    content += f'1{delimiter}"a,b;c|d"{delimiter}x{end}2{delimiter}e{delimiter}y{end}'
    tickets, wrong = read("csv", file, content)
    assert texts(tickets) == [["a,b;c|d"], ["e"]] and not wrong
    assert [ticket.queue for ticket in tickets] == ["x", "y"]


def test_columns_by_other_names(file: Path):
    content = "Nr;Beschreibung;Wann\n1;a;02.01.2023 10:00\n2;b;x\n"
    columns = {"id": "Nr", "text": "Beschreibung", "time": "Wann"}
    tickets, wrong = read("csv", file, content, columns=columns, time_format="%d.%m.%Y %H:%M")
    assert tickets[0].messages[0].time == "2023-01-02T10:00:00+00:00"
    assert wrong == [("line 3", "broken-time")]


NO_TABLE = [
    ("csv", "", {}, "header"),
    ("csv", "id,body\n", {}, "no 'text'"),
    ("csv", "id,text\n", {"columns": {"queue": "Gruppe"}}, "no 'Gruppe'"),
    ("flat-csv", "Text,Topic_group\n", {}, "no 'Document'"),
    ("flat-csv", "Anna Schmidt is ill,hr\n", {}, "no 'Document'"),
    ("flat-csv", "Document,Document\n", {}, "more than once"),
]


@pytest.mark.parametrize(("kind", "header", "options", "message"), NO_TABLE)
def test_a_header_that_tells_no_columns_is_refused_and_not_quoted(
    file: Path, kind: str, header: str, options: dict[str, Any], message: str
):
    with pytest.raises(BadInput, match=message) as raised:
        read(kind, file, f"{header}Anna,Anna\n" if header.strip() else header, **options)
    assert "Anna" not in str(raised.value)


@pytest.mark.parametrize(
    ("row", "cause"), [("a", "missing-column"), ("a,b,c", "extra-column"), ('"a"b,c', "broken-row")]
)
def test_a_broken_row_costs_nothing_but_itself(file: Path, row: str, cause: str):
    good = "good,q\n"
    content = f"Document,Topic_group\n{good}{row}\n{good}"
    tickets, wrong = read("flat-csv", file, content)
    assert texts(tickets) == [["good"], ["good"]] and wrong == [("line 3", cause)]


def test_a_quote_that_is_never_closed_ends_at_the_next_one(file: Path):
    content = 'Document,Topic_group\na,q\n"b,q\nc,q\n"d",q\ne,q\n"f,q\n'
    tickets, wrong = read("flat-csv", file, content)
    assert texts(tickets) == [["a"], ["e"]]
    assert wrong == [("lines 3 to 5", "broken-row"), ("line 7", "broken-row")]
