"""The alpha-beta model of a network, the bound of an all-reduce, and which cell meets which fit."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from factories import bare_record, bench_cell, train_cell
from transect.analysis.groups import group_records
from transect.analysis.network import allreduce_bound, communications, fit_for, network_fits
from transect.domain.cell import Cell
from transect.domain.record import LogPoint, MetricValue, Record
from transect.simulation.networks import AlphaBeta, fit_alpha_beta

SIZES = [0, *(4**power for power in range(1, 12))]


def probe(network: str | None, nodes: int, alpha: float, beta: float, ranks: int = 1) -> Record:
    cell = bench_cell("network-probe", nodes=nodes, ranks_per_node=ranks, network=network)
    points = [
        MetricValue.of("message_time", alpha + n / beta, log=LogPoint(series="pingpong_median", size=n)) for n in SIZES
    ]
    return bare_record(
        cell, [*points, MetricValue.of("message_time", 1e-9, log=LogPoint(series="pingpong_best", size=4))]
    )


def train(
    network: str | None,
    nodes: int,
    communication: float,
    ranks: int = 1,
    strategy: str = "mpi-allreduce",
    **details: object,
) -> Record:
    where = {"nodes": nodes, "ranks_per_node": ranks, "network": network}
    cell = train_cell(workload="w", strategy=strategy, batch=64, **where)
    values = {
        "communication_time": communication,
        "communication_share": 0.5,
        "gradient_bytes": 76_000,
        "samples_per_second": 100.0 * nodes * ranks,
        "equality_ratio": 0.5,
    }
    metrics = [MetricValue.of(name, value) for name, value in values.items()]
    return bare_record(cell, metrics, details={"global_batch": 64, **details})


def test_an_exact_line_is_found_exactly() -> None:
    model = fit_alpha_beta([(n, 50e-6 + n / 1.25e8) for n in SIZES])
    assert model is not None
    assert model.alpha_s == pytest.approx(50e-6, rel=1e-6)
    assert model.beta == pytest.approx(1.25e8, rel=1e-6)
    assert model.residual < 1e-6 and not model.poor and model.remark == ""
    assert model.time(1.25e8) == pytest.approx(1.00005)


def test_noise_moves_the_fit_by_no_more_than_its_errors_say() -> None:
    alpha, beta, hits = 7e-6, 1.2e9, 0
    rng = random.Random(1)
    for _ in range(200):
        model = fit_alpha_beta([(n, (alpha + n / beta) * rng.gauss(1, 0.05)) for n in SIZES])
        assert model is not None
        assert model.residual == pytest.approx(0.05, abs=0.04)
        inside = abs(model.alpha_s - alpha) < 2 * model.alpha_error_s
        hits += inside and abs(model.beta - beta) < 2 * model.beta_error
    # Each within two standard errors in 93 % of the fits (t with 10 degrees of freedom).
    assert 0.8 < hits / 200 < 0.95


def test_a_bent_line_is_a_poor_fit_that_names_the_place() -> None:
    burst = [(n, 7e-6 + (n / 2e9 if n <= 16384 else n / 1.25e8)) for n in SIZES]
    model = fit_alpha_beta(burst)
    assert model is not None and model.poor
    assert model.worst_size == 16384
    assert "16384 B" in model.remark
    assert 1e8 < model.beta < 2e9


@pytest.mark.parametrize(
    "points",
    [
        [],
        [(0, 1e-6), (4, 1e-6)],
        [(4, 1e-6), (4, 2e-6), (4, 3e-6)],
        [(0, 1e-6), (4, 0.0), (16, 1e-6)],
        [(0, 1e-6), (4, math.nan), (16, 1e-6)],
    ],
)
def test_no_fit_is_made_of_what_carries_none(points: list[tuple[float, float]]) -> None:
    assert fit_alpha_beta(points) is None


MODEL = AlphaBeta(alpha_s=50e-6, alpha_error_s=0, beta=1e8, beta_error=0, residual=0, worst=1, worst_size=0, points=12)


@pytest.mark.parametrize(
    ("ranks", "size", "latency", "bandwidth", "kind"),
    [
        (2, 76_000, 50e-6, 760e-6, "bandwidth"),  # 1 message; 2 * 1/2 * 76000 / 1e8
        (4, 76_000, 100e-6, 1140e-6, "bandwidth"),  # 2 messages; 2 * 3/4 * 76000 / 1e8
        (4, 400, 100e-6, 6e-6, "latency"),
        (5, 1_000, 150e-6, 16e-6, "latency"),  # ceil(log2 5) = 3
        (8, 1_000, 150e-6, 17.5e-6, "latency"),
        (9, 1_000, 200e-6, 17.7777e-6, "latency"),
        (1, 1_000, 0, 0, "latency"),
    ],
)
def test_bound_against_numbers_made_by_hand(ranks: int, size: int, latency: float, bandwidth: float, kind: str) -> None:
    bound = allreduce_bound(MODEL, size, ranks)
    assert bound.time_s == pytest.approx(max(latency, bandwidth), rel=1e-4)
    assert bound.kind == kind


def test_a_cell_meets_the_probe_of_its_own_network() -> None:
    fits = network_fits(
        [
            probe("slow", 2, 50e-6, 1e8),
            probe("slow", 4, 60e-6, 1e8),
            probe(None, 2, 5e-6, 1e9),
            probe(None, 1, 1e-6, 1e10, ranks=2),
        ]
    )

    def cell_of(network: str | None, nodes: int, ranks: int = 1) -> Cell:
        return train(network, nodes, 1e-3, ranks).cell

    def met(*axes: Any) -> tuple[str | None, int] | None:
        fit = fit_for(cell_of(*axes), fits)
        return (fit.cell.network, fit.cell.nodes) if fit else None

    assert met("slow", 4) == ("slow", 4)
    assert met("slow", 2) == ("slow", 2)
    assert met("slow", 8) == ("slow", 4)
    assert met(None, 4) == (None, 2)
    assert met("other", 2) is None
    assert met("slow", 1, 2) == (None, 1), "within a node the network plays no part"
    assert fit_for(cell_of("slow", 1, 2), fits[1:]) is None


def test_communication_stands_against_the_bound_of_its_nodes() -> None:
    fits = network_fits([probe("slow", 2, 50e-6, 1e8), probe(None, 1, 1e-6, 1e10, ranks=2)])
    records = [
        train("slow", 4, 2.28e-3, ranks=2),
        train("none", 2, 1e-3),
        train(None, 1, 0.0),
        train(None, 1, 1e-4, ranks=4),
    ]
    rows = communications(group_records(records), fits)
    found = {(row.group.cell.nodes, row.group.cell.ranks_per_node): row for row in rows}
    assert set(found) == {(4, 2), (2, 1), (1, 4)}, "one rank has nothing to say"
    # Four nodes, not eight ranks: messages within a node are free.
    across = found[(4, 2)]
    assert across.bound is not None and across.bound.time_s == pytest.approx(1.14e-3, rel=1e-4)
    assert across.ratio == pytest.approx(2.0, rel=1e-4)
    assert found[(2, 1)].ratio is None and "no probe" in str(found[(2, 1)].missing)
    within = found[(1, 4)]
    assert within.bound is not None and within.bound.time_s == pytest.approx(11.4e-6, rel=1e-4)


def test_ranks_that_share_a_model_do_no_all_reduce_of_its_gradient() -> None:
    """A stage sends kilobytes where replicas send megabytes: that is no probe that is off."""
    fits = network_fits([probe(None, 1, 1e-6, 1e10, ranks=2)])
    layouts = {"mpi-pipeline": (1, 2), "mpi-overlap": (2, 1)}
    records = [
        train(None, 1, 1e-9, 2, name, layout={"replicas": replicas, "model_parts": parts})
        for name, (replicas, parts) in layouts.items()
    ]
    (row,) = communications(group_records(records), fits)
    assert row.group.cell.strategy == "mpi-overlap" and row.ratio is not None and row.ratio < 1
