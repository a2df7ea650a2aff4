"""What an ONNX file takes and gives: names, types and shapes of its ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transect.domain.errors import BadInput
from transect.domain.files import while_unchanged
from transect.onnx_models.tensors import DTYPES


@dataclass(frozen=True, kw_only=True, slots=True)
class End:
    """An input or an output. `dtype`: of a tensor, "" for what is none. `kind`: the whole type in words.

    An axis is its length, or None where it may vary; `shape` is None where the rank is not told.
    """

    name: str
    dtype: str
    kind: str
    shape: tuple[int | None, ...] | None
    optional: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelEnds:
    """Inputs that a run needs, those that have a value of their own, and the outputs in order."""

    inputs: Mapping[str, End]
    defaults: Mapping[str, End]
    outputs: tuple[End, ...]


@while_unchanged
def model_ends(path: Path) -> ModelEnds:
    """Read the ends of a file, which is there. Raises BadInput for one that is no ONNX model."""
    import onnx

    try:
        graph = onnx.load(str(path), load_external_data=False).graph
    except Exception as error:
        # The parser's exceptions are of protobuf's own classes, which differ between its builds.
        raise BadInput(f"{path}: is no ONNX model ({type(error).__name__}: {error})") from None
    if not graph.output:
        raise BadInput(f"{path}: is no ONNX model: it has no outputs")
    given = {i.name for i in graph.initializer} | {i.values.name for i in graph.sparse_initializer}
    ends = {value.name: _end(value) for value in graph.input}
    return ModelEnds(
        inputs={name: end for name, end in ends.items() if name not in given},
        defaults={name: end for name, end in ends.items() if name in given},
        outputs=tuple(_end(value) for value in graph.output),
    )


def _end(value: Any) -> End:
    kind, tensor = _kind(value.type), value.type.tensor_type
    dtype, shape = "", None
    if value.type.WhichOneof("value") == "tensor_type":
        dtype = kind.removeprefix("tensor(").removesuffix(")")
        if tensor.HasField("shape"):
            shape = tuple(axis.dim_value if axis.HasField("dim_value") else None for axis in tensor.shape.dim)
    optional = value.type.WhichOneof("value") == "optional_type"
    return End(name=value.name, dtype=dtype, kind=kind, shape=shape, optional=optional)


_TYPES = {"float": "float32", "double": "float64"}


def _kind(of: Any) -> str:
    """Return a type in words, as `sequence(map(int64,float32))`."""
    import onnx

    def element(code: int) -> str:
        name = str(onnx.TensorProto.DataType.Name(code)).lower()
        return _TYPES.get(name, name)

    form = of.WhichOneof("value")
    if form == "sequence_type":
        return f"sequence({_kind(of.sequence_type.elem_type)})"
    if form == "optional_type":
        return f"optional({_kind(of.optional_type.elem_type)})"
    if form == "map_type":
        value = _kind(of.map_type.value_type).removeprefix("tensor(").removesuffix(")")
        return f"map({element(of.map_type.key_type)},{value})"
    if form is None:
        return "unknown"
    inner = element(getattr(of, form).elem_type)
    return f"{form.removesuffix('_type')}({inner})"


def check_inputs(ends: ModelEnds, given: Mapping[str, tuple[str, tuple[int, ...]]], batch: int, where: str) -> None:
    """Raise BadInput unless these are inputs of the model: dtype and shape by name.

    With a `batch` the first axis is rows that are cut into batches, of which the last may be partial.
    """
    takes = {**ends.inputs, **ends.defaults}
    if strange := sorted(given.keys() - takes.keys()):
        raise BadInput(f"{where}: the model has no input '{strange[0]}', it takes {', '.join(takes) or 'none'}")
    missing = [name for name, end in ends.inputs.items() if name not in given and not end.optional]
    if missing:
        raise BadInput(f"{where}: the model needs {', '.join(missing)}, which is not given")
    for name, (dtype, shape) in given.items():
        end = takes[name]
        if dtype != end.dtype and not end.optional:
            raise BadInput(f"{where}: input '{name}' is {dtype}, the model takes {end.kind}")
        if end.shape is None:
            continue
        sizes = {batch, shape[0] % batch or batch} if batch else {shape[0] if shape else 0}
        fits = len(shape) == len(end.shape) and all(
            wanted is None or (wanted in sizes and len(sizes) == 1 if axis == 0 and batch else wanted == held)
            for axis, (wanted, held) in enumerate(zip(end.shape, shape, strict=True))
        )
        if not fits:
            of = f" in batches of {' and '.join(map(str, sorted(sizes, reverse=True)))}" if batch else ""
            model = ", ".join("?" if axis is None else str(axis) for axis in end.shape)
            raise BadInput(f"{where}: input '{name}' has shape {list(shape)}{of}, the model takes [{model}]")


def check_outputs(ends: ModelEnds, where: str) -> None:
    """Raise BadInput for an output whose elements the contract does not have."""
    for end in ends.outputs:
        if end.dtype and end.dtype not in DTYPES:
            raise BadInput(f"{where}: output '{end.name}' is {end.dtype}, expected one of {', '.join(DTYPES)}")
