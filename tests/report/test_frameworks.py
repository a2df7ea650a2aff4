"""Frameworks side by side, and how they follow their reference: who is beside whom, and what is never said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from make_framework_records import train_record, write_framework_study
from make_records import make_record
from said_of_records import Made, findings, only, prose, rows

from factories import make_record, train_cell
from transect.analysis.load import load_records
from transect.domain.record import Cause, Record, Status
from transect.report.engine.charts.theme import Styles


def test_prose(tmp_path: Path, snapshot: Any) -> None:
    kinds = ("fastest", "distribution", "input", "reduction", "equality")
    study = load_records(write_framework_study(tmp_path)).records
    assert prose({"study": study}, *kinds) == snapshot(name="study")
    sections = {key: Made(key, *study).prose for key in ("frameworks", "equality")}
    synthetic = [*repeats("torch", "single", 1, input="synthetic"), *repeats("torch", "ddp-gloo", 2, input="synthetic")]
    sections["speed of synthetic input alone"] = Made("speed", *synthetic).prose
    assert sections == snapshot(name="sections")
    assert prose(SETS, *kinds[:2], "reduction") == snapshot(name="sets")


def repeats(*arguments: Any, **fields: Any) -> list[Record]:
    return [train_record(*arguments, repeat, noise=1 + repeat / 500, **fields) for repeat in range(3)]


def laid_out(records: list[Record], replicas: int, servers: int) -> list[Record]:
    """Give records a layout as strategies with servers tell it."""
    layout = {"replicas": replicas, "model_parts": 1, "micro_batches": 1, "servers": servers}
    return [run.model_copy(update={"details": run.details | {"layout": layout}}) for run in records]


TORCH, SYNTHETIC = repeats("torch", "single", 1), repeats("numpy", "single", 1, input="synthetic")
BESIDE_SYNTHETIC = [*TORCH, *repeats("numpy", "single", 1, input="synthetic", changes={"samples_per_second": 9e9})]
KINDS = [
    *repeats("numpy", "mpi-allreduce", 2),
    *repeats("numpy", "mpi-allreduce", 2, reduce="sum"),
    *repeats("torch", "single", 1, precision="fp64"),
    *repeats("numpy", "single", 1, precision="fp64"),
]
DIVERGED = make_record(
    train_cell(workload="digits-cnn", strategy="mpi-allreduce", ranks_per_node=2, batch=64, reduce="sum"),
    status=Status.FAILED,
    cause=Cause.DIVERGED,
    message="the loss is inf at step 7",
)
PUBLISHED = [
    run
    for name, servers in (("published-allreduce", 0), ("published-sendrecv", 1))
    for run in laid_out(repeats("numpy", name, 4, reduce="sum", batch=48), 4 - servers, servers)
]
MEANS = [run for n in (2, 3) for run in repeats("numpy", "mpi-allreduce", n, batch=48)]
NOISY = [
    *repeats("torch", "single", 1, changes={"step_time": 1.0}),
    *[
        train_record("torch", "ddp-gloo", 2, repeat, changes={"step_time": step})
        for repeat, step in enumerate((0.45, 0.5, 0.57))
    ],
]
SETS = {
    "beside synthetic input": BESIDE_SYNTHETIC,
    "synthetic input alone": SYNTHETIC,
    "kinds": KINDS,
    "a diverged sum": [DIVERGED, *repeats("numpy", "mpi-allreduce", 2)],
    "published sums": [*PUBLISHED, *MEANS],
    # Two ranks of which one trains sum nothing.
    "a pair": [*laid_out(repeats("numpy", "published-sendrecv", 2, reduce="sum", batch=48), 1, 1), *MEANS],
    "within the noise": NOISY,
}


def test_synthetic_input_never_wins_nor_is_its_speed_the_workloads() -> None:
    beside, alone = (only("fastest", *runs).decision for runs in (BESIDE_SYNTHETIC, SYNTHETIC))
    assert beside is not None and beside.winner == "PyTorch on one core"
    [left_out] = beside.left_out
    assert "synthetic" in left_out.what and "another training" in left_out.why
    assert alone is not None and not alone.winner and "synthetic" in alone.instead


def test_a_change_of_hyperparameters_is_told_beside_the_workloads_own() -> None:
    adam = {"hyperparameters": (("learning_rate", 0.001), ("optimiser", "adam"))}
    sooner = repeats("torch", "single", 1, changes={"time_to_quality": 0.8, "steps_to_quality": 200}, **adam)
    never = repeats("torch", "single", 1, drop=("time_to_quality",), hyperparameters=(("learning_rate", 9.0),))
    said = findings(*TORCH, *sooner, *never)["hyperparameters"]
    assert [one.claim.split(" reaches")[0].split(" not every")[0] for one in said] == [
        "with learning rate 0.001, optimiser adam, PyTorch on one core",
        "with learning rate 9.0",
    ]
    (own,) = (value.value for value in TORCH[0].metrics if value.name == "time_to_quality")
    (pair,) = said[0].contrasts
    assert pair.ratio.value == pytest.approx(0.8 / own, rel=0.01)


def test_a_change_that_alone_reaches_the_target_is_told_and_one_of_synthetic_input_is_none() -> None:
    adam = {"hyperparameters": (("optimiser", "adam"),)}
    late, reached = repeats("torch", "single", 1, drop=("time_to_quality",)), repeats("torch", "single", 1, **adam)
    synthetic = repeats("torch", "single", 1, drop=("time_to_quality",), input="synthetic", **adam)
    [said] = findings(*late, *reached, *synthetic)["hyperparameters"]
    assert said.claim.startswith("with optimiser adam every run reaches the target; with the workload's own")
    assert {group.cell.hyperparameters for group in said.groups} == {(), (("optimiser", "adam"),)}


def test_another_mpi_library_is_told_beside_open_mpi_with_the_versions_that_ran() -> None:
    versions = {"openmpi": "Open MPI v5.0.11", "mpich": "MPICH 5.0.2", "intel": "Intel(R) MPI Library 2021"}
    slower = {"openmpi": 1.0, "mpich": 2.0, "intel": 1.3}
    runs = [
        run.model_copy(update={"provenance": run.provenance | {"mpi": versions[mpi]}})
        for mpi, times in slower.items()
        for run in repeats("torch", "mpi-allreduce", 2, options=(("mpi", mpi),), changes={"step_time": 0.01 * times})
    ]
    said = findings(*runs)["mpi"]
    assert [one.claim for one in said] == [
        f"PyTorch on 2 processes with MPI all-reduce takes {times} times (95 % interval {times} to {times}) as long for a "
        f"step with {versions[mpi]} as with Open MPI v5.0.11."
        for mpi, times in (("mpich", "2"), ("intel", "1.3"))
    ]


def test_eight_frameworks_with_eight_strategies_look_different() -> None:
    frameworks = ["numpy", "torch", "tensorflow", "keras-tensorflow", "keras-torch", "keras-jax", "keras-2", "mxnet"]
    strategies = ["single", *(f"way-{number}" for number in range(7))]
    styles = Styles(frameworks, strategies)
    assert len({styles.get(name).color for name in frameworks}) == 8
    found = [styles.get("torch", way) for way in strategies]
    assert len({style.shape for style in found}) == 8
    assert (found[0].shape, found[0].dash) == ("circle", ())


RESTARTS = [{"step": step, "steps": 4, "ratio": 0.02, "sharp": True} for step in (30, 60)]
SEEN = "0.02 from 30, 60"


@pytest.mark.parametrize(
    ("blind", "more", "metrics", "shown"),
    [
        (None, {"restarts": RESTARTS}, {"sharp_steps": 90, "restart_ratio": 0.02}, ("90", SEEN, "equal")),
        (
            30,
            {"restarts": RESTARTS},
            {"sharp_steps": 30, "restart_ratio": 0.02},
            ("30", SEEN, "from step 30 in restarts"),
        ),
        (
            30,
            {"restarts": [], "restarts_not_checkable": "it has no `resume`"},
            {"sharp_steps": 30},
            ("30", "not checkable: it has no `resume`", "not checkable from step 30"),
        ),
        (
            30,
            {"restarts": RESTARTS},
            {"sharp_steps": 30, "restart_ratio": 7.0},
            ("30", "7 from 30, 60", "wrong result"),
        ),
    ],
)
def test_a_row_says_until_where_and_what_took_over(blind, more, metrics, shown):
    values = {"equality_ratio": 0.5, "weights_equality_ratio": 0.4, **metrics}
    record = make_record(train_cell(workload="w", batch=8), values, details={"not_checkable_from": blind} | more)
    [row] = rows(Made("equality", record).tables[-1])
    assert (row["Checkable until step"], row["Restarts: largest ratio"], row[""]) == shown
