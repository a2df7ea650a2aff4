"""Minutes over ranks that a work published, and which cells of a study repeat their comparison.

Another machine takes other minutes: only a series' shape can be set beside what was measured here, each scaled to a
point of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from transect.domain.claims import Kind, Work

# What reports call the work (`config/claims/go-mpi.yaml`).
GO_WITH_MPI = "Go with MPI"
# The published ways: they add weight changes and divide by nothing.
SUMMING = ("published-allreduce", "published-sendrecv")
_COLLECTIVE = ("mpi-allreduce", "mpi-overlap", "mpi-hierarchical", "mpi-bcast-reduce")
# Its claims of minutes: problem, way, and the strategies that send such messages, the first by its very rule.
_MINUTES = {
    "iris-allreduce": ("iris, 4-30-20-3", "Allreduce", (SUMMING[0], *_COLLECTIVE)),
    "iris-sendrecv": ("iris, 4-30-20-3", "Send/Recv", (SUMMING[1], "mpi-sendrecv")),
    "images-allreduce": ("images, 67,500-40-10-6", "Allreduce", (SUMMING[0], *_COLLECTIVE)),
    "images-sendrecv": ("images, 67,500-40-10-6", "Send/Recv", (SUMMING[1], "mpi-sendrecv")),
}
_PER_RANK = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedSeries:
    """Minutes of one whole training by ranks, its batch of `per_rank` samples on each.

    `workload` is the one here with its network, trained with `parameters` there; `strategies` are those that bring
    gradients about as it did: the first by its very rule, the others as far as messages go. `idle` ranks train nothing.
    """

    problem: str
    way: str
    per_rank: int
    minutes: Mapping[int, float]
    workload: str
    strategies: tuple[str, ...]
    parameters: Mapping[str, Any]
    idle: int = 0

    @property
    def first(self) -> int:
        """The fewest ranks that were published: what the series is scaled to."""
        return min(self.minutes)

    def differences(self, told: Iterable[Mapping[str, Any]]) -> list[str]:
        """Say in which hyper-parameters trainings are other work: `epochs 5 here, 100 published`.

        What records do not state is no difference.
        """
        found: dict[str, None] = {}
        for trained in told:
            for name, value in self.parameters.items():
                if name in trained and trained[name] != value:
                    found[f"{name.replace('_', ' ')} {trained[name]} here, {value} published"] = None
        return list(found)


def published_series(works: Iterable[Work]) -> Iterator[PublishedSeries]:
    """Yield the series that the works of a study have, in the order of `_MINUTES`."""
    claims = {claim.key: claim for work in works if work.short == GO_WITH_MPI for claim in work.claims}
    for key, (problem, way, strategies) in _MINUTES.items():
        claim = claims.get(key)
        if claim is not None and claim.kind is Kind.SHAPE and claim.measured and "workload" in claim.measured[0].cells:
            measured = claim.measured[0]
            yield PublishedSeries(
                problem=problem,
                way=way,
                per_rank=_PER_RANK,
                minutes=dict(zip(claim.axis_values, claim.numbers, strict=True)),
                workload=str(measured.cells["workload"]),
                strategies=strategies,
                parameters=measured.parameters,
                idle=int(way == "Send/Recv"),
            )
