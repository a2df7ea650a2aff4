"""How ranks share a training: replicas, parts of the model, micro-batches; and what that costs or gains.

Bubble of a pipeline of P equal stages and M micro-batches: (P - 1) / (M + P - 1) of all ranks' time, for
GPipe (Y. Huang et al., "GPipe: efficient training of giant neural networks using pipeline parallelism",
2019, section 2.3) and 1F1B alike (D. Narayanan et al., "Efficient large-scale language model training on
GPU clusters using Megatron-LM", 2021, section 2.2).
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from transect.analysis.comparisons import Comparison, Confidence, Verdict, compare
from transect.analysis.estimates import Estimate
from transect.analysis.groups import Floors, Group, grouped
from transect.analysis.noise import middle
from transect.analysis.scaling import TrainGroup
from transect.domain.metrics import Direction

STEP = "step_time"
# Whose micro-batches pass each stage once, forwards and backwards.
_ONE_STAGE_EACH = ("gpipe", "1f1b")


@dataclass(frozen=True, kw_only=True, slots=True)
class Division:
    """How the ranks of a group are laid out, as its records say.

    `stages` holds for each rank of the first replica its layers [first, last), of one part or several,
    where all tell them.
    """

    replicas: int
    parts: int
    micro_batches: int
    schedule: str
    stages: tuple[tuple[tuple[int, int], ...], ...]

    @property
    def hybrid(self) -> bool:
        """Whether both the data and the model are shared."""
        return self.replicas > 1 and self.parts > 1

    @property
    def bubble(self) -> float | None:
        """The bubble that equal stages would have; None where the schedule is another kind of thing."""
        known = self.schedule.lower() in _ONE_STAGE_EACH and self.parts > 1
        return ideal_bubble(self.parts, self.micro_batches) if known else None


def ideal_bubble(stages: int, micro_batches: int) -> float:
    """Return the share of all ranks' time that equal stages wait for one another.

    >>> ideal_bubble(2, 3)
    0.25
    """
    return (stages - 1) / (micro_batches + stages - 1)


def division(group: Group[Any]) -> Division | None:
    """Return how a group's ranks are laid out, from its first record that says so."""
    for record in group.records:
        layout = record.details.get("layout")
        if isinstance(layout, dict):
            ranks = record.details.get("ranks")
            told = [one for one in ranks if isinstance(one, dict)] if isinstance(ranks, list) else []
            parts = int(layout.get("model_parts", 1))
            return Division(
                replicas=int(layout.get("replicas", 1)),
                parts=parts,
                micro_batches=int(layout.get("micro_batches", 1)),
                schedule=next((str(one["schedule"]) for one in told if "schedule" in one), ""),
                stages=_stages(told[:parts]),
            )
    return None


def _stages(ranks: Sequence[dict[str, Any]]) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Return the layers of each rank; nothing where one tells none."""
    held = [_pairs(one.get("layers")) for one in ranks]
    return tuple(held) if all(held) else ()


def _pairs(layers: Any) -> tuple[tuple[int, int], ...]:
    """Read `[first, last]`, or a list of such pairs where a rank holds several parts."""
    if not isinstance(layers, list) or not layers:
        return ()
    pairs = layers if isinstance(layers[0], list) else [layers]
    whole = all(len(pair) == 2 and all(isinstance(n, int) for n in pair) for pair in pairs)
    return tuple((pair[0], pair[1]) for pair in pairs) if whole else ()


def divided(groups: Iterable[TrainGroup]) -> list[tuple[TrainGroup, Division]]:
    """Return the groups whose ranks share a model, with how."""
    known = [(group, division(group)) for group in groups]
    return [(group, one) for group, one in known if one is not None and one.parts > 1]


def points(groups: Iterable[TrainGroup]) -> list[list[TrainGroup]]:
    """Part groups by what they compute and on how many ranks, in their order; kinds apart."""
    return list(grouped(groups, lambda group: (group.cell.apart_from("strategy", "options"), group.kind)).values())


def median_of(group: Group[Any], name: str) -> float | None:
    """Return the median of a metric over the usable repeats, or None."""
    values = group.values(name)
    return statistics.median(values) if values else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Beside:
    """One group's metric over another's; `comparison` is seen from the group, lower is better."""

    group: TrainGroup
    other: TrainGroup
    ratio: Estimate
    comparison: Comparison

    @property
    def over_subscribed(self) -> bool:
        """Whether either shares cores among its ranks: then the ratio is a number without a claim."""
        return self.group.over_subscribed or self.other.over_subscribed

    @property
    def shown(self) -> bool:
        """Whether the two differ by more than the noise, within their cores."""
        return self.comparison.verdict is not Verdict.SAME and not self.over_subscribed

    @property
    def confidence(self) -> Confidence:
        """With which confidence one of the two is better."""
        return self.comparison.confidence if self.shown else Confidence.INCONCLUSIVE

    @property
    def reason(self) -> str:
        """Why they are, or are not, called different."""
        said = self.comparison.reason
        return f"ranks share cores; {said}" if self.over_subscribed else said

    @property
    def told(self) -> tuple[Comparison, ...]:
        """What a finding on it rests on: nothing where ranks share cores."""
        return () if self.over_subscribed else (self.comparison,)

    def chosen_of(self, pairs: int) -> Beside:
        """Return it as one that was chosen from so many, and counts for all of them."""
        return replace(self, comparison=replace(self.comparison, n_candidates=2 * max(1, pairs)))


def beside(
    group: TrainGroup,
    other: TrainGroup,
    floors: Floors,
    name: str = STEP,
    of: Callable[[TrainGroup], list[float]] | None = None,
) -> Beside | None:
    """Set a group beside another; None when either has no such metric.

    `of` gives values that stand for the metric, such as seconds per sample.
    """
    own, base = (of(one) if of else one.values(name) for one in (group, other))
    floor = floors.get("train", group.cell.workload, name, group.kind)
    comparison = compare(own, base, direction=Direction.LOWER, floor=floor)
    if comparison is None or comparison.ratio is None:
        return None
    return Beside(group=group, other=other, ratio=comparison.ratio, comparison=comparison.under(group, other))


def best_of(groups: Iterable[TrainGroup], name: str = STEP) -> TrainGroup | None:
    """Return the right group of the lowest values, or None."""
    able = [
        (middle(values), group.cell.id, group) for group in groups if not group.wrong and (values := group.values(name))
    ]
    return min(able, key=lambda one: one[:2])[2] if able else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Rivalry:
    """The best way to share a model beside the best way to share data only, on equal ranks.

    `result` is seen from the divided one.
    """

    best: TrainGroup
    division: Division
    rival: TrainGroup
    result: Beside


def rivalries(
    groups: Iterable[TrainGroup], floors: Floors, rivals: Sequence[str] = (), *, hybrid: bool = False
) -> list[Rivalry]:
    """Return one for each point that has both; `rivals` are beginnings of strategies' names, all without.

    With `hybrid` only groups that share both data and model count.
    """
    found = []
    for members in points(groups):
        own = {id(group): one for group, one in divided(members) if one.hybrid or not hybrid}
        others = [
            group
            for group in members
            if group.cell.ranks > 1
            and (one := division(group)) is not None
            and one.parts == 1
            and (not rivals or group.cell.strategy.startswith(tuple(rivals)))
        ]
        best, rival = best_of(group for group in members if id(group) in own), best_of(others)
        if best is not None and rival is not None:
            result = beside(best, rival, floors)
            if result is not None:
                result = result.chosen_of(len(own) * len(others))
                found.append(Rivalry(best=best, division=own[id(best)], rival=rival, result=result))
    return found
