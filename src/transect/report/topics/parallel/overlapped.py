"""Ways to bring weights to ranks and gradients back, and how much of it hides behind computing.

The variants are those of S-Caffe (A. A. Awan et al., "S-Caffe: co-designing MPI runtimes and Caffe for
scalable deep learning on modern GPU clusters", PPoPP 2017): blocking broadcast and reduce (SC-B), a
non-blocking broadcast per layer (SC-OB), and a reduction per layer beside it (SC-OBR).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from transect.analysis.contrast import Contrast
from transect.analysis.contrasts import contrast
from transect.analysis.groups import Floors
from transect.analysis.parallelism import STEP, division, median_of, points
from transect.analysis.scaling import TrainGroup

BLOCKING = "mpi-bcast-reduce"
HIERARCHICAL = "mpi-hierarchical"
# What the published study calls a strategy.
VARIANTS = {BLOCKING: "SC-B", "mpi-overlap-bcast": "SC-OB", "mpi-overlap": "SC-OBR", HIERARCHICAL: "hierarchical"}


@dataclass(frozen=True, kw_only=True, slots=True)
class OverlapRow:
    """One group of an exchange; `result` compares its step with the base's, None for the base itself."""

    group: TrainGroup
    variant: str
    result: Contrast | None
    over_least: float | None

    @property
    def progress(self) -> str:
        """Who moves its messages on while it computes: its option, or the empty text."""
        return str(dict(self.group.cell.options).get("progress", ""))


@dataclass(frozen=True, kw_only=True, slots=True)
class Exchange:
    """Groups that do equal work on equal ranks and bring weights and gradients about in different ways.

    `base` is the blocking one. `least_s`, the longer of its computing and its communication, is what
    a step would take in which the shorter of the two hid wholly behind the other.
    """

    rows: Sequence[OverlapRow]
    base: TrainGroup | None
    compute_s: float | None
    communication_s: float | None

    @property
    def least_s(self) -> float | None:
        """Seconds of a step with all of the shorter part hidden, or None."""
        parts = (self.compute_s, self.communication_s)
        return max(part for part in parts if part is not None) if None not in parts else None

    @property
    def group(self) -> TrainGroup:
        """One of its groups: what all have in common."""
        return self.rows[0].group


def exchanges(groups: Iterable[TrainGroup], floors: Floors, *, asked: bool = False) -> list[Exchange]:
    """Return one for each point at which a variant ran on several ranks, with all groups of that point."""
    sharing = [
        group for group in groups if group.cell.ranks > 1 and ((layout := division(group)) is None or layout.parts == 1)
    ]
    return [
        _exchange(members, floors, asked)
        for members in points(sharing)
        if any(group.cell.strategy in VARIANTS for group in members)
    ]


def _exchange(members: Sequence[TrainGroup], floors: Floors, asked: bool) -> Exchange:
    blocking = [g for g in members if g.cell.strategy == BLOCKING and not g.wrong and g.ok]
    # Its usual options, where it ran with several.
    base = min(blocking, key=lambda group: (len(group.cell.options), group.cell.id), default=None)
    compute = median_of(base, "compute_time") if base else None
    communication = median_of(base, "communication_total_time") if base else None
    known = None not in (compute, communication)
    least = max(compute or 0.0, communication or 0.0) if known else None

    variants = [group for group in members if group.cell.strategy in VARIANTS]

    def row(group: TrainGroup) -> OverlapRow:
        step = median_of(group, "step_time")
        result = None
        if base is not None and group is not base:
            result = contrast(group, base, floors, STEP, varies="strategy", candidates=len(variants), asked=asked)
        return OverlapRow(
            group=group,
            variant=VARIANTS.get(group.cell.strategy, ""),
            result=result,
            over_least=step / least if step is not None and least else None,
        )

    order = list(VARIANTS)

    def place(group: TrainGroup) -> tuple[int, str]:
        name = group.cell.strategy
        return (order.index(name) if name in order else len(order)), group.cell.id

    return Exchange(
        rows=[row(group) for group in sorted(members, key=place)],
        base=base,
        compute_s=compute,
        communication_s=communication,
    )
