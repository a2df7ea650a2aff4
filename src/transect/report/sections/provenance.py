"""Section: the machine and the code behind the records, and where records differ in them."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from transect.domain.record import Record
from transect.report.blocks import Block, Chip, Column, Prose, Section, Table, Value
from transect.report.context import Context
from transect.report.text import clean, count, quantity

__all__ = ["provenance_section"]

# Facts that should be the same for two records to be compared.
_FACTS = (
    "system.name", "system.description", "system.interconnect", "slurm.SLURM_JOB_NODELIST", "host",
    "cpu_model", "sockets", "cores", "numa_nodes", "memory_bytes", "kernel", "cgroup", "gpus",
    "mpi", "git.commit", "git.dirty",
)  # fmt: skip


def provenance_section(context: Context) -> Section:
    """Show one value per fact where all records agree, and every value where they do not."""
    records = [record for record in context.records if record.provenance]
    blocks: list[Block] = []
    if records:
        facts, differing = _facts(records)
        text = (
            "All records agree on machine and code."
            if not differing
            else f"{count(len(differing), 'fact')} differ between records: {', '.join(differing)}."
        )
        blocks += [Prose(text), facts, _environments(records), *_variables(records)]
        started, ended = min(r.started for r in records), max(r.ended for r in records)
        blocks.append(Prose(f"First record started {started}, last ended {ended}.", quiet=True))
    without = len(context.records) - len(records)
    if without:
        blocks.append(Prose(f"{count(without, 'record')} without provenance.", quiet=True))
    if not blocks:
        blocks.append(Prose("There are no records.", quiet=True))
    lead = "What the numbers were measured on. A difference between records is marked."
    return Section(id="provenance", title="Provenance", lead=lead, blocks=blocks)


def _facts(records: list[Record]) -> tuple[Table, list[str]]:
    rows: list[list[Value]] = []
    differing = []
    for fact in _FACTS:
        seen: Counter[str] = Counter()
        for record in records:
            value = _lookup(record.provenance, fact)
            if value is not None:
                seen[_show(fact, value)] += 1
        if not seen:
            continue
        if len(seen) == 1:
            (only, _), missing = seen.most_common(1)[0], len(records) - seen.total()
            note = f"{missing} without" if missing else ""
            rows.append([_title(fact), only, Chip("same", "good"), note])
            continue
        differing.append(_title(fact))
        for i, (value, amount) in enumerate(sorted(seen.items(), key=lambda x: (-x[1], x[0]))):
            head: list[Value] = [_title(fact), value, Chip("differs", "warn")]
            rows.append([*(head if i == 0 else ["", value, None]), count(amount, "record")])
    columns = [Column("Fact"), Column("Value"), Column(""), Column("")]
    return Table(columns=columns, rows=rows, caption="Machine and code"), differing


def _lookup(provenance: dict[str, Any], path: str) -> Any:
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


def _environments(records: Iterable[Record]) -> Table:
    hashes: dict[str, set[str]] = defaultdict(set)
    libraries: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    amount: Counter[str] = Counter()
    for record in records:
        environment = record.provenance.get("environment")
        given = environment if isinstance(environment, dict) else {}
        name = str(given.get("name") or "unnamed")
        amount[name] += 1
        if given.get("lock_hash"):
            hashes[name].add(str(given["lock_hash"])[:16])
        found = record.provenance.get("libraries")
        for library, version in (found if isinstance(found, dict) else {}).items():
            libraries[name][str(library)].add(str(version))
    rows: list[list[Value]] = []
    for name in sorted(amount):
        several = len(hashes[name]) > 1
        versions = [
            f"{library} {' / '.join(sorted(found))}"
            for library, found in sorted(libraries[name].items())
        ]
        rows.append([
            clean(name), clean(", ".join(sorted(hashes[name]))) or "–", str(amount[name]),
            clean(", ".join(versions)) or "–", Chip("differs", "warn") if several else None,
        ])  # fmt: skip
    columns = [Column("Environment"), Column("Lock hash", code=True),
               Column("Records", numeric=True), Column("Libraries"), Column("")]  # fmt: skip
    return Table(columns=columns, rows=rows, caption="Software environments")


def _variables(records: Iterable[Record]) -> list[Block]:
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for record in records:
        found = record.provenance.get("variables")
        for name, value in (found if isinstance(found, dict) else {}).items():
            seen[str(name)][str(value)] += 1
    if not seen:
        return []
    rows = [
        [clean(name), clean(", ".join(f"{value} ({amount})" for value, amount in
                                      sorted(values.items())))]
        for name, values in sorted(seen.items())
    ]  # fmt: skip
    columns = [Column("Variable", code=True), Column("Values (records)")]
    return [Table(columns=columns, rows=rows, folded="Environment variables that change speed")]
