"""In which order a stage of a pipeline computes: forward and backward passes of micro-batches.

Those that transect trains with are its own (`training.schedules`). The interleaved one is that of D.
Narayanan et al., "Efficient large-scale language model training on GPU clusters using Megatron-LM",
2021, section 2.2.2.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from transect.simulation.networks import Ranks
from transect.training.schedules import SCHEDULES as TRAINED

SCHEDULES = (*TRAINED, "interleaved")


class Pass(NamedTuple):
    """One forward or backward pass of a micro-batch through a stage's `chunk`-th run of layers."""

    backward: bool
    micro: int
    chunk: int


def order(schedule: str, stage: int, stages: int, micro_batches: int, chunks: int = 1) -> list[Pass]:
    """Return what a stage does, one after another. Raises ValueError for what a schedule cannot do."""
    if not 0 <= stage < stages or min(micro_batches, chunks) < 1:
        raise ValueError(f"no stage {stage} of {stages} with {micro_batches} x {chunks} passes")
    if schedule == "interleaved":
        return _interleaved(stage, stages, micro_batches, chunks)
    if schedule not in TRAINED:
        raise ValueError(f"no schedule {schedule!r}: expected one of {', '.join(SCHEDULES)}")
    if chunks > 1:
        raise ValueError(f"{schedule} gives a stage one run of layers, not {chunks}")
    passes = TRAINED[schedule](stage, stages, micro_batches)
    return [Pass(not one.forward, one.micro_batch, 0) for one in passes]


def _interleaved(stage: int, stages: int, micro_batches: int, chunks: int) -> list[Pass]:
    """Groups of as many micro-batches as there are stages go through one chunk after the other."""
    if micro_batches % stages:
        raise ValueError(
            f"interleaved takes micro-batches in groups of {stages} stages: {micro_batches} is no multiple"
        )
    total = micro_batches * chunks
    round_ = stages * chunks
    forward, backward = [], []
    for number in range(total):
        chunk = number % round_ // stages
        micro = number // round_ * stages + number % stages
        forward.append(Pass(False, micro, chunk))
        backward.append(Pass(True, micro, chunks - 1 - chunk))
    ahead = min(total, 2 * (stages - 1 - stage) + (chunks - 1) * stages)
    rest = [one for pair in zip(forward[ahead:], backward, strict=False) for one in pair]
    return [*forward[:ahead], *rest, *backward[len(forward) - ahead :]]


class Level(NamedTuple):
    """Passes that wait for none of each other, at most one for each stage; arrays of one length."""

    stage: Ranks
    part: Ranks
    micro: Ranks
    backward: Ranks


@lru_cache(maxsize=64)
def levels(schedule: str, stages: int, micro_batches: int, chunks: int) -> tuple[Level, ...]:
    """Return all passes such that each comes after those that it waits for.

    Part chunk x stages + stage of the model lies on each stage. Raises ValueError for a schedule
    that would wait for itself.
    """
    orders = [order(schedule, stage, stages, micro_batches, chunks) for stage in range(stages)]
    last = stages * chunks - 1
    done: set[tuple[bool, int, int]] = set()
    at = [0] * stages
    found = []
    while any(place < len(one) for place, one in zip(at, orders, strict=True)):
        ready = []
        for stage, place in enumerate(at):
            if place == len(orders[stage]):
                continue
            backward, micro, chunk = orders[stage][place]
            part = chunk * stages + stage
            if backward:
                needed = (True, micro, part + 1) if part < last else (False, micro, part)
            else:
                needed = (False, micro, part - 1)
            if (not backward and part == 0) or needed in done:
                ready.append((stage, part, micro, int(backward)))
        if not ready:
            raise ValueError(f"{schedule} of {stages} stages waits for itself")
        for stage, part, micro, back in ready:
            done.add((bool(back), micro, part))
            at[stage] += 1
        found.append(Level(*(np.array(column, dtype=np.intp) for column in zip(*ready, strict=True))))
    return tuple(found)
