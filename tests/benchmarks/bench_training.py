"""Training speed under transect against a plain loop of the same model in the same framework.

Run by hand: `python tests/benchmarks/bench_training.py [--pairs 15] [--frameworks numpy torch]`.
Builds the environments when the cache has none.

`transect` is `transect.payloads.train.train` with strategy `single`, clock calls and all.
`plain` is what a person writes (`plain_loops`); `unread` (torch) never reads the loss. All take the same batches in the same
order from the same weights, on one thread; what is timed is the loop alone, with the test accuracy
after every epoch. Models are built and compiled once: a first round, not timed, is where losses are
compared; later rounds set the weights back. The contenders take turns in one process, in
alternating order. Prints ratios of the median samples/s; asserts nothing.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np
import plain_loops
from plain_loops import Outcome, Run, Task

from transect.payloads.train import train
from transect.training.frameworks import FRAMEWORKS, ModelPlan
from transect.training.inputs import StoredBatches, load_data, load_weights
from transect.training.layout import Share
from transect.training.learning_rates import learning_rates
from transect.training.strategies import STRATEGIES
from transect.training.workloads import WORKLOADS, model_of

# Epochs, so that a run takes some tenths of a second.
CASES = {
    ("numpy", "iris-mlp-ce"): 600,
    ("numpy", "digits-cnn"): 5,
    ("torch", "iris-mlp-ce"): 200,
    ("torch", "digits-cnn"): 20,
}
# Rounding grows along the path, so that only its beginning is the same number.
HEAD = slice(0, 20)
COLUMNS = (
    "columns: framework, workload, baseline; samples/s of transect and of the baseline; their ratio"
    " (quartiles of the pairs); the same of CPU time; what transect adds to one step, of the"
    " baseline's step; page faults per step of both; largest difference between the first 20"
    " losses; right predictions of both after the last epoch of the first round"
)


class Turn(NamedTuple):
    """One run: samples/s of the loop and of its CPU time, and page faults per step."""

    rate: float
    cpu: float
    faults: int


def under_transect(framework: str, folder: Path, epochs: int, workload: str) -> tuple[Run, Task]:
    chosen = WORKLOADS.get(workload)
    rule = chosen.defaults.model_copy(update={"epochs": epochs})
    data, weights = load_data(folder, 0, np.float32), load_weights(folder, 0)
    plan = ModelPlan(
        model=model_of(chosen),
        parameters=rule,
        weights=weights,
        batch=rule.batch,
        precision="fp32",
        device="cpu",
        threads=1,
    )
    trainer, strategy = FRAMEWORKS.get(framework).trainer(plan), STRATEGIES.get("single")
    place = strategy.join()
    strategy.start(trainer)
    batches = StoredBatches(trainer, data, rule.batch, Share())
    rates = learning_rates(rule, "none", rule.batch, batches.epochs * batches.steps_per_epoch)

    def run() -> Outcome:
        trainer.load(weights)
        start = time.perf_counter()
        series = train(plan.model, rule, trainer, strategy, place, batches, rates)
        seconds = time.perf_counter() - start
        return Outcome(seconds, list(series["loss"]), int(series["score_sum"][-1]))

    task = Task(
        workload=workload,
        weights=weights,
        batch=rule.batch,
        learning_rate=rule.learning_rate,
        momentum=rule.momentum,
        **data,
    )
    return run, task


def taken(run: Run, samples: int, steps: int) -> Turn:
    before, busy = resource.getrusage(resource.RUSAGE_SELF).ru_minflt, time.process_time()
    outcome = run()
    cpu = time.process_time() - busy
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    return Turn(samples / outcome.seconds, samples / cpu, round(faults / steps))


def measure(framework: str, workload: str, folder: Path, epochs: int, pairs: int) -> None:
    """Let all contenders of one case take turns; print one row for each plain loop."""
    # Ours first: threads and back end of a framework are set once in a process.
    ours, task = under_transect(framework, folder, epochs, workload)
    runs = {"transect": ours}
    runs |= {name: build(task) for name, build in plain_loops.BUILDERS[framework, workload].items()}
    steps = epochs * (task.order.shape[1] // task.batch)
    samples = steps * task.batch
    first = {name: run() for name, run in runs.items()}
    turns: dict[str, list[Turn]] = {name: [] for name in runs}
    for number in range(pairs):
        for name in sorted(runs, reverse=bool(number % 2)):
            turns[name].append(taken(runs[name], samples, steps))
    for name in turns:
        if name != "transect":
            row = compared(turns["transect"], turns[name], steps, samples)
            same = agreement(first["transect"], first[name])
            print(f"{framework:16s} {workload:11s} {name:6s} {row}  {same}", flush=True)


def compared(ours: list[Turn], theirs: list[Turn], steps: int, samples: int) -> str:
    quotients = [a.rate / b.rate for a, b in zip(ours, theirs, strict=True)]
    low, _, high = statistics.quantiles(quotients, n=4, method="inclusive")
    (rate, cpu, faults), (their_rate, their_cpu, their_faults) = (
        Turn(*map(statistics.median, zip(*side, strict=True))) for side in (ours, theirs)
    )
    step = 1e6 * samples / their_rate / steps
    return (
        f"{rate:8.0f} {their_rate:8.0f}   {rate / their_rate:.3f} ({low:.3f}-{high:.3f})"
        f"   {cpu / their_cpu:.3f} {step * (their_rate / rate - 1):+7.1f} of {step:6.1f} us"
        f" {faults:4.0f} {their_faults:4.0f}"
    )


def agreement(ours: Outcome, theirs: Outcome) -> str:
    difference = "unread"
    if theirs.losses[0] is not None:
        apart = np.array(ours.losses[HEAD], float) - np.array(theirs.losses[HEAD], float)
        difference = f"{np.abs(apart).max():.0e}"
    return f"{difference} {ours.right}/{theirs.right}"


def child(framework: str, folder: Path, pairs: int) -> None:
    """Measure the cases of one framework in its own environment."""
    for (name, workload), epochs in CASES.items():
        if name == framework:
            measure(name, workload, folder / f"{workload}-{epochs}", epochs, pairs)
    libraries = FRAMEWORKS.get(framework).libraries()
    print(f"# {framework}: python {sys.version.split()[0]}, {libraries}", flush=True)


def main() -> None:
    """Prepare the data and start one process per framework, as the plain launcher does."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=15, help="at least 2")
    names = list(dict.fromkeys(name for name, _ in CASES))
    parser.add_argument("--frameworks", nargs="+", choices=names, default=names)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        return child(given.child[0], Path(given.child[1]), given.pairs)
    from measuring import about, prepare, python_of

    from transect.domain.paths import ROOT
    from transect.launch import thread_variables

    print(about(pydantic=version("pydantic")))
    variables = {**os.environ, **thread_variables(1), "PYTHONPATH": str(ROOT / "src")}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        base = python_of("base", folder)
        print(f"\n{COLUMNS}", flush=True)
        for framework in given.frameworks:
            python = python_of(FRAMEWORKS.get(framework).environment, folder)
            for (name, workload), epochs in CASES.items():
                if name == framework:
                    prepare(base, folder, workload, epochs)
            command = [python, __file__, "--pairs", str(given.pairs)]
            subprocess.run([*command, "--child", framework, temporary], env=variables, check=True)


if __name__ == "__main__":
    main()
