"""What a file with dynamic ranges computes in batches of each size that is inferred."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from transect.onnx_models.comparison import differences
from transect.onnx_models.dynamic_tolerance import dynamic_tolerance, jiggled
from transect.onnx_models.facts import batch_folder, write_facts
from transect.onnx_models.lowered_tolerance import lowered_tolerance
from transect.onnx_models.models import Arrays, Outputs
from transect.onnx_models.running import open_session, run_session
from transect.onnx_models.tensors import write_tensors

# Executions that do not change the batch: optimisation and threads.
OTHERS = (("off", 1), ("basic", 1), ("all", 2))
_JIGGLES = 8


class DynamicRuns:
    """Runs a converted file as other builds would, on `inputs`; `float32` are that file's outputs."""

    def __init__(self, path: Path, inputs: Arrays, float32: Outputs) -> None:
        self._session = open_session(path)
        self._others = [open_session(path, optimisation=o, threads=n) for o, n in OTHERS]
        self._inputs, self._float32 = inputs, float32
        self._jiggled = [jiggled(inputs, seed) for seed in range(_JIGGLES)]

    def of(self, batch: int | None) -> tuple[Outputs, dict[str, Any]]:
        """Return the expected outputs in batches of a size, and what the record tells of them.

        Raises BadInput where outputs of one run are of other types or shapes than those of another.
        """
        expected = run_session(self._session, self._inputs, batch)
        runs = [run_session(other, self._inputs, batch) for other in self._others]
        runs += [run_session(self._session, inputs, batch) for inputs in self._jiggled]
        every: dict[str, dict[str, Any]] = {}
        distance = differences(self._float32, expected)
        spread = {name: max(differences(run, expected)[name] for run in runs) for name in distance}
        for name in distance:
            right = expected[name]
            assert isinstance(right, np.ndarray)
            if right.dtype.kind == "f" and right.size:
                outputs = [np.asarray(run[name]) for run in runs]
                every[name] = asdict(dynamic_tolerance(right, outputs, np.asarray(self._float32[name])))
            else:
                share = lowered_tolerance(right, spread[name], distance[name], "int8-dynamic")
                every[name] = {
                    "tolerance": share.tolerance,
                    "tolerance_from": share.source,
                    "spread": spread[name],
                    "distance": distance[name],
                }
        keys = dict.fromkeys(key for told in every.values() for key in told)
        return expected, {key: {name: told[key] for name, told in every.items() if key in told} for key in keys}


def write_batches(
    out: Path, runs: DynamicRuns, sizes: Iterable[int], costs: dict[str, Any] | None
) -> dict[str, dict[str, Any]]:
    """Write `batch-SIZE/expected` and facts for each size; return what the record tells, by size.

    With fewer rows than a batch has, the runner gets them repeated, which gives the same ranges as
    all rows once.
    """
    told = {}
    for size in sizes:
        folder = out / batch_folder(size)
        expected, one = runs.of(size)
        write_tensors(folder / "expected", expected)
        write_facts(
            folder, tolerance=one["tolerance"], mean_tolerance=one.get("mean_tolerance"), batched=True, costs=costs
        )
        told[str(size)] = one
    return told
