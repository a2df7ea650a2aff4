"""How ranks share a training: replicas, parts of the model, micro-batches; and what that costs or gains.

Bubble of a pipeline of P equal stages and M micro-batches: (P - 1) / (M + P - 1) of all ranks' time, for
GPipe (Y. Huang et al., "GPipe: efficient training of giant neural networks using pipeline parallelism",
2019, section 2.3) and 1F1B alike (D. Narayanan et al., "Efficient large-scale language model training on
GPU clusters using Megatron-LM", 2021, section 2.2).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from transect.analysis.contrasts import Contrast, contrast
from transect.analysis.groups import Floors, Group, grouped
from transect.analysis.scaling import TrainGroup
from transect.stats.noise import middle

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
            reported = [rank for rank in ranks if isinstance(rank, dict)] if isinstance(ranks, list) else []
            parts = int(layout.get("model_parts", 1))
            return Division(
                replicas=int(layout.get("replicas", 1)),
                parts=parts,
                micro_batches=int(layout.get("micro_batches", 1)),
                schedule=next((str(rank["schedule"]) for rank in reported if "schedule" in rank), ""),
                stages=_stages(reported[:parts]),
            )
    return None


def _stages(ranks: Sequence[dict[str, Any]]) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Return the layers of each rank; nothing where one tells none."""
    held = [_pairs(rank.get("layers")) for rank in ranks]
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
    return [(group, layout) for group, layout in known if layout is not None and layout.parts > 1]


def points(groups: Iterable[TrainGroup]) -> list[list[TrainGroup]]:
    """Part groups by what they compute and on how many ranks, in their order; kinds apart."""
    return list(grouped(groups, lambda group: (group.cell.apart_from("strategy", "options"), group.kind)).values())


def best_of(groups: Iterable[TrainGroup], name: str = STEP) -> TrainGroup | None:
    """Return the right group of the lowest values, or None."""
    able = [
        (middle(values), group.cell.id, group)
        for group in groups
        if not group.wrong and (values := group.counted(name))
    ]
    return min(able, key=lambda entry: entry[:2])[2] if able else None


def rivalries(
    groups: Iterable[TrainGroup],
    floors: Floors,
    rivals: Sequence[str] = (),
    *,
    hybrid: bool = False,
    asked: bool = False,
) -> list[Contrast]:
    """Return the best way to share a model beside the best to share the data alone, for each point that has both.

    `rivals` are beginnings of strategies' names, all without.
    With `hybrid` only groups that share both data and model count. `asked`: a question asks for them.
    """
    found = []
    for members in points(groups):
        shared = [group for group, layout in divided(members) if layout.hybrid or not hybrid]
        others = [
            group
            for group in members
            if group.cell.ranks > 1
            and (layout := division(group)) is not None
            and layout.parts == 1
            and (not rivals or group.cell.strategy.startswith(tuple(rivals)))
        ]
        best, rival = best_of(shared), best_of(others)
        if best is not None and rival is not None:
            pairs = len(shared) * len(others)
            result = contrast(best, rival, floors, STEP, varies="strategy", candidates=2 * pairs, asked=asked)
            if result is not None:
                found.append(result)
    return found
