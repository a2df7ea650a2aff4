"""The trainers in Go beside numpy, torch and TensorFlow: equal work.

Run by hand: `python tests/benchmarks/bench_go.py [--rounds 3] [--frameworks numpy,go,…]`. Builds the
environments when the cache has none. Takes some four minutes on two cores; the machine must be quiet.

Each contender is a process of its own that runs as in a study: Python's worker, or the Go program on
a plan. In every round each of them trains each case once, in a turning order; what is compared is the
median step of a run (the first five left out) with numpy's of the same round. `start` is from the
start of the process until the end of its first step. `rest` is what the process holds when it is
ready to train: it is stopped there for a look. What has to be installed
stands in every record of a training. The first losses must agree, or the benchmark ends with exit code 1.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from measuring import prepare, python_of

from transect.domain.cell import Cell
from transect.domain.paths import ROOT
from transect.launch import thread_variables
from transect.training.frameworks import FRAMEWORKS, RankFiles
from transect.training.raw_arrays import read_array
from transect.training.trainer_plan import write_trainer_plan
from transect.training.workloads import WORKLOADS

CONTENDERS = ("numpy", "torch", "tensorflow", "go", "go-openblas")
# Workload, global batch, threads, epochs: some hundred steps or more each.
CASES = (
    ("iris-mlp", 16, 1, 100),
    ("iris-mlp", 16, 2, 100),
    ("iris-mlp", 4, 1, 30),
    ("iris-mlp", 64, 1, 300),
    ("digits-cnn", 64, 1, 10),
    ("digits-cnn", 64, 2, 10),
    ("digits-cnn", 16, 1, 3),
    ("digits-cnn", 256, 1, 30),
)
WARMUP = 5
HEAD = 20


@dataclass(frozen=True, kw_only=True)
class Run:
    """One process: seconds of its median step and until the end of its first one, bytes, first losses."""

    step: float
    start: float
    rest: int
    peak: int
    hidden: float
    losses: np.ndarray
    libraries: dict[str, str]


def begin(command: list[str], threads: int) -> tuple[subprocess.Popen[str], int]:
    """Start a rank; return it with what it holds when it says that it is ready."""
    variables = {**os.environ, **thread_variables(threads), "PYTHONPATH": str(ROOT / "src")}
    variables |= {"TF_CPP_MIN_LOG_LEVEL": "2", "TRANSECT_STARTED_AT": str(time.time())}
    process = subprocess.Popen(command, env=variables, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        if "begins to train" in line:
            process.send_signal(signal.SIGSTOP)
            text = Path(f"/proc/{process.pid}/status").read_text()
            process.send_signal(signal.SIGCONT)
            return process, 1024 * int(text.split("VmRSS:")[1].split()[0])
    process.wait()
    raise RuntimeError(f"{command} never began to train:\n{''.join(said[-20:])}")


def train(name: str, case: tuple[str, int, int, int], folder: Path, programs: dict[str, str]) -> Run:
    workload, batch, threads, epochs = case
    rule = WORKLOADS.get(workload).defaults.model_copy(update={"batch": batch, "epochs": epochs})
    cell = Cell.of(
        stage="train", workload=workload, framework=name, strategy="single", batch=batch, threads=threads, repeat=0
    )
    data = folder / f"{workload}-{epochs}"
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        out = Path(temporary)
        files = RankFiles(plan=out / "plan.json", out=out, programs=Path(programs[name]).parent)
        command = FRAMEWORKS.get(name).command(files) if name.startswith("go") else None
        plan = None
        if command is not None:
            plan = write_trainer_plan(cell, rule, data, files)
        else:
            spec = {"cell": cell.model_dump(mode="json"), "parameters": rule.model_dump(mode="json")}
            (out / "spec.json").write_text(json.dumps(spec))
            command = [
                programs[name],
                "-m",
                "transect.payloads",
                "transect.payloads.train:run_rank",
                "--spec",
                str(out / "spec.json"),
                "--take",
                f"data={data}",
                "--out",
                str(out),
            ]
        process, rest = begin(command, threads)
        said, _ = process.communicate()
        if process.returncode:
            raise RuntimeError(f"{command} ended with {process.returncode}:\n{said}")
        facts = json.loads((out / "rank-000.json").read_text())
        if plan is not None:
            series = {n: read_array(one, out) for n, one in facts["arrays"]["series"].items()}
        else:
            with np.load(out / "rank-000.npz") as file:
                series = dict(file)
        told = facts["strategy"].get("input", {})
        return Run(
            step=float(np.median(series["step"][WARMUP:])),
            start=facts["startup_s"] + float(series["step"][0]),
            rest=rest,
            peak=facts["peak_memory_bytes"],
            losses=series["loss"][:HEAD],
            hidden=told["hidden_s"] / told["preparing_s"] if told.get("preparing_s") else float("nan"),
            libraries=facts["libraries"],
        )


def table(case: tuple[str, int, int, int], runs: dict[str, list[Run]]) -> bool:
    """Print one row for each contender; return whether their first losses agree."""
    workload, batch, threads, _ = case
    agree = True
    for name, own in runs.items():
        ratios = [one.step / other.step for one, other in zip(own, runs["numpy"], strict=True)]
        off = float(np.abs(own[0].losses - runs["numpy"][0].losses).max())
        agree &= off < 1e-3
        row: dict[str, Any] = {
            "step": f"{1e6 * statistics.median(one.step for one in own):9.1f} us",
            "of numpy's": f"{statistics.median(ratios):6.3f} ({min(ratios):.3f} to {max(ratios):.3f})",
            "start": f"{1e3 * statistics.median(one.start for one in own):7.1f} ms",
            "rest": f"{statistics.median(one.rest for one in own) / 1e6:6.1f} MB",
            "peak": f"{statistics.median(one.peak for one in own) / 1e6:6.1f} MB",
            "hidden": f"{statistics.median(one.hidden for one in own):4.2f}",
            "losses off": f"{off:.1e}",
        }
        cells = "  ".join(f"{key} {value}" for key, value in row.items())
        print(f"{workload:10s} batch {batch:3d} threads {threads}  {name:11s} {cells}", flush=True)
    return agree


def contenders(text: str) -> list[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in CONTENDERS]
    if unknown or "numpy" not in names:
        raise argparse.ArgumentTypeError(f"expected numpy and others of {', '.join(CONTENDERS)}")
    return names


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--frameworks", type=contenders, default=list(CONTENDERS))
    given = parser.parse_args()
    programs: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name in given.frameworks:
            programs[name] = python_of(FRAMEWORKS.get(name).environment, folder)
        for workload, _, _, epochs in CASES:
            prepare(programs["numpy"], folder, workload, epochs)
        agree = True
        for case in CASES:
            runs: dict[str, list[Run]] = {name: [] for name in given.frameworks}
            for turn in range(given.rounds):
                for name in np.roll(given.frameworks, turn).tolist():
                    runs[name].append(train(name, case, folder, programs))
            agree &= table(case, runs)
        for name in given.frameworks:
            print(f"libraries {name}: {runs[name][0].libraries}")
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
