"""Partitions: the ILP beside dynamic programming, how long it takes, and what its cuts are worth.

Run by hand: `python tests/benchmarks/bench_partition.py [equal] [large] [chains] [steps]`. Prints ratios;
asserts nothing.

`equal`: random problems (2 to 12 layers, 1 to 4 devices, replicas of stages in half of them), by HiGHS and CBC in
turn, beside dynamic programming. Goal: equal in 1,000.
`large`: 200 layers on 16 devices, and more, in CPU seconds. Goal: 10 s.
`chains`: random chains, predicted: torchgpipe's cut, the least bottleneck of computing, equal parameters, over the
optimum; and how many of them do not fit the memory.
`steps`: two ranks train unbalanced networks with each cut, in turn (partition_ranks.py). Goal: at most 0.9 of
torchgpipe's partition. torchgpipe 0.0.7's block partition is one file of its wheel, which pip
fetches; both get the same measured times.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import itertools

from bench_grid import about

from checkouts import ROOT, environment_python
from partitions import random_problem
from transect.launch.launchers.mpiexec import mpiexec_prefix
from transect.planner import dynamic
from transect.planner.partition import SOLVERS, partition
from transect.planner.problem import Problem, Solution
from transect.planner.reasons import least_memory
from transect.training.cuts import even_cuts

TORCHGPIPE = "torchgpipe==0.0.7"


def torchgpipe(folder: Path) -> Path | None:
    """Fetch torchgpipe without what it needs; return its block partition, or None where pip cannot."""
    run = subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder), TORCHGPIPE],
        capture_output=True,
        text=True,
        check=False,
    )
    file = folder / "torchgpipe" / "balance" / "blockpartition.py"
    if run.returncode or not file.is_file():
        print(f"# {TORCHGPIPE} cannot be fetched: {run.stderr.strip()[-300:]}")
        return None
    return file


def bench_equal(given: argparse.Namespace) -> None:
    """Print how many of the ILP's answers are those of dynamic programming."""
    generator = np.random.default_rng(20261122)
    same = infeasible = 0
    worst, taken = 0.0, dict.fromkeys((*SOLVERS, "dynamic"), 0.0)
    for number in range(given.cases):
        problem = random_problem(
            generator, int(generator.integers(2, 13)), int(generator.integers(1, 5)), spread=number % 4 >= 2
        )
        begin = time.process_time()
        exact = dynamic.partition(problem)
        middle = time.process_time()
        solver = SOLVERS[number % 2]
        found = partition(problem, solver)
        taken["dynamic"] += middle - begin
        taken[solver] += time.process_time() - middle
        if isinstance(exact, Solution) and isinstance(found, Solution):
            gap = abs(found.step_s / exact.step_s - 1)
            worst, same = max(worst, gap), same + (gap <= 1e-6)
        elif type(exact) is type(found):
            infeasible, same = infeasible + 1, same + 1
        else:
            print(f"# case {number}: dynamic {exact}, {solver} {found}")
    print(
        f"\nequal to dynamic programming: {same} of {given.cases}, {infeasible} of them infeasible by both; "
        f"largest relative gap {worst:.1e}"
    )
    print("CPU s, solvers' own processes apart:", {k: round(v, 1) for k, v in taken.items()})


def _cpu() -> float:
    """Return CPU seconds of this process and of solvers that it started."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def bench_large(given: argparse.Namespace) -> None:
    """Print how long large problems take, and whether dynamic programming agrees where it is quick."""
    print("\nlayers x devices   spread  memory  solver  CPU s (three problems)       gap to dynamic")
    for layers, devices, spread in ((50, 8, False), (200, 8, False), (200, 16, False), (60, 16, True)):
        for solver in SOLVERS:
            taken, gaps = [], []
            for seed in range(3):
                problem = random_problem(np.random.default_rng([layers, devices, seed]), layers, devices, spread=spread)
                free = replace(problem, memory_bytes=None)
                problem = replace(problem, memory_bytes=int(1.15 * least_memory(free)))
                begin = _cpu()
                found = partition(problem, solver)
                taken.append(_cpu() - begin)
                if given.proof and isinstance(found, Solution):
                    exact = dynamic.partition(problem)
                    assert isinstance(exact, Solution)
                    gaps.append(found.step_s / exact.step_s - 1)
            told = ", ".join(f"{one:.1e}" for one in gaps) or "-"
            print(
                f"{layers:6d} x {devices:<9d} {spread!s:7s} yes     {solver:7s} "
                f"{', '.join(f'{one:.2f}' for one in taken):28s} {told}",
                flush=True,
            )


def _rivals(problem: Problem, file: Path | None) -> dict[str, tuple[int, ...]]:
    scale = 1e9 / max(layer.compute_s for layer in problem.layers)
    compute = [round(layer.compute_s * scale) for layer in problem.layers]
    found = {
        "least bottleneck": even_cuts(compute, problem.devices),
        "equal parameters": even_cuts([one.weight_bytes for one in problem.layers], problem.devices),
    }
    if file is not None:
        spec = importlib.util.spec_from_file_location("blockpartition", file)
        assert spec is not None and spec.loader is not None
        module: Any = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        blocks = module.solve([one.compute_s for one in problem.layers], problem.devices)
        found["torchgpipe"] = tuple(np.cumsum([len(block) for block in blocks])[:-1].tolist())
    return found


def bench_chains(given: argparse.Namespace, file: Path | None) -> None:
    """Print what other partitions are predicted to take, over the optimum."""
    ratios: dict[str, list[float]] = {}
    over: dict[str, int] = {}
    chains = 0
    for seed in range(given.chains):
        generator = np.random.default_rng([4, seed])
        problem = random_problem(generator, int(generator.integers(10, 41)), int(generator.integers(2, 9)))
        free = replace(problem, memory_bytes=None)
        problem = replace(problem, memory_bytes=int(1.2 * least_memory(free)))
        best = partition(problem)
        if not isinstance(best, Solution):
            continue
        chains += 1
        for name, cut in (_rivals(problem, file) | {"plan": best.cuts}).items():
            ends = (0, *cut, problem.count)
            known = problem.solution([(a, b, 1) for a, b in itertools.pairwise(ends)], name)
            ratios.setdefault(name, []).append(known.step_s / best.step_s)
            over[name] = over.get(name, 0) + any(
                size > most for size, most in zip(known.memory_bytes, problem.memories, strict=True)
            )
    print(f"\n{chains} random chains, predicted step over the optimum within 1.2 of the least memory")
    print("partition           median   worst   over memory")
    for name, values in ratios.items():
        print(f"{name:18s} {statistics.median(values):7.2f} {max(values):7.2f} {over[name]:7d}")


def _say_network(case: dict[str, Any], base: str) -> float:
    """Print a network's row for each partition; return the plan's median ratio to the rival's."""
    rival, found = case["ways"][base], float("nan")
    for name, way in case["ways"].items():
        ratios = [a / b for a, b in zip(way["times"], rival["times"], strict=True)]
        middle = statistics.median(ratios)
        found = middle if name == "plan" else found
        print(
            f"{case['network']:13s} {case['layers']:6d}  {name:11s} {way['cut']:8s} "
            f"{1e3 * statistics.median(way['times']):9.2f}  {middle:.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
            f"  {way['predicted'] / rival['predicted']:9.2f}  {way['memory']:6.2f}",
            flush=True,
        )
    return found


def bench_steps(given: argparse.Namespace, file: Path | None, folder: Path) -> None:
    """Train each network with each cut and print ratios to torchgpipe's."""
    python = environment_python("torch", folder)
    command = [
        *mpiexec_prefix(str(Path(python).parent / "mpiexec")),
        "-n",
        "2",
        "--map-by",
        ":OVERSUBSCRIBE",
        python,
        str(Path(__file__).with_name("partition_ranks.py")),
        "--rounds",
        str(given.rounds),
        "--steps",
        str(given.steps),
        "--seeds",
        str(given.seeds),
        *(["--torchgpipe", str(file)] if file else []),
    ]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    base = "torchgpipe" if file else "compute"
    print(f"\nmeasured step over {base}'s, two stages of one thread, 8 micro-batches: goal 0.9")
    print("network       layers  partition   cut       step, ms  ratio (range)      predicted  memory over the least")
    middles: list[float] = []
    with (folder / "errors").open("w+") as errors:
        run = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True)
        assert run.stdout is not None
        for line in run.stdout:
            middles.append(_say_network(json.loads(line), base))
        if run.wait():
            errors.seek(0)
            print(errors.read()[-3000:])
    if middles:
        won = sum(one <= 0.9 for one in middles)
        print(
            f"plan over {base}: median {statistics.median(middles):.2f}, best {min(middles):.2f}, worst "
            f"{max(middles):.2f}; at most 0.9 in {won} of {len(middles)} networks"
        )


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = ("equal", "large", "chains", "steps")
    parser.add_argument("parts", nargs="*", default=list(parts), help=f"of {', '.join(parts)} [default: all]")
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--chains", type=int, default=60)
    parser.add_argument("--proof", action="store_true", help="dynamic programming of the large ones too: minutes")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=4, help="of one cut in a round")
    parser.add_argument("--seeds", type=int, default=4, help="random networks")
    given = parser.parse_args()
    if unknown := set(given.parts) - set(parts):
        parser.error(f"{', '.join(sorted(unknown))}: expected {', '.join(parts)}")
    print(about())
    with tempfile.TemporaryDirectory(prefix="bench-partition-") as name:
        folder = Path(name)
        file = torchgpipe(folder) if {"chains", "steps"} & set(given.parts) else None
        if "equal" in given.parts:
            bench_equal(given)
        if "large" in given.parts:
            bench_large(given)
        if "chains" in given.parts:
            bench_chains(given, file)
        if "steps" in given.parts:
            bench_steps(given, file, folder)


if __name__ == "__main__":
    main()
