"""The same ranks train in turn by `mpi-pipeline` and by torch's own pipelining, or by its DDP.

Started by bench_pipeline.py in the environment `torch`; the last rank prints one line of JSON for each
case. All have the same weights, batch and optimiser, pipelines the same cuts and schedule, in the same
processes; turns of some steps alternate, so that a drift of the machine meets all. Time is the wall
clock of the slowest rank, between two barriers.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI

from transect.domain.cell import Cell
from transect.training.frameworks import FRAMEWORKS, ModelPlan
from transect.training.frameworks._torch_modules import make_optimiser
from transect.training.layout import Layout
from transect.training.parts import boundary_shapes, part_plan, parts_of
from transect.training.strategies import STRATEGIES, strategy_options
from transect.training.strategies.mpi_pipeline import MpiPipeline
from transect.training.workloads import WORKLOADS, model_of


class Case(NamedTuple):
    """A network with its global batch."""

    workload: str
    batch: int
    micro_batches: int


CASES = (
    Case("digits-cnn", 64, 4),
    Case("digits-mlp", 64, 4),
    Case("digits-wide-mlp", 64, 4),
    Case("images-resnet20", 32, 4),
    Case("digits-resnet1001", 16, 2),
)
TORCH_SCHEDULES = {"gpipe": "ScheduleGPipe", "1f1b": "Schedule1F1B"}
RATE = 1e-3


def make_plan(workload: str, batch: int) -> ModelPlan:
    """Return the same plan on all ranks."""
    found = WORKLOADS.get(workload)
    model = model_of(found)
    return ModelPlan(
        model=model,
        parameters=found.defaults,
        weights=model.initial_weights(0),
        batch=batch,
        precision="fp32",
        device="cpu",
        threads=1,
    )


def our_step(plan: ModelPlan, cell: Cell, x: np.ndarray, y: np.ndarray) -> tuple[MpiPipeline, Callable[[], float]]:
    """Return the strategy and a function that does one step and returns the loss (NaN but at the end)."""
    strategy = MpiPipeline()
    strategy.join()
    trainer = strategy.trainer(FRAMEWORKS.get("torch"), plan, cell)
    strategy.start(trainer)
    batch = trainer.batch(x, y)
    return strategy, lambda: strategy.step(trainer, *batch, RATE).loss


def torch_step(
    plan: ModelPlan, cuts: tuple[int, ...], stage: int, micro_batches: int, schedule: str, x: np.ndarray, y: np.ndarray
) -> Callable[[], float]:
    """Return a function that does one step by torch.distributed.pipelining and returns the loss."""
    import torch
    from torch.distributed import pipelining

    part = parts_of(plan.model, cuts)[stage]
    own = part_plan(plan, part)
    trainer: Any = FRAMEWORKS.get("torch").trainer(own.plan)
    module, count = trainer.model, len(cuts) + 1
    optimiser = make_optimiser(plan.parameters, list(module.parameters()) or [torch.empty(0)])
    for group in optimiser.param_groups:
        group["lr"] = RATE
    shapes = boundary_shapes(plan.model)
    size = len(x) // micro_batches
    # Shapes are told, or the first step would run one forward pass more.
    examples = [torch.empty(size, *shapes[layer], requires_grad=layer > 0) for layer in (part.first, part.last)]
    made = pipelining.PipelineStage(
        module, stage, count, torch.device("cpu"), input_args=(examples[0],), output_args=(examples[1],)
    )
    loss_fn = torch.nn.functional.cross_entropy
    run = getattr(pipelining, TORCH_SCHEDULES[schedule])(made, micro_batches, loss_fn=loss_fn)
    inputs = (torch.from_numpy(x),) if part.begins else ()
    target = torch.from_numpy(y) if part.ends else None

    def step() -> float:
        optimiser.zero_grad()
        losses: list[Any] = []
        if part.ends:
            run.step(*inputs, target=target, losses=losses)
        else:
            run.step(*inputs)
        optimiser.step()
        return float(torch.stack(losses).detach().mean()) if part.ends else float("nan")

    return step


def ddp_step(plan: ModelPlan, cell: Cell, x: np.ndarray, y: np.ndarray) -> Callable[[], float]:
    """Return a function that does one step by DDP on this rank's share and returns its loss."""
    strategy: Any = STRATEGIES.get("ddp-gloo")
    count = cell.ranks
    own = dataclasses.replace(plan, batch=plan.batch // count)
    trainer: Any = FRAMEWORKS.get("torch").trainer(own)
    strategy.start(trainer)
    share = Layout(count).share(MPI.COMM_WORLD.rank).number
    part = slice(share * own.batch, (share + 1) * own.batch)
    batch = trainer.batch(x[part], y[part])
    return lambda: float(strategy.step(trainer, *batch, RATE).loss)


def take_turns(
    world: Any, steps: dict[str, Callable[[], float]], rounds: int, seconds: float
) -> tuple[int, dict[str, list[float]], dict[str, float]]:
    """Return steps in a turn, each turn's time of a step, and all ranks' CPU time, by contender."""
    once = {}
    for name, step in steps.items():
        world.Barrier()
        begin = time.perf_counter()
        step()
        once[name] = world.allreduce(time.perf_counter() - begin, op=MPI.MAX)
    number = max(2, min(200, round(seconds / min(once.values()))))
    times: dict[str, list[float]] = {name: [] for name in steps}
    cpu = dict.fromkeys(steps, 0.0)
    for turn in range(rounds):
        names = list(steps)
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            world.Barrier()
            begin, used = time.perf_counter(), time.process_time()
            for _ in range(number):
                steps[name]()
            cpu[name] += time.process_time() - used
            whole = world.allreduce(time.perf_counter() - begin, op=MPI.MAX)
            times[name].append(whole / number)
    return number, times, {name: world.allreduce(value) for name, value in cpu.items()}


def run_case(world: Any, given: argparse.Namespace, case: Case, schedule: str) -> None:
    """Let all contenders train one network; the last rank prints what came of it."""
    plan = make_plan(case.workload, case.batch)
    generator = np.random.default_rng(1)
    drawn = [plan.model.draw(generator) for _ in range(case.batch)]
    x = np.stack([one[0] for one in drawn]).astype(np.float32)
    y = np.stack([one[1] for one in drawn])
    steps: dict[str, Callable[[], float]] = {}
    strategies, facts = [], {}
    for words in given.ours:
        knobs: dict[str, Any] = {"schedule": schedule, "micro_batches": case.micro_batches}
        for name, _, value in (word.partition("=") for word in words.split(",") if word):
            knobs[name] = int(value) if value.isdecimal() else value
        cell = Cell.of(
            stage="train",
            workload=case.workload,
            framework="torch",
            strategy="mpi-pipeline",
            batch=case.batch,
            ranks_per_node=world.size,
            options=strategy_options("mpi-pipeline", knobs, "--ours"),
        )
        strategy, steps[words] = our_step(plan, cell, x, y)
        strategies.append(strategy)
        facts = strategy.details()
    if given.against == "ddp":
        steps["ddp"] = ddp_step(plan, cell, x, y)
    else:
        cuts = tuple(map(int, facts["cut"].split("-")))
        steps["torch"] = torch_step(plan, cuts, world.rank, case.micro_batches, schedule, x, y)
    # What is equal at first and after some steps was computed equally.
    losses = {name: [step() for _ in range(3)] for name, step in steps.items()}
    number, times, cpu = take_turns(world, steps, given.rounds, given.seconds)
    if world.rank == world.size - 1:
        found = {
            **case._asdict(),
            "schedule": schedule,
            "cut": facts["cut"],
            "times": times,
            "cpu": cpu,
            "losses": losses,
            "steps": number,
        }
        print(json.dumps(found), flush=True)
    for one in strategies:
        one.close()


def main() -> None:
    """Run all cases that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", required=True, help="a file for torch's rendezvous")
    parser.add_argument("--against", choices=("torch", "ddp"), default="torch")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.5, help="of one contender in a turn")
    parser.add_argument("--cases", nargs="*", default=[case.workload for case in CASES])
    parser.add_argument("--schedules", nargs="*", default=list(TORCH_SCHEDULES))
    parser.add_argument("--ours", nargs="*", default=["wait=sleep"], help="options: name=value,name=value")
    given = parser.parse_args()
    import torch
    import torch.distributed as dist

    world = MPI.COMM_WORLD
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{given.store}", rank=world.rank, world_size=world.size)
    for case in CASES:
        for schedule in given.schedules if case.workload in given.cases else ():
            run_case(world, given, case, schedule)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
