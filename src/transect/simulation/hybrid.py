"""Steps of pipelines and their replicas."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from transect.simulation.networks import Machine, Ranks
from transect.simulation.pipelines import Pipeline
from transect.simulation.work import Messages, Step, Work


def pipelined(
    work: Work,
    machine: Machine,
    messages: Messages,
    *,
    cuts: Sequence[int],
    micro_batches: int,
    schedule: str,
    chunks: int = 1,
    behind: bool = False,
) -> Step:
    """Run replicas of a pipeline, then all-reduce each stage's gradient over the replicas.

    `cuts` begin all parts but the first. Rank = replica x stages + stage. `behind`: a part is
    reduced as soon as its gradients are whole, not when its stage is done. Raises ValueError for
    cuts that do not give each rank of a replica its part.
    """
    work = work.joined(cuts)
    parts = len(work.forward_s)
    stages, rest = divmod(parts, chunks)
    if rest or machine.ranks % stages:
        raise ValueError(f"{parts} parts, {chunks} on a stage, do not fit {machine.ranks} ranks")
    replicas = machine.ranks // stages
    place = np.arange(parts) % stages
    networks = [
        machine.inside if _together(machine, stages, a, b) else machine.between for a, b in pairwise(place.tolist())
    ]
    pipeline = Pipeline(
        stages=stages,
        micro_batches=micro_batches,
        schedule=schedule,
        forward_s=work.forward_s,
        backward_s=work.backward_s,
        passed_bytes=work.out_bytes[:-1],
        networks=tuple(networks),
    )
    if messages.slower is None:
        slower = np.ones((stages, 1))  # all replicas are alike: one stands for them
    else:
        slower = messages.slower.reshape(replicas, stages).T
    run = pipeline.run(slower)
    updates = np.bincount(place, work.update_s, stages)
    ends, under_way = run.ends.copy(), 0.0
    among = machine.strided(stages)
    for part in range(parts - 1, -1, -1) if replicas > 1 else ():
        stage = part % stages
        ready = run.gradients[part] if behind else ends[stage]
        ready = np.broadcast_to(ready, (replicas,))
        there = messages.allreduce(ready, float(work.gradient_bytes[part]), among)
        under_way = max(under_way, float(there.max() - ready.max()))
        ends[stage] = np.maximum(ends[stage], there if len(slower[0]) > 1 else there.max())
    ends = ends + slower * (updates[:, None] + work.step_s)
    late = np.unravel_index(int(ends.argmax()), ends.shape)
    computed = run.busy + slower * (updates[:, None] + work.step_s)
    return Step(float(ends[late]), float(computed[late]), under_way, run.bubble)


def _together(machine: Machine, stages: int, a: int, b: int) -> bool:
    """Whether two stages lie on one node in every replica: the slowest replica is the step."""
    first: Ranks = np.arange(0, machine.ranks, stages)
    return np.array_equal((first + a) // machine.ranks_per_node, (first + b) // machine.ranks_per_node)
