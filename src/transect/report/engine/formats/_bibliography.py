"""The bibliography of a paper: works of methods and of claims, and the software that the records name, as BibTeX."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from transect import __version__
from transect.analysis.entries import AnyRecord, inside
from transect.report.engine.finding import names
from transect.report.engine.formats._walk import Names
from transect.report.engine.formats.latex_tables import latex
from transect.report.engine.report import Made
from transect.report.engine.text import clipped

_MOST = 400
_MOST_NAMED = 6


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One entry; `fields` hold plain text. `phrase` is what a text says where it rests on the work."""

    key: str
    fields: Mapping[str, str]
    kind: str = "misc"
    phrase: str = ""


def _method(key: str, phrase: str, author: str, title: str, place: str, year: str, doi: str = "") -> Entry:
    fields = {"author": author, "title": title, "journal": place, "year": year}
    return Entry(key=key, kind="article", phrase=phrase, fields=fields | ({"note": f"doi:{doi}"} if doi else {}))


# What the report's own section on methods rests on; docs/references.md has them too.
METHODS = (
    _method(
        "hoefler2015",
        "Hoefler and Belli",
        "Hoefler, T. and Belli, R.",
        "Scientific benchmarking of parallel computing systems: twelve ways to tell the masses when reporting performance results",
        "SC",
        "2015",
        "10.1145/2807591.2807644",
    ),
    _method(
        "yuen1974",
        "trimmed geometric means",
        "Yuen, K. K.",
        "The two-sample trimmed t for unequal population variances",
        "Biometrika 61(1)",
        "1974",
        "10.1093/biomet/61.1.165",
    ),
    _method(
        "smyth2004",
        "Smyth 2004",
        "Smyth, G. K.",
        "Linear models and empirical Bayes methods for assessing differential expression in microarray experiments",
        "Statistical Applications in Genetics and Molecular Biology 3(1)",
        "2004",
        "10.2202/1544-6115.1027",
    ),
    _method(
        "schuirmann1987",
        "two one-sided tests",
        "Schuirmann, D. J.",
        "A comparison of the two one-sided tests procedure and the power approach for assessing the equivalence of "
        "average bioavailability",
        "Journal of Pharmacokinetics and Biopharmaceutics 15",
        "1987",
        "10.1007/BF01068419",
    ),
    _method(
        "holm1979",
        "Holm's correction",
        "Holm, S.",
        "A simple sequentially rejective multiple test procedure",
        "Scandinavian Journal of Statistics 6",
        "1979",
    ),
    _method(
        "chan2007",
        "Chan et al., 2007",
        "Chan, E. and Heimlich, M. and Purkayastha, A. and van de Geijn, R.",
        "Collective communication: theory, practice, and experience",
        "Concurrency and Computation: Practice and Experience 19(13)",
        "2007",
        "10.1002/cpe.1206",
    ),
)


def entries(made: Made, methods: str) -> tuple[list[Entry], dict[str, str]]:
    """Return all entries, and the keys of published works by what reports call them; `methods` is the text that rests on some."""
    taken = Names()
    known = [entry for entry in METHODS if entry.phrase in methods]
    keys = {work.short: f"work-{taken.of(work.short)}" for work in made.context.works}
    works = [
        # What is cited may begin with the title that stands before it.
        Entry(
            key=keys[work.short],
            fields={"title": work.title, "note": work.cite.removeprefix(work.title).lstrip(". ") or work.title},
        )
        for work in made.context.works
    ]
    return [*known, *works, *_software(made)], keys


def _software(made: Made) -> Iterator[Entry]:
    records = made.context.records
    commits = sorted({str(commit)[:12] for r in records if (commit := inside(r.provenance, "git.commit"))})
    edited = any(inside(r.provenance, "git.dirty") is True for r in records)
    measured = f"; the records are of commit {names(commits, _MOST_NAMED)}{' with edits' if edited else ''}"
    yield Entry(
        key="transect",
        fields={"title": "transect", "note": f"version {__version__} wrote this draft{measured if commits else ''}"},
    )
    taken = Names()
    for name, versions in sorted(_versions(records).items()):
        told = [
            f"{version}{f' ({names(sorted(where), _MOST_NAMED)})' if where else ''}"
            for version, where in sorted(versions.items())
        ]
        yield Entry(key=f"software-{taken.of(name)}", fields={"title": name, "note": names(told, _MOST_NAMED)})


def _versions(records: Iterable[AnyRecord]) -> dict[str, dict[str, set[str]]]:
    """Return by the name of each library and benchmark its versions, each with the environments that it was in."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    seen: set[int] = set()
    for record in records:
        runs = record.details.get("runs")
        for run in runs if isinstance(runs, list) else ():
            if isinstance(run, dict) and run.get("benchmark") and run.get("version"):
                found[str(run["benchmark"])][str(run["version"])].add(record.stage)
        # Most records share one object of provenance.
        if id(record.provenance) in seen:
            continue
        seen.add(id(record.provenance))
        libraries, environment = record.provenance.get("libraries"), inside(record.provenance, "environment.name")
        for name, version in libraries.items() if isinstance(libraries, dict) else ():
            found[str(name)][str(version)] |= {f"environment {environment}"} if environment else set()
    return found


def cited(text: str, known: Iterable[Entry]) -> str:
    r"""Return text as LaTeX, with a reference behind each phrase that stands for a work.

    >>> cited("by Holm's correction, 5 %", METHODS)
    'by Holm\\textquotesingle{}s correction\\nobreakspace{}\\cite{holm1979}, 5 \\%'
    """
    written = latex(text)
    for entry in known:
        if entry.phrase:
            phrase = latex(entry.phrase)
            written = written.replace(phrase, rf"{phrase}\nobreakspace{{}}\cite{{{entry.key}}}", 1)
    return written


def bibtex(every: Iterable[Entry]) -> str:
    """Return the file of all entries. Braces are letters of their own there: BibTeX counts those behind a backslash too."""
    return "\n".join(_lines(entry) for entry in every)


def _lines(entry: Entry) -> str:
    fields = [
        f"  {name} = {{{'{%s}' if name == 'title' else '%s'}}},\n" % _value(v) for name, v in entry.fields.items()
    ]
    sorting = "" if "author" in entry.fields else f"  key = {{{entry.key}}},\n"
    return f"@{entry.kind}{{{entry.key},\n{''.join(fields)}{sorting}}}\n"


def _value(text: str) -> str:
    written = latex(clipped(text, _MOST)).replace(r"\{", r"\textbraceleft{}").replace(r"\}", r"\textbraceright{}")
    # The same outside of ASCII and of Latin-1: old BibTeX sorts bytes.
    return re.sub(r" +", " ", written).strip()
