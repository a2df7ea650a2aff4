"""A case's gradients and path against PyTorch: in float64, and in float32 by a stock ONNX Runtime.

Runs in an environment with torch, onnx and onnxruntime.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime
import torch
from onnx import ModelProto

from step_coverage.case import Case
from step_coverage.paths import SLACK, UNIT, Tensors, arguments_of, path_excess, step_of
from transect.portable_step.modules import ModuleStep
from transect.portable_step.tracing import make_graph, trace

# A batch of one, and one longer than that traced with.
BATCHES = (1, 7)
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What was found of a case; all but `operators` are largest values over batches and tensors.

    `float64`, `float32`: relative errors of gradients, loss and buffers. `framework`: that of
    PyTorch's own float32. `excess`: errors in float32 in units of what is tolerated, and `path` those
    of the losses of 100 steps (null without a rate): up to 1 is right.
    """

    name: str
    operators: tuple[str, ...]
    float64: float
    float32: float
    framework: float
    excess: float
    path: float | None


def check(case: Case, onnx: ModelProto | None = None) -> Checked:
    """Compare a case with PyTorch; `onnx` is its exported graph, made when not given."""
    module = case.module()
    exact = copy.deepcopy(module).double()
    step = step_of(case, exact)
    graph, names = _traced(case, step)
    model = onnx if onnx is not None else export(case, module)
    session = _session(model)
    errors = []
    for seed, batch in enumerate(_batches(case), start=1):
        given = arguments_of(case, module, batch, seed, "float32")
        # The same numbers in both: those of float32.
        doubled = {k: v.double() if v.is_floating_point() else v for k, v in given.items()}
        want = _eager(case, exact, doubled)
        found = dict(zip(names, _numpy(graph(*doubled.values())), strict=True))
        framework = _eager(case, module, given)
        noisy = list(_rounded(graph, names, doubled))
        runtime = _run(session, given)
        for key, value in want.items():
            errors.append(_Error.of(key, value, found, runtime, framework, noisy, _largest(want)))
    return Checked(
        name=case.name,
        operators=tuple(sorted({node.op_type for node in model.graph.node})),
        float64=max(error.float64 for error in errors),
        float32=max(error.float32 for error in errors),
        framework=max(error.framework for error in errors),
        excess=max(error.excess for error in errors),
        path=None if case.rate is None else path_excess(case, module, exact, session),
    )


def export(case: Case, module: torch.nn.Module) -> ModelProto:
    """Return the ONNX graph of loss, gradients and next buffers, of a module in its own dtype."""
    step = step_of(case, module)
    dtype = str(next(module.parameters()).dtype).removeprefix("torch.")
    given = arguments_of(case, module, case.batch, 0, dtype)
    return trace(module, step.gradients, given, _axes(step))


def runtime_error(case: Case) -> float:
    """Return by how much ONNX Runtime in float64 differs from PyTorch, relatively, for a batch not traced with."""
    module = case.module().double()
    session = _session(export(case, module))
    given = arguments_of(case, module, BATCHES[1], 1, "float64")
    found, want = _run(session, given), _eager(case, module, given)
    return max(_relative(found[key], value, _largest(want)) for key, value in want.items())


@dataclass(frozen=True, kw_only=True)
class _Error:
    """One tensor's errors."""

    float64: float
    float32: float
    framework: float
    excess: float

    @classmethod
    def of(
        cls,
        key: str,
        want: np.ndarray,
        found: Arrays,
        runtime: Arrays,
        framework: Arrays,
        noisy: list[Arrays],
        largest: float,
    ) -> _Error:
        if not want.size:
            return cls(float64=0.0, float32=0.0, framework=0.0, excess=0.0)
        # From the graph's own result: what is wrong in it must not widen what is tolerated.
        rounding = [_distance(framework[key], want), *(_distance(n[key], found[key]) for n in noisy)]
        tolerated = SLACK * max(*rounding, UNIT * float(np.abs(want).max()), 1e-38)
        return cls(
            float64=_relative(found[key], want, largest),
            float32=_relative(runtime[key], want, largest),
            framework=_relative(framework[key], want, largest),
            excess=_distance(runtime[key], want) / tolerated,
        )


def _distance(found: np.ndarray, want: np.ndarray) -> float:
    """Return the largest difference, infinite for another shape or a NaN."""
    if found.shape != want.shape:
        return float("inf")
    far = float(np.abs(found.astype(np.float64) - want.astype(np.float64)).max(initial=0.0))
    return far if far == far else float("inf")


def _largest(want: Mapping[str, np.ndarray]) -> float:
    """Return the largest number of all gradients."""
    gradients = [v for k, v in want.items() if k.startswith("gradient.")]
    return float(max(np.abs(v).max(initial=0.0) for v in gradients))


def _relative(found: np.ndarray, want: np.ndarray, largest: float) -> float:
    """Return the largest difference over the largest number of the tensor.

    A bias before a norm has the gradient 0, up to rounding, and so has a mean behind one: no tensor
    counts as smaller than a thousandth of the largest gradient.
    """
    scale = max(float(np.abs(want).max(initial=0.0)), 1e-3 * largest)
    far = _distance(found, want)
    return far / scale if far else 0.0


def _axes(step: ModuleStep) -> dict[str, dict[int, str]]:
    return {name: {0: "batch"} for name in step.data}


def _batches(case: Case) -> tuple[int, ...]:
    return (case.batch, *(n for n in BATCHES if n >= case.least_batch)) if case.rate else (case.batch,)


def _traced(case: Case, step: ModuleStep) -> tuple[torch.fx.GraphModule, list[str]]:
    given = arguments_of(case, step.module, case.batch, 0, "float64")
    return make_graph(step.module, step.gradients, given, _axes(step))


def _eager(case: Case, module: torch.nn.Module, given: Tensors) -> Arrays:
    """Return loss, gradients and next buffers as PyTorch itself computes them."""
    fresh = copy.deepcopy(module)
    step = step_of(case, fresh)
    loss = case.loss(fresh(*(given[name] for name in step.data[:-1])), given["y"])
    loss.backward()
    found = {"loss": loss.detach().numpy()}
    found |= {f"gradient.model.{n}": p.grad.numpy() for n, p in fresh.named_parameters()}
    return found | {f"next.model.{n}": b.detach().numpy() for n, b in fresh.named_buffers()}


def _numpy(values: Any) -> list[np.ndarray]:
    return [value.detach().numpy() for value in values]


def _rounded(graph: torch.fx.GraphModule, names: list[str], given: Tensors, count: int = 3) -> Iterator[Arrays]:
    """Run the graph in float64 with each operator's results off by up to a rounding of float32.

    How far the outputs move is what float32 may cost (stochastic arithmetic; Parker, UCLA 1997).
    """
    generator = torch.Generator().manual_seed(11)

    class Rounding(torch.fx.Interpreter):
        def run_node(self, n: torch.fx.Node) -> Any:
            return torch.utils._pytree.tree_map(off, super().run_node(n))

    def off(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            return value
        noise = torch.rand(value.shape, generator=generator, dtype=value.dtype)
        return value * (1 + UNIT * (2 * noise - 1))

    for _ in range(count):
        made = Rounding(graph).run(*given.values())
        yield dict(zip(names, _numpy(made), strict=True))


def _session(model: ModelProto) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _run(session: Any, given: Tensors) -> Arrays:
    fed = {value.name: given[value.name].numpy() for value in session.get_inputs()}
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(None, fed), strict=True))
