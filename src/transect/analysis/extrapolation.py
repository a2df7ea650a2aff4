"""The scaling curve: a predicted training on up to 131,072 ranks, which nobody has measured.

Weak scaling: each rank's samples and parts of the model stay, replicas are added. Networks are as they were
probed, every rank has what it had of its node's cores, all-reduces take the fastest simulated algorithm.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from transect.analysis.entries import AnyRecord
from transect.analysis.groups import Group
from transect.analysis.originals import Originals
from transect.domain.axes.train import ForecastCell, ProfileCell, trained_as
from transect.domain.errors import TransectError
from transect.payloads.forecast_prediction import Setting, predict
from transect.payloads.forecast_sources import Profiled, profile_of, profiled
from transect.simulation.networks import Machine, Network
from transect.training.layout import Layout
from transect.training.strategies import STRATEGIES

PROFILE = "profile.json"
MAX_RANKS = 131_072
# Numbers of replicas that published studies name.
_ASKED = (128, 512)


@dataclass(frozen=True, kw_only=True, slots=True)
class CurvePoint:
    """So many replicas of the model: `speed_up` is the rate of samples over that of one replica."""

    replicas: int
    ranks: int
    step_s: float
    speed_up: float
    algorithm: str

    @property
    def efficiency(self) -> float:
        """Speed-up over the replicas."""
        return self.speed_up / self.replicas


@dataclass(frozen=True, kw_only=True, slots=True)
class Curve:
    """One prediction continued to more ranks; `group` is that of the prediction, `network` as in its record."""

    group: Group[ForecastCell]
    parts: int
    network: dict[str, Any]
    points: Sequence[CurvePoint]

    @property
    def poor(self) -> bool:
        """Whether its network is a line that probed messages do not lie on."""
        return bool(self.network.get("remark"))


def curves(predictions: Iterable[Group[Any]], profiles: Iterable[Group[Any]], originals: Originals) -> list[Curve]:
    """Return a curve for each way of training of which a prediction on several ranks was stored.

    Of one way on several numbers of ranks that of most ranks counts: its profile was taken by as many.
    """
    known = [record for group in profiles for record in group.ok]
    best: dict[object, Curve] = {}
    for group in sorted(predictions, key=lambda group: -group.cell.ranks):
        way = group.cell.changed(nodes=1, ranks_per_node=1, batch=1)
        if group.cell.ranks > 1 and way not in best:
            curve = _curve(group, known, originals)
            if curve is not None:
                best[way] = curve
    return list(best.values())


def _curve(group: Group[ForecastCell], profiles: Sequence[AnyRecord], originals: Originals) -> Curve | None:
    """Return None where the prediction, its profile or its network is not there."""
    record = next(iter(group.ok), None)
    network = record.details.get("network") if record is not None else None
    if record is None or not isinstance(network, dict) or "latency_s" not in network:
        return None
    trained = trained_as(group.cell)
    try:
        strategy = STRATEGIES.get(trained.strategy)
        layout, traffic = strategy.layout(trained), strategy.traffic(trained)
    except TransectError as error:
        # A plug-in that is not there any more.
        originals.complain(record, f"not extrapolated: {error}")
        return None
    reported = record.details.get("cores")
    cores = reported if isinstance(reported, int) else trained.ranks_per_node * trained.threads
    known = _profile(profile_of(group.cell, layout, cores), profiles, originals)
    if known is None or traffic is None:
        return None
    given = Network(float(network["latency_s"]), 1 / float(network["bytes_per_s"]), known.gamma_s_per_byte)
    setting = Setting(
        cell=trained,
        layout=layout,
        traffic=traffic,
        profiled=known,
        machine=Machine.flat(trained.ranks, given),
        cores=cores,
    )
    per_replica = trained.batch // layout.replicas
    parts = layout.model_parts
    points: list[CurvePoint] = []
    for replicas in sorted({*(1 << bit for bit in range((MAX_RANKS // parts).bit_length())), *_ASKED}):
        ranks = replicas * parts
        per_node = min(trained.ranks_per_node, ranks)
        if ranks % per_node:
            continue
        grown = replace(
            setting,
            layout=Layout(replicas, parts, layout.micro_batches),
            machine=Machine(ranks, given, given, ranks_per_node=per_node, links_per_node=1),
            cell=trained.changed(nodes=ranks // per_node, ranks_per_node=per_node, batch=per_replica * replicas),
        )
        found = predict(grown)
        first = points[0].step_s if points else found.seconds
        points.append(
            CurvePoint(
                replicas=replicas,
                ranks=ranks,
                step_s=found.seconds,
                algorithm=found.algorithm,
                speed_up=replicas * first / found.seconds,
            )
        )
    return Curve(group=group, parts=parts, network=network, points=points)


def _profile(wanted: ProfileCell, profiles: Sequence[AnyRecord], originals: Originals) -> Profiled | None:
    """Read a profile; one that is damaged becomes a problem."""
    record = next((profile for profile in profiles if profile.cell_id == wanted.id), None)
    folder = originals.folder(record) if record is not None else None
    if record is None or folder is None:
        return None
    try:
        return profiled(json.loads((folder / PROFILE).read_text(encoding="utf-8")), wanted.batch)
    except (TransectError, OSError, LookupError, TypeError, ValueError) as error:
        originals.complain(record, f"{PROFILE}: no profile: {type(error).__name__}: {error}")
        return None


def speed_up(found: Iterable[Curve], replicas: int) -> tuple[float, bool] | None:
    """Return the best speed-up of so many replicas of a model that ranks share, or None.

    And whether its network is poor: one that a line describes comes before all others.
    """
    values = [
        (not curve.poor, point.speed_up)
        for curve in found
        if curve.parts > 1
        for point in curve.points
        if point.replicas == replicas
    ]
    known, value = max(values, default=(False, None))
    return None if value is None else (value, not known)
