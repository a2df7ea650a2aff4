"""Plans of models that are served: one call after another, an offered load, many cases."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from transect.domain.errors import BadInput
from transect.onnx_models.ends import check_inputs, check_outputs, model_ends, output_shape
from transect.runtimes.given import Given, add_options, read_arrivals, read_given
from transect.runtimes.plan_file import MAX_AXES, Entry, Level, Plan, Role

# Checks a model that is no ONNX file, with its inputs; returns the name of its output. Who asks for one names what
# checks it: the layers of workloads are no part of what else is asked.
Check = Callable[[Path, Sequence[Given]], str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Serving:
    """What is asked of a runner: files, session options, how long to measure.

    `model`: an ONNX file, or with a `check` a baseline's JSON file. `batch`: rows of one, 0: the tensors whole; None:
    as the header of the inputs says. `profile`: prefix of the file of ONNX
    Runtime's profiler, or None. With `arrivals` it is an offered load.
    """

    model: Path
    inputs: Path
    outputs: Path
    out: Path
    provider: str = "cpu"
    options: Mapping[str, Any] = field(default_factory=dict)
    warmup: int = 20
    min_runs: int = 100
    max_seconds: float = 1.0
    profile: Path | None = None
    arrivals: Path | None = None
    sessions: int = 1
    batch: int | None = None
    check: Check | None = None

    def plan(self) -> Plan:
        """Return the plan. Raises BadInput naming what cannot be used, and makes no file."""
        for name, least in (("warmup", 0), ("min_runs", 1), ("sessions", 1)):
            if not least <= getattr(self, name) < 2**31:
                raise BadInput(f"{name}: expected a whole number >= {least}, got {getattr(self, name)}")
        if not 0 <= self.max_seconds < math.inf:
            raise BadInput(f"max_seconds: expected seconds >= 0, got {self.max_seconds}")
        plan = Plan(
            level=Level.LATENCY if self.arrivals is None else Level.LOAD,
            warmup=self.warmup,
            min_runs=self.min_runs,
            max_ns=int(min(self.max_seconds, 1e9) * 1e9),
            sessions=self.sessions,
        )
        _add_common(plan, self.provider, self.options, self.out)
        plan.batch, rows = _add_model(
            plan, 0, "", self.model, self.inputs, self.outputs, batch=self.batch, check=self.check
        )
        plan.rows = rows if plan.batch else 0
        if self.profile is not None:
            plan.add(Entry(role=Role.PROFILE, text=str(self.profile.absolute())))
        if self.arrivals is not None:
            arrivals = read_arrivals(self.arrivals)
            plan.last_begin_ns = 2 * int(arrivals[-1]) + plan.max_ns
            plan.add(
                Entry(
                    role=Role.ARRIVALS,
                    text=str(self.arrivals.absolute()),
                    dtype="int64",
                    shape=(len(arrivals),),
                    size=arrivals.nbytes,
                )
            )
        return plan


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A model that is run once: its inputs whole, its outputs for somebody to compare."""

    name: str
    model: Path
    inputs: Path
    outputs: Path


def cases_plan(
    cases: Iterable[Case], *, provider: str, options: Mapping[str, Any], out: Path
) -> tuple[Plan, dict[str, str]]:
    """Return the plan of the cases that can be asked for, numbered from 0, and why others cannot, by name."""
    plan, refused, number = Plan(level=Level.CASES), {}, 0
    _add_common(plan, provider, options, out)
    for case in cases:
        before = len(plan.entries)
        try:
            _add_model(plan, number, case.name, case.model, case.inputs, case.outputs)
            number += 1
        except BadInput as error:
            del plan.entries[before:]
            refused[case.name] = str(error)
    return plan, refused


_OF_A_CASE = (Role.MODEL, Role.OUTPUTS, Role.INPUT, Role.OUTPUT)


def cases_from(plan: Plan, first: int) -> Plan:
    """Return the plan of the cases from a number on."""
    entries = [entry for entry in plan.entries if entry.role not in _OF_A_CASE or entry.group >= first]
    return replace(plan, entries=entries)


def _add_common(plan: Plan, provider: str, options: Mapping[str, Any], out: Path) -> None:
    plan.add(Entry(role=Role.PROVIDER, text=provider))
    plan.add(Entry(role=Role.OUT, text=str(out.absolute())))
    add_options(plan, options, "session options")


def _add_model(
    plan: Plan,
    group: int,
    name: str,
    model: Path,
    inputs: Path,
    outputs: Path,
    *,
    batch: int | None = None,
    check: Check | None = None,
) -> tuple[int, int]:
    """Add a model with its ends; return the batch, 0 without one, and the rows."""
    if not model.is_file():
        raise BadInput(f"{model}: no such model file")
    tensors, batch = read_given(inputs, batch)
    plan.add(Entry(role=Role.MODEL, group=group, name=name, text=str(model.absolute())))
    plan.add(Entry(role=Role.OUTPUTS, group=group, text=str(outputs.absolute())))
    for tensor in tensors:
        plan.add(tensor.entry(Role.INPUT, group))
    if check is None:
        ends = model_ends(model)
        given = {tensor.name: (tensor.dtype, tensor.shape) for tensor in tensors}
        check_inputs(ends, given, batch, str(model))
        check_outputs(ends, str(model))
        for end in ends.outputs:
            shape = output_shape(end, ends, given, batch) if end.dtype else ()
            if len(shape) > MAX_AXES:
                # Nothing is asked of it, so it need not be known.
                shape = (-1,)
            plan.add(Entry(role=Role.OUTPUT, group=group, name=end.name, text=end.kind, dtype=end.dtype, shape=shape))
    else:
        plan.add(Entry(role=Role.OUTPUT, group=group, name=check(model, tensors), dtype="float32"))
    return batch, tensors[0].shape[0] if batch else 0
