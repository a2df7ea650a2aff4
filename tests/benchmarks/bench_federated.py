"""Client turns per second of the engines of federated simulation, and what memory they take.

Run by hand: `python tests/benchmarks/bench_federated.py [--turns 100 1000 10000 100000] [--limit 20]`.
Builds the environment of torch when the cache has none.

Contenders take turns in one process, on one thread, in single precision: `stacked`, `loop` by numpy, `loop` by torch. A
turn is five steps of 16 rows, from the same weights, with the workload's own optimiser; rows are random numbers, and
which of them a turn takes is drawn before. What comes back is taken piece by piece and let go. A contender that would
take longer than `--limit` seconds for so many turns, by its rate before, is left out. Prints medians of three rounds and
ratios within a round; asserts nothing.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle, islice
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from transect.domain.axes.federate import FederateCell
from transect.federated.engines import ENGINES, Session, Task, Turn
from transect.federated.flat import flat_of
from transect.federated.plan_file import plan_of, read_plan, write_plan
from transect.federated.rounds import simulate
from transect.training.workloads import WORKLOADS, model_of

WORKLOAD_NAMES = ("iris-mlp", "digits-logistic", "digits-cnn")
CONTENDERS = {"stacked": ("stacked", None), "loop numpy": ("loop", "numpy"), "loop torch": ("loop", "torch")}
STEPS, BATCH, ROUNDS = 5, 16, 3
COLUMNS = (
    "columns: workload, trained numbers, turns, contender; turns/s; us and GFLOP/s of a step; time over that of stacked"
    " (least and most of the rounds); MB that memory grew by at most; largest difference from stacked's weights"
)


def task_of(workload: str, engine: str, framework: str | None) -> Task:
    chosen = WORKLOADS.get(workload)
    model, generator = model_of(chosen), np.random.default_rng(1)
    cell = FederateCell(
        workload=workload,
        aggregation="fedavg",
        partition="iid",
        engine=engine,
        framework=framework,
        clients=1,
        cohort=1,
        rounds=1,
        local_steps=STEPS,
        batch=BATCH,
    )
    x, y = (np.stack(arrays) for arrays in zip(*(model.draw(generator) for _ in range(1000)), strict=True))
    weights = model.initial_weights(1)
    return Task(cell=cell, model=model, parameters=chosen.defaults, weights=weights, x=x.astype(np.float32), y=y)


def turns_of(task: Task) -> list[Turn]:
    generator = np.random.default_rng(2)
    given = flat_of(task.model, task.weights).astype(np.float32)
    rows = generator.integers(0, len(task.x), (1000, STEPS, BATCH))
    return [Turn(client=n, number=n, given=given, rows=rows[n], seeds=np.arange(STEPS)) for n in range(len(rows))]


def peak() -> int:
    """Return the most bytes that were resident since `forget_peak`."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def forget_peak() -> int:
    Path("/proc/self/clear_refs").write_text("5")
    return peak()


def taken(session: Session, turns: Iterator[Turn]) -> tuple[float, int, np.ndarray]:
    """Return seconds, bytes that memory grew by, and the last turn's weights."""
    before, start = forget_peak(), time.perf_counter()
    for turned in session.turns(turns):
        last = turned.weights[-1]
    return time.perf_counter() - start, peak() - before, last


def measure(workload: str, counts: list[int], limit: float) -> None:
    model = model_of(WORKLOADS.get(workload))
    costs = model.costs(WORKLOADS.get(workload).defaults)
    tasks = {name: task_of(workload, *chosen) for name, chosen in CONTENDERS.items()}
    turns = turns_of(tasks["stacked"])
    rates = dict.fromkeys(tasks, float("inf"))
    for count in counts:
        here = [name for name, rate in rates.items() if count / rate < limit]
        found: dict[str, list[tuple[float, int, np.ndarray]]] = {name: [] for name in here}
        for number in range(ROUNDS):
            for name in sorted(here, reverse=bool(number % 2)):
                with ENGINES.get(CONTENDERS[name][0]).session(tasks[name]) as session:
                    # What is made at the first turn is not timed.
                    taken(session, iter(turns[:1]))
                    found[name].append(taken(session, islice(cycle(turns), count)))
        for name, rounds in found.items():
            seconds = statistics.median(time_s for time_s, _, _ in rounds)
            rates[name] = count / seconds
            step = seconds / count / STEPS
            ratios = [own[0] / base[0] for own, base in zip(rounds, found["stacked"], strict=True)]
            apart = np.abs(rounds[-1][2] - found["stacked"][-1][2]).max()
            print(
                f"{workload:15s} {costs.parameters:6d} {count:7d} {name:10s} {rates[name]:9.0f} {step * 1e6:8.1f}"
                f" {costs.training_flops * BATCH / step / 1e9:6.1f}   {statistics.median(ratios):6.2f}"
                f" ({min(ratios):.2f}-{max(ratios):.2f}) {max(grown for _, grown, _ in rounds) / 2**20:6.1f} {apart:.0e}",
                flush=True,
            )


def draw_plan(task: Task, file: Path) -> None:
    """Write what a reference would have drawn."""
    write_plan(plan_of(task.cell, task.model, 1, task.y, {}, task.parameters.learning_rate), file)


def measure_updates(workload: str, counts: list[int], folder: Path) -> None:
    """Print what whole updates of so many clients at once take and hold, by engine `stacked`."""
    file, one = folder / "federation.npz", task_of(workload, "stacked", None)
    for clients in counts:
        # Twenty rows a client, all of which train in each round.
        cell = one.cell.changed(clients=clients, cohort=clients, rounds=ROUNDS, partition="drawn-20")
        task = replace(one, cell=cell)
        # In another process, as in a study: what it holds is not counted.
        drawing = get_context("fork").Process(target=draw_plan, args=(task, file))
        drawing.start()
        drawing.join()
        plan = read_plan(cell, task.model, 1, file, task.parameters.learning_rate)
        start = flat_of(task.model, task.weights).astype(np.float32)
        with ENGINES.get("stacked").session(task) as session:
            before = forget_peak()
            made = list(simulate(plan, start, session))
            grown = peak() - before
        seconds = statistics.median(one.seconds for one in made)
        share = statistics.median(1 - one.turn_seconds / one.seconds for one in made)
        print(
            f"{workload:15s} {clients:7d} clients at once: {seconds:7.3f} s an update, {clients / seconds:8.0f} turns/s,"
            f" {share:4.0%} outside turns; memory {peak() / 2**20:6.1f} MB, grew by {grown / 2**20:5.1f} MB",
            flush=True,
        )


def main() -> None:
    """Run all in torch's environment, on one thread."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, nargs="+", default=[100, 1000, 10_000, 100_000])
    parser.add_argument("--limit", type=float, default=20, help="seconds of a contender's round")
    parser.add_argument("--workloads", nargs="+", choices=WORKLOAD_NAMES, default=WORKLOAD_NAMES)
    parser.add_argument("--updates", action="store_true", help="whole updates of so many clients in place of turns")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        for workload in given.workloads:
            if not given.updates:
                measure(workload, given.turns, given.limit)
            # Each in this process, the smallest first: memory is what the process holds.
            else:
                with tempfile.TemporaryDirectory() as temporary:
                    measure_updates(workload, given.turns, Path(temporary))
        return
    from measuring import about, python_of

    from transect.domain.paths import ROOT
    from transect.launch import thread_variables

    print(f"{about(numpy=np.__version__)}\n\n{COLUMNS}", flush=True)
    variables = {**os.environ, **thread_variables(1), "PYTHONPATH": str(ROOT / "src")}
    with tempfile.TemporaryDirectory() as temporary:
        python = python_of("torch", Path(temporary))
        command = [python, __file__, "--child", "--limit", str(given.limit), "--turns", *map(str, given.turns)]
        command += ["--updates"] if given.updates else []
        subprocess.run([*command, "--workloads", *given.workloads], env=variables, check=True)


if __name__ == "__main__":
    main()
