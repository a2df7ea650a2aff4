"""What `manifest.json` of a portable step says: all that a program needs to know of its graphs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from transect.domain.errors import BadInput

FORMAT, VERSION, MANIFEST = "transect-portable-step", 1, "manifest.json"
ROLES = ("counter", "parameter", "frozen", "buffer", "optimiser", "accumulator", "anchor")
DTYPES = ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool")
GRAPHS = {"step", "accumulate", "eval", "infer"}

Axis = int | str


@dataclass(frozen=True, kw_only=True, slots=True)
class Data:
    """A tensor of a batch; an axis is its length or, where it may vary, its name."""

    name: str
    dtype: str
    shape: tuple[Axis, ...]
    target: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Hyper:
    """A hyper-parameter: a scalar input with a default."""

    name: str
    dtype: str
    default: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Seed:
    """The input from which random masks follow, with the counter."""

    name: str
    dtype: str


@dataclass(frozen=True, kw_only=True, slots=True)
class StateTensor:
    """A tensor that goes from step to step; `next` is the output with its next value, or None."""

    name: str
    role: str
    dtype: str
    shape: tuple[int, ...]
    next: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Metric:
    """A scalar output, a mean over the batch."""

    name: str
    dtype: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Output:
    """An output of `infer.onnx`."""

    name: str
    dtype: str
    shape: tuple[Axis, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Graph:
    """A file and the names of what goes in and out, in the graph's order."""

    file: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Checked:
    """How the graphs were compared with PyTorch at the export: the runtime, and the lengths of axes.

    `lengths`: those of each axis that may vary. `unchecked`: what was not compared and why, or None.
    """

    runtime: str | None
    lengths: Mapping[str, tuple[int, ...]]
    unchecked: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Manifest:
    """The whole file. `step_graph`: SHA-256 of `step.onnx`, by which a state names its step.

    `checked` is None in folders that were written before there was such a check.
    """

    step_graph: str
    state_file: str
    data: tuple[Data, ...]
    hyper: tuple[Hyper, ...]
    seed: Seed | None
    state: tuple[StateTensor, ...]
    metrics: tuple[Metric, ...]
    outputs: tuple[Output, ...]
    graphs: Mapping[str, Graph]
    checked: Checked | None = None

    def to_json(self) -> str:
        """Return the file's text."""
        facts = {"format": FORMAT, "version": VERSION, **dataclasses.asdict(self)}
        if self.checked is None:
            del facts["checked"]
        return json.dumps(facts, indent=1, allow_nan=False) + "\n"


def read_manifest(folder: Path) -> Manifest:
    """Read and check the manifest of a step's folder; raises BadInput that names what is wrong."""
    path = folder / MANIFEST
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; expected the folder of a portable step") from None
    except (ValueError, OSError) as error:
        raise BadInput(f"{path}: {error}; expected a portable step's manifest in JSON") from None
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise BadInput(f'{path}: expected "format": "{FORMAT}"')
    if facts.get("version") != VERSION:
        raise BadInput(f"{path}: version {facts.get('version')!r}, this program reads {VERSION}")
    try:
        manifest: Manifest = _build(Manifest, {k: v for k, v in facts.items() if k not in ("format", "version")})
        _check(manifest)
    except ValueError as error:
        raise BadInput(f"{path}: {error}") from None
    return manifest


def _build(kind: Any, value: Any, where: str = "") -> Any:
    """Make a value of a field's type out of JSON; raises ValueError that says where it is not."""
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        needed = {field.name for field in dataclasses.fields(kind) if field.default is dataclasses.MISSING}
        if not isinstance(value, dict) or not needed <= set(value) <= set(hints):
            given = sorted(value) if isinstance(value, dict) else type(value).__name__
            raise ValueError(f"{where or 'the whole'}: expected the keys {sorted(hints)}, got {given}")
        fields = {k: _build(hints[k], v, f"{where}.{k}".lstrip(".")) for k, v in value.items()}
        return kind(**fields)  # type: ignore[operator]
    if get_origin(kind) is tuple and isinstance(value, list):
        return tuple(_build(get_args(kind)[0], v, f"{where}[{i}]") for i, v in enumerate(value))
    if get_origin(kind) is Mapping and isinstance(value, dict):
        return {k: _build(get_args(kind)[1], v, f"{where}.{k}") for k, v in value.items()}
    for member in get_args(kind) or (kind,):
        if dataclasses.is_dataclass(member) and isinstance(value, dict):
            return _build(member, value, where)
        number = member is float and type(value) is int
        if number or (isinstance(member, type) and type(value) is member):
            return float(value) if number else value
    raise ValueError(f"{where}: {value!r} is not of the type that the format says")


def _check(manifest: Manifest) -> None:
    """Names, roles and dtypes hang together; raises ValueError that names the first that does not."""
    ends: tuple[Data | StateTensor | Metric | Output, ...] = (
        *manifest.data,
        *manifest.state,
        *manifest.metrics,
        *manifest.outputs,
    )
    for entry in ends:
        if entry.dtype not in DTYPES:
            raise ValueError(f"{entry.name}: dtype {entry.dtype!r}, expected one of {', '.join(DTYPES)}")
    for tensor in manifest.state:
        if tensor.role not in ROLES:
            raise ValueError(f"{tensor.name}: role {tensor.role!r}, expected one of {', '.join(ROLES)}")
    if [tensor.name for tensor in manifest.state if tensor.role == "counter"] != ["step"]:
        raise ValueError('state: expected one tensor with the role "counter", named "step"')
    if not manifest.metrics or manifest.metrics[0].name != "loss":
        raise ValueError('metrics: the first is expected to be "loss"')
    missing, unknown = ({"step", "eval", "infer"} - set(manifest.graphs), set(manifest.graphs) - GRAPHS)
    if missing or unknown:
        raise ValueError(f"graphs: expected step, eval, infer and perhaps accumulate, got {sorted(manifest.graphs)}")
    seeds = (manifest.seed,) if manifest.seed else ()
    names = [entry.name for entry in (*manifest.data, *manifest.hyper, *seeds, *manifest.state)]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"{sorted(twice)[0]}: two inputs have this name")
    for key, graph in manifest.graphs.items():
        if strange := [name for name in graph.inputs if name not in names]:
            raise ValueError(f"graphs.{key}.inputs: {strange[0]} is no data, hyper-parameter or state")
    outputs = manifest.graphs["step"].outputs
    made = [entry.next for entry in manifest.state if entry.next] + [entry.name for entry in manifest.metrics]
    if lost := [name for name in made if name not in outputs]:
        raise ValueError(f"graphs.step.outputs: {lost[0]} is not there")
