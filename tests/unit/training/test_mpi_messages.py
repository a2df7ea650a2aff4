"""Strategies of MPI messages: equal to float64 on one process, layer by layer and by hierarchies too."""

from __future__ import annotations

import functools
import json
import os
import subprocess
from pathlib import Path

import pytest

from checkouts import ROOT
from factories import train_cell
from transect.launch.launchers.mpiexec import mpiexec_prefix
from transect.training.collectives import links
from transect.training.layered import LayeredModel
from transect.training.layers import Flatten, Linear, ReLU
from transect.training.strategies import STRATEGIES
from transect.training.strategies._layerwise import weighty_parts
from transect.training.strategies._progress import union

HERE = Path(__file__).parent


def on_ranks(python: str, ranks: int, *command: str) -> str:
    """Run a program of this folder on ranks; return its standard output."""
    start = [*mpiexec_prefix(str(Path(python).parent / "mpiexec")), "-n", str(ranks)]
    done = subprocess.run(
        [*start, "--map-by", ":OVERSUBSCRIBE", python, str(HERE / command[0]), *command[1:]],
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{HERE}", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("ranks", [1, 7, pytest.param(16, marks=pytest.mark.exhaustive)])
def test_hierarchies_add_exactly_and_leave_the_same_bits(base_python, ranks):
    assert on_ranks(base_python, ranks, "collective_runs.py").split() == ["0", "of", "840"]


def test_arrays_pass_between_stages_whole_and_in_order_and_another_size_is_a_fault_that_names_it(base_python):
    found = json.loads(on_ranks(base_python, 2, "lane_messages.py"))
    assert found["right"] == [[True] * 10] * 6
    shorter, longer = found["wrong"]
    expected = "expected gradients (3, 4) of micro-batch 0 from stage 0, 96 bytes"
    assert shorter == f"{expected}, got 72 bytes"
    assert longer.startswith(f"{expected}: MPI_ERR_TRUNCATE")


@pytest.mark.parametrize("upper", ["tree", "chain"])
@pytest.mark.parametrize("group", [1, 2, 3, 8, 50])
@pytest.mark.parametrize("size", [1, 2, 3, 8, 13, 64])
def test_links_are_one_tree_with_rank_0_at_its_root(size, group, upper):
    found = [links(rank, size, group, upper) for rank in range(size)]
    assert [rank for rank, link in enumerate(found) if link.parent is None] == [0]
    for rank, link in enumerate(found):
        assert [child for child in range(size) if found[child].parent == rank] == sorted(link.children)
        assert all(found[child].distance == link.distance + 1 for child in link.children)


def test_a_tree_of_leaders_is_less_deep_than_a_chain():
    assert max(links(rank, 64, 4, "tree").distance for rank in range(64)) == 4 + 3
    assert max(links(rank, 64, 4, "chain").distance for rank in range(64)) == 15 + 3


def test_parts_begin_at_layers_with_weights():
    layers = (Flatten(), Linear(4, 5), ReLU(), Linear(5, 2), Linear(2, 3), ReLU())
    model = LayeredModel(layers, (4,))

    def cuts(least: int) -> list[tuple[int, int]]:
        return [(part.first, part.last) for part in weighty_parts(model, least, 4)]

    assert cuts(0) == cuts(1) == [(0, 3), (3, 4), (4, 6)]
    assert cuts(100) == [(0, 3), (3, 6)]
    assert cuts(101) == [(0, 4), (4, 6)]
    assert cuts(10**6) == [(0, 6)]
    assert weighty_parts(LayeredModel((ReLU(), Flatten()), (4,)), 0, 4)[0].last == 2


def test_what_was_under_way_at_once_counts_once():
    assert union([]) == 0.0
    assert union([(5.0, 6.0), (0.0, 2.0), (1.0, 1.5), (1.0, 3.0)]) == 4.0
    nan = union([(0.0, 1.0), (2.0, float("nan"))])
    assert nan != nan


cnn_cell = functools.partial(train_cell, workload="digits-cnn", batch=60, ranks_per_node=2)


def test_sums_in_memory_that_ranks_share_are_not_predicted_as_messages():
    traffic = STRATEGIES.get("mpi-hierarchical").traffic
    assert traffic(cnn_cell(strategy="mpi-hierarchical", options=(("inner", "shared"),))) is None
    predicted = traffic(cnn_cell(strategy="mpi-hierarchical", options=(("group", 2),)))
    assert predicted is not None and predicted.pattern == "hierarchical" and predicted.group == 2
