"""Clocks of ranks: what must hold whatever the numbers, and what can be said in closed form."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transect.simulation.collectives import (
    ALLREDUCES,
    Measured,
    allgather_ring,
    bcast_binomial,
    reduce_binomial,
    reduce_scatter_ring,
)
from transect.simulation.hierarchy import Hierarchy
from transect.simulation.networks import Machine, Network
from transect.simulation.pipelines import Pipeline, levels, pipelined
from transect.simulation.steps import PATTERNS, hierarchical, reduced
from transect.simulation.work import Messages, Work

LINK = Network(1e-6, 1e-9, 2e-10)
COLLECTIVES = {
    **ALLREDUCES,
    "bcast": bcast_binomial,
    "reduce": reduce_binomial,
    "allgather": allgather_ring,
    "reduce-scatter": reduce_scatter_ring,
    "tree": Hierarchy(group=3, chunk_bytes=1000).allreduce,
    "chain": Hierarchy(group=4, chunk_bytes=700, upper="chain").allreduce,
}


def even_work(layers: int, size: float = 4e6) -> Work:
    return Work(
        forward_s=np.full(layers, 1e-3),
        backward_s=np.full(layers, 2e-3),
        update_s=np.full(layers, 1e-4),
        gradient_bytes=np.full(layers, size),
        out_bytes=np.full(layers, 1e5),
    )


@pytest.mark.parametrize("ranks", [2, 8, 64])
def test_allreduces_take_what_their_formulas_say(ranks):
    size, machine, begin = 1e6, Machine.flat(ranks, LINK), np.zeros(ranks)
    share = (ranks - 1) / ranks * size
    a, b, c = LINK.alpha_s, LINK.beta_s_per_byte, LINK.gamma_s_per_byte
    expected = {
        "ring": 2 * (ranks - 1) * a + 2 * share * b + share * c,
        "recursive-doubling": log2(ranks) * (a + size * (b + c)),
        "rabenseifner": 2 * log2(ranks) * a + 2 * share * b + share * c,
    }
    for name, seconds in expected.items():
        assert ALLREDUCES[name](begin, size, machine) == pytest.approx(seconds), name


@pytest.mark.parametrize("name", COLLECTIVES)
@settings(deadline=None, max_examples=25)
@given(ranks=st.integers(1, 40), size=st.floats(1, 1e7), seed=st.integers(0, 99))
def test_nobody_is_done_before_those_it_hears_from(name, ranks, size, seed):
    begin = np.random.default_rng(seed).uniform(0, 1e-2, ranks)
    machine = Machine(ranks, Network(1e-7, 1e-11), LINK, ranks_per_node=4)
    given_, end = begin.copy(), COLLECTIVES[name](begin, size, machine)
    assert end.shape == begin.shape
    assert (begin == given_).all(), "its clocks are its own"
    assert (end >= begin).all()
    if name in ("bcast", "scatter-allgather"):
        assert (end >= begin[0]).all()
    elif name == "reduce":
        assert end[0] >= begin.max()
    else:
        assert (end >= begin.max()).all()
    # Nothing takes less time on more bytes.
    assert (COLLECTIVES[name](begin, 2 * size, machine) >= end - 1e-12).all()


@pytest.mark.parametrize("name", ["ring", "allgather", "reduce-scatter"])
def test_a_ring_of_rounds_is_what_going_through_them_gives(name):
    ranks, size = 13, 1e6
    machine = Machine.flat(ranks, LINK)
    clocks = np.random.default_rng(0).uniform(0, 1e-2, ranks)
    here = clocks
    for number in range({"ring": 2}.get(name, 1) * (ranks - 1)):
        late = np.maximum(here, np.maximum(np.roll(here, 1), np.roll(here, -1)))
        sums = name != "allgather" and number < ranks - 1
        here = late + LINK.message_s(size / ranks) + sums * LINK.gamma_s_per_byte * size / ranks
    assert COLLECTIVES[name](clocks, size, machine) == pytest.approx(here)


def test_ranks_of_a_node_share_its_link():
    slow, fast = Network(0.0, 1e-9), Network(0.0, 1e-12)
    separate = Machine(8, fast, slow, ranks_per_node=4)
    shared = Machine(8, fast, slow, ranks_per_node=4, links_per_node=1)
    begin, size = np.zeros(8), 1e6
    doubling = ALLREDUCES["recursive-doubling"]
    assert doubling(begin, size, separate).max() == pytest.approx(2 * 1e-6 + 1e-3)
    assert doubling(begin, size, shared).max() == pytest.approx(2 * 1e-6 + 4e-3)


def test_every_second_rank_has_its_share_of_the_links():
    machine = Machine(16, LINK, LINK, ranks_per_node=4, links_per_node=1)
    half = machine.strided(2)
    assert (half.ranks, half.ranks_per_node) == (8, 2)
    assert half.between.beta_s_per_byte == 2 * LINK.beta_s_per_byte


def test_a_measured_allreduce_goes_through_its_points():
    table = Measured(((4.0, 1e-5), (1024.0, 2e-5), (1e6, 1e-3), (2e6, 2e-3)))
    assert [table.seconds(size) for size, _ in table.points] == pytest.approx([seconds for _, seconds in table.points])
    assert table.seconds(1) == pytest.approx(1e-5)
    assert table.seconds(4e6) == pytest.approx(4e-3)


@pytest.mark.parametrize(("schedule", "chunks"), [("gpipe", 1), ("1f1b", 1), ("interleaved", 1), ("interleaved", 3)])
@pytest.mark.parametrize(("stages", "micro"), [(1, 1), (2, 4), (4, 8), (8, 3), (3, 15)])
def test_a_pipeline_of_equal_stages_has_its_bubble(schedule, chunks, stages, micro):
    if schedule == "interleaved" and micro % stages:
        return
    parts = stages * chunks
    free = (Network(0.0, 0.0),) * (parts - 1)
    run = Pipeline(
        stages=stages,
        micro_batches=micro,
        schedule=schedule,
        forward_s=np.ones(parts),
        backward_s=np.full(parts, 2.0),
        passed_bytes=np.zeros(parts - 1),
        networks=free,
    ).run()
    assert run.ends.max() == pytest.approx(3 * (chunks * micro + stages - 1))
    assert run.bubble == pytest.approx((stages - 1) / (chunks * micro + stages - 1))


def test_every_pass_of_a_schedule_comes_once_and_after_what_it_needs():
    for schedule, chunks in (("gpipe", 1), ("1f1b", 1), ("interleaved", 3)):
        stages, micro = 4, 8
        seen: set[tuple[int, int, int]] = set()
        for level in levels(schedule, stages, micro, chunks):
            now = list(zip(level.backward, level.micro, level.part, strict=True))
            for back, i, part in now:
                if back:
                    assert ((1, i, part + 1) if part + 1 < stages * chunks else (0, i, part)) in seen
                elif part:
                    assert (0, i, part - 1) in seen
            assert not seen & set(now)
            seen |= set(now)
        assert len(seen) == 2 * stages * chunks * micro


@pytest.mark.parametrize("name", PATTERNS)
def test_one_rank_only_computes(name):
    work = even_work(6)
    step = PATTERNS[name](work, Machine.flat(1, LINK), Messages())
    assert step.seconds == pytest.approx(work.seconds)
    assert (step.waited_s, step.overlap) == (pytest.approx(0), 0)


@pytest.mark.parametrize("name", ["buckets", "overlap", "overlap-bcast", "overlap-allreduce"])
def test_overlap_hides_messages_only_if_they_move(name):
    work, machine = even_work(20), Machine.flat(8, Network(1e-6, 1e-10))
    moving = PATTERNS[name](work, machine, Messages(bucket_bytes=4e6, first_bucket_bytes=4e6))
    still = PATTERNS[name](work, machine, Messages(progress=False, bucket_bytes=4e6))
    assert moving.seconds < still.seconds
    assert moving.seconds >= max(work.seconds, moving.under_way_s)
    assert moving.overlap > 0.3 > still.overlap


def test_s_caffes_schemes_stand_in_the_order_that_it_claims():
    work, machine = even_work(20), Machine.flat(16, Network(1e-6, 2e-10))
    seconds = [
        PATTERNS[name](work, machine, Messages()).seconds for name in ("bcast-reduce", "overlap-bcast", "overlap")
    ]
    assert seconds == sorted(seconds, reverse=True)


def test_all_through_one_rank_grows_with_the_ranks():
    work = even_work(4)
    waits = [PATTERNS["through-root"](work, Machine.flat(ranks, LINK), Messages()).waited_s for ranks in (2, 3, 5)]
    first = 2 * LINK.message_s(work.bytes) + LINK.gamma_s_per_byte * work.bytes
    assert waits[0] == pytest.approx(first)
    assert waits[1] > waits[0] * 1.9


def test_a_hierarchy_beats_one_call_for_the_whole_buffer_on_large_messages():
    work, machine = even_work(4, size=2e7), Machine.flat(32, LINK)
    whole = PATTERNS["bcast-reduce"](work, machine, Messages())
    chunked = hierarchical(work, machine, Messages(), hierarchy=Hierarchy(group=8, upper="chain"), root_updates=True)
    assert chunked.seconds < whole.seconds


@pytest.mark.parametrize("upper", ["tree", "chain"])
@pytest.mark.parametrize("operation", ["reduce", "broadcast", "allreduce"])
def test_more_chunks_than_are_held_take_what_all_of_them_take(monkeypatch, upper, operation):
    tree, machine = Hierarchy(group=4, chunk_bytes=1000, upper=upper), Machine.flat(21, LINK)
    clocks = np.random.default_rng(0).uniform(0, 1e-5, 21)
    every = getattr(tree, operation)(clocks, 1e6, machine)
    monkeypatch.setattr("transect.simulation.hierarchy.MAX_CLOCKS", 21 * 200)
    assert getattr(tree, operation)(clocks, 1e6, machine) == pytest.approx(every, rel=1e-9)


def test_replicas_of_a_pipeline_add_their_reduction_and_stragglers_show():
    work = even_work(8)
    given_ = {"cuts": (2, 4, 6), "micro_batches": 8, "schedule": "1f1b"}
    single = pipelined(work, Machine.flat(4, LINK), Messages(), **given_)
    many = pipelined(work, Machine.flat(32, LINK), Messages(), **given_)
    behind = pipelined(work, Machine.flat(32, LINK), Messages(), behind=True, **given_)
    assert single.seconds < behind.seconds <= many.seconds
    waits = ALLREDUCES["ring"](np.zeros(8), float(work.joined((2, 4, 6)).gradient_bytes[0]), Machine.flat(8, LINK))
    assert many.seconds == pytest.approx(single.seconds + waits.max())
    slow = np.ones(32)
    alike = pipelined(work, Machine.flat(32, LINK), Messages(slower=slow), **given_)
    assert alike.seconds == pytest.approx(many.seconds)
    slow[17] = 2.0
    assert pipelined(work, Machine.flat(32, LINK), Messages(slower=slow), **given_).seconds > 1.3 * many.seconds


def test_a_boundary_that_any_replica_has_between_nodes_takes_a_message_between_nodes():
    given_ = {"cuts": (2, 4), "micro_batches": 4, "schedule": "1f1b"}
    slow = Network(1e-3, 1e-8, LINK.gamma_s_per_byte)
    # Ranks 0 1 | 2 3 | 4 5 of two replicas of three stages: each boundary crosses nodes in one of them.
    mixed = Machine(6, LINK, slow, ranks_per_node=2)
    every = Machine(6, slow, slow, ranks_per_node=2)
    took = [pipelined(even_work(6), machine, Messages(), **given_).seconds for machine in (mixed, every)]
    assert took[0] == pytest.approx(took[1])


def test_a_step_only_grows_to_the_most_ranks():
    work, messages = even_work(8), Messages(allreduce=ALLREDUCES["rabenseifner"])
    steps = [
        reduced(work, Machine(ranks, Network(1e-7, 1e-11), LINK, ranks_per_node=8, links_per_node=1), messages).seconds
        for ranks in (1 << bit for bit in range(18))
    ]
    assert steps == sorted(steps) and steps[0] == work.seconds
