"""What each layer of a torch module takes and saves: measured, one layer after another."""

from __future__ import annotations

import statistics
import time
from contextlib import nullcontext
from typing import Any

import numpy as np

from transect.domain.precisions import find_precision
from transect.training.memory._limit import Peak, settle, status_bytes
from transect.training.memory._runs import layers_of
from transect.training.models import Model, TorchModel


def layer_costs(model: Model, x: np.ndarray, precision: str, repeats: int) -> dict[str, Any]:
    """Return `layers` and `sizes`, as `planner.memory` takes them, of a batch x on a CPU.

    `library_bytes`: what was not given back when all was done, such as code that was made for them. Seconds are medians of `repeats` after one that is not counted. Tensor 0 is the batch.
    """
    import torch

    from transect.training.frameworks._torch_modules import load_weights, module_dtype

    assert isinstance(model, TorchModel)
    dtype = module_dtype(precision)
    module = load_weights(model.torch_module(), model.initial_weights(0), dtype)
    layers, _ = layers_of(module)
    known = find_precision(precision)
    lower = known.multiplied != known.stored
    batch = torch.from_numpy(x)
    value = batch.to(dtype) if batch.is_floating_point() else batch
    sizes, number, found = [_size(value)], 0, []
    settle()
    # What torch imports with its first hooks is no layer's, and a trainer has it before it begins.
    _measured(layers[0], value, needs=False, repeats=1)
    begun = status_bytes("VmData")[0]
    for index, layer in enumerate(layers):
        with torch.autocast("cpu", torch.bfloat16) if lower else nullcontext():
            costs, value, memory = _measured(layer, value, needs=index > 0, repeats=repeats)
        before = number
        names = {"in": before}
        if memory.pop("same"):
            names["out"] = before
        else:
            sizes.append(_size(value))
            number = names["out"] = len(sizes) - 1
        saved = {names[place] for place in memory["places"]}
        for size in memory["inside"]:
            sizes.append(size)
            saved.add(len(sizes) - 1)
        kept = sum(sizes[t] for t in saved - {before})
        found.append(
            {
                "name": str(index),
                **costs,
                "saved": sorted(saved),
                "before": before,
                "after": number,
                "working_bytes": max(0, memory["peak"] - kept),
            }
        )
    held = status_bytes("VmData")[0] - begun - _size(value)
    return {"layers": found, "sizes": sizes, "library_bytes": max(0, held)}


def _size(tensor: Any) -> int:
    return int(tensor.numel() * tensor.element_size())


def _measured(layer: Any, value: Any, *, needs: bool, repeats: int) -> tuple[dict[str, float], Any, dict[str, Any]]:
    import torch

    times: list[tuple[float, float]] = []
    saved: dict[str, Any] = {}
    peak = 0
    for turn in range(repeats + 1):
        given = value.detach().requires_grad_(needs and value.is_floating_point())
        watched = _Saved(layer, given) if turn == 0 else None
        held = Peak()
        held.begin()
        t0 = time.perf_counter()
        with watched.looking() if watched else nullcontext():
            result = layer(given)
        t1 = time.perf_counter()
        if watched:
            saved = watched.found(result)
        if result.requires_grad:
            result.backward(torch.ones_like(result))
        t2 = time.perf_counter()
        if turn:
            # Before, libraries load what they compute with.
            peak = max(peak, held.bytes())
        times.append((t1 - t0, t2 - t1))
        for parameter in layer.parameters():
            parameter.grad = None
        output = result.detach()
        del result, given
    forward, backward = (statistics.median(column) for column in zip(*times[1:], strict=True))
    return {"forward_s": forward, "backward_s": backward}, output, saved | {"peak": peak}


class _Saved:
    """Notes what autograd saves in a forward pass, weights left out."""

    def __init__(self, layer: Any, given: Any) -> None:
        tensors = (*layer.parameters(), *layer.buffers())
        self._weights = {tensor.untyped_storage().data_ptr() for tensor in tensors}
        self._given = given.untyped_storage().data_ptr()
        # They are held until all are told apart by their addresses.
        self._tensors: list[Any] = []

    def looking(self) -> Any:
        from torch.autograd.graph import saved_tensors_hooks

        def pack(tensor: Any) -> Any:
            self._tensors.append(tensor.detach())
            return tensor

        return saved_tensors_hooks(pack, lambda tensor: tensor)

    def found(self, result: Any) -> dict[str, Any]:
        """Return whether input and output are saved, bytes of each tensor inside, and whether both are one."""
        output = result.untyped_storage().data_ptr()
        inside: dict[int, int] = {}
        places = set()
        for tensor in self._tensors:
            address = tensor.untyped_storage().data_ptr()
            if address in self._weights:
                continue
            if address in (self._given, output):
                places.add("in" if address == self._given else "out")
            else:
                inside[address] = max(inside.get(address, 0), _size(tensor))
        self._tensors = []
        return {"places": sorted(places), "inside": list(inside.values()), "same": output == self._given}
