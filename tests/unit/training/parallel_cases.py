"""What is trained on one, two, three and four ranks to see that it follows one process."""

from __future__ import annotations

from typing import Any

from parallel_worlds import Case

from transect.training.layers import (
    BatchNorm2d,
    Conv2d,
    Flatten,
    GlobalAveragePool,
    Linear,
    MaxPool2d,
    ReLU,
    Residual,
    Sigmoid,
)
from transect.training.strategies._torch_stages import SCHEDULES

Model = tuple[tuple[Any, ...], tuple[int, ...]]

# Seven and nine do not divide by two, three or four; the fifth linear layer is in no pair.
PAIRS: Model = (
    (
        Flatten(),
        Linear(12, 7),
        ReLU(),
        Linear(7, 10),
        ReLU(),
        Linear(10, 9),
        Sigmoid(),
        Linear(9, 6),
        ReLU(),
        Linear(6, 3),
    ),
    (12,),
)
PAIR_INSIDE: Model = (
    (
        Conv2d(1, 4, 3, padding=1),
        BatchNorm2d(4),
        ReLU(),
        Flatten(),
        Residual((Linear(48, 5), ReLU(), Linear(5, 48))),
        Linear(48, 3),
    ),
    (1, 4, 3),
)
# Windows that overlap, that leave rows out, that reach over two ranks; a stride and no window.
IMAGES: Model = (
    (
        Conv2d(1, 4, 5, padding=2),
        ReLU(),
        MaxPool2d(3, 2, 1),
        Residual((Conv2d(4, 5, 3, 1, 2), ReLU(), Conv2d(5, 5, 3, 1)), (Conv2d(4, 5, 1, stride=2),)),
        Sigmoid(),
        Flatten(),
        Linear(60, 7),
        ReLU(),
        Linear(7, 3),
    ),
    (1, 15, 11),
)
NORMED_IMAGES: Model = (
    (
        Conv2d(2, 4, 3, padding=1, bias=False),
        BatchNorm2d(4),
        ReLU(),
        MaxPool2d(2),
        Residual((Conv2d(4, 4, 3, 1, bias=False), BatchNorm2d(4))),
        ReLU(),
        GlobalAveragePool(),
        Linear(4, 3),
    ),
    (2, 10, 6),
)
# Four rows, then one: only the first convolution can be by rows on four ranks.
FEW_ROWS: Model = (
    (
        Conv2d(1, 3, 3, stride=2, padding=1),
        ReLU(),
        Conv2d(3, 4, 3, stride=2),
        BatchNorm2d(4),
        ReLU(),
        Flatten(),
        Linear(8, 3),
    ),
    (1, 7, 11),
)
# A stage may be a lone Flatten, whose output is a view, a lone ReLU, an average, whose gradient is not
# contiguous, or a residual block with batch norm.
NORMED_STAGES: Model = (
    (
        Conv2d(1, 4, 3, padding=1, bias=False),
        BatchNorm2d(4),
        ReLU(),
        MaxPool2d(2),
        Residual((Conv2d(4, 4, 3, 1, bias=False), BatchNorm2d(4))),
        ReLU(),
        GlobalAveragePool(),
        Linear(4, 6),
        ReLU(),
        Linear(6, 3),
    ),
    (1, 6, 4),
)
PLAIN_STAGES: Model = (
    (
        Flatten(),
        Linear(12, 7),
        ReLU(),
        Linear(7, 9),
        ReLU(),
        Residual((Linear(9, 9), ReLU())),
        Linear(9, 6),
        ReLU(),
        Linear(6, 3),
    ),
    (3, 4),
)
STAGES = (NORMED_STAGES, PLAIN_STAGES)


def _case(strategy: str, model: Model, options: dict[str, Any] | None = None, **more: Any) -> Case:
    names = {
        id(PAIRS): "pairs",
        id(PAIR_INSIDE): "pair inside",
        id(IMAGES): "images",
        id(NORMED_IMAGES): "normed images",
        id(FEW_ROWS): "few rows",
        id(NORMED_STAGES): "normed",
        id(PLAIN_STAGES): "plain",
    }
    options = options or {}
    words = [strategy, names[id(model)], *options.values(), *more.values()]
    return Case(
        name=" ".join(map(str, words)), strategy=strategy, layers=model[0], sample=model[1], options=options, **more
    )


def _layers(ranks: int) -> list[Case]:
    pairs, rows = "tensor-parallel", "spatial"
    if ranks == 1:
        return [_case(rows, NORMED_IMAGES), _case(pairs, PAIRS)]
    found = [
        _case(pairs, PAIRS),
        _case(pairs, PAIR_INSIDE),
        _case(pairs, PAIRS, optimiser="adamw"),
        _case(pairs, PAIRS, precision="fp32"),
        _case(rows, IMAGES),
        _case(rows, NORMED_IMAGES),
        _case(rows, FEW_ROWS),
        _case(rows, IMAGES, precision="fp32"),
    ]
    if ranks == 4:
        for model in (PAIRS, PAIR_INSIDE):
            found.append(_case(pairs, model, {"parts": 2}))
        for model in (IMAGES, NORMED_IMAGES):
            found.append(_case(rows, model, {"parts": 2}))
        found += [
            _case(pairs, PAIRS, {"parts": 2}, reduce="sum"),
            _case(rows, NORMED_IMAGES, {"parts": 2}, reduce="sum"),
            _case(rows, NORMED_IMAGES, {"parts": 1}),
        ]
    return found


# Of 12 samples 5, 7 and 8 micro-batches are unequal. The matrix has all numbers (test_equality_matrix.py).
_COUNTS = {1: (5,), 2: (1, 2, 5, 8), 3: (3, 5), 4: (4, 7, 8)}


def _pipelines(ranks: int) -> list[Case]:
    found = []
    for name, schedule in SCHEDULES.items():
        for number, count in enumerate(_COUNTS[ranks]):
            if schedule.needs(ranks, count) is None:
                options = {"schedule": name, "micro_batches": count}
                options["cut"] = ("equal", "compute")[number // 2 % 2]
                found.append(_case("torch-pipeline", STAGES[number % 2], options))
        if ranks == 4:
            found += _hybrids(name)
    loops = {"schedule": "interleaved-1f1b", "micro_batches": 3, "loops": 3}
    return [*found, _case("torch-pipeline", PLAIN_STAGES, loops)] if ranks < 4 else found


def _hybrids(schedule: str) -> list[Case]:
    """Two replicas of two stages, whose share of 16 samples has 8."""
    found = []
    for reduce in ("all-reduce", "fsdp"):
        options = {"stages": 2, "schedule": schedule, "reduce": reduce, "cut": "equal"}
        for model, count in ((NORMED_STAGES, 4), (PLAIN_STAGES, 6)):
            found.append(_case("torch-pipeline", model, options | {"micro_batches": count}, batch=16))
        if schedule in ("gpipe", "zbv-zero-bubble"):
            found.append(_case("torch-pipeline", PLAIN_STAGES, options, batch=16, reduce="sum"))
    return found


def cases(ranks: int) -> list[Case]:
    """Return what is trained on so many ranks."""
    return _layers(ranks) + _pipelines(ranks)
