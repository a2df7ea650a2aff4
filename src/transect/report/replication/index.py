"""The index of all replications of a folder: a row for each work, made from the data beside its page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from transect.analysis.claims import Verdict
from transect.report.comparison.page import made_sections, page_of
from transect.report.engine.blocks import Chip, Column, Lead, Part, Prose, digits, table, words
from transect.report.engine.text import clean, count
from transect.report.replication.facts import SCHEMA_VERSION
from transect.report.replication.held import OWN_CODE
from transect.report.topics.claims.conditions import machine_text
from transect.report.topics.claims.findings import TONES, sentence

DATA, PAGE = "replication.json", "replication.html"


@dataclass(frozen=True, kw_only=True, slots=True)
class Listed:
    """A work's replication as its data tell it; `why` says what is wrong where they cannot be read."""

    name: str
    facts: Mapping[str, Any]
    why: str = ""

    @property
    def counts(self) -> dict[str, int]:
        """How many claims have each verdict."""
        return {str(verdict): int(self.facts["counts"][str(verdict)]) for verdict in Verdict}


def listed(folder: Path) -> list[Listed]:
    """Read what lies below a folder of replications, by name; what is damaged is told and not passed over."""
    if not folder.is_dir():
        return []
    return [_listed(place) for place in sorted(folder.iterdir()) if place.is_dir() and not place.name.startswith(".")]


def _listed(place: Path) -> Listed:
    try:
        facts = json.loads((place / DATA).read_text(encoding="utf-8"))
        if facts["schema_version"] != SCHEMA_VERSION:
            raise ValueError(f"schema_version {facts['schema_version']}: expected {SCHEMA_VERSION}")
        made = Listed(name=place.name, facts=facts)
        # What the page will ask for is asked for here.
        _ = made.counts, [len(facts[key] + "") for key in ("short", "title", "day")]
        _ = [len(told + "") for pair in facts["machine"].items() for told in pair]
    except (OSError, ValueError, KeyError, TypeError, RecursionError, OverflowError, AttributeError) as error:
        what = f"{DATA} cannot be read: {type(error).__name__}: {error}; transect replicate {place.name} writes it anew"
        return Listed(name=place.name, facts={}, why=what)
    return made


def index_page(works: Sequence[Listed]) -> bytes:
    """Return `index.html`."""
    able = [work for work in works if not work.why]
    total = {str(verdict): sum(work.counts[str(verdict)] for work in able) for verdict in Verdict}
    sections = [("works", "Works", partial(_works, able, total)), ("damaged", "Damaged", partial(_damaged, works))]
    return page_of(
        made_sections(sections, drawn=True),
        kind="replications",
        title=f"Replications of {count(len(able), 'work')}",
        about=[OWN_CODE.replace("This is a replication", "These are replications")],
        chips=[
            Chip(f"{word}: {amount}", TONES.get(Verdict(word), "plain")) for word, amount in total.items() if amount
        ],
    )


def _works(works: Sequence[Listed], total: Mapping[str, int]) -> Iterator[Part]:
    if not works:
        yield Prose("Nothing is replicated here yet: transect replicate --list says what can be.")
        return
    said = sentence(total)
    yield Lead(f"{said[:1].upper()}{said[1:]}.")
    columns: list[Column[Listed]] = [
        words(
            "Work",
            lambda work: Markup('<a href="{}/{}">{}</a>').format(quote(work.name), PAGE, clean(work.facts["short"])),
        ),
        words("Title", lambda work: clean(work.facts["title"])),
        *(digits(str(verdict), partial(_amount, str(verdict))) for verdict in Verdict),
        words("Machine", lambda work: clean(machine_text(work.facts["machine"]))),
        words("Day", lambda work: clean(work.facts["day"])),
    ]
    yield table(works, columns, caption="Works", most=len(works), about=lambda work: None)


def _amount(verdict: str, work: Listed) -> int:
    return work.counts[verdict]


def _damaged(works: Sequence[Listed]) -> Iterator[Part]:
    damaged = [work for work in works if work.why]
    if damaged:
        columns: list[Column[Listed]] = [
            words("Folder", lambda work: clean(work.name)),
            words("What is wrong", lambda work: clean(work.why)),
        ]
        yield table(damaged, columns, caption="Damaged", about=lambda work: None)
