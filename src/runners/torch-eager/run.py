"""PyTorch in eager mode, under the runner contract (docs/runner-contract.md): the yardstick.

`--model` is a JSON file {"workload": NAME, "weights": FILE.npz}, the weights in the neutral
layout, the file absolute or relative to the JSON. The workload comes from transect.training.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

_SOURCE = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(_SOURCE), str(_SOURCE / "runners" / "python")]

from contract import (  # noqa: E402
    BadInput,
    Skip,
    full_batches,
    measure,
    read_inputs,
    run_program,
    write_outputs,
)

__all__ = ["run"]


def _module(path: Path, device: str) -> Any:
    """Build the workload's module with its weights in float32, without gradients."""
    import torch

    from transect.training.frameworks._torch_modules import build_module, load_weights
    from transect.training.workloads import WORKLOADS

    try:
        model = json.loads(path.read_text())
        workload = WORKLOADS.get(model["workload"])
        with np.load(path.parent / model["weights"]) as file:
            weights = {name: file[name] for name in file.files}
        module = load_weights(build_module(workload.layers).eval(), weights, torch.float32)
    except (OSError, KeyError, ValueError) as error:
        raise BadInput(f"{path}: {type(error).__name__}: {error}") from error
    return module.requires_grad_(False).to(device)


def run(given: argparse.Namespace) -> dict[str, Any]:
    """Run all rows, write the outputs, then measure; return the record's fields."""
    import torch

    if given.provider == "cuda" and not torch.cuda.is_available():
        raise Skip("this build of PyTorch sees no CUDA device")
    torch.set_num_threads(given.threads)
    torch.set_num_interop_threads(1)
    # TF32 is not float32.
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    tensors, batch = read_inputs(given.inputs)
    if len(tensors) != 1:
        raise BadInput(f"a workload takes one input, --inputs gives {sorted(tensors)}")
    (inputs,) = tensors.values()
    clock = time.monotonic_ns
    device, cuda = given.provider, given.provider == "cuda"
    begin = clock()
    module = _module(given.model, device)
    session_ns = clock() - begin
    results: list[np.ndarray] = []

    def step(feed: dict[str, np.ndarray]) -> tuple[int, int, int]:
        (array,) = feed.values()
        t0 = clock()
        x = torch.from_numpy(array).to(device)
        if cuda:
            torch.cuda.synchronize()
        t1 = clock()
        y = module(x)
        if cuda:
            torch.cuda.synchronize()
        t2 = clock()
        results[:] = [y.cpu().numpy().copy()]
        t3 = clock()
        return t1 - t0, t2 - t1, t3 - t2

    with torch.inference_mode():
        parts = []
        for start in range(0, len(inputs), batch):
            step({"input": inputs[start : start + batch]})
            parts.append(results[0])
        outputs = write_outputs(given.outputs, "output", parts)
        series = measure(
            step,
            full_batches(tensors, batch),
            warmup=given.warmup,
            min_runs=given.min_runs,
            max_seconds=given.max_seconds,
        )
    return {
        "runtime_version": torch.__version__,
        "provider_used": given.provider,
        "session_options": {
            "intra_op_num_threads": given.threads,
            "inter_op_num_threads": 1,
            "execution_mode": "eager",
            "inference_mode": True,
            "tf32": False,
        },
        "session_ns": session_ns,
        "outputs": outputs,
        **series,
    }


if __name__ == "__main__":
    sys.exit(run_program("torch-eager", __doc__, run))
