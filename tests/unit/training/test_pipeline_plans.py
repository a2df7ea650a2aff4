"""What a pipeline does without messages: orders of passes, cuts, pieces, and what it refuses."""

from __future__ import annotations

import itertools
import random

import pytest

from transect.training.cuts import CUTS, complaint_of_cut, cut_text, even_cuts, stage_cuts
from transect.training.frameworks import ModelPart
from transect.training.layered import LayeredModel
from transect.training.layers import Flatten, Linear, ReLU
from transect.training.parts import pieces_of
from transect.training.pipeline_schedules import SCHEDULES, Pass, live_micro_batches

MODEL = LayeredModel((Flatten(), Linear(4, 100), ReLU(), Linear(100, 100), ReLU(), Linear(100, 3)), (1, 2, 2))


def test_orders_of_small_pipelines():
    def words(schedule: str, stage: int, stages: int, micro_batches: int) -> str:
        passes = SCHEDULES[schedule](stage, stages, micro_batches)
        return " ".join(f"{'F' if step.forward else 'B'}{step.micro_batch}" for step in passes)

    assert words("gpipe", 1, 3, 3) == "F0 F1 F2 B0 B1 B2"
    assert words("1f1b", 0, 3, 4) == "F0 F1 F2 B0 F3 B1 B2 B3"
    assert words("1f1b", 1, 3, 4) == "F0 F1 B0 F2 B1 F3 B2 B3"
    assert words("1f1b", 2, 3, 4) == "F0 B0 F1 B1 F2 B2 F3 B3"
    # Fewer micro-batches than stages.
    assert words("1f1b", 0, 4, 2) == "F0 F1 B0 B1"


@pytest.mark.parametrize("schedule", sorted(SCHEDULES))
@pytest.mark.parametrize("stages", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("micro_batches", [1, 2, 3, 4, 7, 8])
def test_every_schedule_comes_to_its_end(schedule, stages, micro_batches):
    """Each stage begins a pass as soon as its input is there; nobody waits for ever."""
    left = [SCHEDULES[schedule](stage, stages, micro_batches) for stage in range(stages)]
    for stage, passes in enumerate(left):
        assert sorted(passes) == sorted(Pass(w, i) for w in (True, False) for i in range(micro_batches))
        most = micro_batches if schedule == "gpipe" else min(micro_batches, stages - stage)
        assert live_micro_batches(passes) == most
    done: set[tuple[int, Pass]] = set()
    while any(left):
        before = len(done)
        for stage, passes in enumerate(left):
            if not passes:
                continue
            candidate = passes[0]
            from_ = stage - 1 if candidate.forward else stage + 1
            ready = not 0 <= from_ < stages or (from_, candidate) in done
            if ready and (candidate.forward or (stage, Pass(True, candidate.micro_batch)) in done):
                done.add((stage, passes.pop(0)))
        assert len(done) > before, left


def test_even_cuts_are_the_best_ones():
    generator = random.Random(0)
    for _ in range(1000):
        count = generator.randint(1, 9)
        stages = generator.randint(1, count)
        costs = [generator.choice((0, 0, 1, 2, 5, 9, 30)) for _ in range(count)]

        def dearest(cuts, costs=costs):
            ends = (0, *cuts, len(costs))
            return max(sum(costs[a:b]) for a, b in itertools.pairwise(ends))

        cuts = even_cuts(costs, stages)
        ends = (0, *cuts, count)
        assert len(ends) == stages + 1 and all(a < b for a, b in itertools.pairwise(ends))
        every = itertools.combinations(range(1, count), stages - 1)
        assert dearest(cuts) == min(map(dearest, every)), (costs, stages, cuts)
    assert even_cuts([1] * 7, 3) == (2, 4)
    with pytest.raises(ValueError, match="2 layers cannot be cut into 3 stages"):
        even_cuts([1, 1], 3)


def test_ways_to_cut():
    assert CUTS["parameters"](MODEL) == [0, 500, 0, 10100, 0, 303]
    # Flatten, and 2 x 100 x 4 forwards with as much and the bias for the weights, none for the data.
    assert CUTS["compute"](MODEL)[:2] == [0, 800 + 900 + 800]
    assert stage_cuts(MODEL, "equal", 3) == (2, 4)
    assert stage_cuts(MODEL, "3-5", 3) == (3, 5)
    assert cut_text(stage_cuts(MODEL, "parameters", 2)) == "2"


@pytest.mark.parametrize(
    ("cut", "stages", "complaint"),
    [
        ("equal", 7, "6 layers cannot be cut into 7 stages"),
        ("3", 3, "cut 3 makes 2 stages, not 3"),
        ("3-3", 3, "without one"),
        ("0", 2, "leaves a stage"),
        ("6", 2, "leaves a stage"),
        ("fair", 2, "compute, equal, parameters or the stages' first layers, such as 3-7, not 'fair'"),
        ("3--4", 3, "not '3--4'"),
    ],
)
def test_cuts_that_cannot_be(cut, stages, complaint):
    assert complaint in str(complaint_of_cut(MODEL, cut, stages))
    with pytest.raises(ValueError, match="stage"):
        stage_cuts(MODEL, cut, stages)


def test_pieces_are_cut_from_the_end_where_enough_is_left():
    whole = ModelPart(0, 6, 6)
    assert pieces_of(MODEL, whole, 10**6) == [whole]
    assert pieces_of(MODEL, whole, 300) == [ModelPart(0, 3, 6), ModelPart(3, 5, 6), ModelPart(5, 6, 6)]
    # The first layers' 500 numbers are no piece of their own.
    assert pieces_of(MODEL, whole, 600) == [whole]
