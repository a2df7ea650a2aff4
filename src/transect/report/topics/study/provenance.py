"""Section: machine, versions and settings behind the records, and where records differ."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any

from transect.analysis.entries import MACHINE, SOFTWARE, AnyRecord, inside
from transect.analysis.surroundings import fact_text, fact_words
from transect.domain.record import Cause, Status
from transect.report.engine.blocks import Chip, Column, Lead, Part, Table, code, digits, note, table, words
from transect.report.engine.context import Context
from transect.report.engine.finding import names
from transect.report.engine.text import clean, clipped, count
from transect.report.topics.study.failure_facts import CELL

_FACTS = (*MACHINE, "system.description", "system.interconnect", "slurm.SLURM_JOB_NODELIST", *SOFTWARE)
_MAX_VALUES = 12
_CLIP = 120

# Each provenance that occurs, and how many records share it.
_Shared = list[tuple[Mapping[str, Any], int]]
# Fact, value, mark and remark.
_Row = tuple[str, str, Chip | None, str]
_DIFFERS = Chip("differs", "warn")


def provenance_body(context: Context) -> Iterator[Part]:
    """Show one value per fact where all records agree, and every value where they do not."""
    records = [record for record in context.records if record.provenance]
    if not context.records:
        yield Lead("What the numbers were measured on.", empty="There are no records.")
    if records:
        shared = _shared(records)
        every = [list(_rows(fact, shared, len(records))) for fact in _FACTS]
        every.append(list(_installed(context)))
        differing = [rows for rows in every if rows and rows[0][2] == _DIFFERS]
        agreed = [row for rows in every if rows not in differing for row in rows]
        heads = ", ".join(rows[0][0] for rows in differing)
        lead = f"Records differ in {heads}" if differing else "All records agree on machine and code"
        yield Lead(f"{lead}. What the numbers were measured on, and with which versions and settings.")
        titles = ("Fact", "Value", "", "")
        columns: list[Column[Any]] = [words(title, itemgetter(i)) for i, title in enumerate(titles)]
        if differing:
            rows = [row for rows in differing for row in rows]
            yield table(rows, columns, caption="Where records differ", fold_title="Where records differ")
        yield table(agreed, columns, folded="Machine and code that all records share")
        yield _environments(shared)
        yield _variables(shared)
        started, ended = min(r.started for r in records), max(r.ended for r in records)
        yield note(f"First record started {started}, last ended {ended}.")
    without = len(context.records) - len(records)
    if without:
        yield note(f"{count(without, 'record')} without provenance.")


def _installed(context: Context) -> Iterator[_Row]:
    """Name what some repeats of a cell lacked and others had: something was installed, or taken away, in between."""
    title = "What is installed"
    for group in (group for groups in context.groups.values() for group in groups if group.ok):
        skipped = [r for r in group.records if r.status is Status.SKIPPED and r.cause is Cause.MISSING_DEPENDENCY]
        # What took something from another cell lacked that cell.
        without = [record for record in skipped if not CELL.search(record.message)]
        if without:
            had = count(len(group.ok), "repeat")
            lacked = f"{clipped(without[0].message, _CLIP)}, in {count(len(without), 'repeat')} of {group.cell.id}"
            yield title, clean(lacked), _DIFFERS, f"{had} had it, the first from {min(r.started for r in group.ok)}"
            title = ""


def _shared(records: list[AnyRecord]) -> _Shared:
    """Count records by provenance: most share one object, which is looked at once."""
    amounts = Counter(id(record.provenance) for record in records)
    objects = {id(record.provenance): record.provenance for record in records}
    return [(objects[key], amount) for key, amount in amounts.items()]


def _rows(fact: str, shared: _Shared, records: int) -> Iterator[_Row]:
    """Give the rows of one fact: one where all records agree, else one for each value."""
    seen: Counter[str] = Counter()
    for provenance, amount in shared:
        value = inside(provenance, fact)
        if value not in (None, "", [], {}):
            seen[clean(fact_text(fact, value))] += amount
    title = fact_words(fact).replace("slurm SLURM JOB NODELIST", "nodes of the job")
    values = sorted(seen.items(), key=lambda item: (-item[1], item[0]))
    if len(values) == 1:
        [(value, amount)] = values
        missing = f"{records - amount} without" if amount < records else ""
        yield title, value, Chip("same", "good"), missing
        return
    for place, (value, amount) in enumerate(values[:_MAX_VALUES]):
        head = ("", None) if place else (title, _DIFFERS)
        yield head[0], value, head[1], count(amount, "record")
    further = values[_MAX_VALUES:]
    if further:
        left = sum(amount for _, amount in further)
        yield "", count(len(further), "more value"), None, count(left, "record")


def _mapping(provenance: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = provenance.get(key)
    return value if isinstance(value, dict) else {}


def _environments(shared: _Shared) -> Table:
    hashes: dict[str, set[str]] = defaultdict(set)
    libraries: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    amounts: Counter[str] = Counter()
    for provenance, amount in shared:
        environment = _mapping(provenance, "environment")
        name = str(environment.get("name") or "unnamed")
        amounts[name] += amount
        if environment.get("lock_hash"):
            hashes[name].add(str(environment["lock_hash"])[:16])
        for library, version in _mapping(provenance, "libraries").items():
            libraries[name][str(library)].add(str(version))

    def versions(name: str) -> str:
        return ", ".join(f"{library} {' / '.join(sorted(seen))}" for library, seen in sorted(libraries[name].items()))

    return table(
        sorted(amounts),
        [
            words("Environment", clean),
            code("Lock hash", lambda name: clean(", ".join(sorted(hashes[name]))) or "–"),
            digits("Records", lambda name: amounts[name]),
            words("Libraries", lambda name: clean(versions(name)) or "–"),
            words("", lambda name: _DIFFERS if len(hashes[name]) > 1 else None),
        ],
        caption="Software environments",
    )


def _variables(shared: _Shared) -> Part:
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for provenance, amount in shared:
        for name, value in _mapping(provenance, "variables").items():
            seen[str(name)][str(value)] += amount

    def values(name: str) -> str:
        listed = [f"{value} ({amount})" for value, amount in sorted(seen[name].items())]
        return clean(names(listed, _MAX_VALUES) if len(listed) > _MAX_VALUES else ", ".join(listed))

    columns = [code("Variable", clean), words("Values (records)", values)]
    title = "Environment variables that change speed"
    return table(sorted(seen), columns, folded=title) if seen else None
