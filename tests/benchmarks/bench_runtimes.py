"""What a call costs in each language beside C, and how close a runner's clock is to ONNX Runtime's.

Run by hand: `python tests/benchmarks/bench_runtimes.py [--rounds 7] [--runtimes c,cpp,rust]`.
Builds the environments when the cache has none. Asserts nothing.

Identity models of 1, 1 thousand and 1 million floats, one thread: rounds over all languages in
turn, so that a drift of the machine does not look like a difference. Prints medians over rounds of
`Run` and of bind, Run and copy together, in nanoseconds, and the difference to C of the same round with
its range. Then the time of `Run` by each runner over that by ONNX Runtime's own profiler, on a model
whose `Run` takes milliseconds, and how long it takes to refuse a model.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from measuring import about

from transect.domain.cell import Cell
from transect.engine.build_environment import build
from transect.onnx_models.tensors import write_tensors
from transect.runtimes import RUNTIMES
from transect.runtimes.infer import profiled_runs
from transect.runtimes.options import session_options
from transect.runtimes.programs import run_record, start_command
from transect.runtimes.serving_plans import Serving

SIZES = (1, 1_000, 1_000_000)
# What compiles while it runs (Java, JavaScript) needs many calls to be as fast as it gets.
WARMUP = {1: 20_000, 1_000: 20_000, 1_000_000: 1_000}
# An identity, and a chain of matrix products whose Run takes milliseconds.
MODELS = """
import sys, numpy as np
from onnx import TensorProto as T, helper as h, numpy_helper as n, save
def store(name, nodes, shape, weights=()):
    ends = [h.make_tensor_value_info(e, T.FLOAT, shape) for e in ("input", "output")]
    graph = h.make_graph(nodes, "g", ends[:1], ends[1:], list(weights))
    save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), name)
for size in map(int, sys.argv[1:]):
    store(f"identity-{size}.onnx", [h.make_node("Identity", ["input"], ["output"])], [size])
w = np.eye(512, dtype=np.float32)
names = ["input", *(f"t{i}" for i in range(15)), "output"]
nodes = [h.make_node("MatMul", [a, "w"], [b]) for a, b in zip(names, names[1:])]
store("unknown.onnx", [h.make_node("NoSuchOperator", ["input"], ["output"])], [64, 512])
store("products.onnx", nodes, [64, 512], [n.from_array(w, "w")])
"""


def environments(names: list[str], folder: Path) -> dict[str, str]:
    """Return the interpreter of each runtime that this machine can have."""
    found = {}
    for name in names:
        axes: dict[str, Any] = {"workload": "x", "runtime": name, "provider": "cpu", "batch": 1}
        reason = RUNTIMES.get(name).supports(Cell.of(stage="infer", **axes))  # type: ignore[arg-type]
        facts = {} if reason else build(RUNTIMES.get(name).environment, folder / f"{name}.log")
        if reason or facts["status"] != "ok":
            print(f"{name}: left out: {reason or facts['message']}")
        else:
            found[name] = facts["python"]
    return found


def run(name: str, python: str, model: Path, inputs: Path, out: Path, **more: Any) -> dict[str, Any]:
    """Run a runner once; return its record and `wall_s`."""
    plan = Serving(
        model=model,
        inputs=inputs,
        outputs=out / "o",
        out=out,
        options=session_options("equal", 1, "cpu", {}),
        min_runs=1000,
        max_seconds=0.3,
        **more,
    ).plan()
    begin = time.monotonic()
    done = subprocess.run(start_command(name, python, plan), check=False, capture_output=True)
    return run_record(name, out, done.returncode) | {"wall_s": time.monotonic() - begin}


def call_costs(pythons: dict[str, str], folder: Path, rounds: int) -> None:
    """Print Run and end to end in nanoseconds, and the difference to C."""
    print("| floats | runtime | Run | bind+Run+copy | beside C (median of rounds, range) |")
    print("|---|---|---|---|---|")
    for size in SIZES:
        inputs = folder / f"inputs-{size}"
        write_tensors(inputs, {"input": np.ones(size, np.float32)})
        model, runs, whole = folder / f"identity-{size}.onnx", {}, {}
        for _ in range(rounds):
            for name, python in pythons.items():
                record = run(name, python, model, inputs, folder / name, warmup=WARMUP[size])
                parts = (record["bind_ns"], record["run_ns"], record["copy_ns"])
                runs.setdefault(name, []).append(statistics.median(record["run_ns"]))
                sums = [sum(step) for step in zip(*parts, strict=True)]
                whole.setdefault(name, []).append(statistics.median(sums))
        for name in pythons:
            beside = "–"
            if "c" in whole:
                apart = [a - b for a, b in zip(whole[name], whole["c"], strict=True)]
                beside = f"{statistics.median(apart):+.0f} ({min(apart):+.0f} to {max(apart):+.0f})"
            print(
                f"| {size:,} | {name} | {statistics.median(runs[name]):.0f} | "
                f"{statistics.median(whole[name]):.0f} | {beside} |"
            )


def clocks(pythons: dict[str, str], folder: Path) -> None:
    """Print each runner's Run over that of ONNX Runtime's profiler, and when it refuses a model."""
    inputs = folder / "inputs-products"
    write_tensors(inputs, {"input": np.ones((64, 512), np.float32)})
    print("| runtime | Run over the profiler's | refuses a model in |")
    print("|---|---|---|")
    for name, python in pythons.items():
        out = folder / f"{name}-profiled"
        record = run(name, python, folder / "products.onnx", inputs, out, profile=out / "p")
        ratio = "–"
        if record.get("profile_file"):
            theirs = profiled_runs(Path(record["profile_file"]))[1:]
            ratio = f"{sum(record['profile_run_ns'][1:]) * 1e-9 / sum(theirs):.4f}"
        wrong = run(name, python, folder / "unknown.onnx", inputs, out)
        assert wrong["cause"] == "bad-input", wrong
        print(f"| {name} | {ratio} | {wrong['wall_s']:.2f} s |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--runtimes", help="names, separated by commas; all of ONNX without it")
    given = parser.parse_args()
    names = (
        given.runtimes.split(",") if given.runtimes else [name for name in RUNTIMES if RUNTIMES.get(name).uses_exporter]
    )
    print(about())
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        torch = build("torch", folder / "torch.log")
        subprocess.run([torch["python"], "-c", MODELS, *map(str, SIZES)], check=True, cwd=folder)
        pythons = environments(names, folder)
        call_costs(pythons, folder, given.rounds)
        clocks(pythons, folder)


if __name__ == "__main__":
    main()
