"""What becomes of activations, in torch's environment: run with the names of checks, prints JSON.

Each check returns facts that the test asserts; none asserts itself.
"""

from __future__ import annotations

import hashlib
import json
import resource
import sys
from typing import Any

import numpy as np
import torch

from transect.payloads.train import _peak_memory
from transect.training.encoder_model import TextEncoder
from transect.training.frameworks import ModelPlan
from transect.training.frameworks._torch_trainer import TorchTrainer
from transect.training.layered import LayeredModel
from transect.training.layers import BatchNorm2d, Conv2d, Flatten, Linear, MaxPool2d, ReLU, Residual, Sigmoid
from transect.training.memory import _offload
from transect.training.memory._layer_costs import layer_costs
from transect.training.memory._limit import status_bytes
from transect.training.memory._offload import OffloadedActivations
from transect.training.memory._store import Store
from transect.training.memory._swap_file import SwapFile, SwapFull
from transect.training.memory.offload_host import _HostBuffers
from transect.training.models import Model
from transect.training.saved_tensors import saved_tensors
from transect.training.text_encoder import EncoderConfig
from transect.training.workloads import Parameters

BATCH = 24
NORMED = LayeredModel(
    (
        Conv2d(3, 8, 3, 1),
        BatchNorm2d(8),
        ReLU(),
        MaxPool2d(2),
        Residual((Conv2d(8, 8, 3, 1, bias=False), BatchNorm2d(8), ReLU())),
        Sigmoid(),
        Residual((Conv2d(8, 12, 3, 1, 2), BatchNorm2d(12)), (Conv2d(8, 12, 1, 0, 2),)),
        ReLU(),
        Flatten(),
        Linear(192, 10),
    ),
    (3, 16, 16),
)
ENCODER = TextEncoder(EncoderConfig(vocabulary=40, length=12, width=32, heads=4, ffn=64, layers=3, classes=5))
# Large activations, little else: 20 layers that save 2 MiB each of 16 samples.
DEEP = LayeredModel(
    (Conv2d(3, 32, 3, 1), *(Conv2d(32, 32, 3, 1), ReLU()) * 10, Flatten(), Linear(32 * 32 * 32, 4)), (3, 32, 32)
)
PLANNED = {
    "runs": [
        ["offload", 0, 3],
        ["recompute", 3, 5],
        ["keep", 5, 6],
        ["offload", 6, 8],
        ["recompute", 8, 9],
        ["keep", 9, 10],
    ],
    "window_bytes": 1 << 17,
}


def trainer(model: Model, memory: str, precision: str = "fp32", batch: int = BATCH, **more: Any) -> TorchTrainer:
    rule = Parameters(batch=batch, epochs=1, learning_rate=0.05, momentum=0.9, quality_target=0.5)
    return TorchTrainer(
        ModelPlan(
            model=model,
            parameters=rule,
            weights=model.initial_weights(0),
            batch=batch,
            precision=precision,
            device="cpu",
            threads=1,
            memory=memory,
            **more,
        )
    )


def batch_of(made: TorchTrainer, model: Model, count: int = BATCH) -> tuple[Any, Any]:
    generator = np.random.default_rng(1)
    drawn = [model.draw(generator) for _ in range(count)]
    x, y = (np.stack(arrays) for arrays in zip(*drawn, strict=True))
    return made.batch(x, y)


def path(made: TorchTrainer, model: Model, steps: int = 3) -> dict[str, Any]:
    """Train; return losses and a hash of the whole state, counters of batch norms too."""
    x, y = batch_of(made, model)
    losses = []
    for _ in range(steps):
        losses.append(made.forward_backward(x, y))
        made.update(0.05)
    state = hashlib.sha256()
    for name, tensor in sorted(made.model.state_dict().items()):
        state.update(name.encode() + tensor.numpy().tobytes())
    outputs = made.predict(x.numpy())
    return {"losses": losses, "state": state.hexdigest(), "outputs": float(outputs.sum())}


def equality() -> dict[str, Any]:
    """Each way against plain: two models, three precisions; also the host's buffers, on a CPU."""
    # So that small tensors go too.
    _offload.MIN_COUNT = 256
    found: dict[str, Any] = {}
    for precision in ("fp32", "fp64", "amp-bf16"):
        for memory in ("plain", "recompute", "offload-file", "planned"):
            made = trainer(NORMED, memory, precision, memory_plan=PLANNED)
            found[f"{precision} {memory}"] = path(made, NORMED) | {"told": made.activations.facts()}
        host = trainer(NORMED, "plain", precision)
        store = Store(_HostBuffers(host.device), 1 << 16)
        host.activations = OffloadedActivations(store, host.model)
        found[f"{precision} host"] = path(host, NORMED) | {"told": host.activations.facts()}
    for memory in ("plain", "recompute", "offload-file"):
        made = trainer(ENCODER, memory)
        found[f"encoder {memory}"] = path(made, ENCODER) | {"told": made.activations.facts()}
    return found


def counted() -> dict[str, Any]:
    """What is counted of layers against what autograd saves."""
    x = np.stack([NORMED.draw(np.random.default_rng(0))[0] for _ in range(BATCH)])
    costs = layer_costs(NORMED, x, "fp32", repeats=1)
    measured = [sum(costs["sizes"][t] for t in set(layer["saved"]) - {0}) for layer in costs["layers"]]
    count = saved_tensors(NORMED.layers, NORMED.sample, BATCH, 4)
    return {
        "measured": measured,
        "counted": [sum(count.sizes[t] for t in set(layer.saved) - {0}) for layer in count.layers],
        "seconds": [layer["forward_s"] + layer["backward_s"] for layer in costs["layers"]],
        "working": [layer["working_bytes"] for layer in costs["layers"]],
    }


def budget() -> dict[str, Any]:
    """Eight times the batch within a budget that plain training of one batch needs."""
    found: dict[str, Any] = {}
    room = 96 << 20
    for memory, count in (("plain", 16), ("plain", 128), ("recompute", 64), ("offload-file", 64)):
        made = trainer(DEEP, memory, batch=count, memory_budget=room)
        x, y = batch_of(made, DEEP, count)
        try:
            made.forward_backward(x, y)
            end = "trained"
        except MemoryError as error:
            end = f"{type(error).__name__}: {error}"
        found[f"{memory} {count}"] = end
        assert made.limit is not None
        found[f"{memory} {count} most"] = made.limit.most
    found["limit after"] = resource.getrlimit(resource.RLIMIT_DATA)[0]
    return found


def peak() -> dict[str, Any]:
    """What the process held before its steps, which count anew, is in its peak."""
    made = trainer(NORMED, "recompute")
    large = np.ones(1 << 25)
    held = status_bytes("VmRSS")[0]
    del large
    path(made, NORMED)
    left = status_bytes("VmHWM")[0]
    return {"held": held, "peak": _peak_memory(made), "left": left}


def faults() -> dict[str, Any]:
    """A full disk, a tensor changed in place, one asked for twice, a file that became shorter."""
    found: dict[str, Any] = {}
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    made = trainer(DEEP, "offload-file", batch=4)
    x, y = batch_of(made, DEEP, 4)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))
    try:
        made.forward_backward(x, y)
    except SwapFull as error:
        found["full"] = str(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    # The same trainer goes on when there is room again.
    found["after"] = made.forward_backward(x, y)
    found["plain"] = trainer(DEEP, "plain", batch=4).forward_backward(x, y)

    changing = Store(SwapFile(), 1 << 20)
    changing.begin()
    tensor = torch.zeros(1 << 16)
    kept = changing.put(tensor, 1 << 18)
    # As if it had been written to since: its own writer may be done already.
    kept.version -= 1
    tensor.add_(1)
    try:
        changing.put(tensor, 1 << 18).version -= 1
        for _ in range(100):
            changing.put(torch.zeros(1 << 16), 1 << 18)
    except RuntimeError as error:
        found["changed"] = str(error)

    twice = Store(SwapFile(), 1 << 20)
    twice.begin()
    kept = twice.put(torch.arange(8.0), 32)
    twice.turn()
    found["once"] = twice.take(kept).tolist()
    try:
        found["twice"] = twice.take(kept).tolist()
    except RuntimeError as error:
        found["twice"] = str(error)

    short = SwapFile()
    place = short.reserve(1 << 16)
    short._file.truncate(0)
    try:
        short.load(place, (1 << 14, torch.float32))
    except OSError as error:
        found["short"] = str(error)
    return found


if __name__ == "__main__":
    checks = {"equality": equality, "counted": counted, "budget": budget, "peak": peak, "faults": faults}
    print(json.dumps({name: checks[name]() for name in sys.argv[1:]}))
