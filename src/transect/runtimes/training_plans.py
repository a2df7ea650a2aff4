"""Plans of portable training steps: a state goes in, and the states of checkpoints come out."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.errors import BadInput
from transect.domain.files import sha256_file
from transect.onnx_models.ends import model_ends
from transect.portable_step.manifest import Graph, Manifest, StateTensor, read_manifest
from transect.portable_step.state import read_state
from transect.runtimes.given import Given, add_options, read_given, read_json
from transect.runtimes.plan_file import Entry, Level, Plan, Role

COUNTER = "step"
# The state to begin with, the hyper-parameters and the order of the steps to do, beside the plan.
BEGIN, SCHEDULE, ORDER = "begin.bin", "schedule.bin", "order.bin"
GRAPHS = ("step", "accumulate")
_ALIGNED = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class Training:
    """What is asked of a runner: a step's folder, its data, how far to go.

    `order`: int64, the rows of each batch, one batch behind the other. `state`: what to begin with where there is no
    `checkpoint` yet, None: the folder's own. `schedule`: JSON, a number or a list by hyper-parameter.
    """

    step: Path
    data: Path
    order: Path
    checkpoint: Path
    out: Path
    batch: int
    until: int
    provider: str = "cpu"
    options: Mapping[str, Any] = field(default_factory=dict)
    state: Path | None = None
    checkpoint_every: int = 0
    schedule: Path | None = None
    accumulate: int = 1
    seed: int = 0

    @property
    def graphs(self) -> tuple[str, ...]:
        """The graphs that are run: only micro-batches take the second one."""
        return GRAPHS[: 2 if self.accumulate > 1 else 1]

    def plan(self) -> Plan:
        """Return the plan, and write into `out` what it names. Raises BadInput naming what cannot be used."""
        for name, least in (("batch", 1), ("until", 0), ("checkpoint_every", 0), ("accumulate", 1), ("seed", 0)):
            if type(getattr(self, name)) is not int or not least <= getattr(self, name) < 2**31:
                raise BadInput(f"{name}: expected a whole number >= {least}, got {getattr(self, name)!r}")
        manifest = read_step(self.step, self.graphs)
        schedule = _schedule(self.schedule, manifest, self.until)
        data = _data(self.data, manifest)
        order = self._order(data[0].shape[0])
        first, state = self._state(manifest)
        for name in self.graphs:
            _check_ends(self.step / manifest.graphs[name].file, manifest.graphs[name])
        plan = Plan(
            level=Level.TRAIN,
            batch=self.batch,
            rows=data[0].shape[0],
            first_step=first,
            steps=self.until - first,
            checkpoint_every=self.checkpoint_every,
            accumulate=self.accumulate,
            seed=self.seed,
        )
        plan.add(Entry(role=Role.PROVIDER, text=self.provider))
        plan.add(Entry(role=Role.OUT, text=str(self.out.absolute())))
        plan.add(Entry(role=Role.STEP_FOLDER, text=str(self.step.absolute())))
        add_options(plan, self.options, "session options")
        self.out.mkdir(parents=True, exist_ok=True)
        takes = self._add_state(plan, manifest, state)
        takes |= {tensor.name: plan.add(tensor.entry(Role.DATA)) for tensor in data}
        takes |= self._add_schedule(plan, {name: values[first : self.until] for name, values in schedule.items()})
        if manifest.seed is not None:
            takes[manifest.seed.name] = plan.add(Entry(role=Role.SEED, name=manifest.seed.name, dtype="int64"))
        self._add_order(plan, order[first:])
        gives = {
            metric.name: plan.add(Entry(role=Role.METRIC, name=metric.name, dtype=metric.dtype))
            for metric in manifest.metrics
        }
        gives |= {tensor.next: takes[tensor.name] for tensor in manifest.state if tensor.next}
        for group, name in enumerate(self.graphs):
            self._add_graph(plan, group, name, manifest.graphs[name], takes, gives)
        return plan

    def _state(self, manifest: Manifest) -> tuple[int, dict[str, np.ndarray]]:
        """Return how many updates the state to begin with has behind it, and the state."""
        path = self.checkpoint if self.checkpoint.exists() else self.state or self.step / manifest.state_file
        state = read_state(path, manifest)
        if name := not_finite(state):
            raise BadInput(f"{path}: '{name}' holds a number that is not finite")
        first = int(state[COUNTER])
        if not 0 <= first <= self.until:
            raise BadInput(f"{path}: is of step {first}, expected one from 0 to {self.until}, where it is to end")
        return first, state

    def _order(self, rows: int) -> np.ndarray:
        """Return the rows of each micro-batch: int64, (until, accumulate, batch)."""
        shape = (self.until, self.accumulate, self.batch)
        try:
            size = self.order.stat().st_size
            if size % 8 or size < 8 * math.prod(shape):
                raise BadInput(
                    f"{self.order}: holds {size} bytes, expected int64 and at least {self.until} steps x "
                    f"{self.accumulate} x {self.batch} of them"
                )
            order = np.fromfile(self.order, "<i8", math.prod(shape)).reshape(shape)
        except OSError as error:
            raise BadInput(f"{self.order}: cannot be read: {error}") from None
        if order.size and not 0 <= order.min() <= order.max() < rows:
            wrong = order[(order < 0) | (order >= rows)][0]
            raise BadInput(f"{self.order}: row {wrong}, the data have {rows} rows")
        return order

    def _add_state(self, plan: Plan, manifest: Manifest, state: Mapping[str, np.ndarray]) -> dict[str, int]:
        """Write the block and add its tensors; return the numbers of the entries by name."""
        block, numbers = bytearray(), {}
        path = (self.out / BEGIN).absolute()
        for tensor in manifest.state:
            block.extend(bytes(-len(block) % _ALIGNED))
            raw = np.ascontiguousarray(state[tensor.name], np.dtype(tensor.dtype).newbyteorder("<")).tobytes()
            numbers[tensor.name] = plan.add(
                Entry(
                    role=Role.STATE,
                    name=tensor.name,
                    text=str(path),
                    dtype=tensor.dtype,
                    shape=tensor.shape,
                    offset=len(block),
                    size=len(raw),
                )
            )
            block.extend(raw)
        plan.state_bytes = len(block)
        path.write_bytes(block)
        return numbers

    def _add_schedule(self, plan: Plan, schedule: Mapping[str, np.ndarray]) -> dict[str, int]:
        path, numbers, offset = (self.out / SCHEDULE).absolute(), {}, 0
        for name, values in schedule.items():
            size = values.nbytes
            entry = Entry(
                role=Role.HYPER,
                name=name,
                text=str(path),
                dtype="float64",
                shape=values.shape,
                offset=offset,
                size=size,
            )
            numbers[name] = plan.add(entry)
            offset += size
        path.write_bytes(b"".join(values.astype("<f8").tobytes() for values in schedule.values()))
        return numbers

    def _add_order(self, plan: Plan, order: np.ndarray) -> None:
        path = (self.out / ORDER).absolute()
        path.write_bytes(order.tobytes())
        plan.add(Entry(role=Role.ORDER, text=str(path), dtype="int64", shape=order.shape, size=order.nbytes))

    def _add_graph(
        self, plan: Plan, group: int, name: str, graph: Graph, takes: Mapping[str, int], gives: Mapping[str, int]
    ) -> None:
        file = str((self.step / graph.file).absolute())
        plan.add(Entry(role=Role.GRAPH, group=group, name=name, text=file))
        for end in graph.inputs:
            plan.add(Entry(role=Role.TAKES, group=group, name=end, link=takes[end]))
        for end in graph.outputs:
            plan.add(Entry(role=Role.GIVES, group=group, name=end, link=gives[end]))


def read_step(folder: Path, graphs: tuple[str, ...]) -> Manifest:
    """Read a manifest and check what a training needs of it. Raises BadInput naming the file and what is wrong."""
    manifest = read_manifest(folder)
    where = f"{folder / 'manifest.json'}: expected the manifest of a training step"
    if missing := [name for name in graphs if name not in manifest.graphs]:
        raise BadInput(f"accumulate: {folder}: the step was made without the graph '{missing[0]}'")
    counter = next(tensor for tensor in manifest.state if tensor.name == COUNTER)
    if (counter.dtype, counter.shape) != ("int64", ()):
        raise BadInput(f"{where}: the counter is {counter.dtype} {list(counter.shape)}, expected an int64 scalar")
    if strange := [metric for metric in manifest.metrics if metric.dtype not in ("float32", "float64")]:
        raise BadInput(f"{where}: metric '{strange[0].name}' is {strange[0].dtype}, expected float32 or float64")
    if narrow := [entry for entry in manifest.hyper if entry.dtype != "float64"]:
        raise BadInput(f"{where}: hyper-parameter '{narrow[0].name}' is {narrow[0].dtype}, expected float64")
    for tensor in manifest.state:
        if not isinstance(tensor.shape, tuple) or any(type(size) is not int or size < 0 for size in tensor.shape):
            raise BadInput(f"{where}: state '{tensor.name}' has the shape {tensor.shape}")
    made = {tensor.next for tensor in manifest.state if tensor.next} | {metric.name for metric in manifest.metrics}
    for name in graphs:
        graph = manifest.graphs[name]
        if unknown := sorted({*graph.outputs} - made):
            raise BadInput(f"{where}: graph '{name}' gives '{unknown[0]}', which nothing else names")
        if lost := [metric.name for metric in manifest.metrics if metric.name not in graph.outputs]:
            raise BadInput(f"{where}: graph '{name}' does not give the metric '{lost[0]}'")
    file = folder / manifest.graphs["step"].file
    if file.is_file() and (found := sha256_file(file)) != manifest.step_graph:
        raise BadInput(f"{file} has the sha256 {found}, expected {manifest.step_graph}")
    return manifest


def _check_ends(file: Path, graph: Graph) -> None:
    """Raise BadInput unless a graph's file has the ends that the manifest says."""
    if not file.is_file():
        raise BadInput(f"{file}: no such model file")
    ends = model_ends(file)
    takes, gives = sorted({**ends.inputs, **ends.defaults}), sorted(end.name for end in ends.outputs)
    if takes != sorted(graph.inputs) or gives != sorted(graph.outputs):
        raise BadInput(
            f"{file}: takes {takes} and gives {gives}; the manifest says {sorted(graph.inputs)} and "
            f"{sorted(graph.outputs)}"
        )


def _schedule(path: Path | None, manifest: Manifest, until: int) -> dict[str, np.ndarray]:
    """Return float64 (until) by hyper-parameter: the manifest's default, or what the file says."""
    given = {} if path is None else read_json(path)
    if not isinstance(given, dict):
        raise BadInput(f"{path}: expected a JSON object, got {given!r:.100}")
    values: dict[str, Any] = {entry.name: entry.default for entry in manifest.hyper}
    for name, value in given.items():
        if name not in values:
            raise BadInput(f"{path}: unknown hyper-parameter '{name}', the step has {', '.join(values)}")
        if isinstance(value, list) and len(value) < until:
            raise BadInput(f"{path}: '{name}' has {len(value)} values, expected {until}")
        if not all(map(_is_finite, value if isinstance(value, list) else [value])):
            raise BadInput(f"{path}: '{name}' is {value!r:.100}, expected finite numbers")
        values[name] = value[:until] if isinstance(value, list) else value
    return {name: np.broadcast_to(np.array(value, float), (until,)) for name, value in values.items()}


def _is_finite(value: Any) -> bool:
    # Also whole numbers that no float64 holds, and what is no number, are beyond the bound.
    return type(value) in (int, float) and abs(value) <= sys.float_info.max


def _data(folder: Path, manifest: Manifest) -> list[Given]:
    """Return all rows of the data, in the manifest's order. Raises BadInput unless they are what the step takes."""
    given, _ = read_given(folder)
    header, tensors = folder / "header.json", {tensor.name: tensor for tensor in given}
    if tensors.keys() != {entry.name for entry in manifest.data}:
        raise BadInput(
            f"{header}: has {sorted(tensors)}, the step takes {sorted(entry.name for entry in manifest.data)}"
        )
    for entry in manifest.data:
        found = tensors[entry.name]
        fixed = zip(entry.shape[1:], found.shape[1:], strict=False)
        fits = len(entry.shape) == len(found.shape) > 0 and all(isinstance(a, str) or a == b for a, b in fixed)
        if found.dtype != entry.dtype or not fits:
            raise BadInput(
                f"{header}: '{entry.name}' is {found.dtype} of shape {list(found.shape)}, the step takes "
                f"{entry.dtype} of shape {list(entry.shape)}"
            )
    if len(rows := {tensor.shape[0] for tensor in given}) != 1:
        raise BadInput(f"{header}: expected one number of rows, got {sorted(rows)}")
    return [tensors[entry.name] for entry in manifest.data]


def not_finite(state: Mapping[str, np.ndarray]) -> str | None:
    """Return the name of the first tensor with a NaN or an infinity, or None."""
    return next((name for name, array in state.items() if not np.isfinite(array).all()), None)


def read_block(path: Path, manifest: Manifest, plan: Plan) -> dict[str, np.ndarray]:
    """Return the state of a checkpoint's block. Raises BadInput for one that is not as long as the plan says."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error}") from None
    if len(raw) != plan.state_bytes:
        raise BadInput(f"{path}: holds {len(raw)} bytes, expected {plan.state_bytes}")
    return {
        tensor.name: _tensor(raw, tensor, entry)
        for tensor, entry in zip(manifest.state, plan.of(Role.STATE), strict=True)
    }


def _tensor(raw: bytes, tensor: StateTensor, entry: Entry) -> np.ndarray:
    dtype = np.dtype(tensor.dtype)
    held = np.frombuffer(raw, dtype.newbyteorder("<"), math.prod(tensor.shape), entry.offset)
    return held.reshape(tensor.shape).astype(dtype)
