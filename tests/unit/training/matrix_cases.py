"""What the matrix of test_equality_matrix.py is made of: models, and every way to divide them among ranks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

from transect.training.layers import (
    BatchNorm2d,
    Branches,
    Conv2d,
    Flatten,
    GlobalAveragePool,
    Layer,
    Linear,
    MaxPool2d,
    ReLU,
    Residual,
    Sigmoid,
)
from transect.training.workloads import WORKLOADS, Parameters, Workload

# Samples of a replica: 11 is a multiple of no number of micro-batches but 1, and 8 of four.
SHARES = (11, 8)
MICRO_BATCHES = range(1, 9)
RULES = {"loss": "cross-entropy", "learning_rate": 0.05, "momentum": 0.9, "weight_decay": 1e-3}


class Case(NamedTuple):
    """One training: `micro_batches` of a replica's `share` samples where the strategy has any."""

    workload: str
    strategy: str
    options: dict[str, Any]
    share: int
    reduce: str = "mean"


def _rule(**more: Any) -> Parameters:
    return Parameters(batch=8, epochs=1, quality_target=0.5, **RULES | more)  # type: ignore[arg-type]


@WORKLOADS.register("matrix-mlp")
class Mlp(Workload):
    """Dense layers; nine of them, so that eight stages have some."""

    dataset, sample = "iris", (2, 2)
    layers: tuple[Layer, ...] = (
        Flatten(),
        Linear(4, 7),
        Sigmoid(),
        Linear(7, 6),
        ReLU(),
        Linear(6, 5),
        Sigmoid(),
        Linear(5, 5),
        Linear(5, 3),
    )
    defaults = _rule()


@WORKLOADS.register("matrix-net")
class Net(Workload):
    """A residual net with batch norm: what depends on how batches are cut, and in which order."""

    dataset, sample = "digits", (2, 4, 4)
    layers: tuple[Layer, ...] = (
        Conv2d(2, 3, 3, 1, bias=False),
        BatchNorm2d(3),
        ReLU(),
        Residual((Conv2d(3, 4, 3, 1, 2, bias=False), BatchNorm2d(4), ReLU()), (Conv2d(3, 4, 1, stride=2),)),
        ReLU(),
        Residual((Conv2d(4, 4, 3, 1), ReLU())),
        GlobalAveragePool(),
        Linear(4, 3),
    )
    defaults = _rule(loss="mse", optimiser="nesterov")


@WORKLOADS.register("matrix-images")
class Images(Workload):
    """Windows that overlap, leave rows out and reach over two ranks; a pair of linear layers in a residual one."""

    dataset, sample = "digits", (1, 15, 11)
    layers: tuple[Layer, ...] = (
        Conv2d(1, 4, 5, padding=2),
        ReLU(),
        MaxPool2d(3, 2, 1),
        Residual(
            (Conv2d(4, 5, 3, 1, 2, bias=False), BatchNorm2d(5), ReLU(), Conv2d(5, 5, 3, 1)),
            (Conv2d(4, 5, 1, stride=2),),
        ),
        Branches(((), (MaxPool2d(3, 1, 1), Conv2d(5, 3, 1)), (Conv2d(5, 10, 3, 1, groups=5),))),
        Sigmoid(),
        Flatten(),
        Residual((Linear(216, 7), ReLU(), Linear(7, 216))),
        Linear(216, 9),
        ReLU(),
        Linear(9, 3),
    )
    defaults = _rule(optimiser="adamw")


def _whole(ranks: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Ways in which each rank is a replica."""
    if ranks == 1:
        yield "single", {}
    else:
        # Rank 0 serves the others.
        yield "async", {"staleness": 0}
    if ranks == 4:
        yield "async", {"staleness": 0, "workers": "1-3-2"}
    for name in ("mpi-allreduce", "mpi-sendrecv", "mpi-bcast-reduce", "mpi-overlap-bcast"):
        yield name, {}
    yield "mpi-overlap-bcast", {"progress": "thread", "bucket_bytes": 200}
    for reduce, progress in product(("root", "all"), ("none", "test", "thread")):
        yield "mpi-overlap", {"reduce": reduce, "progress": progress}
    for group, upper, result in product((2, 3), ("tree", "chain"), ("root", "all")):
        yield "mpi-hierarchical", {"group": group, "upper": upper, "result": result, "chunk_bytes": 64}
    # Chunks larger than any memory: no more is shared than is sent.
    for result, chunk_bytes in (("root", 10**15), ("all", 1000)):
        yield "mpi-hierarchical", {"inner": "shared", "result": result, "chunk_bytes": chunk_bytes}


def _pipelines(ranks: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every number of stages, both schedules, every number of micro-batches."""
    turns = (("compute", "overlap", "none"), ("equal", "end", "test"), ("parameters", "overlap", "thread"))
    several = [stages for stages in range(1, ranks + 1) if ranks % stages == 0]
    every = product(several, ("gpipe", "1f1b"), MICRO_BATCHES)
    for number, (stages, schedule, micro_batches) in enumerate(every):
        cut, reduce, progress = turns[number % len(turns)]
        yield (
            "mpi-pipeline",
            {
                "stages": stages,
                "schedule": schedule,
                "micro_batches": micro_batches,
                "cut": cut,
                "reduce": reduce,
                "progress": progress,
                "bucket_bytes": 100,
            },
        )


def _torch(ranks: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """What torch has of its own: replicas, stages by each of its schedules, rows and columns."""
    from transect.training.strategies._torch_stages import SCHEDULES

    yield "ddp-gloo", {}
    yield "fsdp", {}
    several = [parts for parts in range(2, ranks + 1) if ranks % parts == 0]
    for parts in several:
        yield "spatial", {"parts": parts}
        yield "tensor-parallel", {"parts": parts}
    for number, (stages, schedule, micro_batches) in enumerate(product(several, SCHEDULES, MICRO_BATCHES)):
        reduce = ("all-reduce", "fsdp")[number % 3 == 2]
        yield (
            "torch-pipeline",
            {"stages": stages, "schedule": schedule, "micro_batches": micro_batches, "reduce": reduce, "cut": "equal"},
        )


def cases(ranks: int, kind: str = "mpi") -> list[Case]:
    """Return all of so many ranks: for every framework that has parts, or `gloo` for torch."""
    found = []
    ways = [*_torch(ranks)] if kind == "gloo" else [*_whole(ranks), *_pipelines(ranks)]
    for number, ((strategy, options), workload) in enumerate(product(ways, ("matrix-mlp", "matrix-net"))):
        if "workers" in options and workload == "matrix-net":
            continue  # of running statistics
        reduce = "sum" if ranks > 1 and number % 5 == 4 and strategy != "async" else "mean"
        found.append(Case(workload, strategy, options, SHARES[number // 2 % 2], reduce))
        # Of these alone it matters to which layers they come.
        if strategy in ("fsdp", "spatial", "tensor-parallel"):
            found.append(Case("matrix-images", strategy, options, SHARES[number // 2 % 2], reduce))
    return found


def chosen(every: list[Case], step: int, first: int) -> list[Case]:
    """Return each `step`-th case from `first` on: different ones for different `first`s; torch's few others all."""
    few = [case for case in every if case.strategy in ("ddp-gloo", "fsdp", "spatial", "tensor-parallel")]
    others = [case for case in every if case not in few]
    return few + others[first % step :: step]
