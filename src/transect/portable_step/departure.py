"""Where an ONNX file leaves its module: the last part whose output the file still has, and the first after it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from transect.onnx_models.accumulation import longest_accumulation, made_tolerances
from transect.portable_step.faithful import Arrays, in_double, outputs_of

if TYPE_CHECKING:
    import torch

# Of all values of a file of more nodes there are too many to hold.
_MAX_NODES = 4000


@dataclass(frozen=True, kw_only=True, slots=True)
class Departure:
    """`last` agrees, or is empty where none does; `first` does not, and is empty behind the module's last part.

    `operators` read the output of `last` in the file.
    """

    last: str
    first: str
    operators: tuple[str, ...]


def departure(path: Path, module: torch.nn.Module, inputs: Arrays, named: bool) -> Departure | None:
    """Find where the two part, by the values in them; None where no part tells, or the file is too large.

    A value of the file is a part's output where it lies within the tolerance of that part. A part may have no value of its
    own in a right file, as where a convolution is folded with its norm: so the last one that agrees counts.
    """
    parts = _part_outputs(module, inputs, named)
    found = _values(path, inputs)
    if found is None or not parts:
        return None
    values, graph = found
    try:
        exact = dict(_part_outputs(*in_double(module, inputs), named))
    except Exception:
        exact = None
    tolerances = made_tolerances(dict(parts), exact, longest_accumulation(graph), computes=True)
    matched = [_match(output, values, tolerances[name]) for name, output in parts]
    last = max((place for place, name in enumerate(matched) if name is not None), default=-1)
    readers = [f"{node.op_type} {node.name!r}" for node in graph.node if last >= 0 and matched[last] in node.input]
    return Departure(
        last=parts[last][0] if last >= 0 else "",
        first=parts[last + 1][0] if last + 1 < len(parts) else "",
        operators=tuple(readers[:3]),
    )


def _part_outputs(module: torch.nn.Module, inputs: Arrays, named: bool) -> list[tuple[str, np.ndarray]]:
    """Run the module and return the output of each of its innermost parts, in the order in which they ran."""
    import torch

    made: list[tuple[str, np.ndarray]] = []
    seen = Counter[str]()

    def follow(name: str, part: torch.nn.Module) -> Any:
        def note(_: Any, __: Any, output: Any) -> None:
            seen[name] += 1
            if isinstance(output, torch.Tensor) and output.is_floating_point() and output.numel() > 1:
                again = f", run {seen[name]}" if seen[name] > 1 else ""
                made.append((f"{name} ({type(part).__name__}{again})", output.detach().numpy().copy()))

        return part.register_forward_hook(note)

    hooks = [
        follow(name, part) for name, part in module.named_modules() if name and not any(True for _ in part.children())
    ]
    try:
        outputs_of(module, inputs, named)
    finally:
        for hook in hooks:
            hook.remove()
    return made


def _values(path: Path, inputs: Arrays) -> tuple[dict[str, np.ndarray], Any] | None:
    """Return all values of a file, as it stands, with its graph."""
    import onnx
    import onnxruntime

    model = onnx.load(str(path))
    if len(model.graph.node) > _MAX_NODES:
        return None
    known = {value.name for value in model.graph.output}
    names = [name for node in model.graph.node for name in node.output if name]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in known)
    options = onnxruntime.SessionOptions()
    # Or what is joined with its neighbour has no value.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    # In the order in which they are computed.
    found = session.run(names, dict(inputs))
    return {n: v for n, v in zip(names, found, strict=True) if isinstance(v, np.ndarray)}, model.graph


def _match(output: np.ndarray, values: Arrays, tolerance: float) -> str | None:
    """Name the last value that is a part's output."""
    if not np.isfinite(output).all() or not np.ptp(output):
        # Zeros are like any other zeros.
        return None
    for name in reversed(list(values)):
        value = values[name]
        if value.shape == output.shape and value.dtype == output.dtype and np.abs(value - output).max() <= tolerance:
            return name
    return None
