"""Schedules of a pipeline: in which order a stage does the passes of a step's micro-batches.

Pure functions of the stage's place. What they have in common: every micro-batch goes through in
the order of its number, in both directions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple


class Pass(NamedTuple):
    """The forward or the backward pass of one micro-batch."""

    forward: bool
    micro_batch: int


def gpipe(stage: int, stages: int, micro_batches: int) -> list[Pass]:
    """All forwards, then all backwards.

    Y. Huang et al., "GPipe: efficient training of giant neural networks using pipeline parallelism",
    2019. A stage keeps all micro-batches.
    """
    return [Pass(way, i) for way in (True, False) for i in range(micro_batches)]


def one_forward_one_backward(stage: int, stages: int, micro_batches: int) -> list[Pass]:
    """As many forwards as stages follow, then one forward and one backward in turn.

    D. Narayanan et al., "Memory-efficient pipeline-parallel DNN training", 2021 (PipeDream-Flush,
    called 1F1B). It waits as long as GPipe does, but a stage keeps at most `stages - stage`
    micro-batches. There may be fewer of them than stages.
    """
    ahead = min(stages - stage - 1, micro_batches)
    passes = [Pass(True, i) for i in range(ahead)]
    for i in range(micro_batches - ahead):
        passes += [Pass(True, ahead + i), Pass(False, i)]
    return passes + [Pass(False, i) for i in range(micro_batches - ahead, micro_batches)]


SCHEDULES: Mapping[str, Callable[[int, int, int], list[Pass]]] = MappingProxyType(
    {"1f1b": one_forward_one_backward, "gpipe": gpipe}
)


def live_micro_batches(passes: list[Pass]) -> int:
    """Return how many micro-batches a stage keeps at most between their two passes."""
    live = most = 0
    for entry in passes:
        live += 1 if entry.forward else -1
        most = max(most, live)
    return most
