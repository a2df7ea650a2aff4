"""What torch's parallel strategies take on, with their reasons, and who holds which rows."""

from __future__ import annotations

import json

import pytest

from factories import train_cell
from transect.domain.cell import Cell
from transect.domain.errors import BadInput
from transect.stages.reference import reference_of
from transect.training.layers import Conv2d, Flatten, GlobalAveragePool, Linear, MaxPool2d, Residual
from transect.training.layout import Layout
from transect.training.strategies import STRATEGIES, strategy_options
from transect.training.strategies._rows import Halo, layers_by_rows, rows_of
from transect.training.strategies._torch_stages import SCHEDULES
from warm import warm

PIPELINE, PAIRS, ROWS = "torch-pipeline", "tensor-parallel", "spatial"


def parallel(strategy: str, options=None, **axes) -> Cell:
    chosen = strategy_options(strategy, options or {}, "here")
    usual = {"framework": "torch", "workload": "digits-cnn", "ranks_per_node": 2, "batch": 64}
    return train_cell(strategy=strategy, options=chosen, **usual | axes)


@pytest.mark.parametrize(
    ("strategy", "axes", "reason"),
    [
        (PIPELINE, {}, None),
        (PIPELINE, {"reduce": "sum", "precision": "fp64", "ranks_per_node": 4}, None),
        (PIPELINE, {"framework": "numpy"}, "of torch, not of numpy"),
        (PIPELINE, {"device": "cuda"}, "runs on cuda"),
        (PIPELINE, {"precision": "amp-bf16"}, "not in amp-bf16"),
        (PIPELINE, {"memory": "recompute"}, "memory recompute"),
        (PIPELINE, {"ranks_per_node": 3, "options": {"stages": 2}}, "replicas of 2"),
        (PIPELINE, {"options": {"stages": 4}}, "replicas of 4"),
        (PIPELINE, {"options": {"micro_batches": 1}}, "2 stages, not 1"),
        (PIPELINE, {"options": {"schedule": "gpipe", "micro_batches": 1}}, None),
        (PIPELINE, {"options": {"schedule": "dualpipev", "micro_batches": 3}}, "its 4 stages, not 3"),
        (PIPELINE, {"options": {"schedule": "interleaved-1f1b", "micro_batches": 5}}, "2 ranks, not 5"),
        (PIPELINE, {"options": {"loops": 2}}, "1 stages on each rank, not 2"),
        (PIPELINE, {"options": {"schedule": "looped-bfs", "loops": 5}}, "takes 1, 2, 3, 4 stages on each rank"),
        (PIPELINE, {"options": {"cut": "3-7"}}, "cut 3-7 makes 3 stages, not 2"),
        (PIPELINE, {"options": {"schedule": "looped-bfs"}, "ranks_per_node": 8}, "into 16 stages"),
        (PIPELINE, {"workload": "tickets-transformer"}, "TextEncoder"),
        (PAIRS, {"workload": "digits-mlp"}, None),
        (PAIRS, {"workload": "digits-mlp", "ranks_per_node": 1024}, "in 1024 parts"),
        (PAIRS, {}, "no two linear"),
        (PAIRS, {"workload": "tickets-transformer"}, "a TextEncoder is none"),
        (ROWS, {}, None),
        (ROWS, {"ranks_per_node": 8}, None),
        (ROWS, {"ranks_per_node": 16}, "16 ranks"),
        (ROWS, {"workload": "iris-mlp"}, "have no rows"),
        (ROWS, {"workload": "digits-mlp"}, "the first layer"),
        (ROWS, {"workload": "tickets-transformer"}, "TextEncoder"),
    ],
)
def test_what_it_takes_on(strategy, axes, reason):
    said = STRATEGIES.get(strategy).supports(parallel(strategy, **axes))
    assert said is None if reason is None else said and reason in said, said


@pytest.mark.parametrize(
    ("strategy", "options", "ranks", "layout"),
    [
        (PIPELINE, {}, 2, Layout(1, 2, 4)),
        (PIPELINE, {"stages": 2, "micro_batches": 3, "schedule": "gpipe"}, 8, Layout(4, 2, 3)),
        # As many ranks, whatever the number of stages on each.
        (PIPELINE, {"schedule": "zbv-zero-bubble"}, 4, Layout(1, 4, 4)),
        (PAIRS, {}, 4, Layout(1, 4)),
        (ROWS, {"parts": 2}, 4, Layout(2, 2)),
        # Cells that are refused have one too.
        (ROWS, {"parts": 8}, 2, Layout(1, 8)),
    ],
)
def test_ranks_divide(strategy, options, ranks, layout):
    one = parallel(strategy, options=options, ranks_per_node=ranks)
    assert STRATEGIES.get(strategy).layout(one) == layout


def test_the_reference_cuts_as_the_cell_does():
    options = {"stages": 2, "micro_batches": 4}
    axes = {"workload": "images-resnet20", "ranks_per_node": 4}
    found = reference_of(parallel(PIPELINE, options=options, **axes))
    assert (found.shards, found.micro_batches) == (2, 4)
    found = reference_of(parallel(ROWS, options={"parts": 2}, **axes))
    assert (found.shards, found.micro_batches) == (2, 1)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"schedule": "gpip"}, "here.schedule: strategy torch-pipeline takes one of gpipe, 1f1b"),
        ({"micro_batches": 0}, "takes a whole number from 1 on, got 0"),
        ({"reduce": "ddp"}, "one of all-reduce, fsdp, got 'ddp'"),
        ({"schedul": "gpipe"}, "schedule"),
    ],
)
def test_a_wrong_option_says_what_was_expected(options, said):
    with pytest.raises(BadInput, match=said):
        strategy_options(PIPELINE, options, "here")


# The constructors of torch, with as much of a stage as they look at.
CONSTRUCTORS = """
import json, logging, sys
from types import SimpleNamespace
import torch
from torch.distributed.pipelining import schedules
from transect.training.strategies._torch_stages import SCHEDULES
logging.disable(logging.CRITICAL)
found = {}
for name, schedule in SCHEDULES.items():
    kind = getattr(schedules, schedule.torch)
    for ranks in (1, 2, 3, 4):
        for loops in (schedule.loops[:3] if ranks < 4 else schedule.loops[:1]):
            count = ranks * loops
            mine = [
                [SimpleNamespace(num_stages=count, group_size=ranks, group_rank=rank, stage_index=one,
                                 submod=torch.nn.ReLU(), is_first=one == 0, is_last=one == count - 1)
                 for one in schedule.stages(rank, ranks, loops)]
                for rank in range(ranks)
            ]
            for micro_batches in range(1, 10):
                try:
                    for stages in mine:
                        single = issubclass(kind, schedules.PipelineScheduleSingle)
                        kind(stages[0] if single else stages, micro_batches, loss_fn=len)
                    said = True
                except ValueError:
                    said = False
                found[f"{name} {ranks} {loops} {micro_batches}"] = said
print(json.dumps(found))
"""


def test_torch_refuses_just_what_a_cell_is_refused(torch_python):
    run = warm(torch_python).run("-c", CONSTRUCTORS)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout.splitlines()[-1])
    assert len(found) > 400
    for key, accepted in found.items():
        name, ranks, _, micro_batches = key.split()
        reason = SCHEDULES[name].needs(int(ranks), int(micro_batches))
        assert (reason is None) == accepted, (key, reason)


@pytest.mark.parametrize("height", range(4, 16))
@pytest.mark.parametrize(
    ("kernel", "padding", "stride"),
    [(1, 0, 1), (3, 1, 1), (5, 2, 1), (3, 1, 2), (2, 0, 2), (1, 0, 2), (7, 3, 2), (3, 0, 3)],
)
def test_every_window_gets_its_rows_and_every_row_one_sender(height, kernel, padding, stride):
    after = (height + 2 * padding - kernel) // stride + 1
    for parts in range(1, min(after, height) + 1):
        halos = [Halo.of_windows(height, kernel, padding, stride, parts, p) for p in range(parts)]
        for part, halo in enumerate(halos):
            first, last = rows_of(after, parts)[part]
            reach = range(first * stride - padding, (last - 1) * stride - padding + kernel)
            inside = [row for row in reach if 0 <= row < height]
            assert (halo.above, halo.below) == (-min(0, reach[0]), max(0, reach[-1] + 1 - height))
            got = [row for _, rows in halo.receives for row in range(*rows)]
            got += range(*halo.kept)
            assert sorted(got) == inside
            # What one receives is what the other sends.
            for peer, rows in halo.receives:
                assert (part, rows) in halos[peer].sends
            for peer, rows in halo.sends:
                assert (part, rows) in halos[peer].receives


@pytest.mark.parametrize(
    ("layers", "parts", "count"),
    [
        ((Conv2d(1, 2, 3), Flatten(), Linear(72, 3)), 4, 1),
        ((Conv2d(1, 2, 3), GlobalAveragePool(), Linear(2, 3)), 4, 2),
        ((Conv2d(1, 2, 3), MaxPool2d(2), Flatten(), Linear(18, 3)), 4, 1),
        ((Conv2d(1, 2, 3), MaxPool2d(2), Flatten(), Linear(18, 3)), 3, 2),
        # A residual layer is by rows wholly or not at all.
        ((Residual((Conv2d(1, 1, 3, 1), MaxPool2d(2)), (MaxPool2d(2),)), Flatten()), 5, 0),
        ((Residual((Conv2d(1, 1, 3, 1), MaxPool2d(2)), (MaxPool2d(2),)), Flatten()), 4, 1),
        ((Flatten(), Linear(64, 3)), 2, 0),
    ],
)
def test_rows_end_where_there_are_fewer_than_ranks(layers, parts, count):
    assert layers_by_rows(layers, (1, 8, 8), parts) == count
