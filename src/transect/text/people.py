"""Names of known people, found in texts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator
from itertools import pairwise
from typing import Any

from transect.text.normalise import normalise
from transect.text.salt import Salt

_TITLES = """
bsc dipl dr frau herr herrn ing med miss mr mrs ms msc prof
"""
TITLES = frozenset(_TITLES.split())

_OFFICES = """
abteilung abuse account accounts admin administrator alert alerts anfrage anonym anonymous
anyone benutzer billing bot buero büro center contact customer daemon datenschutz department
desk developers edv einkauf employees everybody everyone finance group gruppe help helpdesk
hostmaster hotline hr human info information it kontakt kunde kunden kundendienst leitung mail
mailer marketing mitarbeiter monitoring network newsletter no nobody noreply notification
notifications office payroll personal post postmaster privacy reception rechnung rechnungen
reply resources root sales security sekretariat server service services staff students
studierende support system systems team teams test ticket tickets unassigned unbekannt unknown
user users vertrieb web webmaster zentrale
"""
# Who has one of these in the name is no person: its words alone are everybody's.
OFFICES = frozenset(_OFFICES.split())

_NOBODYS = """
all alle de del della dem den der dos hallo hello invoice invoices jobs legal list news none
operations order orders press presse shop van vom von zum zur
"""
# In names they stand beside others, and in addresses for everybody: alone they mean nobody.
NOBODYS = frozenset(_NOBODYS.split())

_ORDINARY = """
ab als alt am an and april arm art auch auf august aus autumn bach baker banks bauer becker bei
bein berg best bill bitte black braun brown bush butler can carpenter carter case cook das dawn
day dean dem den der die ein eine faith fast feld field fischer fisher for frank fuchs grace
graf grant gray green grey gross gut guy hahn hand herbst herzog hill hope house hunter im ist
jack jaeger joy june jung jäger kaiser kern king klein koch koenig kopf kurz könig lane lang
long mark max may meer miller mit mueller muller müller nach neu nord not oder ost page park
pool potter price rich richter rose sand schneider schwarz see short smith sommer stein sue
summer süd the um und vogel von vor wagner wald walker weber weiss weiß west white will winter
wolf wood you young zu
"""
# Words of names that are also words of English or German: alone they count with a capital only.
ORDINARY = frozenset(_ORDINARY.split())


# Start and end in code points, and the pseudonym.
Span = tuple[int, int, str]

_WORD = re.compile(r"[^\W_]+")
_ADDRESS = re.compile(r"<?\s*([^\s<>\"',;@]+)@[^\s<>\"',;]+\s*>?")
# Between the words of one name.
_GAP = re.compile(r"[\s,.'’`´_-]{1,3}")
_APOSTROPHE = re.compile(r"['’`´]")
# Behind a name it names a department, a company, or a place.
_BRACKETS = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
MIN_LETTERS = 3
# Of a name that are looked for; no text can make that take longer.
MAX_WORDS = 8
_DIGITS = "0123456789"
# Letters that are no other one with a mark, and how they are written without.
_STROKES = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "æ": "ae", "œ": "oe", "þ": "th", "ð": "d", "ı": "i"})


class People:
    """Those who are known, and the names that they go by: about a kilobyte each."""

    def __init__(self, salt: Salt) -> None:
        self._salt = salt
        self._seen: set[str] = set()
        # The pseudonym of whose name it is, several words or one; empty where it is several people's.
        self._whole: dict[tuple[str, ...], str] = {}
        self._parts: dict[str, str] = {}
        # The number of words of the longest name that begins with a word.
        self._longest: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._seen)

    def add(self, person: str) -> None:
        """Learn a name, an address, or both as in `Anna Schmidt <anna@example.org>`."""
        if not person or person in self._seen:
            return
        self._seen.add(person)
        pseudonym = self._salt.pseudonym(person)
        for words in _names(person):
            for order in _orders(words):
                _learn(self._whole, order, pseudonym)
                self._longest[order[0]] = max(len(order), self._longest.get(order[0], 0))
            for part in _parts(words):
                _learn(self._parts, part, pseudonym)

    def find(self, text: str, present: Collection[str] = ()) -> list[Span]:
        """Return the spans of names in `text`, none in another, in their order.

        `present`: who takes part, as given to `add`. A word that several people have in their names
        means the one of them who does, else nobody in particular: it gets a pseudonym of its own.
        """
        return list(self._spans(text, present)) if self._seen else []

    def _spans(self, text: str, present: Collection[str]) -> Iterator[Span]:
        found = list(_WORD.finditer(text))
        words = [self._word(match.group().casefold()) for match in found]
        if self._parts.keys().isdisjoint(words) and self._longest.keys().isdisjoint(words):
            return
        number = 0
        while number < len(words):
            name = self._whole_at(text, found, words, number)
            if name is not None:
                last = number + len(name) - 1
                owner = self._whole[name] or self._one_of(name, present)
                yield found[number].start(), found[last].end(), owner
                number = last + 1
                continue
            word = words[number]
            if word in self._parts and _means_a_name(found[number].group(), word):
                yield *found[number].span(), self._parts[word] or self._one_of((word,), present)
            number += 1

    def _word(self, word: str) -> str:
        """Return a word as names are kept: without digits behind it, unless somebody goes by these."""
        return word.rstrip(_DIGITS) if word[-1] in _DIGITS and word not in self._parts else word

    def _whole_at(self, text: str, found: list[re.Match[str]], words: list[str], number: int) -> tuple[str, ...] | None:
        for count in range(self._longest.get(words[number], 0), 1, -1):
            here = tuple(words[number : number + count])
            if here not in self._whole:
                # With the ending of a genitive it is the same name.
                here = (*here[:-1], here[-1].removesuffix("s"))
            pairs = pairwise(found[number : number + count])
            if here in self._whole and all(_GAP.fullmatch(text, left.end(), right.start()) for left, right in pairs):
                return here
        return None

    def _one_of(self, words: tuple[str, ...], present: Collection[str]) -> str:
        named = {
            self._salt.pseudonym(person) for person in present if any(_goes_by(name, words) for name in _names(person))
        }
        return named.pop() if len(named) == 1 else self._salt.pseudonym(f"part {words}")


def _learn(names: dict[Any, str], name: Any, pseudonym: str) -> None:
    if names.setdefault(name, pseudonym) != pseudonym:
        names[name] = ""


def _goes_by(name: tuple[str, ...], words: tuple[str, ...]) -> bool:
    return words in _orders(name) or (len(words) == 1 and words[0] in _parts(name))


def _orders(words: tuple[str, ...]) -> set[tuple[str, ...]]:
    if len(words) < 2:
        return set()
    orders = {words}
    if OFFICES.isdisjoint(words):
        orders.add((words[-1], *words[:-1]))
    return {spelt for order in orders for spelt in _spellings(order)}


def _parts(words: tuple[str, ...]) -> set[str]:
    """Return the words that stand for the whole name: its own, those of a login, and genitives."""
    if not OFFICES.isdisjoint(words):
        return set()
    parts = set()
    for spelt in _spellings(words):
        parts |= {*spelt} - NOBODYS
        if len(spelt) > 1:
            first, last = spelt[0], spelt[-1]
            parts |= {"".join(spelt), first[0] + last, last + first, last + first[0]}
    parts = {part for part in parts if len(part) >= MIN_LETTERS}
    return parts | {f"{part}s" for part in parts}


def _spellings(words: tuple[str, ...]) -> set[tuple[str, ...]]:
    return {words, tuple(map(_without_umlauts, words)), tuple(map(_plain, words))}


def _means_a_name(written: str, word: str) -> bool:
    return word not in ORDINARY or not written.islower()


def _names(person: str) -> Iterator[tuple[str, ...]]:
    """Yield what a person may be called: the name before an address, and the words in the address."""
    person = normalise(person)
    for local in _ADDRESS.findall(person):
        if words := _words(local):
            yield words
    name = _ADDRESS.sub(" ", person)
    alone = _BRACKETS.sub(" ", name)
    for written in dict.fromkeys((name, alone, _APOSTROPHE.sub("", alone))):
        if words := _words(written):
            yield words


def _words(name: str) -> tuple[str, ...]:
    words = tuple(word.casefold() for word in _WORD.findall(name))
    # One letter is an initial, or too little to know anybody by.
    named = tuple(word for word in words if word not in TITLES and len(word) > 1)
    return named[:MAX_WORDS]


def _without_umlauts(word: str) -> str:
    for letter, written in (("ä", "ae"), ("ö", "oe"), ("ü", "ue")):
        word = word.replace(letter, written)
    return word


def _plain(word: str) -> str:
    parts = unicodedata.normalize("NFD", word.translate(_STROKES))
    return "".join(letter for letter in parts if not unicodedata.combining(letter))
