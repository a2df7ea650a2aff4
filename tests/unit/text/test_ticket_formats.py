"""Formats of tickets in files: what is read, what is rejected and why, and what is no such file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkouts import ROOT
from transect.domain.errors import BadInput
from transect.text.formats import FORMATS
from transect.text.formats.csv_ import CsvOptions
from transect.text.formats.flat_csv import FlatOptions
from transect.text.formats.jsonl import JsonOptions
from transect.text.threads import MailOptions
from transect.text.tickets import CAUSES, Rejected, Ticket


def read(
    kind: str, path: Path, content: bytes | str | None = None, **options: Any
) -> tuple[list[Ticket], list[tuple[str, str]]]:
    """Return the tickets of a file, and place and cause of what was rejected."""
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    reader = FORMATS.get(kind)
    reader.check(options, "options")
    every = [*reader.tickets(path, options, 0)]
    tickets = [entry for entry in every if isinstance(entry, Ticket)]
    wrong = [entry for entry in every if isinstance(entry, Rejected)]
    assert all(rejection.cause in CAUSES for rejection in wrong)
    return tickets, [(rejection.place, rejection.cause) for rejection in wrong]


def texts(tickets: list[Ticket]) -> list[list[str]]:
    return [[message.text for message in ticket.messages] for ticket in tickets]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tickets"


FULL = {
    "id": "T-1",
    "owner": "Anna",
    "queue": "it",
    "language": "en",
    "people": ["Bob"],
    "messages": [
        {"text": "a", "author": "Bob", "role": "Customer", "time": "2023-01-02T10:00:00+02:00"},
        {"text": "b", "role": "agent", "time": 0},
        "c",
    ],
}


def test_a_line_of_json_is_a_ticket(file: Path):
    (ticket,), wrong = read("jsonl", file, json.dumps(FULL))
    assert not wrong
    assert (ticket.id, ticket.owner, ticket.queue, ticket.language) == ("T-1", "Anna", "it", "en")
    assert [(m.text, m.author, m.role, m.time) for m in ticket.messages] == [
        ("a", "Bob", "customer", "2023-01-02T08:00:00+00:00"),
        ("b", "", "agent", "1970-01-01T00:00:00+00:00"),
        ("c", "", "", ""),
    ]
    assert ticket.others == ["Bob"]


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ('{"id": 1, "text": "half', "broken-json"),
        ("[" * 100_000, "broken-json"),
        ('{"text": ' + "9" * 10_000 + "}", "broken-json"),
        ('{"text": "a\0b"}', "broken-json"),
        ('{"text": 1}', "wrong-type"),
        ('{"text": "a", "id": [1]}', "wrong-type"),
        ('{"text": "a", "role": "boss"}', "wrong-type"),
        ('{"messages": [{}]}', "missing-column"),
        ('{"messages": []}', "no-message"),
        ('{"text": "a", "time": "yesterday"}', "broken-time"),
    ],
)
def test_a_broken_line_costs_nothing_but_itself(file: Path, line: str, cause: str):
    good = '{"text": "good"}\n'
    tickets, wrong = read("jsonl", file, f"{good}{line}\n\n{good}")
    assert texts(tickets) == [["good"], ["good"]]
    assert wrong == [("line 2", cause)]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("kind", ["jsonl", "flat-csv"])
def test_a_byte_order_mark_tells_the_encoding(file: Path, kind: str, encoding: str):
    content = '{"text": "Grüße 🙂"}\r\n' if kind == "jsonl" else "Document\r\nGrüße 🙂\r\n"
    tickets, wrong = read(kind, file, content.encode(encoding))
    assert texts(tickets) == [["Grüße 🙂"]] and not wrong


@pytest.mark.parametrize(("written", "number"), [("0", "0"), ('""', "line 1"), ("null", "line 1")])
def test_an_id_is_kept_and_a_text_may_be_none(file: Path, written: str, number: str):
    (ticket,), wrong = read(
        "jsonl", file, f'{{"id": {written}, "messages": [{{"text": null}}, "b"], "queue": "q"}}'.encode()
    )
    assert (ticket.id, texts([ticket]), wrong) == (number, [["", "b"]], [])


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_another_encoding_is_read_where_it_is_given(file: Path, encoding: str):
    content = ("Document,Topic_group\n" + "Grüße und Wünsche,Büro\n" * 20).encode(encoding)
    # Else what has umlauts would be missing, and the rest would be a corpus.
    with pytest.raises(BadInput, match="name its encoding in the option `encoding`"):
        read("flat-csv", file, content + b"Invoices,Office\n" * 20)
    tickets, wrong = read("flat-csv", file, content, encoding=encoding)
    assert texts(tickets) == [["Grüße und Wünsche"]] * 20 and not wrong


@pytest.mark.parametrize(
    ("rows", "options", "good", "place"),
    [
        ("Grüße,b\n".encode() * 5 + b"Gr\xfc\xdfe,b\n" + "Grüße,b\n".encode(), {}, 6, "line 7"),
        (b"a\x81b,c\nab,c\n", {"encoding": "cp1252"}, 1, "line 2"),
    ],
)
def test_bytes_that_the_encoding_lacks_are_rejected(
    file: Path, rows: bytes, options: dict[str, str], good: int, place: str
):
    tickets, wrong = read("flat-csv", file, b"Document,Topic_group\n" + rows, **options)
    assert len(tickets) == good and wrong == [(place, "broken-encoding")]


@pytest.mark.parametrize("kind", ["jsonl", "csv", "flat-csv"])
def test_what_is_too_large_is_rejected_and_the_rest_read(file: Path, kind: str):
    head = {"jsonl": "", "csv": "id,text\n", "flat-csv": "Document\n"}[kind]
    row = {"jsonl": '{{"text": "{1}"}}\n', "csv": "{0},{1}\n", "flat-csv": "{1}\n"}[kind]
    long = ["x" * 101, "x" * 300_000, "x" * 2_000_000]
    content = head + row.format(1, "a") + "".join(row.format(i, x) for i, x in enumerate(long, 2))
    tickets, wrong = read(kind, file, content + row.format(9, "b"), largest=100)
    assert texts(tickets) == [["a"], ["b"]]
    assert [cause for _, cause in wrong] == ["too-large"] * 3


@pytest.mark.parametrize(
    ("kind", "options", "key"),
    [
        ("jsonl", {"encoding": "utf-9"}, "encoding"),
        ("jsonl", {"largest": 0}, "largest"),
        ("jsonl", {"time_format": "%Q"}, "time_format"),
        ("csv", {"columns": {"body": "x"}}, "columns"),
        ("csv", {"delimiter": ",,"}, "delimiter"),
        ("flat-csv", {"replies": "maybe"}, "replies"),
    ],
)
def test_options_that_there_are_not(kind: str, options: dict[str, Any], key: str):
    with pytest.raises(BadInput, match=rf"^here\.{key}"):
        FORMATS.get(kind).check(options, "here")


@given(st.binary(max_size=300), st.sampled_from(["jsonl", "csv", "flat-csv", "mbox"]))
def test_any_bytes_are_tickets_rejected_or_no_such_file(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, kind: str
):
    path = tmp_path_factory.getbasetemp() / "fuzz"
    head = {"csv": b"id,text,role,time\n", "flat-csv": b"Document,Topic_group\n", "mbox": b"From x\n"}
    for start in (b"", head.get(kind, b"")):
        try:
            read(kind, path, start + content)
        except BadInput as raised:
            assert str(path) in str(raised)


def test_the_documented_example_is_read(file: Path):
    page = (ROOT / "docs" / "tickets.md").read_text(encoding="utf-8")
    example = page.split("<!-- example: tickets.jsonl -->\n```json\n")[1].split("```")[0]
    tickets, wrong = read("jsonl", file, example)
    assert not wrong and [len(ticket.messages) for ticket in tickets] == [2, 1]
    assert tickets[0].others and tickets[0].messages[0].time


def test_causes_and_options_are_documented():
    page = (ROOT / "docs" / "tickets.md").read_text(encoding="utf-8")
    for cause, meaning in CAUSES.items():
        assert f"| `{cause}` | {meaning} |" in page
    for model in (JsonOptions, CsvOptions, FlatOptions, MailOptions):
        for name, field in model.model_fields.items():
            default = field.default
            usual = f"`{default}`" if isinstance(default, str) else json.dumps(default)
            assert f"| `{name}` | {usual} |" in page, name
