"""Steps of one contender of `bench_out_of_core.py`, in torch's environment; prints one line of JSON.

`python out_of_core_steps.py CONTENDER BATCH [--budget BYTES] [--plan FILE] [--threads N] [--steps N]`.
Contenders are those of `OWN` and of `make`, or `costs`, which measures the layers.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch

from transect.payloads.memory_plan import handling_seconds, swap_rates
from transect.training.frameworks import ModelPlan
from transect.training.frameworks._torch_trainer import TorchTrainer
from transect.training.layered import LayeredModel
from transect.training.layers import BatchNorm2d, Conv2d, GlobalAveragePool, Linear, ReLU
from transect.training.memory._layer_costs import layer_costs
from transect.training.memory._limit import MemoryLimit, large_blocks_apart
from transect.training.memory._runs import layers_of
from transect.training.workloads import Parameters

_BLOCK = (Conv2d(32, 32, 3, 1, bias=False), BatchNorm2d(32), ReLU())
MODEL = LayeredModel(
    (Conv2d(3, 32, 3, 1, bias=False), BatchNorm2d(32), ReLU(), *_BLOCK * 39, GlobalAveragePool(), Linear(32, 10)),
    (3, 16, 16),
)
OWN = ("plain", "recompute", "offload-file", "planned")


def naive() -> AbstractContextManager[Any]:
    """Each saved tensor to a file of its own and back, one after another.

    As PyTorch's tutorial on hooks for saved tensors does it ("Saving tensors to disk"):
    https://docs.pytorch.org/tutorials/intermediate/autograd_saved_tensors_hooks_tutorial.html
    """
    folder = tempfile.TemporaryDirectory(prefix="naive-")

    class File:
        """Gone with its last reference."""

        def __init__(self, number: int) -> None:
            self.name = str(Path(folder.name) / str(number))

        def __del__(self) -> None:
            if os.path.exists(self.name):
                os.remove(self.name)

    count = iter(range(1 << 62))

    def pack(tensor: Any) -> File:
        file = File(next(count))
        torch.save(tensor, file.name)
        return file

    return torch.autograd.graph.saved_tensors_hooks(pack, lambda file: torch.load(file.name))


class Surrounded:
    """Activations of a contender that is a context of the forward pass."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def forward(self, x: Any) -> Any:
        return self._context()

    def backward(self) -> Any:
        return nullcontext()

    def facts(self) -> dict[str, Any]:
        return {}


def make(given: argparse.Namespace) -> TorchTrainer:
    name, _, argument = given.contender.partition(":")
    rule = Parameters(batch=given.batch, epochs=1, learning_rate=0.01, momentum=0.9, quality_target=0.5)
    made = TorchTrainer(
        ModelPlan(
            model=MODEL,
            parameters=rule,
            weights=MODEL.initial_weights(0),
            batch=given.batch,
            precision="fp32",
            device="cpu",
            threads=given.threads,
            memory=name if name in OWN else "plain",
            memory_budget=given.budget,
            memory_plan=json.loads(given.plan.read_text()) if given.plan else None,
        )
    )
    if name == "naive":
        made.activations = Surrounded(naive)
    elif name == "save_on_cpu":
        made.activations = Surrounded(torch.autograd.graph.save_on_cpu)
    elif name == "checkpoint_sequential":
        from torch.utils.checkpoint import checkpoint_sequential

        layers = layers_of(made.model)[0]
        made.wrap(lambda x: checkpoint_sequential(layers, int(argument), x, use_reentrant=False))
    elif name == "activation_memory_budget":
        import torch._functorch.config as config

        config.activation_memory_budget = float(argument)
        # The kernels that all others use, around the partition that the budget asks for.
        made.wrap(torch.compile(made.model, backend="aot_eager_decomp_partition"))
    elif name not in OWN:
        sys.exit(f"unknown contender {name}")
    made.limit = made.limit or MemoryLimit(None)
    return made


def main() -> None:
    """Do the steps, or with the contender `costs` measure the layers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("contender")
    parser.add_argument("batch", type=int)
    parser.add_argument("--budget", type=int)
    parser.add_argument("--plan", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--apart", action="store_true", help="give freed blocks back, to see the peak")
    given = parser.parse_args()
    generator = np.random.default_rng(0)
    x = generator.standard_normal((given.batch, *MODEL.sample)).astype(np.float32)
    y = generator.integers(0, 10, given.batch)
    if given.contender == "costs":
        torch.set_num_threads(given.threads)
        large_blocks_apart()
        write, read = swap_rates()
        trained = sum(int(np.prod(w.shape)) for w in MODEL.weight_shapes() if w.trained)
        rates = {"write_s_per_byte": write, "read_s_per_byte": read}
        more = {"gradient_bytes": 4 * trained, "handling_s": handling_seconds()}
        print(json.dumps(layer_costs(MODEL, x, "fp32", repeats=3) | rates | more))
        return
    if given.apart:
        large_blocks_apart()
    made = make(given)
    inputs = made.batch(x, y)
    times, losses = [], []
    cpu = main_s = 0.0
    try:
        for step in range(given.steps + 1):
            began, used, mine = time.perf_counter(), time.process_time(), time.thread_time()
            losses.append(made.forward_backward(*inputs))
            made.update(0.01)
            if step:
                times.append(time.perf_counter() - began)
                cpu += (time.process_time() - used) / given.steps
                main_s += (time.thread_time() - mine) / given.steps
    except MemoryError as error:
        print(json.dumps({"out_of_memory": str(error)}))
        return
    assert made.limit is not None
    print(
        json.dumps(
            {
                "step_s": statistics.median(times),
                "cpu_s": cpu,
                "main_cpu_s": main_s,
                "bytes": made.limit.most,
                "losses": losses,
                "told": dict(made.activations.facts()),
            }
        )
    )


if __name__ == "__main__":
    main()
