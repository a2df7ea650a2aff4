"""One contender of bench_portable_step, a process of its own: its memory and threads are its own.

    python step_contenders.py export NETWORK OPTIMISER FOLDER
    python step_contenders.py CONTENDER NETWORK OPTIMISER FOLDER BATCH THREADS

The first writes `FOLDER/step` and an inference model, and prints seconds as JSON. The second
prints a line when it is ready, does as many steps as each line of standard input says, and answers
with their nanoseconds, wall and CPU. `ort-training` runs in its environment, the others in `torch`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
RUNNERS = ROOT / "src" / "runners"
RATE, MOMENTUM = 0.01, 0.9
ADAMW = {"lr": 0.001, "weight_decay": 0.01}
DATA = "data-{}.npz"

# Does one step; the loss is read in each.
Step = Callable[[], float]


def torch_optimiser(name: str, parameters: Any, **more: Any) -> Any:
    """Return the optimiser; `sgd` has no momentum."""
    import torch

    if name == "adamw":
        return torch.optim.AdamW(parameters, **ADAMW, **more)
    momentum = MOMENTUM if name == "momentum" else 0.0
    return torch.optim.SGD(parameters, lr=RATE, momentum=momentum, **more)


def export(network: str, optimiser: str, folder: Path) -> dict[str, float]:
    """Write the portable step and the model that ONNX Runtime training begins with."""
    from step_networks import network as make
    from step_networks import rows
    from torch.nn.functional import cross_entropy

    from transect.payloads.step_base import write_inference_models
    from transect.portable_step import export_step

    module, example = make(network), rows(network, 4)
    begin = time.monotonic()
    rule = torch_optimiser(optimiser, module.parameters())
    export_step(module, cross_entropy, rule, example, folder / "step")
    seconds = time.monotonic() - begin
    write_inference_models(module, example[:1], ["x"], folder)
    for batch in (1, 8, 32, 128):
        x, y = rows(network, batch)
        np.savez(folder / DATA.format(batch), x=x.numpy(), y=y.numpy())
    return {"export_s": seconds}


def portable(given: argparse.Namespace, batch: dict[str, np.ndarray]) -> Step:
    """The python runner's trainer with bound buffers, options as in every language."""
    from plan import Role, read_plan
    from run_iobinding import BoundTrainer

    from transect.onnx_models.tensors import write_tensors
    from transect.runtimes.options import session_options
    from transect.runtimes.plan_file import write_plan
    from transect.runtimes.training_plans import Training

    out = given.folder / f"portable-{os.getpid()}"
    data = write_tensors(out / "data", batch).parent
    order = out / "order.bin"
    np.zeros(given.batch, "<i8").tofile(order)
    options = session_options("equal", given.threads, "cpu", {})
    files = {"step": given.folder / "step", "data": data, "order": order, "checkpoint": out / "none", "out": out}
    write_plan(out / "plan.bin", Training(**files, batch=given.batch, until=1, options=options).plan())
    plan = read_plan(str(out / "plan.bin"))
    trainer = BoundTrainer(plan)
    feed = {entry.number: batch[entry.name] for entry in plan.of(Role.DATA)}
    feed |= {number: np.array(values[0]) for number, values in plan.arrays(Role.HYPER).items()}

    def run() -> float:
        trainer.run("step", feed)
        return trainer.metrics[0]

    return run


def of_torch(given: argparse.Namespace, batch: dict[str, np.ndarray]) -> Step:
    """PyTorch as it is, or module and loss compiled; the optimiser in its fused form."""
    import torch
    from step_networks import network
    from torch.nn.functional import cross_entropy

    torch.set_num_threads(given.threads)
    module = network(given.network)
    rule = torch_optimiser(given.optimiser, module.parameters(), fused=True)
    x, y = (torch.from_numpy(array) for array in batch.values())

    def loss_of(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return cross_entropy(module(x), y)

    if given.contender == "compile":
        loss_of = torch.compile(loss_of, dynamic=False)

    def run() -> float:
        rule.zero_grad()
        loss = loss_of(x, y)
        loss.backward()
        rule.step()
        return float(loss.detach())

    return run


def ort_training(given: argparse.Namespace, batch: dict[str, np.ndarray]) -> Step:
    """ONNX Runtime training: artefacts of the dynamo exporter's file, and its Module and Optimizer."""
    import onnx
    import onnxruntime
    from artifacts_of import generate

    onnxruntime.set_default_logger_severity(4)
    source, folder = given.folder / "inference-dynamo.onnx", given.folder / f"ort-{os.getpid()}"
    folder.mkdir()
    manifest = json.loads((given.folder / "step" / "manifest.json").read_text())
    names = {entry["name"].removeprefix("model.") for entry in manifest["state"] if entry["role"] == "parameter"}
    model = onnx.load(source)
    weights = {one.name: onnx.numpy_helper.to_array(one) for one in model.graph.initializer if one.name in names}
    adamw = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": ADAMW["weight_decay"]}
    generate(source, folder, adamw if given.optimiser == "adamw" else None, weights, {})
    from onnxruntime.training.api import CheckpointState, Module, Optimizer

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = given.threads
    state = CheckpointState.load_checkpoint(folder / "checkpoint")
    files = (folder / "training_model.onnx", state, folder / "eval_model.onnx")
    module = Module(*files, session_options=options)
    optimizer = Optimizer(folder / "optimizer_model.onnx", module)
    optimizer.set_learning_rate(RATE)
    module.train()

    def run() -> float:
        loss = module(*batch.values())[0]
        optimizer.step()
        module.lazy_reset_grad()
        return float(loss)

    return run


CONTENDERS = {"portable": portable, "eager": of_torch, "compile": of_torch, "ort-training": ort_training}


def _memory() -> dict[str, int]:
    """Return the process's memory now and at its most, in bytes."""
    told = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {name: int(told[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM")}


def serve(given: argparse.Namespace) -> None:
    """Answer each line of standard input; errors end the process."""
    with np.load(given.folder / DATA.format(given.batch)) as stored:
        batch = dict(stored)
    before = _memory()
    begin = time.monotonic()
    run = CONTENDERS[given.contender](given, batch)
    first = run()
    for _ in range(2):
        run()
    print(json.dumps({"first_loss": first, "ready_s": time.monotonic() - begin}), flush=True)
    for line in sys.stdin:
        wall, cpu = [], time.process_time_ns()
        for _ in range(int(line)):
            begin_ns = time.perf_counter_ns()
            run()
            wall.append(time.perf_counter_ns() - begin_ns)
        cpu = (time.process_time_ns() - cpu) // len(wall)
        memory = _memory()["VmHWM"] - before["VmRSS"]
        print(json.dumps({"wall_ns": wall, "cpu_ns": cpu, "memory": memory}), flush=True)


def main() -> None:
    sys.path[:0] = [str(ROOT / "src"), str(RUNNERS / "python"), str(RUNNERS / "ort-training")]
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("contender", "network", "optimiser"):
        parser.add_argument(name)
    parser.add_argument("folder", type=Path)
    for name in ("batch", "threads"):
        parser.add_argument(name, type=int, nargs="?", default=1)
    given = parser.parse_args()
    if given.contender == "export":
        print(json.dumps(export(given.network, given.optimiser, given.folder)))
    else:
        serve(given)


if __name__ == "__main__":
    main()
