"""Ranks in Go that meet by MPI follow the float64 reference, by each strategy that the program has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from program_cells import program_cell
from rank_runs import Training, arrays

RULE = {"batch": 12, "epochs": 2, "learning_rate": 0.02, "momentum": 0.0, "quality_target": 0.5}
# Messages of single layers, and of two together; who makes them go on; and how a rank waits.
OVERLAPS = (
    {"bucket_bytes": 0, "progress": "test", "wait": "spin"},
    {"bucket_bytes": 2000, "progress": "thread", "wait": "sleep"},
    {"bucket_bytes": 10**9, "progress": "none", "wait": "sleep"},
)


@pytest.fixture(scope="module")
def training(base_python, tmp_path_factory) -> tuple[Training, dict[str, Path]]:
    """Three ranks that train: their gradients' mean, and their sum."""
    made = Training(python=base_python, folder=tmp_path_factory.mktemp("go") / "iris", rule=RULE)
    made.prepare()
    precisions = ("fp32", "fp64")
    summed = made.reference(precisions=precisions, repeat=0, reduce="sum", shards=3)
    return made, {"mean": made.reference(precisions=precisions, repeat=0), "sum": summed}


def run(training, go_programs, ranks: int = 3, reduce: str = "mean", **axes: Any) -> dict[str, Any]:
    made, references = training
    return program_cell(
        made,
        references[reduce],
        programs=go_programs,
        ranks_per_node=ranks,
        reduce=reduce,
        **{"framework": "go", "batch": 12, "precision": "fp64", "repeat": 0} | axes,
    )


def check(result: dict[str, Any]) -> None:
    assert (result["status"], result["message"]) == ("ok", ""), result
    metrics, details = result["metrics"], result["details"]
    assert 0 <= metrics["equality_ratio"] <= 1 and 0 < metrics["weights_equality_ratio"] <= 1
    # They communicate in the restarts too.
    assert details["restarts_not_checkable"] is None and 0 <= metrics["restart_ratio"] <= 1
    assert "Open MPI" in result["libraries"]["mpi"]
    parts = metrics["compute_time"], metrics["communication_time"]
    assert min(parts) > 0 and sum(parts) < 1.5 * metrics["step_time"]


@pytest.mark.parametrize(
    ("strategy", "axes"),
    [
        ("mpi-allreduce", {}),
        ("mpi-allreduce", {"reduce": "sum", "framework": "go-openblas"}),
        ("mpi-allreduce", {"precision": "fp32"}),
        ("mpi-sendrecv", {}),
        ("mpi-sendrecv", {"reduce": "sum", "precision": "fp32"}),
        ("published-allreduce", {"reduce": "sum"}),
        ("published-sendrecv", {"reduce": "sum", "ranks": 4}),
        ("async", {"ranks": 4, "options": (("staleness", 0),)}),
    ],
)
def test_ranks_in_go_follow_the_reference(training, go_programs, strategy, axes):
    result = run(training, go_programs, strategy=strategy, **axes)
    check(result)
    flag = {"factor": 3, "reason": "sum without a mean: effective rate x 3"}
    assert result["details"].get("effective_rate") == (flag if axes.get("reduce") else None)
    servers = int(strategy in ("published-sendrecv", "async"))
    assert result["details"]["layout"]["servers"] == servers


@pytest.mark.parametrize("options", OVERLAPS)
def test_layers_are_summed_while_others_are_computed(training, go_programs, options):
    knobs = tuple(sorted((options | {"reduce": "all"}).items()))
    result = run(training, go_programs, strategy="mpi-overlap", options=knobs)
    check(result)
    told = result["details"]["ranks"][0]
    assert told["messages"] == {0: 3, 2000: 2, 10**9: 1}[options["bucket_bytes"]]
    # Who never looks cannot say how long messages were under way.
    assert ("communication_total_time" in result["metrics"]) == (options["progress"] != "none")


@pytest.mark.parametrize(
    ("strategy", "axes"),
    [
        ("mpi-allreduce", {}),
        ("mpi-sendrecv", {"precision": "fp32"}),
        ("published-sendrecv", {"reduce": "sum", "ranks": 4}),
        ("async", {"ranks": 4, "options": (("staleness", 0),)}),
    ],
)
def test_ranks_in_go_and_in_numpy_are_one_training(training, go_numpy_programs, strategy, axes):
    result = run(training, go_numpy_programs, strategy=strategy, framework="go+numpy", **axes)
    check(result)
    assert {"go", "numpy", "mpi4py", "mpi"} <= set(result["libraries"])
    log = (Path(result["folder"]) / "output.log").read_text()
    assert log.count("begins to train") == axes.get("ranks", 3)


@pytest.mark.parametrize("framework", ["go", "go+numpy"])
@pytest.mark.parametrize("bound", [2, "unbounded"])
def test_a_server_in_go_loses_no_gradient_and_keeps_its_bound(
    training, go_programs, go_numpy_programs, framework, bound
):
    programs = go_programs if framework == "go" else go_numpy_programs
    result = run(training, programs, framework=framework, ranks=4, strategy="async", options=(("staleness", bound),))
    assert (result["status"], result["message"]) == ("ok", ""), result
    server, *workers = result["details"]["ranks"]
    assert [server["role"], *(one["role"] for one in workers)] == ["server", *["worker"] * 3]
    sent = [one["gradients_sent"] for one in workers]
    assert sent == [18] * 3 and server["gradients_applied"] == server["updates"] == sum(sent)
    # All end with the server's weights, whatever language they are held in.
    assert len({one["weights_crc32"] for one in (server, *workers)}) == 1
    samples = arrays(Path(result["folder"]) / "samples.npz")
    assert samples["staleness"].shape == (54,) and samples["staleness"].min() >= 0
    assert sorted(samples["applied_worker"]) == [1] * 18 + [2] * 18 + [3] * 18
    if bound != "unbounded":
        assert samples["lead"].max() <= bound
