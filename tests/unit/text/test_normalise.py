"""Texts of tickets in one form: Unicode, HTML, quoted replies, signatures."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.text.formats._options import clean
from transect.text.markup import is_html, text_of_html
from transect.text.normalise import normalise

# Every code point, half pairs too, and what is special in mails and HTML more often than by chance.
_SPECIAL = st.sampled_from(
    [
        *"\0\u202e\ufeff\u0301\ud800\u2028\x85\na",
        "\r\n",
        "  ",
        "<p>",
        "</p>",
        "<script>",
        "<!--",
        "&#xd800;",
        "> ",
        "-- \n",
    ]
)
_ANY = st.characters(codec=None, exclude_categories=())
HOSTILE = st.lists(st.one_of(_SPECIAL, _ANY), max_size=60).map("".join)


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        ("plain", "plain"),
        ("  two   spaces ", "two spaces"),
        ("Gru\u0308ße", "Grüße"),
        ("a\r\nb\rc\u2028d\x85e", "a\nb\nc\nd\ne"),
        ("a\n\n \n b", "a\nb"),
        ("\ufeffA\u00adB\u200bC\u202eD\u2066E\0F\x07", "ABCDEF"),
        ("a\u00a0b\u3000c\td", "a b c d"),
        ("half \ud83d pair", "half \ufffd pair"),
        ("whole 🙂 pair", "whole 🙂 pair"),
        ("", ""),
        (" \n\t\0", ""),
    ],
)
def test_texts_that_look_alike_are_alike(given_: str, expected: str):
    assert normalise(given_) == expected


@given(HOSTILE)
def test_a_normal_text_is_normal_and_can_be_written(text: str):
    normal = normalise(text)
    assert normal == normalise(normal) == unicodedata.normalize("NFC", normal)
    normal.encode()
    kinds = {unicodedata.category(letter) for letter in normal.replace("\n", "")}
    assert not kinds & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert not normal.startswith((" ", "\n")) and "  " not in normal and "\n\n" not in normal


@given(HOSTILE)
def test_nothing_hostile_ends_the_cleaning(text: str):
    for replies in ("drop", "keep"):
        cleaned = clean(text, replies=replies, signatures=replies)
        assert isinstance(normalise(cleaned), str)
    assert "<script" not in text_of_html(text).lower() or "&lt" in text.lower() or "&#" in text


def test_marks_are_bounded():
    # Unbounded, the time of NFC would grow with the square of their number: hours for this one.
    assert len(normalise("a" + "\u0301\u0323" * 500_000)) <= 31


def test_html_is_what_a_reader_would_see():
    markup = (
        "<!DOCTYPE html><html><head><title>t</title><style>p{}</style></head><body><!-- no -->"
        "<p>Gr&uuml;&szlig;e &lt;b&gt;</p><div>one<br>two</div><script>if (a < b) alert('x')</script>"
        "<table><tr><td>c</td><td>d</td></tr></table></body></html>"
    )
    assert is_html(markup)
    assert normalise(text_of_html(markup)) == "Grüße <b>\none\ntwo\nc d"


@pytest.mark.parametrize(
    "markup",
    [
        "<p>new</p><blockquote>old<blockquote>older</blockquote>old</blockquote><p>end</p>",
        "<p>new</p><div class='gmail_quote'>On x: <div>old</div> old</div><p>end</p>",
        "<p>new</p><DIV id=divRplyFwdMsg>From: x</DIV><p>end</p>",
    ],
)
def test_quotes_in_html_go(markup: str):
    assert normalise(clean(markup)) == "new\nend"
    assert "o" in normalise(clean(markup, replies="keep")).replace("new", "").replace("end", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("M&uuml;ller &amp; Co", "Müller & Co"), ("a&#10;b", "a\nb"), ("R&D; x", "R&D; x"), ("a &b; c&", "a &b; c&")],
)
def test_entities_without_tags(text: str, expected: str):
    assert normalise(clean(text)) == expected


def test_a_wholly_quoted_mail_says_what_it_quotes():
    assert normalise(clean("<blockquote>forwarded</blockquote>")) == "forwarded"
    assert normalise(clean("> forwarded\n> text")) == "forwarded\ntext"


@pytest.mark.parametrize("tag", ["script", "style", "title"])
@pytest.mark.parametrize("end", ["", "</b>", "< /script>", "</scrip>"])
def test_a_script_that_is_never_closed_is_no_text(tag: str, end: str):
    assert normalise(clean(f"<p>a</p><{tag} src=x>alert(1){end}")) == "a"


REPLIES = {
    "english": "new\n\nOn Mon, 3 Apr 2023 at 10:00, Bob <b@x.org> wrote:\n> old\n> older",
    "german": "new\n\nAm 03.04.2023 um 10:00 schrieb Bob:\n> old",
    "folded": "new\nOn Mon, 3 Apr 2023 at 10:00, Bob Miller\n<b@x.org> wrote:\n\n> old",
    "outlook": "new\n\nFrom: Bob\nSent: Monday\nTo: help\nSubject: x\n\nold",
    "original": "new\n-----Original Message-----\nold",
    "signature": "new\n-- \nBob Miller\nManager",
    "telephone": "new\nSent from my iPhone",
}


@pytest.mark.parametrize("text", REPLIES.values(), ids=REPLIES)
def test_what_a_mail_repeats_goes(text: str):
    assert normalise(clean(text)) == "new"
    assert "old" in clean(text, replies="keep", signatures="keep") or "old" not in text


@pytest.mark.parametrize(
    "text",
    [
        "On Monday I wrote: it is broken",
        "From: here\nto there",
        "A journey\nFrom: Berlin\nTo: Rome\nDate: 3 May\nwith a hotel",
        "The <script> tag breaks our page",
        "first\n--- not a signature\nlast",
    ],
)
def test_what_only_looks_like_it_stays(text: str):
    assert normalise(clean(text)).split("\n")[0] == text.split("\n")[0]


def test_answers_between_quotes_stay():
    text = "On Monday Bob wrote:\n> first?\nyes\n> second?\nno"
    assert normalise(clean(text)) == "yes\nno"


@pytest.mark.parametrize(
    "piece", ["<", "<script>", "<blockquote>", "On x\n", "From: \n", "> a\n", "&#", "a wrote on b:\n"]
)
def test_however_many_are_read(piece: str):
    text = piece * (200_000 // len(piece))
    assert isinstance(normalise(clean(text)), str)
