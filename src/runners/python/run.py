"""ONNX Runtime from Python, under the runner contract (docs/runner-contract.md)."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import numpy as np
from contract import (
    BadInput,
    Skip,
    full_batches,
    measure,
    read_inputs,
    run_program,
    write_outputs,
)

__all__ = ["run"]

_CONFIG = {"session.intra_op.allow_spinning": "1", "session.inter_op.allow_spinning": "1"}
_BAD_MODEL = ("InvalidProtobuf", "InvalidGraph", "InvalidArgument")
# TF32 is on by default and is not float32.
_CUDA_OPTIONS = {"device_id": "0", "use_tf32": "0"}


def _session(given: argparse.Namespace) -> tuple[Any, dict[str, Any], int]:
    """Return the session, its options for the record, and the nanoseconds of its creation."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(3)
    if given.provider == "cuda" and "CUDAExecutionProvider" not in (
        onnxruntime.get_available_providers()
    ):
        raise Skip("this build of ONNX Runtime has no CUDA provider")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = given.threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.enable_cpu_mem_arena = options.enable_mem_pattern = True
    for key, value in _CONFIG.items():
        options.add_session_config_entry(key, value)
    providers: list[Any] = ["CPUExecutionProvider"]
    if given.provider == "cuda":
        providers.insert(0, ("CUDAExecutionProvider", _CUDA_OPTIONS))
    if not given.model.is_file():
        raise BadInput(f"{given.model}: no such model file")
    begin = time.monotonic_ns()
    try:
        session = onnxruntime.InferenceSession(str(given.model), options, providers=providers)
    except Exception as error:
        # onnxruntime's exceptions are internal classes: told apart by name, `Fail` by its text.
        kind = type(error).__name__
        if kind in _BAD_MODEL or (kind == "Fail" and "ModelProto" in str(error)):
            raise BadInput(f"{given.model}: {error}") from error
        raise
    elapsed_ns = time.monotonic_ns() - begin
    if given.provider == "cuda" and "CUDAExecutionProvider" not in session.get_providers():
        raise Skip("the CUDA provider did not load; ONNX Runtime fell back to the CPU")
    facts = {
        "intra_op_num_threads": given.threads,
        "inter_op_num_threads": 1,
        "execution_mode": "sequential",
        "graph_optimization_level": "all",
        "enable_cpu_mem_arena": True,
        "enable_mem_pattern": True,
        **_CONFIG,
        "provider_options": _CUDA_OPTIONS if given.provider == "cuda" else {},
    }
    return session, facts, elapsed_ns


def run(given: argparse.Namespace) -> dict[str, Any]:
    """Run all rows, write the outputs, then measure; return the record's fields."""
    import onnxruntime

    tensors, batch = read_inputs(given.inputs)
    session, options, session_ns = _session(given)
    _check_inputs(session, tensors)
    output = session.get_outputs()[0].name
    binding = session.io_binding()
    clock = time.monotonic_ns
    cuda = given.provider == "cuda"
    results: list[np.ndarray] = []

    def step(feed: dict[str, np.ndarray]) -> tuple[int, int, int]:
        t0 = clock()
        for name, array in feed.items():
            binding.bind_cpu_input(name, array)
        # Bound anew each time: a bound output keeps the tensor of the last run.
        binding.bind_output(output, given.provider)
        t1 = clock()
        session.run_with_iobinding(binding)
        if cuda:
            binding.synchronize_outputs()
        t2 = clock()
        results[:] = binding.copy_outputs_to_cpu()
        t3 = clock()
        binding.clear_binding_inputs()
        binding.clear_binding_outputs()
        return t1 - t0, t2 - t1, t3 - t2

    rows = len(next(iter(tensors.values())))
    parts = []
    for start in range(0, rows, batch):
        step({name: tensor[start : start + batch] for name, tensor in tensors.items()})
        parts.append(results[0])
    outputs = write_outputs(given.outputs, output, parts)
    series = measure(
        step,
        full_batches(tensors, batch),
        warmup=given.warmup,
        min_runs=given.min_runs,
        max_seconds=given.max_seconds,
    )
    return {
        "runtime_version": onnxruntime.__version__,
        "provider_used": given.provider,
        "session_options": options,
        "session_ns": session_ns,
        "outputs": outputs,
        **series,
    }


def _check_inputs(session: Any, tensors: dict[str, np.ndarray]) -> None:
    """Raise BadInput unless the tensors are the model's inputs, in float32 and in its shapes."""
    wanted = {value.name: value.shape for value in session.get_inputs()}
    if wanted.keys() != tensors.keys():
        raise BadInput(f"the model takes {sorted(wanted)}, --inputs gives {sorted(tensors)}")
    for name, shape in wanted.items():
        given = tensors[name].shape
        fixed = zip(shape[1:], given[1:], strict=False)
        if len(shape) != len(given) or any(isinstance(a, int) and a != b for a, b in fixed):
            raise BadInput(f"input '{name}' has shape {list(given)}, the model takes {shape}")


if __name__ == "__main__":
    sys.exit(run_program("python", __doc__, run))
