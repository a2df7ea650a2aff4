"""Ranks in Go and numpy, all-reduce and messages, sums beside means, and what its report says."""

from __future__ import annotations

import json
from math import isclose

import pytest

pytestmark = [pytest.mark.study, pytest.mark.timeout(7200)]


@pytest.fixture(scope="module")
def trained(shared) -> dict[tuple[str, str, int], dict]:
    """The training records by framework, strategy, ranks; the mean at a larger rate as `linear`."""
    found = {}
    for record in shared.records("shared", "train").values():
        cell = record["cell"]
        if cell["workload"] not in ("iris-mlp", "images-mlp"):
            continue
        way = "linear" if cell.get("learning_rate_rule") == "linear" else cell["strategy"]
        workload = "" if cell["workload"] == "iris-mlp" else f"{cell['workload']} "
        found[f"{workload}{cell['framework']}", way, cell.get("ranks_per_node", 1)] = record
    return found


def value(record: dict, name: str) -> float:
    return next(one["value"] for one in record["metrics"] if one["name"] == name)


def test_every_way_follows_its_reference_in_both_languages(trained):
    assert len(trained) == 14
    assert {one["status"] for one in trained.values()} == {"ok"}, [one["message"] for one in trained.values()]
    for record in trained.values():
        assert 0 <= value(record, "equality_ratio") <= 1


def test_a_sum_takes_the_path_of_the_mean_at_as_many_times_the_rate(trained):
    mean = value(trained["numpy", "mpi-allreduce", 3], "final_loss")
    scaled = value(trained["numpy", "linear", 3], "final_loss")
    two = value(trained["numpy", "linear", 2], "final_loss")
    assert not isclose(mean, scaled, rel_tol=1e-3)
    for framework in ("numpy", "go"):
        summed = trained[framework, "published-allreduce", 3]
        assert isclose(value(summed, "final_loss"), scaled, rel_tol=1e-5)
        assert summed["details"]["effective_rate"]["factor"] == 3
        # Rank 0 trains nothing: two of three ranks add up, as the mean of two at twice the rate does.
        idle = trained[framework, "published-sendrecv", 3]
        assert isclose(value(idle, "final_loss"), two, rel_tol=1e-5)
        assert idle["details"]["layout"]["replicas"] == 2


def test_a_record_tells_what_has_to_be_installed_and_what_it_holds_at_rest(trained):
    go, numpy = trained["go", "single", 1], trained["numpy", "single", 1]
    assert value(go, "environment_files") == 1
    assert value(numpy, "environment_files") > 1000
    assert value(numpy, "environment_bytes") > 10 * value(go, "environment_bytes") > 1e6
    # Several ranks in Go take Open MPI, which is no part of the program.
    assert value(trained["go", "mpi-allreduce", 2], "environment_files") > 50
    for record in (go, numpy):
        assert 0 < value(record, "memory_at_rest") <= value(record, "peak_memory")


def test_a_twin_of_the_images_says_that_it_is_one(shared, trained):
    (data,) = (r for r in shared.records("shared", "data").values() if "images-mlp" in r["cell_id"])
    assert data["details"]["generated"] is True and "textures" in data["details"]["source"]
    assert trained["images-mlp go", "single", 1]["status"] == "ok"


def test_the_report_says_what_was_published_beside_what_ran(shared):
    folder = shared.folder / "results/shared"
    found = {one["kind"]: one for one in json.loads((folder / "summary.json").read_text())["findings"]}
    assert found["near-linear"]["confidence"] == "confirmed" and found["sum-rate"]["confidence"] == "provisional"
    assert {"rank-stop", "point-to-point", "language", "installed"} <= found.keys()
