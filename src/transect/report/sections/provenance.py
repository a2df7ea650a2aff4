"""Section: the machine and the code behind the records, and where records differ in them."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from transect.analysis.entries import AnyRecord
from transect.report.blocks import (
    Block,
    Body,
    Chip,
    Prose,
    Table,
    Value,
    code,
    digits,
    table,
    words,
)
from transect.report.context import Context
from transect.report.findings.finding import names
from transect.report.text import clean, count, quantity

__all__ = ["provenance_body"]

# Facts that should be the same for two records to be compared.
_FACTS = (
    "system.name", "system.description", "system.interconnect", "slurm.SLURM_JOB_NODELIST", "host",
    "cpu_model", "sockets", "cores", "numa_nodes", "memory_bytes", "kernel", "cgroup", "gpus",
    "mpi", "git.commit", "git.dirty",
)  # fmt: skip
_MOST_VALUES = 12

# Each provenance that occurs, and how many records share it.
_Shared = list[tuple[Mapping[str, Any], int]]


def provenance_body(context: Context) -> Body:
    """Show one value per fact where all records agree, and every value where they do not."""
    records = [record for record in context.records if record.provenance]
    blocks: list[Block] = []
    if records:
        shared = _shared(records)
        facts, differing = _facts(shared, len(records))
        text = (
            "All records agree on machine and code."
            if not differing
            else f"{count(len(differing), 'fact')} differ between records: {', '.join(differing)}."
        )
        blocks += [Prose(text), facts, _environments(shared), *_variables(shared)]
        started, ended = min(r.started for r in records), max(r.ended for r in records)
        blocks.append(Prose(f"First record started {started}, last ended {ended}.", quiet=True))
    without = len(context.records) - len(records)
    if without:
        blocks.append(Prose(f"{count(without, 'record')} without provenance.", quiet=True))
    if not blocks:
        blocks.append(Prose("There are no records.", quiet=True))
    lead = "What the numbers were measured on. A difference between records is marked."
    return Body(lead=lead, blocks=blocks)


def _shared(records: list[AnyRecord]) -> _Shared:
    """Count records by provenance: most share one object, which is looked at once."""
    amounts = Counter(id(record.provenance) for record in records)
    objects = {id(record.provenance): record.provenance for record in records}
    return [(objects[key], amount) for key, amount in amounts.items()]


def _facts(shared: _Shared, records: int) -> tuple[Table, list[str]]:
    rows: list[list[Value]] = []
    differing = []
    for fact in _FACTS:
        seen: Counter[str] = Counter()
        for provenance, amount in shared:
            value = _lookup(provenance, fact)
            if value is not None:
                seen[_show(fact, value)] += amount
        if not seen:
            continue
        title = _title(fact)
        if len(seen) == 1:
            (only, amount) = seen.most_common(1)[0]
            missing = records - amount
            note = f"{missing} without" if missing else ""
            rows.append([title, only, Chip("same", "good"), note])
            continue
        differing.append(title)
        head: list[Value] = [title, Chip("differs", "warn")]
        ordered = sorted(seen.items(), key=lambda item: (-item[1], item[0]))
        for value, amount in ordered[:_MOST_VALUES]:
            rows.append([head[0], value, head[1], count(amount, "record")])
            head = ["", None]
        if len(ordered) > _MOST_VALUES:
            left = sum(amount for _, amount in ordered[_MOST_VALUES:])
            more = count(len(ordered) - _MOST_VALUES, "more value")
            rows.append(["", more, None, count(left, "record")])
    columns = [
        words(title, lambda row, i=i: row[i]) for i, title in enumerate(("Fact", "Value", "", ""))
    ]
    return table(rows, columns, caption="Machine and code"), differing


def _lookup(provenance: Mapping[str, Any], path: str) -> Any:
    value: Any = provenance
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return None if value in ([], {}, "") else value


def _title(fact: str) -> str:
    fact = fact.replace("slurm.SLURM_JOB_NODELIST", "nodes of the job")
    return fact.replace("_bytes", "").replace("_", " ").replace(".", " ").replace("cpu", "CPU")


def _show(fact: str, value: Any) -> str:
    if fact.endswith("_bytes") and isinstance(value, (int, float)):
        return quantity(float(value), "B")
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (dict, list)):
        return clean(json.dumps(value, sort_keys=True, ensure_ascii=False))
    return clean(str(value))


def _environments(shared: _Shared) -> Table:
    hashes: dict[str, set[str]] = defaultdict(set)
    libraries: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    amounts: Counter[str] = Counter()
    for provenance, amount in shared:
        given = provenance.get("environment")
        environment = given if isinstance(given, dict) else {}
        name = str(environment.get("name") or "unnamed")
        amounts[name] += amount
        if environment.get("lock_hash"):
            hashes[name].add(str(environment["lock_hash"])[:16])
        told = provenance.get("libraries")
        for library, version in (told if isinstance(told, dict) else {}).items():
            libraries[name][str(library)].add(str(version))

    def versions(name: str) -> str:
        return ", ".join(
            f"{library} {' / '.join(sorted(seen))}"
            for library, seen in sorted(libraries[name].items())
        )

    return table(sorted(amounts), [
        words("Environment", clean),
        code("Lock hash", lambda name: clean(", ".join(sorted(hashes[name]))) or "–"),
        digits("Records", lambda name: str(amounts[name])),
        words("Libraries", lambda name: clean(versions(name)) or "–"),
        words("", lambda name: Chip("differs", "warn") if len(hashes[name]) > 1 else None),
    ], caption="Software environments")  # fmt: skip


def _variables(shared: _Shared) -> list[Block]:
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for provenance, amount in shared:
        given = provenance.get("variables")
        for name, value in (given if isinstance(given, dict) else {}).items():
            seen[str(name)][str(value)] += amount
    if not seen:
        return []

    def values(name: str) -> str:
        told = [f"{value} ({amount})" for value, amount in sorted(seen[name].items())]
        return clean(names(told, _MOST_VALUES) if len(told) > _MOST_VALUES else ", ".join(told))

    columns = [code("Variable", clean), words("Values (records)", values)]
    return [table(sorted(seen), columns, folded="Environment variables that change speed")]
