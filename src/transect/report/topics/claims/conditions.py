"""Under what a claim was measured there and here: from its file, and where that leaves it open from the records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from transect.analysis.claim_verdicts import Decided
from transect.analysis.entries import AnyRecord
from transect.analysis.groups import grouped
from transect.analysis.surroundings import facts_of
from transect.domain.claims import CONDITIONS, NOT_NOTED, NOT_REPORTED, SAME
from transect.domain.metrics import METRICS
from transect.report.engine.blocks import Chip, Part, table, words
from transect.report.engine.text import clean

DIFFERS, UNKNOWN = "differs", (NOT_REPORTED, NOT_NOTED)
_UNTOLD = "the records do not tell"
# Hyper-parameters and libraries in one place of a table.
_MAX_NAMED = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One condition. `state`: same, differs, not reported, or not noted."""

    what: str
    there: str
    here: str
    state: str


def rows_of(claim: Decided) -> list[Row]:
    """Return every condition of a claim; one that its file does not name is not reported."""
    given = claim.work.conditions_of(claim.claim)
    return [_row(claim, what, given.get(what)) for what in CONDITIONS]


def _row(claim: Decided, what: str, given: Any) -> Row:
    there = given.there if given else NOT_REPORTED
    here = (given.here if given else None) or _recorded(claim, what)
    if what == "data" and (missing := _made_instead(claim)):
        here = f"{here}; generated, as {missing} was not there"
    if here == SAME:
        return Row(what=what, there=there, here=there, state=SAME)
    state = SAME if _words(there) == _words(here) else DIFFERS
    if there in UNKNOWN or here == _UNTOLD:
        state = there if there in UNKNOWN else NOT_REPORTED
    return Row(what=what, there=there, here=here, state=state)


def _made_instead(claim: Decided) -> str:
    """Name the files in whose place tickets were made up for a claim's cells."""
    rules = [record.parameters.get("corpus") for record in records_of(claim)]
    return _listed(rule.get("instead_of") for rule in rules if isinstance(rule, Mapping))


def _words(text: str) -> str:
    return " ".join(text.casefold().split())


def _recorded(claim: Decided, what: str) -> str:
    """Say what the records of the cells that decide a claim tell of a condition."""
    records = records_of(claim)
    if not records:
        return _UNTOLD
    cells = [group.cell for group in claim.groups]
    ranks = [cell.nodes * cell.ranks_per_node for cell in cells]
    metric = METRICS.get(claim.measured.metric) if claim.measured else None
    told = {
        "hardware": lambda: machine_text(machine_of(records)),
        "interconnect": lambda: _interconnect(cells),
        "versions": lambda: _versions(records),
        "data": lambda: _listed(cell.workload for cell in cells),
        "hyper-parameters": lambda: _parameters(records),
        "ranks": lambda: _listed(sorted(set(ranks))),
        "timed": lambda: metric.description if metric else "",
    }
    return told[what]() or _UNTOLD


def _interconnect(cells: Sequence[Any]) -> str:
    if all(cell.nodes == 1 for cell in cells):
        return "none: all ranks on one node" if any(cell.ranks_per_node > 1 for cell in cells) else "none: one rank"
    return _listed(cell.network or "the system's own" for cell in cells)


def _versions(records: Iterable[AnyRecord]) -> str:
    software = ((fact, value) for (kind, fact), value in facts_of(records).items() if kind == "software")
    named = [
        f"{fact} {', '.join(value)}" for fact, value in software if not fact.startswith("git ") and "lock" not in fact
    ]
    return _listed(named)


def _parameters(records: Sequence[AnyRecord]) -> str:
    found: dict[str, dict[str, None]] = {}
    for record in records:
        for name, value in record.parameters.items():
            if isinstance(value, (int, float, str)):
                found.setdefault(name, {})[str(value)] = None
    return _listed(f"{name.replace('_', ' ')} {' or '.join(values)}" for name, values in found.items())


def _listed(values: Iterable[Any]) -> str:
    """Join what there is, each once; of too many the first."""
    named = list(dict.fromkeys(str(value) for value in values if value is not None))
    more = len(named) - _MAX_NAMED
    return ", ".join(named[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def records_of(claim: Decided) -> list[AnyRecord]:
    """Return the records that the verdict on a claim rests on."""
    return [record for group in claim.groups for record in group.ok]


def machine_of(records: Iterable[AnyRecord]) -> dict[str, str]:
    """Return what records say of the machine that they are of, in words: never its name."""
    facts = facts_of(records)
    names = {"CPU model": "CPU", "cores": "cores", "memory": "memory", "gpus": "GPUs"}
    return {word: ", ".join(facts["machine", fact]) for fact, word in names.items() if ("machine", fact) in facts}


def machine_text(machine: Mapping[str, str]) -> str:
    """Write a machine in one line."""
    units = {"cores": "{} cores", "memory": "{}"}
    return ", ".join(units.get(word, "{}").format(value) for word, value in machine.items()) or "not told"


def differences_table(every: Iterable[Decided]) -> Part:
    """List under which other conditions than these cells the claims that they decide were measured; what several share once."""
    measured = [claim for claim in every if records_of(claim)]
    found = [(claim, row) for claim in measured for row in rows_of(claim) if row.state != SAME]
    shared = grouped(found, lambda one: (one[0].work.short, one[1]))
    of_work = Counter(claim.work.short for claim in measured)
    return table(
        [
            (short, row, "all" if len(ones) == of_work[short] else ", ".join(claim.claim.key for claim, _ in ones))
            for (short, row), ones in shared.items()
        ],
        [
            words("Work", lambda one: clean(one[0])),
            words("What", lambda one: one[1].what),
            words("There", lambda one: clean(one[1].there)),
            words("Here", lambda one: clean(one[1].here)),
            words("Beside each other", lambda one: Chip(one[1].state, "warn" if one[1].state == DIFFERS else "plain")),
            words("Claims", lambda one: clean(one[2])),
        ],
        folded="What differs from what was published",
        about=lambda one: None,
    )
