"""Mails become tickets: files of them, folders of them, what belongs together, and broken ones."""

from __future__ import annotations

import os
from email.message import EmailMessage
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_ticket_formats import read, texts

from transect.domain.errors import BadInput
from transect.text.mail import BrokenMail, body, head


def mail(number: int, subject: str = "Printer", text: str = "text", answers: int | None = None, **fields: str) -> bytes:
    """Return a mail whose id is its number."""
    made = EmailMessage()
    made["Message-ID"] = f"<{number}@x.example>"
    made["From"] = fields.pop("author", "Bob Miller <bob@x.example>")
    made["Date"] = f"Mon, 02 Jan 2023 10:{number:02}:00 +0100"
    made["Subject"] = subject
    if answers is not None:
        made["In-Reply-To"] = f"<{answers}@x.example>"
    for name, value in fields.items():
        made[name.replace("_", "-")] = value
    made.set_content(text)
    return bytes(made)


def mbox(*mails: bytes) -> bytes:
    return b"".join(
        b"From bob Mon Jan  2 10:00:00 2023\n" + mail.replace(b"\nFrom ", b"\n>From ") + b"\n" for mail in mails
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mails"


@pytest.mark.parametrize("shape", ["mbox", "email-threads"])
def test_mails_that_answer_one_another_are_a_ticket(tmp_path: Path, shape: str):
    mails = [
        mail(1, text="broken", X_Queue="it", To="Help <help@firm.example>, Carl <carl@x.example>"),
        mail(2, "Screen", "other"),
        mail(3, "AW: Printer", "try again\n\nOn Monday Bob wrote:\n> broken", answers=1, author="a@firm.example"),
        mail(5, "Re: Printer", "no", answers=3),
        mail(4, "RE: printer", "later", answers=99, References="<1@x.example> <98@x.example>"),
        mail(6, "Re: Screen", "by its subject"),
        mail(7, "Printer", "a new one"),
    ]
    path = tmp_path / "in"
    if shape == "mbox":
        path.write_bytes(mbox(*mails))
    else:
        for number, raw in enumerate(mails):
            where = path / ("it" if number % 2 else "hr") / f"{number}.eml"
            where.parent.mkdir(parents=True, exist_ok=True)
            where.write_bytes(raw)
    tickets, wrong = read(shape, path, agents=["@firm.example"])
    assert not wrong
    by_id = {ticket.id: ticket for ticket in tickets}
    assert set(by_id) == {"<1@x.example>", "<2@x.example>", "<7@x.example>"}
    first = by_id["<1@x.example>"]
    assert [message.text.split() for message in first.messages] == [
        ["Printer", "broken"],
        ["try", "again"],
        ["later"],
        ["no"],
    ]
    assert [message.role for message in first.messages] == ["customer", "agent", "customer", "customer"]
    assert (first.owner, first.queue) == ("a@firm.example", "it")
    assert "Carl <carl@x.example>" in first.others
    assert first.messages[0].time == "2023-01-02T09:01:00+00:00"
    assert [len(words) for words in texts([by_id["<2@x.example>"]])] == [2]
    assert by_id["<2@x.example>"].queue == ("" if shape == "mbox" else "it")


def test_a_mail_that_is_there_twice_counts_once(file: Path):
    tickets, wrong = read("mbox", file, mbox(mail(1), mail(2, "Other"), mail(1)))
    assert len(tickets) == 2 and wrong == [("mail 3", "duplicate-message")]


@pytest.mark.parametrize(
    "content", [b"Subject: x\n\ntext", b"{}", b"\xff\xfe", b">From x\n", b"\nSubject: x\n\nFrom x\n"]
)
def test_what_is_no_mbox(file: Path, content: bytes):
    with pytest.raises(BadInput, match="mbox"):
        read("mbox", file, content)


def test_what_is_no_folder(tmp_path: Path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "none"):
        with pytest.raises(BadInput, match="no such folder"):
            read("email-threads", path)
    assert read("email-threads", tmp_path / ".") != ([], [])


def test_a_folder_with_other_things_in_it(tmp_path: Path):
    (tmp_path / "1.eml").write_bytes(mail(1))
    (tmp_path / "2.eml").write_bytes(b"")
    (tmp_path / "3.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (tmp_path / "4.eml").symlink_to("nowhere")
    (tmp_path / ".hidden").write_bytes(b"x")
    os.mkfifo(tmp_path / "5.eml")
    (tmp_path / "6").symlink_to(tmp_path)
    tickets, wrong = read("email-threads", tmp_path)
    assert len(tickets) == 1
    assert wrong == [(f"file {number} of 5", "broken-mail") for number in (2, 3, 4, 5)]


BROKEN = {
    "no head": b"text\n",
    "no colon": b"Subject x\nFrom: a@b.c\n\ntext",
    "many fields": b"From: a@b.c\n" + b"X: y\n" * 100_000 + b"\ntext",
    "broken base64": b"Subject: =?utf-8?b?!!!?=\nContent-Transfer-Encoding: base64\n\n!!!!",
    "unknown charset": b"Subject: =?x-none?q?=FC?=\nContent-Type: text/plain; charset=x-none\n\ngr\xfc\xdfe",
    "charset with NUL": b'From: a\nContent-Type: text/plain; charset="a\0b"\n\ntext',
    "nested": b"From: a\n" + b"Content-Type: multipart/mixed; boundary=x\n\n--x\n" * 3000 + b"\n\ntext",
    "many parts": b"From: a\nContent-Type: multipart/mixed; boundary=x\n\n" + b"--x\n\na\n" * 20_000 + b"--x--",
    "NUL": b"From: a\0b\nSubject: \0\n\nte\0xt",
    "surrogate": "Message-ID: <\udcff@x>\nFrom: \udcff\n\n".encode("utf-8", "surrogateescape"),
}


@pytest.mark.parametrize("raw", BROKEN.values(), ids=BROKEN)
def test_a_broken_mail_costs_nothing_but_itself(file: Path, raw: bytes):
    tickets, wrong = read("mbox", file, mbox(mail(1, "First"), raw, mail(3, "Last")))
    assert {"<1@x.example>", "<3@x.example>"} <= {ticket.id for ticket in tickets}
    assert len(tickets) + len(wrong) == 3
    assert all(place == "mail 2" for place, _ in wrong)


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_fields_in_eight_bits_are_read_too(encoding: str):
    raw = "From: Jörg Müßig <j@x.example>\nTo: Änne Größe <g@x.example>, b@x.example\nX-Owner: Jürgen Öz\n\n"
    facts = head(raw.encode(encoding))
    assert facts.author == "Jörg Müßig <j@x.example>" and facts.field("x-owner") == "Jürgen Öz"
    assert facts.others == ["Änne Größe <g@x.example>", "b@x.example"]


def test_the_text_of_a_mail_is_what_a_reader_sees_first():
    made = EmailMessage()
    made["From"] = "a@x.example"
    made.set_content("plain")
    made.add_alternative("<p>markup</p>", subtype="html")
    made.add_attachment("attached", filename="a.txt")
    assert body(bytes(made), quotes=False).strip() == "plain"
    only = EmailMessage()
    only["From"] = "a@x.example"
    only.set_content("<p>m&uuml;</p><blockquote>old</blockquote>", subtype="html")
    assert body(bytes(only), quotes=False).strip() == "mü"
    assert "old" in body(bytes(only), quotes=True)


@given(st.binary(max_size=400))
def test_any_bytes_are_a_mail_or_none(raw: bytes):
    for start in (b"", b"From: a\nContent-Type: multipart/mixed; boundary=x\n\n--x\n", b"Subject: =?utf-8?q?"):
        try:
            facts = head(start + raw)
            assert isinstance(facts.author, str) and isinstance(facts.field("Subject"), str)
            assert isinstance(body(start + raw, quotes=False), str)
        except BrokenMail as raised:
            assert not raw or str(raised)
