"""Minutes over ranks that others published, and which cells of a study repeat their comparison.

The numbers are those of a study of 2022 that trained in Go with MPI, as its charts are labelled. Another machine takes
other minutes: only a series' shape can be set beside what was measured here, each scaled to a point of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

GO_WITH_MPI = "Parallel training in Go with MPI (2022)"
# The published ways: they add weight changes and divide by nothing.
SUMMING = ("published-allreduce", "published-sendrecv")


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedSeries:
    """Minutes of one whole training by ranks, its batch of `per_rank` samples on each.

    `workload` is the one here with its network, `strategies` are those that bring gradients about as it did: the first
    by its very rule, the others as far as messages go. `idle` ranks train nothing.
    """

    problem: str
    way: str
    per_rank: int
    minutes: Mapping[int, float]
    workload: str
    strategies: tuple[str, ...]
    idle: int = 0

    @property
    def first(self) -> int:
        """The fewest ranks that were published: what the series is scaled to."""
        return min(self.minutes)


def _ranks(first: int, *minutes: float) -> dict[int, float]:
    return dict(enumerate(minutes, first))


_IMAGE_RANKS = (7, 8, 10, 12, 16, 20, 25, 30)


def _images(*minutes: float) -> dict[int, float]:
    return dict(zip(_IMAGE_RANKS, minutes, strict=True))


_COLLECTIVE = ("mpi-allreduce", "mpi-overlap", "mpi-hierarchical", "mpi-bcast-reduce")
_POINT_TO_POINT = ("mpi-sendrecv",)


# What else was published of the work, by the names of a workload's hyper-parameters.
_PUBLISHED_WITH: dict[str, dict[str, float | str]] = {
    "iris-mlp": {"epochs": 100, "learning_rate": 0.01, "loss": "mse"},
    "images-mlp": {"epochs": 10, "learning_rate": 0.004, "loss": "mse"},
}


def differences(workload: str, parameters: Iterable[Mapping[str, Any]]) -> list[str]:
    """Say in which hyper-parameters trainings of a workload are other work than what was published of it.

    Such as `epochs 5 here, 100 published`. What records do not state is no difference.
    """
    found: dict[str, None] = {}
    for trained in parameters:
        for name, value in _PUBLISHED_WITH.get(workload, {}).items():
            if name in trained and trained[name] != value:
                found[f"{name.replace('_', ' ')} {trained[name]} here, {value} published"] = None
    return list(found)


def _series(problem: str, workload: str, way: str, minutes: Mapping[int, float]) -> PublishedSeries:
    collective = way == "Allreduce"
    exact = "published-allreduce" if collective else "published-sendrecv"
    return PublishedSeries(
        problem=problem,
        way=way,
        per_rank=4,
        minutes=minutes,
        workload=workload,
        idle=0 if collective else 1,
        strategies=(exact, *(_COLLECTIVE if collective else _POINT_TO_POINT)),
    )


PUBLISHED = (
    _series("iris, 4-30-20-3", "iris-mlp", "Allreduce", _ranks(1, 1.4, 0.91, 0.90, 0.84, 0.86, 0.79, 0.92, 1.32)),
    _series("iris, 4-30-20-3", "iris-mlp", "Send/Recv", _ranks(2, 1.59, 1.27, 1.12, 1.05, 1.08, 1.28, 2.06)),
    _series("images, 67,500-40-10-6", "images-mlp", "Allreduce", _images(90, 74, 74, 69, 59, 60, 47, 44)),
    _series("images, 67,500-40-10-6", "images-mlp", "Send/Recv", _images(203, 149, 118, 120, 111, 113, 138, 140)),
)
