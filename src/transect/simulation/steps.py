"""One training step as clocks of all ranks, for each way in which ranks with whole models share it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from transect.simulation.collectives import Allreduce, allgather_ring, reduce_scatter_ring
from transect.simulation.hierarchy import Hierarchy, in_turn
from transect.simulation.networks import Clocks, Machine
from transect.simulation.work import Messages, Pattern, Step, Work, step_of


def reduced(work: Work, machine: Machine, messages: Messages) -> Step:
    """Compute, all-reduce one buffer, update: nothing hides."""
    pace = messages.pace(machine)
    begin = pace * (work.forward_s.sum() + work.backward_s.sum())
    there = messages.allreduce(begin, work.bytes, machine) if machine.ranks > 1 else begin
    end = there + pace * (work.update_s.sum() + work.step_s)
    return step_of(end, work, pace, float((there - begin).min()))


def through_root(work: Work, machine: Machine, messages: Messages) -> Step:
    """Rank 0 receives each rank's gradient, one after another, and sends the sum back to each."""
    pace = messages.pace(machine)
    begin = pace * (work.forward_s.sum() + work.backward_s.sum())
    there = begin.copy()
    others = np.arange(1, machine.ranks)
    # One at a time: no two of these messages share a link.
    within = others < machine.ranks_per_node
    one_s = (machine.inside.message_s(work.bytes), machine.between.message_s(work.bytes))
    took = np.where(within, *one_s)
    added = machine.gamma_s_per_byte * work.bytes
    if len(others):
        received = in_turn(np.maximum(begin[1:], begin[0]), took + added)
        sent = np.cumsum(took) + received[-1]
        there[1:], there[0] = sent, sent[-1]
    end = there + pace * (work.update_s.sum() + work.step_s)
    return step_of(end, work, pace, float(there.max() - begin.max()))


def _bucketed(work: Work, messages: Messages) -> list[tuple[int, float]]:
    found: list[tuple[int, float]] = []
    size, limit = 0.0, messages.first_bucket_bytes
    for layer in range(len(work.gradient_bytes) - 1, -1, -1):
        size += float(work.gradient_bytes[layer])
        if size and (size >= limit or layer == 0):
            found.append((layer, size))
            size, limit = 0.0, messages.bucket_bytes
    return found


def buckets(work: Work, machine: Machine, messages: Messages) -> Step:
    """All-reduce buckets of gradients as they become whole, one after another, behind backward.

    S. Li et al., "PyTorch Distributed", VLDB 2020, section 3.2.3.
    """
    return _reduced_behind(work, machine, messages, _bucketed(work, messages), messages.allreduce)


def _reduced_behind(
    work: Work,
    machine: Machine,
    messages: Messages,
    pieces: Sequence[tuple[int, float]],
    collective: Allreduce,
    begin: Clocks | None = None,
) -> Step:
    """Go on from `begin`, when forward has ended; each piece leaves when its first layer is done."""
    pace = messages.pace(machine)
    start = pace * work.forward_s.sum() if begin is None else begin
    computed = start + pace * work.backward_s.sum()
    # When the backward pass has come down to a layer.
    behind = np.cumsum(work.backward_s[::-1])[::-1]
    there, under_way = start, 0.0
    for layer, size in pieces if machine.ranks > 1 else ():
        ready = start + pace * behind[layer] if messages.progress else computed
        leaves = np.maximum(there, ready)
        there = collective(leaves, size, machine)
        under_way += float(there.max() - leaves.max())
    end = np.maximum(there, computed) + pace * (work.update_s.sum() + work.step_s)
    return step_of(end, work, pace, under_way)


def fully_sharded(work: Work, machine: Machine, messages: Messages) -> Step:
    """Gather weights before forward and backward, reduce and scatter gradients; nothing hides."""
    pace = messages.pace(machine)
    begin = there = np.zeros(machine.ranks)
    under_way = 0.0
    for seconds, collectives in (
        (work.forward_s, (allgather_ring,)),
        (work.backward_s, (allgather_ring, reduce_scatter_ring)),
    ):
        there = there + pace * seconds.sum()
        for collective in collectives if machine.ranks > 1 else ():
            begin, there = there, collective(there, work.bytes, machine)
            under_way += float(there.max() - begin.max())
    share = work.update_s.sum() / machine.ranks
    end = there + pace * (share + work.step_s)
    return step_of(end, replace(work, update_s=work.update_s / machine.ranks), pace, under_way)


def bcast_reduce(work: Work, machine: Machine, messages: Messages) -> Step:
    """Broadcast weights, compute, reduce to rank 0, which updates (S-Caffe's SC-B)."""
    pace = messages.pace(machine)
    given = messages.broadcast(np.zeros(machine.ranks), work.bytes, machine)
    begin = given + pace * (work.forward_s.sum() + work.backward_s.sum())
    there = messages.reduce(begin, work.bytes, machine)
    under_way = float(given.max()) + float(messages.reduce(begin * 0, work.bytes, machine).max())
    return _updated_on_root(there, work, pace, under_way)


def hierarchical(work: Work, machine: Machine, messages: Messages, *, hierarchy: Hierarchy, root_updates: bool) -> Step:
    """Do the same, or an all-reduce, through chains of groups and what joins their leaders."""
    if not root_updates:
        return reduced(work, machine, replace(messages, allreduce=hierarchy.allreduce))
    pace = messages.pace(machine)
    given = hierarchy.broadcast(np.zeros(machine.ranks), work.bytes, machine)
    begin = given + pace * (work.forward_s.sum() + work.backward_s.sum())
    there = hierarchy.reduce(begin, work.bytes, machine)
    under_way = float(given.max() + hierarchy.reduce(begin * 0, work.bytes, machine).max())
    return _updated_on_root(there, work, pace, under_way)


def _updated_on_root(there: Clocks, work: Work, pace: Clocks, under_way: float) -> Step:
    # The next step's broadcast waits for rank 0's update; the others' clocks wait with it.
    end = np.maximum(there, there[0] + pace[0] * (work.update_s.sum() + work.step_s))
    return step_of(end, work, pace, under_way)


def _layer_by_layer(work: Work, machine: Machine, messages: Messages) -> tuple[Clocks, float]:
    """Broadcast each layer's weights behind the forward pass; return when that has ended."""
    pace = messages.pace(machine)
    clocks = there = np.zeros(machine.ranks)
    under_way = 0.0
    for seconds, size in zip(work.forward_s, work.gradient_bytes, strict=True):
        if size and machine.ranks > 1:
            before = there if messages.progress else np.maximum(there, clocks)
            there = messages.broadcast(before, float(size), machine)
            under_way += float(there.max() - before.max())
            clocks = np.maximum(clocks, there)
        clocks = clocks + pace * seconds
    return clocks, under_way


def overlap_bcast(work: Work, machine: Machine, messages: Messages) -> Step:
    """Broadcast layer by layer, each waited for before its forward pass (SC-OB)."""
    pace = messages.pace(machine)
    forward, under_way = _layer_by_layer(work, machine, messages)
    begin = forward + pace * work.backward_s.sum()
    there = messages.reduce(begin, work.bytes, machine)
    under_way += float(messages.reduce(begin * 0, work.bytes, machine).max())
    return _updated_on_root(there, work, pace, under_way)


def overlap(work: Work, machine: Machine, messages: Messages) -> Step:
    """Besides, reduce each layer to rank 0 behind the backward pass (SC-OBR)."""
    forward, given = _layer_by_layer(work, machine, messages)
    step = _reduced_behind(work, machine, messages, _each_layer(work), messages.reduce, begin=forward)
    return replace(step, under_way_s=step.under_way_s + given)


def _each_layer(work: Work) -> list[tuple[int, float]]:
    sizes = work.gradient_bytes
    return [(layer, float(sizes[layer])) for layer in range(len(sizes) - 1, -1, -1) if sizes[layer]]


def overlap_allreduce(work: Work, machine: Machine, messages: Messages) -> Step:
    """All-reduce each layer's gradient behind the backward pass."""
    return _reduced_behind(work, machine, messages, _each_layer(work), messages.allreduce)


# What strategies name as theirs.
PATTERNS: Mapping[str, Pattern] = MappingProxyType(
    {
        "allreduce": reduced,
        "through-root": through_root,
        "buckets": buckets,
        "fully-sharded": fully_sharded,
        "bcast-reduce": bcast_reduce,
        "overlap-bcast": overlap_bcast,
        "overlap": overlap,
        "overlap-allreduce": overlap_allreduce,
    }
)
