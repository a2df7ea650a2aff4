"""What records were measured on and with, and in what two sets of records differ there."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from transect.analysis.entries import MACHINE, SOFTWARE, AnyRecord, inside

NOT_TOLD = "not told"

# A fact's kind and name, and all of its values as text, sorted.
Facts = Mapping[tuple[str, str], tuple[str, ...]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """A fact that two sets of records do not agree in. `kind`: machine, software or variable."""

    kind: str
    fact: str
    before: tuple[str, ...]
    after: tuple[str, ...]


def facts_of(records: Iterable[AnyRecord]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return each fact that provenance tells of these records, with every value that occurs."""
    # Most records share one object of provenance.
    every = {id(record.provenance): record.provenance for record in records if record.provenance}
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for provenance in every.values():
        for kind, fact, value in _reported(provenance):
            found[kind, fact].add(value)
    return {key: tuple(sorted(values)) for key, values in found.items()}


def differences(before: Facts, after: Facts) -> list[Difference]:
    """Name the facts in which two sets differ: machine, then software, then variables.

    What only one side reports is a difference too, except for the libraries and variables of an environment
    that the other has no record of.
    """
    environments = [_environments(side) for side in (before, after)]
    found = []
    for key in sorted(before.keys() | after.keys(), key=_order):
        values = before.get(key, ()), after.get(key, ())
        if values[0] == values[1]:
            continue
        kind, fact = key
        environment = fact.partition(" ")[0]
        if (
            not all(values)
            and kind == "software"
            and any(environment in e for e in environments)
            and not all(environment in e for e in environments)
        ):
            continue
        found.append(Difference(kind=kind, fact=fact, before=values[0] or (NOT_TOLD,), after=values[1] or (NOT_TOLD,)))
    return found


def _reported(provenance: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for kind, names in (("machine", MACHINE), ("software", SOFTWARE)):
        for name in names:
            value = inside(provenance, name)
            if value not in (None, "", [], {}):
                yield kind, fact_words(name), fact_text(name, value)
    environment = _mapping(provenance, "environment")
    environment_name = str(environment.get("name") or "driver")
    if environment.get("lock_hash"):
        yield "software", f"{environment_name} lock hash", str(environment["lock_hash"])[:16]
    for library, version in _mapping(provenance, "libraries").items():
        yield "software", f"{environment_name} {library}", str(version)
    for name, value in _mapping(provenance, "variables").items():
        yield "variable", str(name), str(value)


def _mapping(provenance: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    mapping = provenance.get(key)
    return mapping if isinstance(mapping, Mapping) else {}


def fact_words(name: str) -> str:
    """Name a fact of the provenance: `git.commit` is `git commit`."""
    return name.removesuffix("_bytes").replace("_", " ").replace(".", " ").replace("cpu", "CPU")


def fact_text(name: str, value: Any) -> str:
    """Write the value of a fact."""
    if name == "memory_bytes" and isinstance(value, (int, float)):
        # What a kernel keeps for itself differs from boot to boot.
        return f"{value / 2**30:.1f} GiB"
    if name == "git.commit":
        return str(value)[:12]
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (dict, list)):
        return json.dumps(value, sort_keys=True, ensure_ascii=False)
    return str(value)


def _environments(facts: Facts) -> set[str]:
    return {fact.partition(" ")[0] for kind, fact in facts if fact.endswith(" lock hash")}


def _order(key: tuple[str, str]) -> tuple[int, int, str]:
    kind, fact = key
    place = {fact_words(name): i for i, name in enumerate((*MACHINE, *SOFTWARE))}
    return ("machine", "software", "variable").index(kind), place.get(fact, len(place)), fact
