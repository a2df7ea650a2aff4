"""One prediction.

Takes layers from a profile, messages from probes that ran before (or the system's numbers), and the
strategy's own word on how its ranks talk. Looks at no training.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from transect.domain.axes.train import ForecastCell, trained_as
from transect.domain.record import read_record
from transect.measure.provenance import available_cores
from transect.onnx_models.results import result
from transect.payloads.forecast_prediction import COLLECTIVES, Setting, predict
from transect.payloads.forecast_sources import (
    collective_points,
    fitted,
    lasting_rate,
    message_points,
    profile_of,
    profiled,
)
from transect.payloads.profile import PROFILE
from transect.simulation.collectives import Measured
from transect.simulation.networks import Machine, Network
from transect.training.strategies import STRATEGIES


def run(spec: dict[str, Any], folders: dict[str, Path], out: Path) -> dict[str, Any]:
    """Predict one cell; return its result."""
    profile = json.loads((folders["profile"] / PROFILE).read_text(encoding="utf-8"))
    # It runs on the machine, or on a node like those, of which it tells.
    cores = int(spec["system"]["cores_per_node"] or available_cores())
    records = {role: folder / "record.json" for role, folder in folders.items()}
    collectives = {role: records[role] for role in COLLECTIVES if role in records}
    return forecast(spec, profile, cores, records.get("messages"), collectives)


def forecast(
    spec: dict[str, Any],
    profile: dict[str, Any],
    cores: int,
    messages: Path | None = None,
    collectives: Mapping[str, Path] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return the result of a cell. Raises BadInput for a source without numbers, Unsupported."""
    cell = ForecastCell.of(**spec["cell"])
    trained = trained_as(cell)
    strategy = STRATEGIES.get(cell.strategy)
    layout, traffic = strategy.layout(trained), strategy.traffic(trained)
    assert traffic is not None
    known = profiled(profile, profile_of(cell, layout, cores).batch)
    network, network_facts = _network(spec, messages)
    measured = {role: Measured(tuple(collective_points(read_record(path)))) for role, path in collectives.items()}
    network = replace(network, gamma_s_per_byte=known.gamma_s_per_byte)
    inside = network if cell.nodes == 1 else _within(network)
    machine = Machine(cell.ranks, inside, network, ranks_per_node=cell.ranks_per_node, links_per_node=1)
    setting = Setting(
        cell=trained, layout=layout, traffic=traffic, profiled=known, machine=machine, cores=cores, measured=measured
    )
    found = predict(setting)
    values = {"predicted_step_time": found.seconds, "predicted_samples_per_second": cell.batch / found.seconds}
    return result(
        metrics=[{"name": name, "value": value} for name, value in values.items()],
        details={
            "for": trained.id,
            "pattern": traffic.pattern,
            "carrier": traffic.carrier,
            "network": network_facts,
            "cores": cores,
            "gamma_s_per_byte": known.gamma_s_per_byte,
            **found.details(),
        },
    )


def _network(spec: dict[str, Any], messages: Path | None) -> tuple[Network, dict[str, Any]]:
    if spec["network_from"] == "system":
        given = spec["network"]
        return Network(given["latency_s"], 1 / given["bytes_per_s"]), {"from": "system", **given}
    if messages is None:
        return Network(0.0, 0.0), {"from": "nobody: no message is sent"}
    points = message_points(read_record(messages))
    line = fitted(points)
    network = Network(line.alpha_s, 1 / lasting_rate(line, points))
    return network, {
        "from": "probe",
        "latency_s": line.alpha_s,
        "bytes_per_s": lasting_rate(line, points),
        "scatter": line.residual,
        "remark": line.remark,
    }


def _within(network: Network) -> Network:
    return Network(0.0, 0.0, network.gamma_s_per_byte)
