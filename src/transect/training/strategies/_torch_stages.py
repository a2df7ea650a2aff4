"""The schedules of torch.distributed.pipelining: what each asks for, and its stages on one rank."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any


def _any(ranks: int, micro_batches: int) -> str | None:
    return None


def _one_for_each_rank(ranks: int, micro_batches: int) -> str | None:
    if micro_batches < ranks:
        return f"at least as many micro-batches as its {ranks} stages, not {micro_batches}"
    return None


def _whole_rounds(ranks: int, micro_batches: int) -> str | None:
    rounds = max(1, micro_batches // ranks)
    if micro_batches % rounds:
        return f"micro-batches in {rounds} rounds of the same number on {ranks} ranks, not {micro_batches}"
    return None


def _two_for_each_rank(ranks: int, micro_batches: int) -> str | None:
    if micro_batches < 2 * ranks:
        return f"at least as many micro-batches as its {2 * ranks} stages, not {micro_batches}"
    return None


@dataclass(frozen=True, kw_only=True, slots=True)
class Schedule:
    """A class of torch with what its constructor asks for.

    `loops`: numbers of stages on a rank that it takes, the first its default. `needs(ranks,
    micro_batches)` says what it takes where it does not take these, as torch 2.13 does. `turns`: the
    ranks' second stages follow one another backwards, so that a rank has the first and the last one.
    """

    torch: str
    loops: tuple[int, ...] = (2, 1, 3, 4)
    needs: Callable[[int, int], str | None] = _any
    turns: bool = False

    def stages(self, rank: int, ranks: int, loops: int) -> list[int]:
        """Return which stages a rank has.

        >>> Schedule(torch="", turns=True).stages(0, 4, 2)
        [0, 7]
        """
        if self.turns:
            return [rank, loops * ranks - 1 - rank]
        return list(range(rank, loops * ranks, ranks))


# By the names of the option `schedule`.
SCHEDULES: Mapping[str, Schedule] = MappingProxyType(
    {
        "gpipe": Schedule(torch="ScheduleGPipe", loops=(1,)),
        "1f1b": Schedule(torch="Schedule1F1B", loops=(1,), needs=_one_for_each_rank),
        "interleaved-1f1b": Schedule(torch="ScheduleInterleaved1F1B", needs=_whole_rounds),
        "looped-bfs": Schedule(torch="ScheduleLoopedBFS"),
        "interleaved-zero-bubble": Schedule(torch="ScheduleInterleavedZeroBubble", needs=_whole_rounds),
        "zbv-zero-bubble": Schedule(torch="ScheduleZBVZeroBubble", loops=(2,), turns=True),
        "dualpipev": Schedule(torch="ScheduleDualPipeV", loops=(2,), needs=_two_for_each_rank, turns=True),
    }
)


class Waits:
    """Adds up the seconds in which torch's schedules wait for messages.

    Torch reports them nowhere, so the one function in which all its schedules wait is timed; where a
    version of torch has no such function, `available` is False.
    """

    def __init__(self) -> None:
        from torch.distributed.pipelining import schedules

        self.seconds = 0.0
        wait = getattr(schedules, "_wait_batch_p2p", None)
        self.available = wait is not None

        def timed(works: Any) -> None:
            if not works:
                return
            begin = time.perf_counter()
            wait(works)  # type: ignore[misc]
            self.seconds += time.perf_counter() - begin

        if self.available:
            schedules._wait_batch_p2p = timed


@cache
def waits() -> Waits:
    """Return the one of this process."""
    return Waits()


def smooth_edges(module: Any) -> None:
    """Have a stage give tensors that torch can send, and can detach in place.

    gloo sends what lies in memory in its order, which the gradient of a mean does not; and torch detaches
    outputs, which a view such as `Flatten`'s cannot be.
    """
    import torch

    class Edge(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.view_as(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g.contiguous()

    def before(_: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(Edge.apply(x) for x in inputs)

    def after(_: Any, __: Any, output: Any) -> Any:
        return output.clone() if output._is_view() else output.contiguous()

    module.register_forward_pre_hook(before)
    module.register_forward_hook(after)


def make_stage(
    module: Any,
    number: int,
    count: int,
    group: Any,
    sizes: list[int],
    dtype: Any,
    before: tuple[int, ...],
    after: tuple[int, ...],
) -> Any:
    """Return torch's stage of `count`, whose samples have the shapes `before` and `after`.

    `sizes` are those of the micro-batches. The shapes are given, or the first step would find them by
    one more forward pass, which moves running statistics (by 1e-2 where it was seen). Torch receives
    into buffers of one shape: unequal micro-batches get their own here.
    """
    import torch
    from torch.distributed.pipelining import PipelineStage

    def example(shape: tuple[int, ...], trained: bool) -> Any:
        made = torch.empty((sizes[0], *shape), dtype=dtype, device="meta")
        return made.requires_grad_(trained)

    class UnequalStage(PipelineStage):
        def _setup_forward_recv_info(self, num_microbatches: int, has_backward: bool) -> None:
            super()._setup_forward_recv_info(num_microbatches, has_backward)
            _fit(self.args_recv_info, sizes)

        def _setup_backward_recv_info(self, num_microbatches: int) -> None:
            super()._setup_backward_recv_info(num_microbatches)
            _fit(self.grad_recv_info, sizes)

    kind = PipelineStage if len(set(sizes)) == 1 else UnequalStage
    return kind(
        module,
        number,
        count,
        torch.device("cpu"),
        group=group,
        input_args=example(before, trained=number > 0),
        output_args=example(after, trained=True),
    )


def _fit(infos: Mapping[int, Any], sizes: list[int]) -> None:
    for number, several in infos.items():
        for info in several:
            if info.buffer is not None:
                info.buffer = info.buffer.new_empty((sizes[number], *info.buffer.shape[1:]))
