"""Writes a made-up study over nodes and networks: SYNTHETIC records. No number was measured."""

from __future__ import annotations

import random
from pathlib import Path

from make_records import make_record, write_records

from factories import bench_cell, train_cell
from transect.domain.record import LogPoint, MetricValue, Record

# Network: (latency in s, bandwidth in B/s).
NETWORKS = {"1gbit": (7e-6, 1.2e8), "1gbit-50us": (60e-6, 1.2e8)}


def _probe(rng: random.Random, network: str, nodes: int) -> Record:
    alpha, beta = NETWORKS[network]
    cell = bench_cell("network-probe", nodes=nodes, network=network)
    values = []
    for size in (0, *(4**power for power in range(1, 12))):
        time = (alpha + size / beta) * (1 + rng.gauss(0, 0.03))
        values += [
            MetricValue.of(
                "message_time",
                time * scale,
                f"pingpong_{which} {size}",
                LogPoint(series=f"pingpong_{which}", size=size),
            )
            for which, scale in (("best", 0.9), ("median", 1.0))
        ]
    values += [
        MetricValue.of("network_latency", alpha, "latency_median 0", LogPoint(series="latency_median", size=0)),
        MetricValue.of(
            "network_bandwidth", beta, "bandwidth_median 4194304", LogPoint(series="bandwidth_median", size=4194304)
        ),
    ]
    return make_record(cell, values)


def write_multi_node_study(root: Path, *, probes: bool = True, seed: int = 2) -> Path:
    """Write `root/multi-node`: two strategies on one to four nodes of two networks, two ranks each.

    Four nodes are over-subscribed. One cell without a network is the base.
    """
    rng, study = random.Random(seed), root / "multi-node"
    records = [_probe(rng, name, nodes) for name in NETWORKS for nodes in (2, 4) if probes]
    for name, (alpha, beta) in [("", (0.0, 1.0)), *NETWORKS.items()]:
        for strategy, factor in (("mpi-allreduce", 1.5), ("mpi-sendrecv", 4.0)):
            for nodes in (1, 2, 4) if name else (1,):
                for repeat in range(3):
                    cell = train_cell(
                        workload="digits-cnn",
                        batch=64,
                        strategy=strategy,
                        nodes=nodes,
                        ranks_per_node=2 if name else 1,
                        network=name or None,
                        repeat=repeat,
                    )
                    noise = 1 + rng.gauss(0, 0.02)
                    least = 2 * (nodes - 1) / nodes * 76_000 / beta + alpha
                    communication = noise * (factor * least + 2e-5) if name else 0.0
                    step = 0.02 / cell.ranks + communication
                    metrics = {
                        "samples_per_second": 64 / step,
                        "step_time": step,
                        "compute_time": step - communication,
                        "input_time": 0.0,
                        "communication_time": communication,
                        "communication_share": communication / step,
                        "gradient_bytes": 76_000,
                        "accuracy": 0.97,
                        "equality_ratio": 0.1,
                        "time_to_quality": step * 250,
                    }
                    details = {"over_subscribed": nodes == 4, "global_batch": 64}
                    records.append(make_record(cell, metrics, details=details))
    return write_records(study, *records)
