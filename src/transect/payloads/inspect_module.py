"""A module of the user's, asked once: its weights, shapes, operations, and what its data looks like.

Leaves `module.json` and `weights-R.npz`, the initial weights of every repeat R.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from transect.domain.errors import FAULTS, BadInput
from transect.domain.files import write_atomic
from transect.training.datasets import DATASETS, LoadedDataset, Samples, StoredDataset
from transect.training.frameworks._module_files import called
from transect.training.frameworks._torch_losses import loss_function
from transect.training.frameworks._torch_modules import draw_from, next_numbers
from transect.training.frameworks._torch_own_optimiser import try_optimiser
from transect.training.losses import check_targets
from transect.training.module_model import MODULE_FACTS, ModuleModel
from transect.training.optimisers import OWN_OPTIMISER
from transect.training.own_files import member_of
from transect.training.own_workload import OwnWorkload
from transect.training.workloads import WORKLOADS, Parameters

if TYPE_CHECKING:
    import torch

# Samples of the batch that the module is tried with: two, so that the batch is seen to be an axis.
_TRIED = 2
# A rare draw, such as of a layer that is left out, does nothing for most of them.
_SEEDS = 100
# How far outputs of one seed in two precisions may lie apart, as a part of what another seed does to them.
_SAME_DRAWN = 0.01


def run(spec: dict[str, Any], folders: dict[str, Path], out: Path) -> dict[str, Any]:
    """Inspect one module. Raises BadInput naming what cannot be trained."""
    import torch

    workload = WORKLOADS.get(spec["workload"])
    assert isinstance(workload, OwnWorkload)
    parameters = Parameters.model_validate(spec["parameters"])
    dataset = DATASETS.get(workload.dataset)
    assert isinstance(dataset, LoadedDataset | StoredDataset)
    options = parameters.dataset_options
    samples = dataset.load(options) if isinstance(dataset, LoadedDataset) else dataset.few(options)
    where = f"{workload.module_file}:{workload.module_name}"
    maker = member_of(workload.module_file, workload.module_name)

    def made(repeat: int) -> torch.nn.Module:
        draw_from(spec["seed"] + repeat)
        return called(maker, where, workload.options).train()

    facts = facts_of(made(0), samples, parameters, where, workload.model)
    try:
        facts |= drawing(lambda: made(0), samples, where)
    except FAULTS as error:
        raise BadInput(f"{where}: fails in float64, which the reference needs: {error}") from error
    for repeat in range(spec["repeats"]):
        module = made(repeat)
        arrays = {name: tensor.detach().numpy().astype(np.float64) for name, tensor in _weights(module)}
        np.savez(out / f"weights-{repeat}.npz", **arrays)
    write_atomic(out / MODULE_FACTS, json.dumps(facts, indent=1) + "\n")
    shown = {name: value for name, value in facts.items() if name != "weights"}
    return {
        "details": shown | {"arrays": len(facts["weights"])},
        "metrics": [{"name": "parameters", "value": facts["costs"]["parameters"]}],
        "libraries": {"torch": torch.__version__},
    }


def _weights(module: torch.nn.Module) -> list[tuple[str, torch.Tensor]]:
    """Return parameters, each once, and those buffers of real numbers that are saved with them."""
    saved = module.state_dict().keys()
    buffers = [(name, b) for name, b in module.named_buffers() if name in saved and b.is_floating_point()]
    return [*module.named_parameters(), *buffers]


def facts_of(
    module: torch.nn.Module, samples: Samples, parameters: Parameters, where: str, model: ModuleModel | None = None
) -> dict[str, Any]:
    """Train one step on two samples, and count. Raises BadInput where that is not possible."""
    import torch

    dtype = torch.get_default_dtype()
    x = torch.from_numpy(samples.x[:_TRIED].copy())
    x = x.to(dtype) if x.is_floating_point() else x
    y = torch.from_numpy(samples.y[:_TRIED])
    trained = [(name, parameter) for name, parameter in module.named_parameters() if parameter.requires_grad]
    if not trained:
        raise BadInput(f"{where}: has no parameter that requires a gradient: there is nothing to train")
    if lazy := [name for name, tensor in (*trained, *module.named_buffers()) if torch.nn.parameter.is_lazy(tensor)]:
        raise BadInput(
            f"{where}: {', '.join(lazy)} have no shape before a first batch: expected modules that are not lazy"
        )
    # Of complex numbers a change of precision leaves the real part.
    tensors = [*module.parameters(), *module.buffers()]
    odd = sorted({str(t.dtype) for t in tensors if t.is_floating_point() or t.is_complex()} - {str(dtype)})
    if odd:
        raise BadInput(f"{where}: has weights of {', '.join(odd)}: expected {dtype}, each cell has its own precision")
    counted = Counting()
    saved: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        saved[tensor.untyped_storage().data_ptr()] = tensor.numel()
        return tensor

    try:
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor), counted.mode():
            outputs = module(x)
            forward = counted.total
            _check_outputs(outputs, samples, parameters, where)
            loss = loss_function(parameters, model)(outputs, y)
            loss.backward()
    except BadInput:
        raise
    except FAULTS as error:
        raise BadInput(
            f"{where}: one step on {_TRIED} samples of shape {tuple(x.shape[1:])}, {x.dtype}, fails: "
            f"{type(error).__name__}: {error}"
        ) from error
    if parameters.optimiser == OWN_OPTIMISER and model is not None and model.own_optimiser is not None:
        try_optimiser(model.own_optimiser, module, parameters.learning_rate)
    idle = [name for name, parameter in trained if parameter.grad is None]
    if idle:
        raise BadInput(f"{where}: the loss does not depend on {', '.join(idle)}: expected requires_grad_(False) there")
    held = {p.untyped_storage().data_ptr() for _, p in module.named_parameters()} | {x.untyped_storage().data_ptr()}
    number = sum(parameter.numel() for _, parameter in trained)
    return {
        "sample": list(x.shape[1:]),
        "inputs": "float" if x.is_floating_point() else "int64",
        "output": list(outputs.shape[1:]),
        "range": [float(samples.x.min()), float(samples.x.max())]
        if x.is_floating_point()
        else [int(samples.x.min()), int(samples.x.max())],
        "weights": [
            {"name": name, "shape": list(tensor.shape), "trained": bool(tensor.requires_grad)}
            for name, tensor in _weights(module)
        ],
        "operations": dict(sorted(counted.operations.items())),
        "longest_sum": counted.longest,
        "costs": {
            "parameters": number,
            "training_flops": counted.total // _TRIED,
            "prediction_flops": forward // _TRIED,
            "prediction_weights": number,
            "activations": sum(size for storage, size in saved.items() if storage not in held) // _TRIED,
            "inputs": x[0].numel(),
            "outputs": outputs[0].numel(),
        },
    }


def _check_outputs(outputs: Any, samples: Samples, parameters: Parameters, where: str) -> None:
    import torch

    if not isinstance(outputs, torch.Tensor) or outputs.ndim < 1 or len(outputs) != _TRIED:
        shape = tuple(outputs.shape) if isinstance(outputs, torch.Tensor) else type(outputs).__name__
        raise BadInput(f"{where}: gives {shape} for {_TRIED} samples: expected ({_TRIED}, ...)")
    try:
        check_targets(parameters.loss, tuple(outputs.shape[1:]), samples.y, samples.classes)
    except BadInput as error:
        raise BadInput(f"{where}: {error}") from None


def drawing(make: Callable[[], torch.nn.Module], samples: Samples, where: str) -> dict[str, Any]:
    """Return whether forward passes draw, and why what they draw cannot be that of the float64 reference, or None.

    The generators tell whether, and for the rest it is tried: seeds in one precision until one does otherwise, and one
    seed in two. Dropout draws the same in both, `torch.randn` does not.
    """
    import torch

    def outputs(seed: int, dtype: torch.dtype) -> torch.Tensor:
        module = make().to(dtype)
        x = torch.from_numpy(samples.x[:_TRIED].copy())
        draw_from(seed)
        with torch.no_grad():
            found: torch.Tensor = module(x.to(dtype) if x.is_floating_point() else x)
        return found.double()

    first = outputs(1, torch.float64)
    drawn = next_numbers()
    draw_from(1)
    if drawn == next_numbers():
        return {"draws": False, "not_checkable": None}
    others = (outputs(seed, torch.float64) for seed in range(2, _SEEDS))
    other = next((found for found in others if not torch.equal(found, first)), None)
    if other is None:
        return {"draws": True, "not_checkable": None}
    rounded = outputs(1, torch.float32)
    apart = float((rounded - first).norm() / (other - first).norm())
    reason = f"what {where} draws in its forward pass depends on the precision: dropout's would not"
    return {"draws": True, "not_checkable": reason if apart > _SAME_DRAWN else None}


class Counting:
    """Operations of a step by name; of products, convolutions and attention also how many, and the longest sum."""

    def __init__(self) -> None:
        self.total, self.longest = 0, 1
        self.operations: Counter[str] = Counter()

    def mode(self) -> Any:
        """Return what counts while it is entered."""
        import torch
        from torch.utils._python_dispatch import TorchDispatchMode
        from torch.utils.flop_counter import flop_registry

        counted = self

        class Mode(TorchDispatchMode):  # type: ignore[misc] # torch's is Any
            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                found = func(*args, **(kwargs or {}))
                packet = func._overloadpacket
                counted.operations[str(packet)] += 1
                if packet in flop_registry:
                    flops = int(flop_registry[packet](*args, **(kwargs or {}), out_val=found))
                    counted.total += flops
                    made = found if isinstance(found, tuple) else (found,)
                    # Of a backward pass each gradient takes as much; that of a bias is a sum, and no product.
                    sizes = [t.numel() for t in made if torch.is_tensor(t) and t.ndim > 1 and t.numel()]
                    # A number that is the sum of K products takes 2 K operations.
                    counted.longest = max(counted.longest, *(flops // (2 * len(sizes) * size) for size in sizes))
                return found

        return Mode()
