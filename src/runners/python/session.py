"""Sessions of ONNX Runtime in Python, by the options of the plan."""

from __future__ import annotations

import ctypes
import os
import time
from typing import Any

import numpy as np
from engines import BadInput, Skip, Unsupported
from plan import BFLOAT16, STRING, Plan, Role

_BAD_MODEL = ("InvalidProtobuf", "InvalidGraph", "InvalidArgument", "NoSuchFile")
PROVIDERS = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
    "openvino": "OpenVINOExecutionProvider",
}
_ERROR, _INFO = 3, 1


def session_options(plan: Plan, profile: str) -> tuple[Any, dict[str, Any]]:
    """Return ONNX Runtime's options, and what was set by its name in the contract."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    modes, levels = onnxruntime.ExecutionMode, onnxruntime.GraphOptimizationLevel
    choices = {
        "execution_mode": {"sequential": modes.ORT_SEQUENTIAL, "parallel": modes.ORT_PARALLEL},
        "graph_optimization_level": {
            "disabled": levels.ORT_DISABLE_ALL,
            "basic": levels.ORT_ENABLE_BASIC,
            "extended": levels.ORT_ENABLE_EXTENDED,
            "all": levels.ORT_ENABLE_ALL,
        },
    }
    told: dict[str, Any] = dict(plan.options)
    for name, text in plan.options.items():
        if "." in name:
            options.add_session_config_entry(name, text)
        elif name in choices:
            setattr(options, name, choices[name][text])
        else:
            told[name] = text == "1" if name.startswith("enable_") else int(text)
            setattr(options, name, told[name])
    options.log_severity_level = _ERROR
    if profile:
        options.enable_profiling, options.profile_file_prefix = True, profile
        options.log_severity_level = _INFO
    return options, told


def _provider_options(plan: Plan, provider: str) -> dict[str, str]:
    """Return the provider's options: those given, and what makes it as the other runtimes are."""
    options = {entry.name: entry.text for entry in plan.of(Role.PROVIDER_OPTION)}
    if provider == "openvino":
        # It has threads of its own, which know nothing of the session's.
        options.setdefault("device_type", "CPU")
        if "intra_op_num_threads" in plan.options:
            options.setdefault("num_of_threads", plan.options["intra_op_num_threads"])
    if provider == "tensorrt":
        # TF32 is on by default and is not float32; the provider has no option for it.
        os.environ["NVIDIA_TF32_OVERRIDE"] = "0"
    return options


class Session:
    """One session and what is known of it; a program adds `step`.

    Raises BadInput for a model that cannot be read, Skip when the provider is not there.
    """

    def __init__(self, plan: Plan, model: str, profile: str = "") -> None:
        import onnxruntime

        onnxruntime.set_default_logger_severity(_ERROR)
        name = plan.text(Role.PROVIDER)
        provider = PROVIDERS[name]
        if provider not in onnxruntime.get_available_providers():
            raise Skip(f"this build of ONNX Runtime has no {provider}")
        options, told = session_options(plan, profile)
        for_provider, not_set = _provider_options(plan, name), []
        if for_provider and name == "cpu":
            for_provider, not_set = {}, ["provider_options"]
        if for_provider:
            told["provider_options"] = for_provider
        wanted: list[Any] = [(provider, for_provider)]
        if name == "tensorrt":
            wanted.append(PROVIDERS["cuda"])
        if name != "cpu":
            wanted.append("CPUExecutionProvider")
        self.results: list[Any] = []
        begin = time.monotonic_ns()
        try:
            session = onnxruntime.InferenceSession(model, options, providers=wanted)
        except Exception as error:
            # onnxruntime's exceptions are internal classes: told apart by name, `Fail` by its text.
            kind = type(error).__name__
            if kind in _BAD_MODEL or (kind == "Fail" and "ModelProto" in str(error)):
                raise BadInput(f"{model}: {error}") from error
            raise
        session_ns = time.monotonic_ns() - begin
        # Without this `run` answers a provider that fails by a session on another one.
        session.disable_fallback()
        if provider not in session.get_providers():
            raise Skip(f"{provider} did not load; ONNX Runtime fell back to the CPU")
        self.session, self.on_gpu = session, name in ("cuda", "tensorrt")
        self.output_names = [value.name for value in session.get_outputs()]
        self.bfloat16 = {v.name for v in (*session.get_inputs(), *session.get_outputs()) if "bfloat16" in v.type}
        self.facts: dict[str, Any] = {
            "runtime_version": onnxruntime.__version__,
            "build_info": onnxruntime.get_build_info(),
            "provider_used": name,
            "session_options": told,
            "options_not_set": not_set,
            "run_includes": [],
            "session_ns": session_ns,
        }

    def end_profile(self) -> str:
        """Return the file of the profile."""
        return str(self.session.end_profiling())

    def ort_values(self, feed: dict[str, np.ndarray]) -> dict[str, Any]:
        """Make ONNX Runtime's values over the arrays; bfloat16 is given as its bits."""
        import onnxruntime

        make = onnxruntime.OrtValue
        if texts := sorted(name for name, array in feed.items() if array.dtype.kind in "OUS"):
            raise Unsupported(f"Python's OrtValue cannot hold texts, as of {', '.join(texts)}")
        return {
            name: make.ortvalue_from_numpy_with_onnx_type(array, BFLOAT16)
            if name in self.bfloat16
            else make.ortvalue_from_numpy(array)
            for name, array in feed.items()
        }


def bits_of(value: Any) -> np.ndarray:
    """Copy a bfloat16 tensor of ONNX Runtime out as uint16: numpy has no such type."""
    shape, size = value.shape(), value.tensor_size_in_bytes()
    if value.data_type() != "tensor(bfloat16)":
        raise Unsupported(f"output is {value.data_type()}, expected tensor(bfloat16)")
    raw = ctypes.string_at(value.data_ptr(), size) if size else b""
    return np.frombuffer(raw, dtype="<u2").reshape(shape)


class Sessions:
    """A session for each graph of a training step; a program adds `run` and `state`."""

    def __init__(self, plan: Plan) -> None:
        for entry in (*plan.of(Role.STATE), *plan.of(Role.DATA)):
            if entry.dtype in (BFLOAT16, STRING):
                raise Unsupported(f"'{entry.name}': Python trains with no tensors of bfloat16 or string")
        self._graphs = plan.graphs
        self._sessions = {name: Session(plan, graph.file) for name, graph in self._graphs.items()}
        self._metrics = list(plan.of(Role.METRIC))
        state = {entry.number for entry in plan.of(Role.STATE)}
        # Of each graph the state that it changes, and the outputs with the next values.
        self._nexts = {
            name: {link: end for end, link in graph.gives.items() if link in state}
            for name, graph in self._graphs.items()
        }
        self.facts = self._sessions["step"].facts
        self.facts["session_ns"] = sum(session.facts["session_ns"] for session in self._sessions.values())
        self.metrics: list[float] = []
