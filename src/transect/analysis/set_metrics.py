"""Which metrics of a stage are compared between result sets, and what each of them is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from transect.analysis.entries import AnyRecord, Entry
from transect.analysis.result_sets import ResultSet
from transect.domain.errors import BadInput, unknown_name
from transect.domain.metrics import Direction, Nature, nature_of
from transect.domain.record import Status
from transect.planning.stage import STAGES

# Speeds that the seed of a repeat decides too.
_SEEDED = frozenset({"time_to_quality"})


class Role(StrEnum):
    """What a line of a comparison is about."""

    OUTCOME = "outcome"
    SPEED = "speed"
    QUALITY = "quality"


@dataclass(frozen=True, kw_only=True, slots=True)
class Chosen:
    """One number of a stage's records. `seeded`: repeats are compared each with itself.

    `units`: how many pairs of unit and direction records give it; more than one cannot be compared.
    `fact`: it has no noise.
    """

    metric: str
    label: str | None
    role: Role
    unit: str
    direction: Direction
    seeded: bool = False
    fact: bool = False
    units: int = 1


_Seen = Mapping[tuple[str, str | None], frozenset[tuple[str, Direction]]]


def chosen(sets: Iterable[ResultSet], metrics: Sequence[str] = ()) -> dict[str, list[Chosen]]:
    """Return what is compared of each stage, by the stages that have a result.

    By default what decides a stage's own pairs and its quality; of a stage without any, and of benchmarks, all
    numbers that have a better direction. Raises BadInput for a metric of `metrics` that no record has, or
    that is neither better high nor low.
    """
    seen = _seen(record for results in sets for record in results.loaded.records)
    known = {name: pairs for stage in seen.values() for (name, _), pairs in stage.items()}
    for name in metrics:
        if name not in known:
            raise unknown_name("metric", name, known, "--metric")
        if all(direction is Direction.NEUTRAL for _, direction in known[name]):
            raise BadInput(f"--metric {name}: neither more nor less of it is better")
    return {stage: _of_stage(stage, seen_of, metrics) for stage, seen_of in sorted(seen.items())}


def _seen(records: Iterable[AnyRecord]) -> dict[str, _Seen]:
    found: dict[str, dict[tuple[str, str | None], set[tuple[str, Direction]]]] = defaultdict(lambda: defaultdict(set))
    looked: set[tuple[str, int]] = set()
    for record in records:
        if record.status is not Status.OK:
            continue
        if isinstance(record, Entry):
            # Most records share one object of names.
            if (record.stage, id(record.metric_names)) in looked:
                continue
            looked.add((record.stage, id(record.metric_names)))
        for number in record.metrics:
            found[record.stage][number.name, number.label].add((number.unit, number.direction))
    return {stage: {key: frozenset(pairs) for key, pairs in numbers.items()} for stage, numbers in found.items()}


def _decisive(stage: str) -> tuple[str, ...]:
    """Return the metrics by which a stage's points are compared; none for a stage that is not there any more."""
    rules = STAGES.get(stage).pairs if stage in STAGES else ()
    return tuple(dict.fromkeys(rule.metric for rule in rules))


def _of_stage(stage: str, seen: _Seen, metrics: Sequence[str]) -> list[Chosen]:
    decisive = _decisive(stage)
    if metrics:
        wanted = set(metrics)
    elif any(name in decisive for name, label in seen if label is None):
        wanted = {*decisive, *(name for name, _ in seen if Nature.QUALITY in nature_of(name))}
    else:
        wanted = {name for name, _ in seen if Nature.PART not in nature_of(name)}
    order = {name: place for place, name in enumerate((*metrics, *decisive))}
    found = []
    for (name, label), pairs in seen.items():
        unit, direction = min(pairs)
        if name not in wanted or direction is Direction.NEUTRAL:
            continue
        nature = nature_of(name)
        role = Role.QUALITY if Nature.QUALITY in nature else Role.SPEED
        exact = Nature.EXACT in nature
        found.append(
            Chosen(
                metric=name,
                label=label,
                role=role,
                unit=unit,
                direction=direction,
                # A repeat's seed changes what is learnt in it, on both sides alike.
                seeded=label is None and (name in _SEEDED or (role is Role.QUALITY and not exact)),
                fact=exact,
                units=len(pairs),
            )
        )
    return sorted(found, key=lambda c: (c.role, order.get(c.metric, len(order)), c.metric, c.label or ""))
