"""A portable training step's time against PyTorch, torch.compile and ONNX Runtime training.

Run by hand: `python tests/benchmarks/bench_portable_step.py [--networks mlp] [--batches 1,8]
[--threads 1,2] [--optimisers momentum] [--contenders portable,eager,compile] [--seconds 0.5]`.
Builds the environments when the cache has none; a contender that cannot do a row is left out of it
with its reason. Asserts nothing.

Each contender is a process of its own (`step_contenders`) with the same batch in its memory and
the same weights (a first loss that differs is told); the loss is read in every step. They take
turns: each round a few steps of each, the order turned by one. Printed per row: median step time of the portable step, and its ratio to each other
one, the median over rounds of ratios of their medians with a bootstrap interval of 95 %; the same
ratio of CPU time, which other work on the machine moves less; memory, the peak above what the
process held before it began; and how far the fastest step is from the machine's limit: its flops
(counted by PyTorch) over the rate of a float32 product on as many threads, and bytes of state read
and written over that of a copy.
ONNX Runtime training has no momentum: in rows of SGD with momentum it does less.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from measuring import about

from transect.engine.build_environment import build
from transect.runtimes.options import thread_variables

HERE = Path(__file__).resolve().parent
SCRIPT = HERE / "step_contenders.py"
ENVIRONMENTS = {"portable": "torch", "eager": "torch", "compile": "torch", "ort-training": "ort-training"}
COUNT_FLOPS = """
import sys
from torch.nn.functional import cross_entropy
from torch.utils.flop_counter import FlopCounterMode
from step_networks import network, rows
module, (x, y) = network(sys.argv[1]), rows(sys.argv[1], 2)
with FlopCounterMode(display=False) as counter:
    cross_entropy(module(x), y).backward()
print(counter.get_total_flops() / 2, sum(p.numel() for p in module.parameters()))
"""
# The best rates of numpy's float32 product (flops/s) and of a copy (bytes/s, read and written).
MACHINE = """
import time, numpy as np
a, b = np.ones((512, 512), np.float32), np.ones(4_000_000, np.float32)
c, best = np.empty_like(b), [1e9, 1e9]
for _ in range(40):
    t = [time.perf_counter()]
    a @ a; t.append(time.perf_counter())
    np.copyto(c, b); t.append(time.perf_counter())
    best = [min(old, end - begin) for old, begin, end in zip(best, t, t[1:])]
print(2 * 512**3 / best[0], 2 * b.nbytes / best[1])
"""


class Contender:
    def __init__(self, name: str, python: str, arguments: list[str], threads: int) -> None:
        variables = os.environ | thread_variables(threads)
        self.name = name
        # Closed with the process.
        self._said = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._process = subprocess.Popen(
            [python, SCRIPT, name, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
            env=variables,
        )
        self.wall: list[float] = []
        self.cpu: list[float] = []
        self.memory = 0

    def _line(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            if line.startswith("{"):
                found: dict[str, Any] = json.loads(line)
                return found
        self._process.wait()
        self._said.seek(0)
        told = self._said.read().strip().splitlines() or ["ended"]
        raise RuntimeError(told[-1][:160])

    def ready(self) -> dict[str, Any]:
        """Wait until it can begin. Raises RuntimeError with the last line that it wrote."""
        return self._line()

    def steps(self, count: int, keep: bool = True) -> float:
        """Do some steps; return their median time in seconds."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{count}\n")
        self._process.stdin.flush()
        told = self._line()
        wall = statistics.median(told["wall_ns"]) * 1e-9
        if keep:
            self.wall.append(wall)
            self.cpu.append(told["cpu_ns"] * 1e-9)
        self.memory = told["memory"]
        return wall

    def close(self) -> None:
        self._process.communicate()
        self._said.close()


def interval(ratios: list[float]) -> str:
    """Say the median of ratios, and what 95 % of resampled medians lie between."""
    draw = random.Random(0)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(1000))
    return f"{statistics.median(ratios):.2f} ({medians[25]:.2f}-{medians[974]:.2f})"


class Bench:
    """Interpreters, and the exported steps by network and optimiser."""

    def __init__(self, given: argparse.Namespace, scratch: Path) -> None:
        self.given, self.scratch = given, scratch
        names = {ENVIRONMENTS[name] for name in (*given.contenders, "portable")}
        facts = {name: build(name, scratch / f"{name}.log") for name in names}
        for name, fact in facts.items():
            if fact["status"] != "ok":
                print(f"{name}: left out: {fact['message']}")
        self.pythons = {k: fact["python"] for k, fact in facts.items() if fact["status"] == "ok"}
        self.flops: dict[str, tuple[float, float]] = {}
        self.exports: dict[tuple[str, str], float] = {}

    def export(self, network: str, optimiser: str) -> Path:
        """Export once; return the folder."""
        folder = self.scratch / f"{network}-{optimiser}"
        if (network, optimiser) not in self.exports:
            folder.mkdir()
            told = self._python(str(SCRIPT), "export", network, optimiser, str(folder))
            self.exports[network, optimiser] = json.loads(told.splitlines()[-1])["export_s"]
        if network not in self.flops:
            flops, parameters = self._python("-c", COUNT_FLOPS, network).split()[-2:]
            self.flops[network] = float(flops), float(parameters)
        return folder

    def _python(self, *arguments: str, threads: int = 1) -> str:
        done = subprocess.run(
            [self.pythons["torch"], *arguments],
            capture_output=True,
            text=True,
            cwd=HERE,
            check=False,
            env=os.environ | thread_variables(threads),
        )
        if done.returncode:
            raise SystemExit(done.stderr[-2000:])
        return done.stdout

    def row(self, network: str, optimiser: str, batch: int, threads: int) -> None:
        folder = self.export(network, optimiser)
        arguments = [network, optimiser, str(folder), str(batch), str(threads)]
        running, left_out = self._start(arguments, threads)
        counts = {c.name: max(1, int(0.02 / c.steps(3, keep=False))) for c in running}
        end = time.monotonic() + self.given.seconds * len(running)
        rounds = 0
        while rounds < 5 or time.monotonic() < end:
            for contender in running[rounds % len(running) :] + running[: rounds % len(running)]:
                contender.steps(counts[contender.name])
            rounds += 1
        self._print(f"{network} | {optimiser} | {batch} | {threads}", running, rounds)
        flops, parameters = self.flops[network]
        rates = self._python("-c", MACHINE, threads=threads).split()
        flops_rate, copy_rate = map(float, rates)
        states = {"sgd": 1, "momentum": 2, "adamw": 3}[optimiser]
        limit = batch * flops / flops_rate
        limit += parameters * 4 * (2 * states + 1) / copy_rate
        mine = min(running[0].wall)
        print(f"  limit {limit * 1e3:.3f} ms, {mine / limit:.1f} times that", end="")
        print("".join(f"; {name} left out: {why}" for name, why in left_out.items()), flush=True)
        for contender in running:
            contender.close()

    def _start(self, arguments: list[str], threads: int) -> tuple[list[Contender], dict[str, str]]:
        running, left_out, losses = [], {}, {}
        for name in ("portable", *(n for n in self.given.contenders if n != "portable")):
            if ENVIRONMENTS[name] not in self.pythons:
                continue
            contender = Contender(name, self.pythons[ENVIRONMENTS[name]], arguments, threads)
            try:
                losses[name] = contender.ready()["first_loss"]
                running.append(contender)
            except RuntimeError as error:
                if name == "portable":
                    raise
                left_out[name] = str(error)
        if max(losses.values()) - min(losses.values()) > 1e-4:
            print(f"  these do not compute the same: first losses {losses}")
        return running, left_out

    def _print(self, row: str, running: list[Contender], rounds: int) -> None:
        mine = running[0]
        parts = [f"| {row} | {statistics.median(mine.wall) * 1e3:.3f} ms, {mine.memory >> 20} MiB"]
        for other in running[1:]:
            wall = [a / b for a, b in zip(mine.wall, other.wall, strict=True)]
            cpu = statistics.median(a / b for a, b in zip(mine.cpu, other.cpu, strict=True))
            parts.append(f"{other.name} {interval(wall)}, cpu {cpu:.2f}, {other.memory >> 20} MiB")
        print(" | ".join(parts) + f" | {rounds} rounds |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)

    def names(text: str) -> list[str]:
        return text.split(",")

    def numbers(text: str) -> list[int]:
        return [int(part) for part in text.split(",")]

    parser.add_argument("--networks", type=names, default=["mlp", "digits-cnn", "resnet20", "transformer"])
    parser.add_argument("--optimisers", type=names, default=["momentum"])
    parser.add_argument("--batches", type=numbers, default=[1, 8, 32, 128])
    parser.add_argument("--threads", type=numbers, default=[1])
    parser.add_argument("--contenders", type=names, default=["eager", "ort-training"])
    parser.add_argument("--seconds", type=float, default=0.5, help="per row and contender")
    given = parser.parse_args()
    print(about())
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(given, Path(scratch))
        for network, optimiser, threads, batch in itertools.product(
            given.networks, given.optimisers, given.threads, given.batches
        ):
            bench.row(network, optimiser, batch, threads)
        for (network, optimiser), seconds in bench.exports.items():
            print(f"export of {network} with {optimiser}: {seconds:.1f} s")


if __name__ == "__main__":
    sys.exit(main())
