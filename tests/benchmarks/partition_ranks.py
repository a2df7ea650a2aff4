"""Two ranks of one mpiexec that train unbalanced networks, cut in several ways, in turn.

Started by bench_partition.py in the environment `torch`; rank 0 prints one line of JSON for each network. Rank 0
times the layers as the `profile` stage does and both time messages; from these the cuts are made: by the planner, by
torchgpipe's own block partition on the same times, and by the counted rules of `mpi-pipeline`. Every cut is
trained by `mpi-pipeline` with the same weights, batch and schedule; rounds of some steps take turns.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.cell import Cell
from transect.payloads.profile import layer_rows
from transect.planner import dynamic
from transect.planner.costs import LayerCosts, measured_costs, weight_copies
from transect.planner.problem import Link, Problem, Solution
from transect.planner.reasons import least_memory
from transect.training.cuts import CUTS, cut_text, stage_cuts
from transect.training.frameworks import FRAMEWORKS, ModelPlan
from transect.training.layered import LayeredModel
from transect.training.layers import Conv2d, Flatten, Layer, Linear, MaxPool2d, ReLU
from transect.training.strategies import strategy_options
from transect.training.strategies.mpi_pipeline import MpiPipeline
from transect.training.workloads import Parameters

BATCH, MICRO_BATCHES, STAGES = 128, 8, 2
PARAMETERS = Parameters(batch=BATCH, epochs=1, learning_rate=1e-3, momentum=0.9, quality_target=0.5)


def chain(widths: list[int]) -> LayeredModel:
    """Return linear layers of these widths with ReLUs between them."""
    layers: list[Layer] = []
    for inputs, outputs in itertools.pairwise(widths):
        layers += [Linear(inputs, outputs), ReLU()]
    return LayeredModel(tuple(layers[:-1]), (widths[0],))


def convolutions() -> LayeredModel:
    """Return a network whose first layers compute most and pass most on, and whose last ones hold most weights."""
    layers: list[Layer] = []
    before = 3
    for channels in (24, 32, 48, 64):
        layers += [Conv2d(before, channels, 3, 1), ReLU(), Conv2d(channels, channels, 3, 1), ReLU(), MaxPool2d(2)]
        before = channels
    layers += [Flatten(), Linear(before * 4, 512), ReLU(), Linear(512, 10)]
    return LayeredModel(tuple(layers), (3, 32, 32))


def networks(seeds: int) -> dict[str, LayeredModel]:
    """Return the networks by name: one layer dearer than the others, shapes from the field, random chains."""
    found = {
        # One linear layer of five to eight times the others' cost, as of large images or vocabularies.
        "vocabulary": chain([512] * 11 + [3072]),
        "wide input": chain([6144] + [512] * 11 + [10]),
        "wide middle": chain([512] * 4 + [1536] + [512] * 9 + [10]),
        "hourglass": chain([1536, 768, 192, 48, 192, 768, 1536, 10]),
        "convolutions": convolutions(),
    }
    for seed in range(seeds):
        widths = np.random.default_rng([15, seed]).lognormal(5.7, 0.9, 9)
        found[f"random {seed}"] = chain([*np.clip(widths, 16, 3000).astype(int).tolist(), 10])
    return found


def message_link(world: Any) -> Link:
    """Return what a message between the two ranks takes: half a round trip of two sizes."""
    taken = {}
    for size in (8, 2**21):
        data = np.zeros(size, np.uint8)
        times = []
        for _ in range(25):
            world.Barrier()
            begin = time.perf_counter()
            for turn in (0, 1):
                if world.rank == turn:
                    world.Send(data, dest=1 - turn)
                else:
                    world.Recv(data, source=1 - world.rank)
            times.append((time.perf_counter() - begin) / 2)
        taken[size] = float(np.median(times))
    small, large = taken
    return Link(taken[small], max(0.0, (taken[large] - taken[small]) / (large - small)))


def torchgpipe_cut(path: Path, costs: tuple[LayerCosts, ...]) -> tuple[int, ...]:
    """Return torchgpipe's cut of the layers' times, as its `balance_by_time` makes it."""
    spec = importlib.util.spec_from_file_location("blockpartition", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    blocks = module.solve([one.compute_s for one in costs], partitions=STAGES)
    return tuple(np.cumsum([len(block) for block in blocks])[:-1].tolist())


def cuts_of(
    model: LayeredModel, costs: tuple[LayerCosts, ...], link: Link, torchgpipe: Path | None
) -> tuple[dict[str, tuple[int, ...]], Problem]:
    """Return every cut by who made it."""
    problem = Problem(
        layers=costs, devices=STAGES, micro_batches=MICRO_BATCHES, link=link, copies=weight_copies(PARAMETERS)
    )
    found = dynamic.partition(problem)
    assert isinstance(found, Solution)
    cuts = {"plan": found.cuts}
    if torchgpipe is not None:
        cuts["torchgpipe"] = torchgpipe_cut(torchgpipe, costs)
    return cuts | {name: stage_cuts(model, name, STAGES) for name in CUTS}, problem


def stepper(
    plan: ModelPlan, cut: tuple[int, ...], x: np.ndarray, y: np.ndarray
) -> tuple[MpiPipeline, Callable[[], None]]:
    """Return a strategy and a function that does one step of it."""
    options = {"stages": STAGES, "micro_batches": MICRO_BATCHES, "cut": cut_text(cut)}
    cell = Cell.of(
        stage="train",
        workload="digits-mlp",
        framework="torch",
        strategy="mpi-pipeline",
        batch=BATCH,
        ranks_per_node=STAGES,
        options=strategy_options("mpi-pipeline", options, "bench"),
    )
    strategy = MpiPipeline()
    strategy.join()
    trainer = strategy.trainer(FRAMEWORKS.get("torch"), plan, cell)
    strategy.start(trainer)
    batch = trainer.batch(x, y)

    def step() -> None:
        strategy.step(trainer, *batch, 1e-4)

    return strategy, step


def compare(
    world: Any, plan: ModelPlan, cuts: dict[str, tuple[int, ...]], given: argparse.Namespace
) -> dict[tuple[int, ...], list[float]]:
    """Return the slowest rank's seconds for a step, round by round, for each cut that differs."""
    generator = np.random.default_rng(3)
    x = generator.standard_normal((BATCH, *plan.model.sample), np.float32)
    y = generator.integers(0, 10, BATCH)
    ways = {cut: stepper(plan, cut, x, y) for cut in dict.fromkeys(cuts.values())}
    found: dict[tuple[int, ...], list[float]] = {cut: [] for cut in ways}
    for number in range(given.rounds + 1):
        for cut, (_, step) in ways.items():
            world.Barrier()
            begin = time.perf_counter()
            for _ in range(given.steps):
                step()
            taken = world.allreduce(time.perf_counter() - begin, op=given.largest) / given.steps
            if number:
                found[cut].append(taken)
    return found


def main() -> None:
    """Run all networks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=5, help="of one cut in a round")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--torchgpipe", type=Path, help="its blockpartition.py")
    given = parser.parse_args()
    import torch
    from mpi4py import MPI

    given.largest, world = MPI.MAX, MPI.COMM_WORLD
    torch.set_num_threads(1)
    link = world.bcast(message_link(world))
    for name, model in networks(given.seeds).items():
        plan = ModelPlan(
            model=model,
            parameters=PARAMETERS,
            weights=model.initial_weights(0),
            batch=BATCH,
            precision="fp32",
            device="cpu",
            threads=1,
        )
        size = BATCH // MICRO_BATCHES
        generator = np.random.default_rng(2)
        x = generator.standard_normal((size, *model.sample), np.float32)
        # Both at once: as in training, each has a neighbour that computes.
        rows, whole, _ = layer_rows(FRAMEWORKS.get("torch"), plan, x, generator.integers(0, 10, size), 15)  # type: ignore[arg-type]
        costs = world.bcast(measured_costs([{"batch": size, "layers": rows, "whole": whole}], size))
        cuts, problem = cuts_of(model, costs, link, given.torchgpipe)
        times = compare(world, plan, cuts, given)
        if world.rank:
            continue
        least = least_memory(problem)
        ways = {}
        for who, cut in cuts.items():
            ends = (0, *cut, problem.count)
            known = problem.solution([(a, b, 1) for a, b in itertools.pairwise(ends)], who)
            ways[who] = {
                "cut": cut_text(cut),
                "times": times[cut],
                "predicted": known.step_s,
                "memory": max(known.memory_bytes) / least,
            }
        print(json.dumps({"network": name, "layers": problem.count, "ways": ways}), flush=True)


if __name__ == "__main__":
    main()
