"""Sessions of ONNX Runtime in Python, by the options of the runner contract."""

from __future__ import annotations

import argparse
import ctypes
import os
import time
from typing import Any

import numpy as np
from engines import ON_GPU, Skip, Unsupported
from tensors import BadInput

_BAD_MODEL = ("InvalidProtobuf", "InvalidGraph", "InvalidArgument", "NoSuchFile")
PROVIDERS = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
    "openvino": "OpenVINOExecutionProvider",
}
_ERROR, _INFO = 3, 1
# ONNX's number of the type (TensorProto.DataType).
_BFLOAT16 = 16


def session_options(given: argparse.Namespace, profile: str | None) -> tuple[Any, dict[str, Any]]:
    """Return ONNX Runtime's options, and what they say themselves after they were set."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    choices = {
        "execution_mode": {
            "sequential": onnxruntime.ExecutionMode.ORT_SEQUENTIAL,
            "parallel": onnxruntime.ExecutionMode.ORT_PARALLEL,
        },
        "graph_optimization_level": {
            "disabled": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
            "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
            "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
            "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
        },
    }
    told: dict[str, Any] = {}
    for key, value in given.options.items():
        if key == "provider_options":
            told[key] = value
        elif "." in key:
            options.add_session_config_entry(key, value)
            told[key] = options.get_session_config_entry(key)
        else:
            setattr(options, key, choices.get(key, {}).get(value, value))
            now = getattr(options, key)
            names = {enum: name for name, enum in choices.get(key, {}).items()}
            told[key] = names.get(now, now)
    options.log_severity_level = _ERROR
    if profile:
        options.enable_profiling, options.profile_file_prefix = True, profile
        options.log_severity_level = _INFO
    return options, told


def _provider_options(given: argparse.Namespace) -> dict[str, str]:
    """Return the provider's options: those given, and what makes it as the other runtimes are."""
    options: dict[str, str] = dict(given.options.get("provider_options", {}))
    if given.provider == "openvino":
        # It has threads of its own, which know nothing of the session's.
        options.setdefault("device_type", "CPU")
        if "intra_op_num_threads" in given.options:
            options.setdefault("num_of_threads", str(given.options["intra_op_num_threads"]))
    if given.provider == "tensorrt":
        # TF32 is on by default and is not float32; the provider has no option for it.
        os.environ["NVIDIA_TF32_OVERRIDE"] = "0"
    return options


class Session:
    """One session and what is known of it; a runner adds `step`.

    Raises BadInput for a model that cannot be read, Skip when the provider is not there.
    """

    def __init__(self, given: argparse.Namespace, profile: str | None) -> None:
        import onnxruntime

        onnxruntime.set_default_logger_severity(_ERROR)
        provider = PROVIDERS.get(given.provider)
        if provider is None:
            raise BadInput(f"--provider {given.provider}: expected one of {', '.join(PROVIDERS)}")
        if provider not in onnxruntime.get_available_providers():
            raise Skip(f"this build of ONNX Runtime has no {provider}")
        options, told = session_options(given, profile)
        for_provider = _provider_options(given)
        not_set = []
        if for_provider and given.provider == "cpu":
            for_provider, not_set = {}, ["provider_options"]
            told.pop("provider_options", None)
        if for_provider:
            told["provider_options"] = for_provider
        wanted: list[Any] = [(provider, for_provider)]
        if given.provider == "tensorrt":
            wanted.append(PROVIDERS["cuda"])
        if given.provider != "cpu":
            wanted.append("CPUExecutionProvider")
        self.results: list[Any] = []
        begin = time.monotonic_ns()
        try:
            session = onnxruntime.InferenceSession(str(given.model), options, providers=wanted)
        except Exception as error:
            # onnxruntime's exceptions are internal classes: told apart by name, `Fail` by its text.
            kind = type(error).__name__
            if kind in _BAD_MODEL or (kind == "Fail" and "ModelProto" in str(error)):
                raise BadInput(f"{given.model}: {error}") from error
            raise
        self.session_ns = time.monotonic_ns() - begin
        # Without this `run` answers a provider that fails by a session on another one.
        session.disable_fallback()
        if provider not in session.get_providers():
            raise Skip(f"{provider} did not load; ONNX Runtime fell back to the CPU")
        self._bits = {v.name for v in session.get_inputs() if v.type == "tensor(bfloat16)"}
        self.session, self.provider = session, given.provider
        self.on_gpu = given.provider in ON_GPU
        self.output_names = [value.name for value in session.get_outputs()]
        self.output_types = {value.name: value.type for value in session.get_outputs()}
        self.facts: dict[str, Any] = {
            "runtime_version": onnxruntime.__version__,
            "build_info": onnxruntime.get_build_info(),
            "provider_used": given.provider,
            "session_options": told,
            "options_not_set": not_set,
            "run_includes": [],
        }

    def check(self, tensors: dict[str, np.ndarray], dtypes: dict[str, str]) -> None:
        """Raise BadInput unless these are inputs of the model, in its types and shapes."""
        needed = {value.name: value for value in self.session.get_inputs()}
        # Initializers that are inputs too have a default.
        takes = needed | {v.name: v for v in self.session.get_overridable_initializers()}
        if not needed.keys() <= tensors.keys() <= takes.keys():
            raise BadInput(f"the model takes {sorted(takes)}, --inputs gives {sorted(tensors)}")
        for name in tensors:
            value = takes[name]
            kind = f"tensor({_ORT_NAMES.get(dtypes[name], dtypes[name])})"
            if value.type != kind:
                raise BadInput(f"input '{name}' is {dtypes[name]}, the model takes {value.type}")
            shape, given = value.shape, tensors[name].shape
            # The first axis is cut into batches.
            fixed = zip(shape[1:], given[1:], strict=False)
            if len(shape) != len(given) or any(isinstance(a, int) and a != b for a, b in fixed):
                raise BadInput(f"input '{name}' has shape {list(given)}, the model takes {shape}")

    def end_profile(self) -> str:
        """Return the file of the profile."""
        return str(self.session.end_profiling())

    def has_bfloat16(self) -> bool:
        """Tell whether numpy alone cannot hold what goes in and out."""
        ends = [*self.session.get_inputs(), *self.session.get_outputs()]
        return any("bfloat16" in value.type for value in ends)

    def ort_values(self, feed: dict[str, np.ndarray]) -> dict[str, Any]:
        """Make ONNX Runtime's values over the arrays; bfloat16 is given as its bits."""
        import onnxruntime

        make = onnxruntime.OrtValue
        if texts := sorted(name for name, array in feed.items() if array.dtype.kind in "OUS"):
            raise Unsupported(f"Python's OrtValue cannot hold texts, as of {', '.join(texts)}")
        return {
            name: make.ortvalue_from_numpy_with_onnx_type(array, _BFLOAT16)
            if name in self._bits
            else make.ortvalue_from_numpy(array)
            for name, array in feed.items()
        }


# Where ONNX Runtime's word for a type is another one than the contract's.
_ORT_NAMES = {"float32": "float", "float64": "double"}


def bits_of(value: Any) -> np.ndarray:
    """Copy a bfloat16 tensor of ONNX Runtime out as uint16: numpy has no such type."""
    shape, size = value.shape(), value.tensor_size_in_bytes()
    if value.data_type() != "tensor(bfloat16)":
        raise Unsupported(f"output is {value.data_type()}, expected tensor(bfloat16)")
    raw = ctypes.string_at(value.data_ptr(), size) if size else b""
    return np.frombuffer(raw, dtype="<u2").reshape(shape)
