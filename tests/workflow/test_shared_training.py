"""Trainings of the shared study: parameter servers, Go beside numpy, parts of models, mistakes between ranks, plug-ins."""

from __future__ import annotations

import json
import re
from math import isclose

import pytest

pytestmark = [pytest.mark.study, pytest.mark.timeout(7200)]

WORKERS = 2


@pytest.fixture(scope="module")
def trained(shared) -> list[dict]:
    """All records of trainings."""
    return list(shared.records("shared", "train").values())


def of(records, **axes):
    return [record for record in records if all(record["cell"].get(name) == value for name, value in axes.items())]


def values(record) -> dict[str, float]:
    return {metric["name"]: metric["value"] for metric in record["metrics"]}


# A parameter server: what can be checked is, what cannot says so, and a death ends all.


@pytest.fixture(scope="module")
def asynchronous(trained):
    """The cells of the parameter server."""
    return of(trained, workload="iris-mlp-ce", batch=12, strategy="async")


@pytest.mark.parametrize("stale", [False, True])
def test_gradients_are_checked_where_none_is_stale_and_never_lost(asynchronous, stale):
    found = [
        record
        for record in of(asynchronous, framework="numpy", ranks_per_node=3)
        if (dict(record["cell"]["options"]).get("staleness") != 0) is stale
    ]
    assert len(found) == (4 if stale else 2)
    for record in found:
        assert record["status"] == "ok", record["message"]
        details = record["details"]
        if not stale:
            assert values(record)["equality_ratio"] < 1 and values(record)["restart_ratio"] < 1
            assert "not_checkable" not in details
            continue
        assert not [name for name in values(record) if "equality" in name]
        assert details["not_checkable"].startswith("asynchronous: ")
        steps = 12 * details["steps_per_epoch"]
        assert details["updates"]["gradients_sent"] == WORKERS * steps
        assert details["updates"]["gradients_applied"] == WORKERS * steps
        assert len({rank["weights_crc32"] for rank in details["ranks"]}) == 1
        assert record["samples"]["staleness"]["count"] == WORKERS * steps


def test_a_server_alone_is_skipped_with_its_reason(asynchronous):
    alone = of(asynchronous, ranks_per_node=1)
    assert len(alone) == 6
    assert {(record["status"], record["cause"]) for record in alone} == {("skipped", "unsupported")}
    assert all("at least 2 ranks" in record["message"] for record in alone)


@pytest.mark.parametrize(("framework", "who"), [("test-server-dies", "rank 0"), ("test-worker-dies", "rank 2")])
def test_a_rank_that_dies_ends_all_and_is_named(asynchronous, framework, who):
    [record] = of(asynchronous, framework=framework)
    assert (record["status"], record["cause"]) == ("failed", "killed"), record["message"]
    assert who in record["message"]


# Ranks in Go and numpy, all-reduce and messages, sums beside means.


@pytest.fixture(scope="module")
def languages(trained) -> dict[tuple[str, str, int], dict]:
    """The training records by framework, strategy, ranks; the mean at a larger rate as `linear`."""
    found = {}
    for record in trained:
        cell = record["cell"]
        if cell["workload"] in ("iris-mlp", "images-mlp"):
            way = "linear" if cell.get("learning_rate_rule") == "linear" else cell["strategy"]
            workload = "" if cell["workload"] == "iris-mlp" else f"{cell['workload']} "
            found[f"{workload}{cell['framework']}", way, cell.get("ranks_per_node", 1)] = record
    return found


def test_every_way_follows_its_reference_in_both_languages(shared, languages):
    assert len(languages) == 14
    assert {r["status"] for r in languages.values()} == {"ok"}, [r["message"] for r in languages.values()]
    assert all(0 <= values(record)["equality_ratio"] <= 1 for record in languages.values())
    (data,) = (r for r in shared.records("shared", "dataset").values() if "images-mlp" in r["cell_id"])
    assert data["details"]["generated"] is True and "textures" in data["details"]["source"]


def test_a_sum_takes_the_path_of_the_mean_at_as_many_times_the_rate(languages):
    def loss(*key) -> float:
        return values(languages[key])["final_loss"]

    assert not isclose(loss("numpy", "mpi-allreduce", 3), loss("numpy", "linear", 3), rel_tol=1e-3)
    for framework in ("numpy", "go"):
        assert isclose(loss(framework, "published-allreduce", 3), loss("numpy", "linear", 3), rel_tol=1e-5)
        assert languages[framework, "published-allreduce", 3]["details"]["effective_rate"]["factor"] == 3
        # Rank 0 trains nothing: two of three ranks add up, as the mean of two at twice the rate does.
        assert isclose(loss(framework, "published-sendrecv", 3), loss("numpy", "linear", 2), rel_tol=1e-5)
        assert languages[framework, "published-sendrecv", 3]["details"]["layout"]["replicas"] == 2


def test_a_record_tells_what_has_to_be_installed_and_what_it_holds_at_rest(languages):
    go, numpy = values(languages["go", "single", 1]), values(languages["numpy", "single", 1])
    assert go["environment_files"] == 1 and numpy["environment_files"] > 1000
    assert numpy["environment_bytes"] > 10 * go["environment_bytes"] > 1e6
    # Several ranks in Go take Open MPI, which is no part of the program.
    assert values(languages["go", "mpi-allreduce", 2])["environment_files"] > 50
    for found in (go, numpy):
        assert 0 < found["memory_at_rest"] <= found["peak_memory"]


def test_the_report_says_what_was_published_beside_what_ran(shared):
    summary = json.loads((shared.folder / "results/shared/summary.json").read_text())
    found = {finding["kind"]: finding for finding in summary["findings"]}
    # What was published is arithmetic; that more ranks are faster here, where they are, is put to no test.
    text = found["near-linear"]["text"]
    faster_here = re.search("; here [^;]* times as fast on ", text) is not None
    assert faster_here or "; here no number of ranks" in text or "beyond the first shares cores" in text, text
    assert found["near-linear"]["confidence"] == ("provisional" if faster_here else "confirmed")
    assert found["sum-rate"]["confidence"] == "provisional"
    # Point to point beside the collective is a finding where a question asks for it.
    assert {"rank-stop", "language", "installed"} <= found.keys()


# Torch's parallel strategies, and pipelines over MPI.


@pytest.fixture(scope="module")
def parts(trained) -> dict[tuple[str, str], dict]:
    """The training records of torch's strategies by what tells them apart."""
    found = {}
    for record in trained:
        cell = record["cell"]
        if cell["strategy"] in ("torch-pipeline", "spatial", "tensor-parallel") and cell["batch"] != 32:
            schedule = dict(cell.get("options", [])).get("schedule", "1f1b")
            piped = cell["strategy"] == "torch-pipeline"
            found[cell["strategy"], schedule if piped else cell["workload"]] = record
    assert len(found) == 7
    return found


RUN = {
    ("torch-pipeline", "gpipe"): {"replicas": 1, "model_parts": 2, "micro_batches": 5},
    ("torch-pipeline", "zbv-zero-bubble"): {"replicas": 1, "model_parts": 2, "micro_batches": 3},
    ("torch-pipeline", "interleaved-1f1b"): {"replicas": 2, "model_parts": 2, "micro_batches": 2},
    ("spatial", "digits-cnn"): {"replicas": 1, "model_parts": 2, "micro_batches": 1},
    ("tensor-parallel", "digits-mlp"): {"replicas": 1, "model_parts": 2, "micro_batches": 1},
}


@pytest.mark.parametrize("key", RUN, ids=" ".join)
def test_a_cell_of_parts_follows_the_reference(parts, key):
    record = parts[key]
    assert record["status"] == "ok", f"{record['message']}\n{record['log_tail']}"
    found, details = values(record), record["details"]
    # Loss at every step, and all weights with the running statistics of batch norm.
    assert found["equality_ratio"] <= 1 and found["weights_equality_ratio"] <= 1
    assert details["restarts_not_checkable"] is None and found["restart_ratio"] <= 1
    assert details["layout"] == RUN[key] | {"servers": 0, "devices": 1, "workers": []}
    assert found["compute_time"] + found["communication_time"] <= found["step_time"] * 1.5
    # Only stages of a pipeline wait for one another's results; the others have no bubble of 0.
    assert (found.get("bubble", 0) > 0) == ("bubble" in found) == (key[0] == "torch-pipeline")


def test_stages_say_which_layers_they_are(parts):
    ranks = parts["torch-pipeline", "zbv-zero-bubble"]["details"]["ranks"]
    assert [rank["stages"] for rank in ranks] == [[0, 3], [1, 2]]
    spans = sorted(span for rank in ranks for span in rank["layers"])
    assert [a for a, _ in spans][1:] == [b for _, b in spans][:-1]


def test_what_cannot_be_cut_is_skipped_with_its_reason(trained, parts):
    pipelines = of(trained, strategy="mpi-pipeline", batch=60)
    few, cut = sorted((r for r in pipelines if r["status"] == "skipped"), key=lambda record: record["message"])
    for record, reason in (
        (parts["torch-pipeline", "1f1b"], "2 stages, not 1"),
        (parts["tensor-parallel", "digits-cnn"], "no two linear layers"),
        (few, "2 stages"),
        (cut, "2-1"),
    ):
        assert (record["status"], record["cause"]) == ("skipped", "unsupported") and reason in record["message"]


def test_pipelines_follow_the_float64_path_and_say_who_had_which_layers(trained):
    cells = of(trained, strategy="mpi-pipeline", batch=60, ranks_per_node=4)
    assert len(cells) == 4
    for record in cells:
        assert record["status"] == "ok", record["message"]
        found = values(record)
        assert 0 < found["equality_ratio"] < 1 and found["restart_ratio"] < 1
        assert 0 < found["weights_equality_ratio"] < 1 and 0 <= found["bubble"] < 1
    (record,) = (record for record in cells if "numpy" in record["cell_id"] and "gpipe" in record["cell_id"])
    details = record["details"]
    layout = {"replicas": 2, "model_parts": 2, "micro_batches": 4, "servers": 0, "devices": 1, "workers": []}
    assert details["layout"] == layout
    assert [rank["layers"] for rank in details["ranks"]] == [[0, 4], [4, 8]] * 2
    assert [rank["replica"] for rank in details["ranks"]] == [0, 0, 1, 1]


# Each mistake between ranks with the strategy that it spoils.
WRONG = {
    "seeded-weight": "mpi-pipeline",
    "seeded-late": "mpi-overlap",
    "seeded-stale": "mpi-overlap-bcast",
    "seeded-halo": "spatial",
}


@pytest.mark.parametrize("wrong", WRONG)
def test_mistakes_between_ranks_are_wrong_results(trained, wrong):
    found = {record["cell"]["strategy"]: record for record in of(trained, batch=32)}
    assert set(found) == {*WRONG, *WRONG.values()}
    right = found[WRONG[wrong]]
    assert right["status"] == "ok", right["message"]
    assert found[wrong]["cause"] == "wrong-result", found[wrong]["message"]
    assert "leaves the float64 reference at step" in found[wrong]["message"]


def test_single_files_join_a_run(shared):
    records = {record["cell_id"].split("~")[0]: record for record in shared.records("shared").values()}
    extra = {name: record for name, record in records.items() if "extra" in name or name == "logs"}
    assert len(extra) == 5 and sum("extra-runtime" in name for name in extra) == 2
    assert {record["status"] for record in extra.values()} == {"ok"}, extra
    trained = records["iris-mlp-ce.extra-framework.extra-reduce-broadcast.n1x2.b16.fp32"]
    assert 0 <= values(trained)["equality_ratio"] <= 1
    (read,) = records["logs"]["details"]["runs"]
    assert read["benchmark"] == "extra-benchmark" and records["logs"]["metrics"][0]["value"] == 12.5e9
