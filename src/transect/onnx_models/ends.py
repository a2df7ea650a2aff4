"""What an ONNX file takes and gives: names, types and shapes of its ends."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transect.domain.errors import BadInput
from transect.domain.files import while_unchanged
from transect.onnx_models.tensors import DTYPES


@dataclass(frozen=True, kw_only=True, slots=True)
class End:
    """An input or an output. `dtype`: of a tensor, "" for what is none. `kind`: the whole type in words.

    An axis is its length, the name of one that may vary, or None; `shape` is None where the rank is not told.
    """

    name: str
    dtype: str
    kind: str
    shape: tuple[int | str | None, ...] | None
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
    graph: dict[int, list[Any]] = {}
    version = 0
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            whole = memoryview(mapped)
            try:
                graph, version = _read_graph(whole), _first(whole, _IR_VERSION, 0)
            finally:
                whole.release()
    except (OSError, ValueError, IndexError, UnicodeDecodeError, RecursionError, BufferError) as error:
        raise BadInput(f"{path}: is no ONNX model ({type(error).__name__}: {error})") from None
    given = set(graph[_INITIALIZER])
    return ModelEnds(
        inputs={end.name: end for end in graph[_INPUT] if end.name not in given},
        # Before version 4 a weight had to be among the inputs, and none could be given another value.
        defaults={end.name: end for end in graph[_INPUT] if end.name in given and version >= 4},
        outputs=tuple(graph[_OUTPUT]),
    )


# Fields of onnx.proto by number: the driver has no onnx, and of a file of weights only the ends are read.
_IR_VERSION, _GRAPH, _INITIALIZER, _INPUT, _OUTPUT, _SPARSE = 1, 7, 5, 11, 12, 15
_FORMS = {1: "tensor", 4: "sequence", 5: "map", 8: "sparse_tensor", 9: "optional"}
_NAMES = (
    "undefined float32 uint8 int8 uint16 int16 int32 int64 string bool float16 float64 uint32 uint64 complex64 "
    "complex128 bfloat16 float8e4m3fn float8e4m3fnuz float8e5m2 float8e5m2fnuz uint4 int4 float4e2m1 float8e8m0 "
    "uint2 int2"
)
_DTYPES = dict(enumerate(_NAMES.split()))


def _fields(data: memoryview) -> Iterator[tuple[int, Any]]:
    """Yield the fields of a protobuf message: number, and a number or bytes. Raises ValueError for what is none."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind, size = key & 7, 0
        if kind == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        if kind == 2:
            size, at = _varint(data, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError(f"a field of kind {kind}")
        if at + size > len(data):
            raise ValueError(f"a field of {size} bytes ends behind the file")
        yield key >> 3, data[at : at + size]
        at += size


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
        if shift > 63:
            raise ValueError("a number of more than 64 bits")


def _first(data: memoryview, number: int, default: Any) -> Any:
    return next((value for found, value in _fields(data) if found == number), default)


def _text(value: Any) -> str:
    return bytes(value).decode()


def _read_graph(whole: memoryview) -> dict[int, list[Any]]:
    """Return ends by field, and of initializers their names. Raises ValueError where there is no graph."""
    found: dict[int, list[Any]] = {_INITIALIZER: [], _INPUT: [], _OUTPUT: []}
    for number, value in _fields(_first(whole, _GRAPH, b"")):
        if number in (_INPUT, _OUTPUT):
            found[number].append(_end(value))
        elif number in (_INITIALIZER, _SPARSE):
            tensor = value if number == _INITIALIZER else _first(value, 1, b"")
            found[_INITIALIZER].append(_text(_first(tensor, 8, b"")))
    if not found[_OUTPUT]:
        raise ValueError("a model without outputs")
    return found


def _end(value: memoryview) -> End:
    name, of = _text(_first(value, 1, b"")), _first(value, 2, memoryview(b""))
    kind, dtype, shape = _kind(of), "", None
    form, inside = next(_fields(of), (0, memoryview(b"")))
    if _FORMS.get(form) == "tensor":
        dtype = kind.removeprefix("tensor(").removesuffix(")")
        axes = _first(inside, 2, None)
        if axes is not None:
            shape = tuple(_axis(axis) for number, axis in _fields(axes) if number == 1)
    return End(name=name, dtype=dtype, kind=kind, shape=shape, optional=_FORMS.get(form) == "optional")


def _axis(axis: memoryview) -> int | str | None:
    number, value = next(_fields(axis), (0, 0))
    if number == 1:
        # Negative, as some exporters write what may vary.
        return value if value < 2**63 else None
    return _text(value) or None if number == 2 else None


def _kind(of: memoryview) -> str:
    """Return a type in words, as `sequence(map(int64,float32))`."""
    for number, inside in _fields(of):
        form = _FORMS.get(number)
        if form in ("sequence", "optional"):
            return f"{form}({_kind(_first(inside, 1, memoryview(b'')))})"
        if form == "map":
            value = _kind(_first(inside, 2, memoryview(b""))).removeprefix("tensor(").removesuffix(")")
            return f"map({_dtype(inside)},{value})"
        if form is not None:
            return f"{form}({_dtype(inside)})"
    return "unknown"


def _dtype(inside: memoryview) -> str:
    code = _first(inside, 1, 0)
    return _DTYPES.get(code, f"type {code}")


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
            not isinstance(wanted, int)
            or (wanted in sizes and len(sizes) == 1 if axis == 0 and batch else wanted == held)
            for axis, (wanted, held) in enumerate(zip(end.shape, shape, strict=True))
        )
        if not fits:
            of = f" in batches of {' and '.join(map(str, sorted(sizes, reverse=True)))}" if batch else ""
            model = ", ".join(str(axis) if isinstance(axis, int) else "?" for axis in end.shape)
            raise BadInput(f"{where}: input '{name}' has shape {list(shape)}{of}, the model takes [{model}]")


def output_shape(
    end: End, ends: ModelEnds, given: Mapping[str, tuple[str, tuple[int, ...]]], batch: int
) -> tuple[int, ...]:
    """Return what is known of an output's shape before a run: the inputs tell the sizes of named axes.

    -1 stands for an axis that is not known, as the rows of a `batch`, and alone for an unknown rank.
    """
    sizes: dict[str, int] = {}
    for name, (_, held) in given.items():
        axes = {**ends.inputs, **ends.defaults}[name].shape or ()
        sizes |= {
            axis: size
            for axis, size in list(zip(axes, held, strict=False))[1 if batch else 0 :]
            if isinstance(axis, str)
        }
    if end.shape is None:
        return (-1,)
    return tuple(axis if isinstance(axis, int) else sizes.get(axis or "", -1) for axis in end.shape)


def check_outputs(ends: ModelEnds, where: str) -> None:
    """Raise BadInput for an output whose elements the contract does not have."""
    for end in ends.outputs:
        if end.dtype and end.dtype not in DTYPES:
            raise BadInput(f"{where}: output '{end.name}' is {end.dtype}, expected one of {', '.join(DTYPES)}")
