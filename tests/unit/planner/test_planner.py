"""The planner: counted and measured costs, and partitions that are the best of all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from partitions import by_fronts, by_trying, random_layers, random_problem
from transect.domain.errors import BadInput, TransectError
from transect.planner.bounds import arcs_worth, known_partition, lower_bound
from transect.planner.costs import (
    LayerCosts,
    Rates,
    counted_costs,
    measured_costs,
    scaled,
    weight_copies,
    whole_over_layers,
)
from transect.planner.partition import SOLVERS, least_memory, partition
from transect.planner.problem import Infeasible, Link, Problem, Solution
from transect.training.workloads import WORKLOADS, model_of

RATES = Rates(flops_per_s=1e10, bytes_per_s=1e30)
MLP = "digits-mlp"


def costs_of(workload: str, batch: int = 8, rates: Rates = RATES) -> tuple[LayerCosts, ...]:
    plugin = WORKLOADS.get(workload)
    return counted_costs(model_of(plugin), plugin.defaults, batch, "fp32", rates)


@pytest.mark.parametrize("workload", ["digits-mlp", "digits-cnn", "images-resnet20"])
def test_counted_costs_add_up_to_those_of_the_model(workload):
    plugin = WORKLOADS.get(workload)
    whole = model_of(plugin).costs(plugin.defaults)
    found = costs_of(workload)
    flops = sum(layer.compute_s for layer in found) * RATES.flops_per_s / 8
    assert flops == pytest.approx(whole.training_flops, rel=1e-12)
    assert sum(layer.weight_bytes for layer in found) == 4 * whole.parameters
    assert len(found) == len(plugin.layers)
    assert found[-1].out_bytes == 8 * 4 * whole.outputs


def test_what_a_layer_keeps_is_counted_once():
    # digits-mlp: Linear, ReLU, ...: the input, then each ReLU's output, which the next linear layer takes.
    plugin = WORKLOADS.get(MLP)
    found = costs_of(MLP, batch=1)
    kept = [layer.kept_bytes for layer in found]
    expected, held = [], False
    size = 4 * int(np.prod(plugin.sample))
    for layer, cost in zip(plugin.layers, found, strict=True):
        name = type(layer).__name__
        if name == "Linear":
            expected.append(0 if held else size)
            held = False
        elif name == "Flatten":
            expected.append(0)
        else:
            expected.append(cost.out_bytes)
            held = True
        size = cost.out_bytes
    assert kept == expected and sum(kept) > 0


def test_memory_bounds_a_pass_where_there_is_little_to_compute():
    slow = costs_of(MLP, rates=Rates(flops_per_s=1e30, bytes_per_s=1e9))
    assert all(layer.forward_s > 0 for layer in slow if layer.weight_bytes)
    twice = costs_of(MLP, rates=Rates(flops_per_s=1e30, bytes_per_s=2e9))
    assert [2 * layer.forward_s for layer in twice] == pytest.approx([layer.forward_s for layer in slow])


def test_a_model_without_layers_is_refused():
    plugin = WORKLOADS.get("tickets-transformer")
    with pytest.raises(BadInput, match="list of layers"):
        counted_costs(model_of(plugin), plugin.defaults, 8, "fp32", RATES)


def profile(batch: int, forward: float, names: tuple[str, ...] = ("0", "1")) -> dict[str, object]:
    layer = {
        "forward_s": [forward, forward, 9 * forward],
        "backward_s": [2 * forward],
        "update_s": [0.5],
        "weight_bytes": 10,
        "gradient_bytes": 10,
        "kept_bytes": 3 * batch,
        "out_bytes": 2 * batch,
    }
    return {"batch": batch, "layers": [{"name": name, **layer} for name in names]}


def test_measured_costs_are_medians_and_lie_on_a_line_between_sizes():
    line = measured_costs([profile(4, 1 + 4.0), profile(8, 1 + 8.0)], 6)
    assert [layer.forward_s for layer in line] == pytest.approx([7.0, 7.0])
    assert [layer.backward_s for layer in line] == pytest.approx([14.0, 14.0])
    assert (line[0].kept_bytes, line[0].out_bytes, line[0].weight_bytes) == (18, 12, 10)
    assert line[0].update_s == 0.5
    alone = measured_costs([profile(4, 2.0)], 6)
    assert alone[0].forward_s == pytest.approx(3.0)
    assert scaled(alone, 2.0)[0].forward_s == pytest.approx(6.0)


def test_layers_are_scaled_to_the_whole_model():
    apart = profile(4, 2.0)
    assert whole_over_layers([apart]) == 1.0
    # Two layers of 2 + 4 s each, and a whole of 9 s.
    whole = {"forward_s": [3.0, 3.0], "backward_s": [6.0]}
    assert whole_over_layers([apart | {"whole": whole}]) == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("profiles", "message"),
    [
        ([], "no profile"),
        ([profile(4, 1.0), profile(8, 1.0, ("0",))], "different layers"),
        ([profile(4, 1.0), profile(4, 1.0)], "two profiles of batch 4"),
    ],
)
def test_profiles_that_do_not_fit_together_are_refused(profiles, message):
    with pytest.raises(BadInput, match=message):
        measured_costs(profiles, 6)


@pytest.mark.env
@pytest.mark.parametrize("seed", range(15))
def test_partitions_are_the_best_of_all(seed):
    generator = np.random.default_rng([seed, False])
    problem = random_problem(generator, int(generator.integers(2, 9)), int(generator.integers(1, 5)))
    best = by_trying(problem)
    assert by_fronts(problem) == (best and pytest.approx(best.step_s))
    for found in (partition(problem, name) for name in SOLVERS):
        if best is None:
            assert isinstance(found, Infeasible) and found.reason
        else:
            assert isinstance(found, Solution)
            assert found.step_s == pytest.approx(best.step_s, rel=1e-6)


@pytest.mark.env
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("seed", range(3))
def test_larger_partitions_are_those_of_dynamic_programming(seed, solver):
    problem = random_problem(np.random.default_rng([7, seed]), 40, 6)
    exact, found = by_fronts(problem), partition(problem, solver)
    assert (exact is None) == isinstance(found, Infeasible)
    if isinstance(found, Solution):
        assert found.step_s == pytest.approx(exact, rel=1e-6)
        assert max(found.memory_bytes) <= problem.room


def test_the_step_follows_its_formula():
    layers = (
        LayerCosts("0", 1, 2, 100, 10, 50, 0.5),
        LayerCosts("1", 2, 4, 100, 10, 20, 0.5),
        LayerCosts("2", 1, 1, 100, 10, 4, 0.5),
    )
    problem = Problem(
        layers=layers, devices=2, micro_batches=4, links=(Link(0.1, 0.01),), replicas=2, replica_link=Link(1, 0.1)
    )
    found = problem.solution([1], "by hand")
    # Both messages of 50 bytes: 2 (0.1 + 0.5); the sum over two replicas: 2 + bytes / 10.
    message, ends = 1.2, (0.5 + 2 + 10, 1.0 + 2 + 20)
    assert found.bottleneck_s == pytest.approx(8 + message)
    assert found.step_s == pytest.approx(3 * (8 + message) + (3 + message) + 8 + max(ends))
    # 1F1B: two live micro-batches in the first stage, one in the last.
    assert found.memory_bytes == (2 * 100 + 2 * 10, 2 * 200 + 20)
    gpipe = replace(problem, schedule="gpipe").solution([1], "by hand")
    assert gpipe.memory_bytes == (2 * 100 + 4 * 10, 2 * 200 + 4 * 20)


def test_a_slow_link_moves_the_cut():
    layers = random_layers(np.random.default_rng(3), 12)
    fast = Problem(layers=layers, devices=3, micro_batches=8)
    slow = replace(fast, links=(Link(0, 1.0), Link(0, 0)))
    found = partition(slow)
    assert isinstance(found, Solution)
    assert found.cuts[0] == min(range(1, 11), key=lambda cut: layers[cut - 1].out_bytes)


def test_infeasible_says_which_constraint():
    layers = random_layers(np.random.default_rng(1), 5)
    many = partition(Problem(layers=layers, devices=6))
    assert isinstance(many, Infeasible) and many.reason.startswith("stages: 5 layers")
    large = max(layers, key=lambda layer: 2 * layer.weight_bytes + layer.kept_bytes)
    alone = partition(Problem(layers=layers, devices=2, memory_bytes=2 * large.weight_bytes))
    assert isinstance(alone, Infeasible) and f"layer {large.name} alone needs" in alone.reason
    free = Problem(layers=layers, devices=2, micro_batches=8, schedule="gpipe")
    least = least_memory(free)
    tight = partition(replace(free, memory_bytes=int(least) - 1))
    assert isinstance(tight, Infeasible)
    assert "8 live micro-batches" in tight.reason and "(gpipe)" in tight.reason
    assert isinstance(partition(replace(free, memory_bytes=int(least))), Solution)


@pytest.mark.env
def test_an_unknown_solver_and_one_that_has_no_time_are_errors():
    problem = random_problem(np.random.default_rng(4), 30, 4)
    with pytest.raises(BadInput, match="highs or cbc"):
        partition(problem, "simplex")
    with pytest.raises(TransectError, match="not proved"):
        partition(problem, "cbc", seconds=-1)


def test_copies_count_the_optimiser():
    parameters = WORKLOADS.get(MLP).defaults
    assert weight_copies(parameters.model_copy(update={"momentum": 0.0})) == 2
    assert weight_copies(parameters.model_copy(update={"momentum": 0.9})) == 3
    assert weight_copies(parameters.model_copy(update={"optimiser": "adamw"})) == 4


@pytest.mark.parametrize("seed", range(2))
def test_bounds_leave_a_large_problem_few_binaries(seed):
    # All stages at all places would be 16 x 200 x 201 / 2 = 321,600.
    problem = random_problem(np.random.default_rng([200, seed]), 200, 16)
    problem = replace(problem, memory_bytes=int(1.15 * least_memory(replace(problem, memory_bytes=None))))
    known = known_partition(problem)
    assert known is not None
    arcs = list(arcs_worth(problem, known))
    assert 16 <= len(arcs) < 5000
    found = partition(problem)
    assert isinstance(found, Solution) and lower_bound(problem) <= found.step_s <= known.step_s
    assert max(found.memory_bytes) <= problem.room
