"""Training past the memory that there is, as ratios within one run, interleaved.

Run by hand: `python tests/benchmarks/bench_out_of_core.py [--batch 16] [--rounds 3] [--threads 1]`.
About 5 minutes on two quiet cores. Builds the torch environment when the cache has none.

A net of 40 blocks of convolution, batch norm and ReLU. First, the budget is what plain training of
BATCH samples needs, kept by the kernel: eight times the batch by offloading to a file, against plain
training (time per sample, with and without the same limit), against the tutorial's way of saving tensors to disk, and
recomputation. Plain training of twice the batch must fail, or the budget says nothing.
Then `planned`, at the memory that each rival was seen to hold, against that rival: torch's save_on_cpu,
checkpoint_sequential, and activation_memory_budget of torch.compile. Times are medians of steps
of processes that take turns; goals are printed beside ratios, and nothing is asserted.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from measuring import about, python_of

from transect.domain.paths import ROOT
from transect.planner.memory import NoMemory, decide
from transect.stages.memory_plan.run import problem_of
from transect.training.workloads import Parameters

RIVALS = (
    "save_on_cpu",
    "checkpoint_sequential:2",
    "checkpoint_sequential:8",
    "activation_memory_budget:0.5",
    "activation_memory_budget:0.2",
)
_STEPS = "out_of_core_steps"


class Bench:
    def __init__(self, python: str, threads: int, folder: Path) -> None:
        self._python, self._threads, self._folder = python, threads, folder

    def run(self, contender: str, batch: int, *more: str) -> dict[str, Any]:
        """Return what a contender's process tells; under a budget it runs as a cell does."""
        done = subprocess.run(
            [self._python, "-m", _STEPS, contender, str(batch), "--threads", str(self._threads), *more],
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
            env={
                "PYTHONPATH": f"{ROOT / 'src'}:{Path(__file__).parent}",
                "PATH": "/usr/bin:/bin",
                "TMPDIR": str(self._folder),
            },
        )
        if done.returncode:
            raise SystemExit(f"{contender} {batch}: exit code {done.returncode}: {done.stderr[-800:]}")
        told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return told

    def turns(self, rounds: int, runs: dict[str, tuple[str, ...]]) -> dict[str, float]:
        """Return the median step of each run, which take turns; inf where it ran out of memory."""
        times: dict[str, list[float]] = defaultdict(list)
        for _ in range(rounds):
            for name, (contender, batch, *more) in runs.items():
                told = self.run(contender, int(batch), *more)
                times[name].append(told.get("step_s", float("inf")))
        return {name: statistics.median(values) for name, values in times.items()}

    def plan(self, costs: dict[str, Any], budget: int, name: str) -> Path | str:
        """Return the file of a decision for the budget, or why there is none."""
        rule = Parameters(batch=1, epochs=1, learning_rate=1, momentum=0.9, quality_target=1)
        problem = problem_of(costs, rule, budget, overlap=True)
        decision = decide(problem)
        if isinstance(decision, NoMemory):
            return decision.reason
        path = self._folder / f"{name.replace(':', '-')}.json"
        path.write_text(json.dumps({"runs": decision.runs, "window_bytes": problem.window}))
        layers: dict[str, int] = defaultdict(int)
        for action, first, last in decision.runs:
            layers[action] += last - first
        print(f"  planned for {budget / 2**20:.0f} MiB: layers {dict(layers)}")
        return path


def out_of_core(bench: Bench, batch: int, rounds: int) -> None:
    needs = bench.run("plain", batch, "--apart")["bytes"]
    # Resident pages are less than what is mapped; the limit counts the latter.
    budget = int(1.15 * needs)
    limit = ("--budget", str(budget))
    fits = "step_s" in bench.run("plain", batch, *limit)
    double = bench.run("plain", 2 * batch, *limit)
    print(
        f"\nbudget {budget / 2**20:.0f} MiB: plain training of {batch} samples {'fits' if fits else 'does NOT fit'}, "
        f"of {2 * batch} {'FITS' if 'step_s' in double else 'does not'}"
    )
    large = str(8 * batch)
    costs = bench.run("costs", 8 * batch)
    runs = {
        "plain": ("plain", str(batch)),
        "plain, held": ("plain", str(batch), *limit),
        "offload-file": ("offload-file", large, *limit),
        "naive": ("naive", large, *limit),
        "recompute": ("recompute", large, *limit),
    }
    path = bench.plan(costs, budget, "out-of-core")
    if isinstance(path, Path):
        runs["planned"] = ("planned", large, *limit, "--plan", str(path))
    else:
        print(f"  planned: {path}")
    found = bench.turns(rounds, runs)
    per_sample = {
        name: step / (batch if name.startswith("plain,") or name == "plain" else 8 * batch)
        for name, step in found.items()
    }
    print("contender        ms a sample   over plain   over plain, held   (8 times the batch)")
    for name, seconds in per_sample.items():
        print(
            f"{name:16s} {1e3 * seconds:11.3f} {seconds / per_sample['plain']:12.2f} "
            f"{seconds / per_sample['plain, held']:18.2f}"
        )
    best = min(per_sample["offload-file"], per_sample.get("planned", float("inf")))
    print(
        f"goal 1.30 of plain: {best / per_sample['plain']:.2f} ({best / per_sample['plain, held']:.2f} of plain, held); "
        f"goal 1.9 over naive: {per_sample['naive'] / best:.2f}"
    )


def at_equal_memory(bench: Bench, batch: int, rounds: int) -> None:
    costs = bench.run("costs", batch)
    print(f"\nrival at {batch} samples           holds, MiB   planned holds   planned over rival (goal 1.00)")
    for rival in RIVALS:
        needs = bench.run(rival, batch, "--apart", "--steps", "1")["bytes"]
        path = bench.plan(costs, needs, rival)
        if isinstance(path, str):
            print(f"{rival:30s} {needs / 2**20:11.0f}   no plan: {path}")
            continue
        mine = ("planned", str(batch), "--plan", str(path))
        held = bench.run(*mine[:1], batch, *mine[2:], "--apart", "--steps", "1")["bytes"]
        found = bench.turns(rounds, {"planned": mine, "rival": (rival, str(batch))})
        print(f"{rival:30s} {needs / 2**20:11.0f} {held / 2**20:15.0f} {found['planned'] / found['rival']:12.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", choices=("out-of-core", "equal-memory"))
    given = parser.parse_args()
    print(about())
    with tempfile.TemporaryDirectory() as temporary:
        bench = Bench(python_of("torch", Path(temporary)), given.threads, Path(temporary))
        if given.only != "equal-memory":
            out_of_core(bench, given.batch, given.rounds)
        if given.only != "out-of-core":
            at_equal_memory(bench, 4 * given.batch, given.rounds)


if __name__ == "__main__":
    main()
