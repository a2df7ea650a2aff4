"""The bibliography of a paper: works of methods and of claims, and the software that the records name, as BibTeX."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from transect import __version__
from transect.analysis.entries import AnyRecord, inside
from transect.report.engine.finding import names
from transect.report.engine.formats._walk import Names
from transect.report.engine.formats.latex_tables import latex
from transect.report.engine.report import Made
from transect.report.engine.shell import TEMPLATES
from transect.report.engine.text import clipped

_MOST, _MOST_NAMED = 400, 6
_METHOD = re.compile(r"@\w+\{(?P<key>\w+),\n.*?annote = \{(?P<phrase>[^}]*)\}\n\}\n", re.DOTALL)


def method_works() -> dict[str, tuple[str, str]]:
    """Return what the methods rest on: the key and the entry of each work, by how the text on methods names it."""
    text = (TEMPLATES / "methods.bib").read_text(encoding="utf-8")
    return {match["phrase"]: (match["key"], match[0]) for match in _METHOD.finditer(text)}


@dataclass(frozen=True, kw_only=True)
class Bibliography:
    """All entries in BibTeX, and the keys of works: by a phrase of the text, by what reports call them, of software."""

    entries: list[str] = field(default_factory=list)
    phrases: dict[str, str] = field(default_factory=dict)
    works: dict[str, str] = field(default_factory=dict)
    software: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, made: Made, methods: str) -> Bibliography:
        """Gather the works that the text on methods and the study's claims name, and all software of its records."""
        held, taken = cls(), Names()
        for phrase, (key, entry) in method_works().items():
            if phrase in methods:
                held.phrases[phrase] = key
                held.entries.append(entry)
        for work in made.context.works:
            held.works[work.short] = key = f"work-{taken.of(work.short)}"
            # What is cited may begin with the title, which stands before it.
            held.entries.append(_misc(key, work.title, work.cite.removeprefix(work.title).lstrip(". ")))
        for title, note in _software(made.context.records):
            held.software.append(f"software-{taken.of(title)}")
            held.entries.append(_misc(held.software[-1], title, note))
        return held

    def cited(self, text: str) -> str:
        """Return text as LaTeX, with a reference behind each phrase that stands for a work."""
        written = latex(text)
        for phrase, key in self.phrases.items():
            written = written.replace(latex(phrase), rf"{latex(phrase)}\nobreakspace{{}}\cite{{{key}}}", 1)
        return written


def _software(records: Iterable[AnyRecord]) -> Iterator[tuple[str, str]]:
    commits = sorted({str(commit)[:12] for r in records if (commit := inside(r.provenance, "git.commit"))})
    edited = " with edits" if any(inside(r.provenance, "git.dirty") is True for r in records) else ""
    measured = f"; the records are of commit {names(commits, _MOST_NAMED)}{edited}" if commits else ""
    yield "transect", f"version {__version__} wrote this draft{measured}"
    for name, versions in sorted(_versions(records).items()):
        told = [f"{one} ({names(sorted(where), _MOST_NAMED)})" for one, where in sorted(versions.items())]
        yield name, names(told, _MOST_NAMED)


def _versions(records: Iterable[AnyRecord]) -> dict[str, dict[str, set[str]]]:
    """Return by the name of each library and benchmark its versions, each with the environments or stages that it was in."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for record in records:
        runs = record.details.get("runs")
        for run in runs if isinstance(runs, list) else ():
            if isinstance(run, dict) and run.get("benchmark") and run.get("version"):
                found[str(run["benchmark"])][str(run["version"])].add(record.stage)
        libraries = record.provenance.get("libraries")
        for name, version in libraries.items() if isinstance(libraries, dict) else ():
            found[str(name)][str(version)].add(str(inside(record.provenance, "environment.name") or record.stage))
    return found


def _misc(key: str, title: str, note: str) -> str:
    return f"@misc{{{key},\n  key = {{{key}}},\n  title = {{{{{_value(title)}}}}},\n  note = {{{_value(note)}}}\n}}\n"


def _value(text: str) -> str:
    """Return text for a field: BibTeX counts braces, those behind a backslash too."""
    return latex(clipped(text, _MOST)).replace(r"\{", r"\textbraceleft{}").replace(r"\}", r"\textbraceright{}")
