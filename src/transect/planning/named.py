"""What a study names beside its grids, and no stage looks at: it must not be taken and ignored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from transect.domain.cell import Cell, OpenCell, class_of
from transect.domain.errors import BadInput, unknown_name
from transect.domain.metrics import METRICS
from transect.domain.study import Published
from transect.planning.context import NO_SYSTEM, Context
from transect.planning.stage import STAGES
from transect.training.optimisers import OPTIMISERS

# Keys of a figure's `measured` that are no axes.
_NO_AXES = ("stage", "metric", "over")


def check_networks(cells: Iterable[Cell], context: Context) -> None:
    """Note networks of cells that the system does not have."""
    known = context.system.networks
    if context.system is NO_SYSTEM:
        return
    for name in sorted({cell.network for cell in cells if cell.network is not None}):
        with context.complaints.noted():
            if name not in known:
                raise unknown_name(f"network of system {context.system.name}", name, known, str(context.file))


def check_overrides(cells: Iterable[Cell], context: Context) -> None:
    """Note changes of workloads that no cell has, and of what the optimisers of its cells do not read."""
    optimisers: dict[str, set[str]] = {}
    for cell in cells:
        if cell.workload is not None:
            optimisers.setdefault(cell.workload, set()).add(str(cell.get("optimiser") or ""))
    for workload, changes in context.study.workloads.items():
        where = context.where(f"workloads.{workload}")
        with context.complaints.noted():
            if workload in optimisers:
                own = context.parameters(workload).optimiser
                _check_read(changes, {one or own for one in optimisers[workload]}, where)
            elif not context.left_out:
                raise unknown_name("workload of this study's grids", workload, optimisers, context.where("workloads"))


def _check_read(changes: Iterable[str], optimisers: Iterable[str], where: str) -> None:
    """Raise BadInput for a change of what some optimiser reads, and none of these."""
    takes = {name: OPTIMISERS.get(name).takes for name in OPTIMISERS}
    known = {key for keys in takes.values() for key in keys}
    used = sorted(optimisers)
    # A plug-in's stage may have optimisers of its own, which may read anything.
    if not set(used) <= set(takes):
        return
    read = {key for name in used for key in takes[name]}
    for key in changes:
        if key in known - read:
            who = " or ".join(used)
            raise unknown_name(f"hyper-parameter of {who}", key, sorted(read), where)


def check_published(context: Context) -> None:
    """Note published figures that are held beside a stage, a metric or an axis that is not there."""
    for number, figure in enumerate(context.study.published):
        with context.complaints.noted():
            _check_figure(figure, context.where(f"published.{number}"))


def _check_figure(figure: Published, where: str) -> None:
    measured = figure.measured
    if not isinstance(measured, Mapping):
        return
    where = f"{where}.measured"
    stage = measured.get("stage")
    if not isinstance(stage, str) or stage not in STAGES:
        raise unknown_name("stage", str(stage), STAGES, where)
    if measured.get("metric") not in METRICS:
        raise unknown_name("metric", str(measured.get("metric")), METRICS, where)
    over = measured.get("over", {})
    if not isinstance(over, Mapping):
        raise BadInput(f"{where}.over: expected a mapping of axes, found {over!r}")
    kind = class_of(stage)
    if kind is OpenCell:  # a stage of a plug-in that does not say which axes it has
        return
    axes = sorted(kind.model_fields)
    named: dict[str, Any] = {**measured, **over}
    for name in (*named, *([figure.knob] if figure.knob else ())):
        # `ranks` follows from two axes, and can be asked for as they can.
        follows = isinstance(getattr(kind, name, None), property)
        if name not in (*axes, *_NO_AXES) and not follows:
            raise unknown_name(f"axis of {stage}", name, axes, where)
