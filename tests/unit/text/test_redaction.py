"""What identifies people: the salt, their names in texts, addresses and numbers."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from transect.domain.errors import BadInput
from transect.text.people import People
from transect.text.redaction import EMAIL, IP, PHONE, Counts, redact, replace_spans
from transect.text.salt import SALT_VARIABLE, Salt, public_salt, read_salt, salt_file

SALT = Salt(b"k" * 32)
ANNA = "Anna Schmidt <anna.schmidt@firm.example>"


def known(*names: str) -> People:
    people = People(SALT)
    for name in names:
        people.add(name)
    return people


def without(text: str, *names: str, present: tuple[str, ...] = ()) -> str:
    """Return the text with a letter for each name: `A` for the first person, `?` for nobody known."""
    spans = known(*names).find(text, present)
    letters = {SALT.pseudonym(name): chr(ord("A") + i) for i, name in enumerate(names)}
    return replace_spans(text, [(a, b, letters.get(pseudonym, "?")) for a, b, pseudonym in spans])[0]


@pytest.mark.parametrize(
    "text",
    [
        "mail bob@firm.example now",
        "mail Bob.Miller+x@mail.firm.example, now",
        "<bob@firm.example>",
        "bob (at) firm.example",
        "müller@büro.example",
        f"{'x' * 200}@firm.example",
    ],
)
def test_addresses_go(text: str):
    counts = Counts()
    redacted = redact(text, counts)
    assert EMAIL in redacted and "firm" not in redacted and "host" not in redacted and counts.emails == 1


@pytest.mark.parametrize(
    "number",
    [
        "+49 551 39-12345",
        "0551/3912345",
        "+1 (555) 123-4567",
        "0049 551 3912345",
        "0551\u201339\u201312345",
        "٠٥٥١٣٩١٢٣٤٥",
    ],
)
@pytest.mark.parametrize("around", ["{}", "call {}, please", "tel.{}.", "_{}_", "2023-11-22 {}", "{} {}"])
def test_telephone_numbers_go(number: str, around: str):
    counts = Counts()
    redacted = redact(around.format(number, number), counts)
    assert PHONE in redacted and not any(map(str.isdigit, redacted.replace("2023-11-22", ""))), redacted
    assert counts.phones >= 1


@pytest.mark.parametrize("text", ["on 2023-11-22 at 12:30:45", "1/2/2023", "version 1.2.3", "INC0012345"])
def test_dates_versions_and_codes_stay(text: str):
    assert redact(text, Counts()) == text


@pytest.mark.parametrize(
    "ip",
    ["10.1.2.3", "255.255.255.255", "2001:db8::8a2e:370:7334", "::1", "fe80::1", "::ffff:10.1.2.3", "1:2:3:4:5:6:7:8"],
)
@pytest.mark.parametrize("around", ["{}", "at {}, now", "host={};", "[{}]", "http://{}/", "_{}_"])
def test_ip_addresses_go(ip: str, around: str):
    counts = Counts()
    redacted = redact(around.format(ip), counts)
    assert IP in redacted and "2.3" not in redacted and "db8" not in redacted and counts.ips == 1, redacted


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Dear Anna Schmidt, hello", "Dear A, hello"),
        ("ANNA SCHMIDT and anna and Schmidt", "A and A and A"),
        ("Annas and Schmidts and Anna Schmidts PC", "A and A and A PC"),
        ("anna.schmidt, anna_schmidt, annaschmidt, aschmidt", "A, A, A, A"),
        ("Hannah, Annaberg, Schmidtke", "Hannah, Annaberg, Schmidtke"),
        ("anna2; Schmidt07; SchmidtAnna; schmidta", "A; A; A; A"),
        ("https://x.example/users/anna-schmidt/1", "https://x.example/users/A/1"),
    ],
)
def test_a_known_person_is_found_however_written(text: str, expected: str):
    assert without(text, ANNA) == expected


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("Jörg Müßig", "Joerg; JÖRG; Muessig; joerg muessig", "A; A; A; A"),
        ("Lang, Eva", "wie lang dauert es, Lang?", "wie lang dauert es, A?"),
        ("Will Mark", "will you mark it? Will", "will you mark it? A"),
        ("IT Service Desk", "the service desk, IT Service Desk", "the service desk, A"),
        ("Jean-Luc O'Brien", "Jean-Luc O'Brien; JEAN LUC; obrien", "A-A O'A; A A; A"),
        ("ab12345", "login AB12345", "login A"),
        ("noreply@firm.example", "noreply", "noreply"),
        ("Al", "Al and al", "Al and al"),
        ("Hans-Peter von der Heide", "Herr von der Heide: Der Drucker", "Herr von der A: Der Drucker"),
        ("Schmidt, Anna (IT Service)", "Anna, Frau Schmidt, IT", "A, Frau A, IT"),
        ("Łukasz Øst", "Lukasz Ost", "A"),
    ],
)
def test_names_of_many_kinds(name: str, text: str, expected: str):
    assert without(text, name) == expected


def test_a_name_of_several_people_means_the_one_who_is_there():
    two = ("Anna Schmidt", "Anna Ott")
    assert without("Anna", *two, present=("Anna Ott",)) == "B"
    assert without("Anna", *two, present=two) == "?"
    assert without("Anna", *two) == "?"
    assert without("Anna Ott", *two) == "B"


def test_marks_that_are_not_seen_hide_no_name():
    assert without("Anna Schmidt", "An\u200bna Schm\u00adidt") == "A"
    assert SALT.identity("An\u200bna") == SALT.identity("Anna")


def test_identities_are_those_of_addresses_where_there_are_any():
    assert SALT.identity(ANNA) == SALT.identity("ANNA.SCHMIDT@firm.example ")
    assert SALT.identity("Anna  Schmidt") == SALT.identity("anna schmidt") != SALT.identity(ANNA)
    assert SALT.identity("x") != SALT.ticket("x")
    assert SALT.identity("x") != public_salt().identity("x")
    word = SALT.pseudonym("x")
    assert word.isalpha() and word.islower() and word.isascii() and len(word) == 14


def test_a_salt_is_made_once_for_its_owner_alone(tmp_path: Path):
    path = tmp_path / "made" / "salt"
    first = read_salt(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_salt(path).fingerprint == first.fingerprint
    assert [file.name for file in path.parent.iterdir()] == ["salt"]
    assert read_salt(tmp_path / "other").fingerprint != first.fingerprint
    assert first.fingerprint not in path.read_text()


@pytest.mark.parametrize(
    ("content", "mode", "message"),
    [(None, 0o640, "chmod 600"), (None, 0o604, "chmod 600"), (None, 0o666, "chmod 600")]
    + [(content, 0o600, "salt") for content in ("", "ab" * 31, "x" * 64, "\xff" * 64)],
)
def test_what_is_no_salt_of_its_owner_alone_is_refused(tmp_path: Path, content: str | None, mode: int, message: str):
    path = tmp_path / "salt"
    read_salt(path)
    if content is not None:
        path.write_text(content, encoding="latin-1")
    path.chmod(mode)
    with pytest.raises(BadInput, match=message) as raised:
        read_salt(path)
    assert not content or content not in str(raised.value)


def test_a_place_where_no_salt_can_be_made_is_named(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match=SALT_VARIABLE):
        read_salt(tmp_path / "file" / "salt")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe", 0o600)
    for name in ("folder", "pipe"):
        with pytest.raises(BadInput, match=f"{name}: no plain file"):
            read_salt(tmp_path / name)


def test_where_the_salt_lies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv(SALT_VARIABLE, "")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert salt_file() == tmp_path / "transect" / "salt"
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert salt_file() == tmp_path / ".config" / "transect" / "salt"
    monkeypatch.setenv(SALT_VARIABLE, os.fspath(tmp_path / "own"))
    assert salt_file() == tmp_path / "own"


@pytest.mark.parametrize("piece", ["a@", "1", "1.1.", "a(at)", "2023-11-22 ", "anna.schmidt "])
def test_however_many_are_redacted(piece: str):
    text = piece * (200_000 // len(piece))
    spans = known(ANNA).find(redact(text, Counts()))
    assert bool(spans) == ("nna" in piece)
