"""Whether an ONNX file computes what a torch module does, output by output, within a derived tolerance."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from transect.domain.errors import BadInput
from transect.onnx_models.accumulation import IMPRECISE, imprecise_outputs, longest_accumulation, made_tolerances
from transect.onnx_models.comparison import other_kind
from transect.onnx_models.inspection import computes, costs_of
from transect.onnx_models.running import open_session, run_session
from transect.onnx_models.tensors import NoTensor

if TYPE_CHECKING:
    import torch

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True, kw_only=True, slots=True)
class Compared:
    """One output of the file beside torch's: where they are farthest apart for their tolerance, and in which run.

    `deviation` is an absolute difference, of integers the share that differs, and infinite where one of the two is not
    finite. `problem`: why there is none.
    """

    name: str
    run: str
    deviation: float = math.inf
    tolerance: float = 0.0
    at: tuple[int, ...] = ()
    found: str = ""
    wanted: str = ""
    problem: str = ""

    @property
    def faithful(self) -> bool:
        """Whether the difference is one that rounding explains."""
        return not self.problem and self.deviation <= self.tolerance

    @property
    def badness(self) -> float:
        """How many times its tolerance the deviation is."""
        if self.problem:
            return math.inf
        return self.deviation / self.tolerance if self.tolerance else math.inf if self.deviation else 0.0


@dataclass(kw_only=True, slots=True)
class Faithfulness:
    """All outputs, in the file's order; what could not be asked, and the inputs of the first run."""

    outputs: list[Compared]
    runs: list[str]
    inputs: Arrays
    # Whether the module takes them by their names.
    named: bool
    notes: list[str] = field(default_factory=list)

    @property
    def faithful(self) -> bool:
        """Whether every output is."""
        return all(output.faithful for output in self.outputs)


def check_faithful(path: Path, module: torch.nn.Module, given: Sequence[np.ndarray] | Arrays) -> Faithfulness:
    """Compare a file with a module that is in evaluation mode on the CPU; `given`: inputs by name or in their order.

    Where the file leaves the number of rows open, also on one row and on twice as many: a size may be baked in.
    Raises BadInput for a file, module or inputs that cannot be used.
    """
    session, graph = _opened(path)
    inputs = _by_name(path, [end.name for end in session.get_inputs()], given)
    longest, does = longest_accumulation(graph), computes(costs_of(graph))
    names = [end.name for end in session.get_outputs()]
    worst: dict[str, Compared] = {}
    # Names that a person chose when exporting say nothing of the order of an example.
    named = isinstance(given, Mapping) and _takes(module, inputs)
    made = Faithfulness(outputs=[], runs=[], inputs=inputs, named=named)
    _check_repeats(module, inputs, named)
    for run, arrays in _runs(session, inputs):
        try:
            wanted = outputs_of(module, arrays, named)
        except BadInput as error:
            if not made.runs:
                raise
            made.notes.append(f"not compared on {run}: {error}")
            continue
        if len(wanted) != len(names):
            raise BadInput(f"{path}: has the outputs {', '.join(names)}: expected {len(wanted)}, as the module gives")
        if not made.runs:
            if not any(value.size for value in wanted):
                raise BadInput("the module's outputs are empty on these inputs: expected values that can be compared")
            made.notes += [
                f"{name}: empty, all zero or not finite, which tells little"
                for name, value in zip(names, wanted, strict=True)
                if not (value.any() and np.isfinite(value).any())
            ]
        made.runs.append(run)
        exact = exact_outputs(module, arrays, named)
        if exact is not None and [one.shape for one in exact] != [one.shape for one in wanted]:
            exact = None
        if exact is None and len(made.runs) == 1:
            made.notes.append(
                "the module does not run in float64: its own error is taken to be that of its longest sum"
            )
        for compared in _beside(session, run, arrays, dict(zip(names, wanted, strict=True)), exact, longest, does):
            known = worst.get(compared.name)
            if known is None or compared.badness > known.badness:
                worst[compared.name] = compared
    made.outputs = [worst[name] for name in names]
    return made


def _opened(path: Path) -> tuple[Any, Any]:
    """Return a session of the file, and its graph with shapes."""
    import onnx

    try:
        model = onnx.load(str(path))
        session = open_session(path)
    except Exception as error:
        raise BadInput(f"{path}: ONNX Runtime does not open it: {first_line(error)}") from None
    try:
        model = onnx.shape_inference.infer_shapes(model)
    except Exception:
        # Beyond 2 GB, or not valid in all: longest sums are then those of the shapes that it tells.
        return session, model.graph
    return session, model.graph


def _by_name(path: Path, names: Sequence[str], given: Sequence[np.ndarray] | Arrays) -> dict[str, np.ndarray]:
    if isinstance(given, Mapping):
        if set(given) != set(names):
            raise BadInput(f"{path}: has the inputs {', '.join(names)}: expected these, found {', '.join(given)}")
        return {name: given[name] for name in names}
    if len(given) != len(names):
        raise BadInput(
            f"{path}: has the inputs {', '.join(names)}: expected {len(names)}, the example has {len(given)}"
        )
    return dict(zip(names, given, strict=True))


def _runs(session: Any, inputs: Arrays) -> list[tuple[str, Arrays]]:
    runs: list[tuple[str, Arrays]] = [("the inputs as given", inputs)]
    rows = {array.shape[0] if array.ndim else 0 for array in inputs.values()}
    if (
        len(rows) == 1
        and (amount := rows.pop())
        and all(isinstance((*e.shape, 0)[0], str) for e in session.get_inputs())
    ):
        if amount > 1:
            runs.append(("their first row", {name: array[:1] for name, array in inputs.items()}))
        runs.append(("twice their rows", {name: np.concatenate([array, array]) for name, array in inputs.items()}))
    return runs


def _check_repeats(module: torch.nn.Module, inputs: Arrays, named: bool) -> None:
    """Raise BadInput for a module that computes something else each time."""
    first, second = (outputs_of(module, inputs, named) for _ in range(2))
    if not all(map(_equal, first, second)):
        raise BadInput(
            "the module gives other outputs when it runs again: expected the same, without random numbers or state"
        )


def _equal(a: np.ndarray, b: np.ndarray) -> bool:
    return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def outputs_of(module: torch.nn.Module, inputs: Arrays, named: bool) -> list[np.ndarray]:
    """Return all tensors that a module gives, in the order in which an exporter names them; `named`: it takes inputs by name."""
    import torch
    from torch.utils._pytree import tree_leaves

    try:
        tensors = {name: torch.from_numpy(np.array(array)) for name, array in inputs.items()}
        with torch.inference_mode():
            made = module(**tensors) if named else module(*tensors.values())
        return [leaf.numpy() for leaf in tree_leaves(made) if leaf is not None]
    except Exception as error:
        raise BadInput(
            f"the module does not run on these inputs: {type(error).__name__}: {first_line(error)}"
        ) from None


def _takes(module: torch.nn.Module, names: Mapping[str, Any]) -> bool:
    import inspect

    try:
        parameters = inspect.signature(module.forward).parameters.values()
    except (TypeError, ValueError):
        return False
    by_name = {one.name for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)}
    return set(names) <= by_name


def exact_outputs(module: torch.nn.Module, inputs: Arrays, named: bool) -> list[np.ndarray] | None:
    """Return what a module gives in float64; None where it does not run there."""
    try:
        return outputs_of(*in_double(module, inputs), named)
    except Exception:
        return None


def in_double(module: torch.nn.Module, inputs: Arrays) -> tuple[torch.nn.Module, Arrays]:
    """Return a copy of a module and its inputs in float64; raises whatever copying raises."""
    wide = {n: array.astype(np.float64) if array.dtype.kind == "f" else array for n, array in inputs.items()}
    return copy.deepcopy(module).double(), wide


def _beside(
    session: Any, run: str, inputs: Arrays, wanted: Arrays, exact: Sequence[np.ndarray] | None, longest: int, does: bool
) -> list[Compared]:
    try:
        found = run_session(session, inputs)
    except Exception as error:
        if run == "the inputs as given":
            raise BadInput(f"ONNX Runtime does not run the file on these inputs: {first_line(error)}") from None
        why = f"ONNX Runtime fails: {first_line(error)}"
        return [Compared(name=name, run=run, problem=why) for name in wanted]
    known = None if exact is None else dict(zip(wanted, exact, strict=True))
    pairs, kept = {}, {}
    made = []
    for name, expected in wanted.items():
        if mismatch := other_kind(name, found[name], expected):
            made.append(Compared(name=name, run=run, problem=mismatch))
            continue
        given = found[name]
        assert not isinstance(given, NoTensor)
        pairs[name] = given, expected
        if not expected.size:
            continue
        finite = np.ones(expected.shape, bool)
        for side in (expected, *([] if known is None else [known[name]])):
            finite &= np.isfinite(side) if side.dtype.kind == "f" else True
        # What is not finite has no scale and no error.
        kept[name] = np.where(finite, expected, 0), None if known is None else np.where(finite, known[name], 0)
    ours = {name: value for name, (value, _) in kept.items()}
    double = None if known is None else {name: value for name, (_, value) in kept.items() if value is not None}
    if far := imprecise_outputs(ours, double, longest):
        name, times = next(iter(far.items()))
        raise BadInput(
            f"output {name!r}: the module's own distance to float64 is {times:.3g} times what its longest sum explains: "
            f"expected at most {IMPRECISE}, as of a module that computes in float32"
        )
    tolerances = made_tolerances(ours, double, longest, computes=does)
    return made + [_farthest(name, run, *both, tolerances.get(name, 0.0)) for name, both in pairs.items()]


def _farthest(name: str, run: str, found: np.ndarray, wanted: np.ndarray, tolerance: float) -> Compared:
    if not wanted.size:
        return Compared(name=name, run=run, deviation=0.0, tolerance=tolerance)
    if wanted.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            apart = np.abs(found.astype(np.float64) - wanted.astype(np.float64))
        alike = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
        apart = np.where(alike, 0.0, np.where(np.isfinite(apart), apart, np.inf))
        deviation = float(apart.max())
    else:
        apart = found != wanted
        deviation = float(apart.mean())
    at = np.unravel_index(int(apart.argmax()), apart.shape)
    return Compared(
        name=name,
        run=run,
        deviation=deviation,
        tolerance=tolerance,
        at=tuple(map(int, at)),
        found=str(found[at]),
        wanted=str(wanted[at]),
    )


def first_line(error: BaseException) -> str:
    """Return what an error says first."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
