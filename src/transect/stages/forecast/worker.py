"""One prediction: `python -m transect.stages.forecast.worker --spec … --profile … --out …`.

Takes layers from a profile, messages from probes that ran before (or the system's numbers), and the
strategy's own word on how its ranks talk. Looks at no training.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from transect.domain.axes.train import ForecastCell, trained_as
from transect.domain.cell import Cell
from transect.domain.errors import FAULTS
from transect.domain.record import read_record
from transect.onnx_models.results import result, write_fault, write_result
from transect.simulation.collectives import Measured
from transect.simulation.networks import Machine, Network
from transect.stages.forecast.worker_prediction import COLLECTIVES, Setting, predict
from transect.stages.forecast.worker_sources import (
    collective_points,
    fitted,
    lasting_rate,
    message_points,
    profile_of,
    profiled,
)
from transect.training.strategies import STRATEGIES


def forecast(
    spec: dict[str, Any],
    profile: dict[str, Any],
    cores: int,
    messages: Path | None = None,
    collectives: Mapping[str, Path] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return the result of a cell. Raises BadInput for a source without numbers, Unsupported."""
    cell = Cell.of(**spec["cell"])
    assert isinstance(cell, ForecastCell)
    trained = trained_as(cell)
    strategy = STRATEGIES.get(cell.strategy)
    layout, traffic = strategy.layout(trained), strategy.traffic(trained)
    assert traffic is not None
    known = profiled(profile, profile_of(cell, layout, cores).batch)
    network, told = _network(spec, messages)
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
            "network": told,
            "cores": cores,
            "gamma_s_per_byte": known.gamma_s_per_byte,
            **found.details(),
        },
    )


def _network(spec: dict[str, Any], messages: Path | None) -> tuple[Network, dict[str, Any]]:
    """Return the network between ranks, and what to say of it."""
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
    """Messages within a node count as free beside those between nodes, as in the bounds."""
    return Network(0.0, 0.0, network.gamma_s_per_byte)


def main(arguments: list[str] | None = None) -> int:
    """Predict one cell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", type=Path, required=True)
    parser.add_argument("--profile", type=Path, required=True)
    parser.add_argument("--messages", type=Path, help="record of a probe of messages")
    for role in COLLECTIVES:
        parser.add_argument(f"--{role}", type=Path, help="record of a probe of it on all ranks")
    parser.add_argument("--cores", type=int, required=True, help="of a node")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    try:
        spec = json.loads(given.spec.read_text())
        profile = json.loads(given.profile.read_text())
        paths = {role: getattr(given, role) for role in COLLECTIVES}
        collectives = {role: path for role, path in paths.items() if path is not None}
        found = forecast(spec, profile, given.cores, given.messages, collectives)
        write_result(given.out, found)
    except FAULTS as error:
        return write_fault(given.out, error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
