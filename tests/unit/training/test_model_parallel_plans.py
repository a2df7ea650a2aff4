"""What torch's parallel strategies take on, with their reasons, and who holds which rows."""

from __future__ import annotations

import json

import pytest

from transect.training.layers import Conv2d, Flatten, GlobalAveragePool, Linear, MaxPool2d, Residual
from transect.training.strategies._rows import Halo, layers_by_rows, rows_of
from transect.training.strategies._torch_stages import SCHEDULES
from warm import warm

PIPELINE, PAIRS, ROWS = "torch-pipeline", "tensor-parallel", "spatial"


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
