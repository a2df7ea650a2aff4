"""What a prediction is made of: layers from a profile, messages from probes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import numpy as np

from transect.domain.axes.train import ForecastCell, ProfileCell
from transect.domain.errors import BadInput
from transect.domain.record import Record
from transect.planner.costs import measured_costs
from transect.simulation.networks import AlphaBeta, fit_alpha_beta
from transect.simulation.work import Work
from transect.training.layout import Layout

Point = tuple[float, float]
# What the probe calls the median of half a round trip.
_PINGPONG = "pingpong_median"


def _probed(record: Record) -> list[Point]:
    """Return (bytes, median s) of the network probe."""
    return sorted(
        (float(metric.log.size), metric.value)
        for metric in record.metrics
        if metric.log is not None and metric.log.series == _PINGPONG and metric.log.size is not None
    )


def _swept(record: Record) -> list[Point]:
    """Return (bytes, median s) of a sweep over sizes, of the slowest rank in each repeat."""
    runs = record.details.get("runs") or [{}]
    series = runs[0].get("samples", {})
    return sorted((float(size), 1e-6 * median(sweep["values"])) for size, sweep in series.items())


def message_points(record: Record) -> list[Point]:
    """Return (bytes, one-way s) between two ranks. Raises BadInput where the record has none."""
    swept = record.cell.get("benchmark") != "network-probe"
    return _some(_swept(record) if swept else _probed(record), record, "messages")


def collective_points(record: Record) -> list[Point]:
    """Return (bytes, s) of what all ranks of a sweep did together. Raises BadInput where the record has none."""
    points = [point for point in _swept(record) if point[0] > 0]
    return _some(points, record, "a collective")


def _some(points: list[Point], record: Record, what: str) -> list[Point]:
    if len(points) < 3:
        raise BadInput(f"{record.cell_id}: {len(points)} sizes of {what}, expected 3 or more")
    return points


def fitted(points: list[Point]) -> AlphaBeta:
    """Return the line through message times. Raises BadInput where there is none."""
    found = fit_alpha_beta(points)
    if found is None:
        raise BadInput(f"{len(points)} message times that no line fits: {points[:3]}")
    return found


def lasting_rate(line: AlphaBeta, points: list[Point]) -> float:
    """Return the bytes a second of what does not lie in a cache: the largest message's, where it is slower than the line.

    A probe sends the same small buffer again and again, a training all of its gradients once.
    """
    size, seconds = points[-1]
    transfer_s = seconds - line.alpha_s
    return min(line.beta, size / transfer_s) if transfer_s > 0 and size > 0 else line.beta


def profile_of(cell: ForecastCell, layout: Layout, cores: int) -> ProfileCell:
    """Return the profile that a prediction takes: of the largest micro-batch, by all ranks of a node at once.

    Where there are more stages than a node has `cores`, they do not all compute at once.
    """
    beside = cell.ranks_per_node
    if layout.model_parts > 1:
        beside = max(1, min(beside, cores // cell.threads))
    return ProfileCell(
        workload=cell.workload,
        framework=cell.framework,
        threads=cell.threads,
        precision=cell.precision,
        batch=layout.micro(cell.batch // layout.replicas)[0].stop,
        device=cell.device,
        ranks_per_node=beside,
    )


@dataclass(frozen=True, slots=True)
class Profiled:
    """A rank's work layer by layer, and how long the layers take together, each in seconds.

    `whole_s`: forward and backward as one part. `trained_s`: as a training does it; so are the
    others. `fused_s`: a step in one call of the framework, or None. `gamma_s_per_byte`: to add a gradient.
    """

    work: Work
    whole_s: float
    trained_s: float
    update_s: float
    input_s: float
    exchange_s: float
    fused_s: float | None
    gamma_s_per_byte: float

    def stretched(self, passes_s: float) -> Work:
        """Return the work with its passes and update as long as measured together.

        A layer alone takes calls that a longer part does not make: its share of the time stays.
        """
        passes = passes_s / float(self.work.forward_s.sum() + self.work.backward_s.sum())
        update = self.update_s / float(self.work.update_s.sum())
        return replace(
            self.work,
            forward_s=self.work.forward_s * passes,
            backward_s=self.work.backward_s * passes,
            update_s=self.work.update_s * update,
        )


def profiled(profile: Mapping[str, Any], batch: int) -> Profiled:
    """Return what a rank does in micro-batches of `batch`. Raises BadInput for a profile without samples."""
    costs = measured_costs([profile], batch)
    columns: dict[str, Any] = {
        name: np.array([getattr(cost, name) for cost in costs], dtype=float)
        for name in ("forward_s", "backward_s", "update_s", "out_bytes")
    }
    gradients = np.array([layer["gradient_bytes"] for layer in profile["layers"]], dtype=float)
    work = Work(**columns, gradient_bytes=gradients)
    scale = batch / profile["batch"]

    def took(where: str, *names: str) -> float:
        try:
            return float(sum(median(profile[where][name]) for name in names))
        except (KeyError, TypeError, ValueError) as error:
            raise BadInput(f"the profile has no {' and '.join(names)} of {where}: {error}") from None

    fused = took("trainer", "fused_s") if "fused_s" in profile.get("trainer", ()) else None
    return Profiled(
        work=work,
        whole_s=scale * took("whole", "forward_s", "backward_s"),
        trained_s=scale * took("trainer", "compute_s"),
        update_s=took("trainer", "update_s"),
        input_s=scale * took("trainer", "input_s"),
        exchange_s=took("trainer", "exchange_s"),
        fused_s=fused,
        gamma_s_per_byte=took("trainer", "add_s") / work.bytes,
    )
