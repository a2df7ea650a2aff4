"""Measures layers one by one.

Its result's details hold `costs`: of each layer the seconds of its passes, the tensors that it saves and
what it holds besides, of all tensors their bytes, and what writing to and reading from the file for
activations takes. Only one layer's activations are in memory at a time.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.cell import Cell
from transect.domain.precisions import find_precision
from transect.training.frameworks import FRAMEWORKS
from transect.training.memory._layer_costs import layer_costs
from transect.training.memory._limit import large_blocks_apart
from transect.training.memory._offload import MIN_COUNT
from transect.training.memory._store import Store
from transect.training.memory._swap_file import SwapFile
from transect.training.workloads import WORKLOADS, model_of

# Of each layer's passes, after one that is not counted.
_REPEATS = 3
# What rates are measured with: more than a processor's caches hold.
_RATE_BYTES = 1 << 26


def swap_rates(size: int = _RATE_BYTES, repeats: int = 3) -> tuple[float, float]:
    """Return the seconds that a byte takes to the file for activations and back: medians of blocks.

    Blocks are written over, as a step writes over the one before.
    """
    import torch

    file, block = SwapFile(), torch.ones(size // 4)
    times: dict[str, list[float]] = {"write": [], "read": []}
    try:
        places = [file.reserve(size) for _ in range(repeats)]
        for place in places:
            file.save(place, block, None)
        for place in places:
            began = time.perf_counter()
            file.save(place, block, None)
            wrote = time.perf_counter()
            file.load(place, (block.numel(), block.dtype))
            times["write"].append((wrote - began) / size)
            times["read"].append((time.perf_counter() - wrote) / size)
    finally:
        file.close()
    return statistics.median(times["write"]), statistics.median(times["read"])


def handling_seconds(tensors: int = 50, repeats: int = 5) -> float:
    """Return the median time that the smallest offloaded tensor costs the computing thread."""
    import torch

    store = Store(SwapFile(), MIN_COUNT)
    times = []
    try:
        for _ in range(repeats):
            store.begin()
            flats = [torch.ones(MIN_COUNT // 4) for _ in range(tensors)]
            began = time.perf_counter()
            kept = [store.put(flat, MIN_COUNT) for flat in flats]
            store.turn()
            for handle in reversed(kept):
                store.take(handle)
            times.append((time.perf_counter() - began) / tensors)
    finally:
        store.close()
    return statistics.median(times)


def run(spec: dict[str, Any], folders: dict[str, Path], out: Path) -> dict[str, Any]:
    """Measure one cell's layers; return its result."""
    cell = Cell.of(**spec["cell"])
    libraries = FRAMEWORKS.get(str(cell.get("framework"))).libraries()
    return {"details": {"costs": measure(cell)}, "libraries": libraries}


def measure(cell: Cell) -> dict[str, Any]:
    """Return the costs of the cell's layers on its batch, of random samples and weights."""
    import torch

    torch.set_num_threads(cell.threads)
    large_blocks_apart()
    model = model_of(WORKLOADS.get(str(cell.workload)))
    generator = np.random.default_rng(0)
    drawn = np.stack([model.draw(generator)[0] for _ in range(int(cell.get("batch")))])
    costs = layer_costs(model, drawn, cell.precision, repeats=_REPEATS)
    trained = sum(int(np.prod(w.shape)) for w in model.weight_shapes() if w.trained)
    write, read = swap_rates()
    size = find_precision(cell.precision).bytes_per_number
    return costs | {
        "gradient_bytes": trained * size,
        "write_s_per_byte": write,
        "read_s_per_byte": read,
        "handling_s": handling_seconds(),
    }
