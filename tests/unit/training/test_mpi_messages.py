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
from transect.domain.errors import BadInput
from transect.launch.launchers.mpiexec import mpiexec_prefix
from transect.training.collectives import links
from transect.training.frameworks import FRAMEWORKS
from transect.training.layered import LayeredModel
from transect.training.layers import Flatten, Linear, ReLU
from transect.training.strategies import STRATEGIES, strategy_options
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


@pytest.mark.env
# Float64 on one rank is the matrix's too (test_equality_matrix.py); here are float32, sums and AdamW.
@pytest.mark.parametrize(
    ("framework", "ranks"), [pytest.param("numpy", 1, marks=pytest.mark.exhaustive), ("numpy", 3), ("torch", 2)]
)
def test_every_strategy_trains_as_one_process(framework, ranks, request):
    python = request.getfixturevalue("base_python" if framework == "numpy" else "torch_python")
    found = json.loads(on_ranks(python, ranks, "message_steps.py", framework))
    assert len(found) == 42
    for one in found:
        bound = {"fp64": 1e-12, "fp32": 5e-6}[one["precision"]]
        off = one["off"]
        assert max(off[key] for key in ("loss", "weights", "predict", "resumed")) < bound, one
        if one["case"][2]:
            assert off["same"], one


@pytest.mark.parametrize("ranks", [1, 7, pytest.param(16, marks=pytest.mark.exhaustive)])
def test_hierarchies_add_exactly_and_leave_the_same_bits(base_python, ranks):
    assert on_ranks(base_python, ranks, "collective_runs.py").split() == ["0", "of", "840"]


@pytest.mark.parametrize("upper", ["tree", "chain"])
@pytest.mark.parametrize("group", [1, 2, 3, 8, 50])
@pytest.mark.parametrize("size", [1, 2, 3, 8, 13, 64])
def test_links_are_one_tree_with_rank_0_at_its_root(size, group, upper):
    found = [links(rank, size, group, upper) for rank in range(size)]
    assert [rank for rank, one in enumerate(found) if one.parent is None] == [0]
    for rank, one in enumerate(found):
        assert [child for child in range(size) if found[child].parent == rank] == sorted(one.children)
        assert all(found[child].distance == one.distance + 1 for child in one.children)


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


@pytest.mark.parametrize("strategy", ["mpi-overlap", "mpi-overlap-bcast"])
def test_what_cannot_be_taken_layer_by_layer_is_refused(strategy, monkeypatch):
    asked = STRATEGIES.get(strategy)
    assert asked.supports(cnn_cell(strategy=strategy)) is None
    encoder = asked.supports(cnn_cell(strategy=strategy, workload="tickets-transformer"))
    assert encoder == "it cuts lists of layers, and a TextEncoder is none"
    # A class of its own: what a protocol has once said of one is kept.
    monkeypatch.setitem(FRAMEWORKS._entries, "whole", type("Whole", (), {}))
    other = asked.supports(cnn_cell(strategy=strategy, framework="whole"))
    assert other is not None and "whole cannot train" in other


@pytest.mark.parametrize(
    ("strategy", "given", "expected"),
    [
        ("mpi-hierarchical", {"group": 0}, "group: strategy mpi-hierarchical takes a whole number from 1 on"),
        ("mpi-hierarchical", {"upper": "ring"}, "tree, chain, got 'ring'"),
        ("mpi-overlap", {"progress": "hope"}, "got 'hope'"),
        ("mpi-overlap-bcast", {"reduce": "all"}, "reduce"),
    ],
)
def test_options_that_it_does_not_have_are_refused(strategy, given, expected):
    with pytest.raises(BadInput) as caught:
        strategy_options(strategy, given, "here")
    assert expected in str(caught.value)


def test_sums_in_memory_that_ranks_share_are_not_predicted_as_messages():
    traffic = STRATEGIES.get("mpi-hierarchical").traffic
    assert traffic(cnn_cell(strategy="mpi-hierarchical", options=(("inner", "shared"),))) is None
    told = traffic(cnn_cell(strategy="mpi-hierarchical", options=(("group", 2),)))
    assert told is not None and told.pattern == "hierarchical" and told.group == 2
