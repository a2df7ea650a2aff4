"""Other stages of the shared study: operator tests, docking, an encoder of tickets, predictions, retraining."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from checkouts import edited

pytestmark = [pytest.mark.study, pytest.mark.timeout(7200)]

FILE = "shared.yaml"
RELAY = "python>python-iobinding>python>python-iobinding"


def values(record: dict) -> dict[str, float]:
    return {metric["name"]: metric["value"] for metric in record["metrics"]}


# Operator tests.


def operators(shared) -> dict[str, dict]:
    """Return the records of operator tests by stage and id."""
    return shared.records("shared", "onnx-node-tests") | shared.records("shared", "conformance")


def test_the_tests_are_a_cell_of_their_own_and_the_runtime_another(shared):
    records = operators(shared)
    assert sorted(name.split("/")[0] for name in records) == ["conformance", "onnx-node-tests"]
    assert {record["status"] for record in records.values()} == {"ok"}
    found = next(record for name, record in records.items() if name.startswith("conformance/"))
    rate = next(metric for metric in found["metrics"] if metric["name"] == "conformance_pass_rate")
    assert rate["value"] == pytest.approx(16 / 24)
    assert found["inputs"][0].startswith("nodetests.tar ")
    assert found["files"].keys() == {"result.json", "runner.log", "verdicts.json"}


def test_the_report_has_the_pass_rates_by_opset_and_why_tests_do_not_pass(shared):
    html = (shared.folder / "results/shared/report.html").read_text()
    assert "16 · 100.0 %" in html and "16 · 66.7 %" in html and "Unsupported model IR version" in html
    summary = json.loads((shared.folder / "results/shared/summary.json").read_text())
    claims = [finding["text"] for finding in summary["findings"] if finding["kind"] == "conformance"]
    assert claims == ["On cpu: python passes 16 of 24 operator tests."]


def test_a_pattern_that_no_test_has_is_the_cell_s_failure(shared):
    with edited(shared.folder / FILE, "test_cast*FLOAT*", "conv"):
        run = shared.transect("run", FILE, "conformance")
        (record,) = shared.records("shared", "conformance").values()
    # What others look at holds again.
    assert shared.transect("run", FILE, "conformance").returncode == 0
    assert run.returncode == 1, run.stderr
    assert (record["status"], record["cause"]) == ("failed", "bad-input")
    assert "'conv'" in record["message"]


# Docking, cut down: what is wrong or missing is told by its cause.


@pytest.fixture(scope="module")
def docking(shared):
    """What each cell of docking came to."""
    found = shared.records("shared", "bench").values()
    return [record for record in found if record["cell"]["benchmark"] == "docking-probe"]


def of(docking, **wanted):
    """Return the records whose options hold these."""
    return [
        record
        for record in docking
        if wanted.items() <= (dict(record["cell"]["options"]) | {"device": record["cell"]["device"]}).items()
    ]


def test_right_energies_make_times(docking):
    for record in [*of(docking, implementation="openmp", deck="small", ppwi=None), *of(docking, implementation="rust")]:
        assert record["status"] == "ok", record["message"]
    good = [record for record in docking if record["status"] == "ok"]
    assert len(good) == 6
    for record in good:
        numbers = {metric["label"]: metric["value"] for metric in record["metrics"]}
        assert numbers["pose-time_median"] * numbers["interactions_median"] == pytest.approx(8 * 128, rel=1e-4)
        (run,) = record["details"]["runs"]
        assert run["parameters"]["verified"] == "yes"
        assert [len(run["samples"][name]["values"]) for name in ("kernel", "warm-up")] == [2, 1]
        assert run["parameters"]["pin"].startswith("threads on CPU ")


@pytest.mark.parametrize(
    ("deck", "cause", "words"),
    [("wrong", "wrong-result", "energies"), ("cut", "bad-input", "protein.in has 637 bytes")],
)
def test_a_deck_that_is_wrong_or_cut_is_told(docking, deck, cause, words):
    found = [record for record in docking if str(dict(record["cell"]["options"])["deck"]).endswith(f"/{deck}")]
    assert len(found) == 2
    for record in found:
        assert (record["status"], record["cause"], record["metrics"]) == ("failed", cause, [])
        assert words in record["message"]


def test_what_is_missing_is_skipped_with_its_own_words(docking):
    for record in of(docking, implementation="openacc", device="cuda"):
        assert (record["status"], record["cause"]) == ("skipped", "missing-dependency")
        assert "clang" in record["message"]
    for record in of(docking, implementation="julia"):
        assert record["status"] == "ok" or "julia is not on PATH" in record["message"]
    for record in of(docking, ppwi=3):
        assert (record["status"], record["cause"]) == ("skipped", "unsupported")


# The encoder of tickets through the stages that know no tickets.


@pytest.fixture(scope="module")
def encoder(shared) -> dict:
    """The records of the encoder by stage and id."""
    found = {}
    for stage in ("encode", "dataset", "train", "export", "infer", "export-training-step", "retrain"):
        prefix = "sample" if stage == "encode" else "test-encoder"
        found[stage] = {
            r["cell_id"]: r for r in shared.records("shared", stage).values() if r["cell_id"].startswith(prefix)
        }
    return found


def test_its_data_is_made_of_encoded_tickets(encoder):
    (data,), (encoded,) = encoder["dataset"].values(), encoder["encode"].values()
    assert data["details"]["dataset"] == "tickets"
    assert data["details"]["train"] == encoded["details"]["sizes"]["train"]
    assert data["details"]["classes"] == encoded["details"]["classes"]
    # What it took is named, with its content.
    taken = " ".join(data["inputs"])
    assert encoded["files"]["x_train.npy"] in taken


def test_every_strategy_follows_the_float64_path(encoder):
    cells = {(record["cell"]["framework"], record["cell"]["strategy"]): record for record in encoder["train"].values()}
    assert len(cells) == 3
    for record in cells.values():
        assert record["status"] == "ok", record["message"]
        found = values(record)
        assert 0 < found["equality_ratio"] < 1 and found["weights_equality_ratio"] < 1


def test_a_runtime_of_layers_says_that_it_is_none(encoder):
    states = {record["cell"]["runtime"]: (record["status"], record["message"]) for record in encoder["infer"].values()}
    assert states["python"][0] == states["torch-eager"][0] == "ok"
    assert states["tensorflow"][0] == "skipped" and "a transformer" in states["tensorflow"][1]


def test_costs_come_from_the_model_where_there_is_no_graph(encoder):
    of = {record["cell"]["runtime"]: record["details"] for record in encoder["infer"].values()}
    assert (of["python"]["costs_from"], of["torch-eager"]["costs_from"]) == ("ONNX graph", "model")
    assert of["python"]["operators_without_rule"] == []
    ratio = of["python"]["flops_per_run"] / of["torch-eager"]["flops_per_run"]
    assert 0.8 < ratio < 1.25


def test_its_step_is_portable_and_retrained(encoder):
    (step,) = encoder["export-training-step"].values()
    assert step["status"] == "ok", step["message"]
    assert len(encoder["retrain"]) == 2
    for record in encoder["retrain"].values():
        assert record["status"] == "ok", record["message"]
        assert values(record)["weights_equality_ratio"] < 1


# A study's classifier, applied to the tickets that it was tested with.


def test_new_tickets_are_told_as_those_of_the_test_were(shared: Any) -> None:
    records = shared.records("shared", "classify")
    assert len(records) == 3
    for record in records.values():
        folder = shared.folder / "results" / "shared" / "classify" / record["cell_id"]
        pipeline = json.loads((folder / "pipeline.json").read_text())
        assert (pipeline["signatures"], pipeline["redact"]) == ("keep", True)
        assert pipeline["view"] == record["cell"]["view"]
        done = shared.transect("predict", str(folder), "own.jsonl", "--top", str(len(pipeline["classes"])))
        assert done.returncode == 0, done.stderr
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        stage, cell_id = json.loads((folder / "spec.json").read_text())["inputs"]["encode"]
        rows = np.load(shared.folder / "results" / "shared" / stage / cell_id / "rows_test.npy")
        _compare(lines, rows, folder, pipeline["classes"])


def _compare(lines: list[dict[str, Any]], rows: np.ndarray, folder: Path, classes: list[str]) -> None:
    assert [line["id"] for line in lines] == [f"ticket {number}" for number in range(len(lines))]
    with np.load(folder / "probabilities.npz") as file:
        tested = file["test"]
    assert len(tested) == len(rows) > 100
    for row, expected in zip(rows, tested, strict=True):
        likeliest = dict(map(tuple, lines[row]["likeliest"]))
        found = [likeliest[name] for name in classes]
        np.testing.assert_allclose(found, expected, atol=2e-6)
    # No row could take the place of another.
    assert len(np.unique(np.round(tested, 4), axis=0)) > len(tested) / 2


# Retraining: real steps, real runners, one that is wrong, and a relay.


@pytest.fixture(scope="module")
def retrained(shared):
    """The records by runtime, optimiser, rate and base."""
    found = {}
    for record in shared.records("shared", "retrain").values():
        cell = record["cell"]
        if cell["workload"] == "iris-mlp-ce":
            key = cell["runtime"], cell["optimiser"], cell["rate"], cell["base_epochs"]
            found[key] = record
    return found


def loss(shared, record) -> np.ndarray:
    folder = shared.folder / "results" / "shared" / "retrain" / record["cell_id"]
    with np.load(folder / "samples.npz") as file:
        return file["loss"]


def test_every_step_is_exported_and_follows_pytorch(shared, retrained):
    steps = {n: record for n, record in shared.records("shared", "export-training-step").items() if "/iris-mlp-ce" in n}
    # One of them is a federation's, which poses no problem of retraining.
    assert len(steps) == 4 and {record["status"] for record in steps.values()} == {"ok"}
    posed = []
    for name in steps:
        folder = shared.folder / "results" / "shared" / name
        workload = json.loads((folder / "step" / "workload.json").read_text())
        assert workload["workload"] == "iris-mlp-ce" and workload["optimiser"] in ("sgd", "adamw")
        facts = json.loads((folder / "facts.json").read_text())
        assert 0 < facts["base_scores"]["0"] < 1
        # A rate that is wrong by a hundredth would be seen a hundred times over.
        for problem in facts["problems"].values():
            assert problem["not_checkable_from"] is None and problem["detects_rate_error"] < 1e-4
        posed.append(bool(facts["problems"]))
        # Nothing in it may differ from run to run.
        rule = {"tolerance_rule"} if facts["problems"] else set()
        assert facts.keys() == {"base_scores", "problems", "score", "trained_on", "rows"} | rule
        assert facts["trained_on"] == "train"
    assert sorted(posed) == [False, True, True, True]


# The last of Python with micro-batches and clipping.
@pytest.mark.parametrize(
    "key",
    [
        *(
            ("python", *key)
            for key in (("sgd", "old", 1), ("sgd", "fast", 1), ("adamw", "old", 1), ("adamw", "fast", 1))
        ),
        ("python", "sgd", "old", 0),
        ("extra-runtime", "sgd", "old", 1),
    ],
)
def test_pythons_path_is_pytorchs(retrained, key):
    record = retrained[key]
    assert record["status"] == "ok", record["message"]
    metrics = values(record)
    assert metrics["equality_ratio"] <= 1 and metrics["weights_equality_ratio"] <= 1
    assert metrics["step_time"] > 0 and metrics["peak_memory"] > 0
    assert 0 <= metrics["accuracy"] <= 1


def test_a_rate_that_is_one_percent_off_is_a_wrong_result(retrained):
    record = retrained["test-wrong-rate", "sgd", "old", 1]
    assert (record["status"], record["cause"]) == ("failed", "wrong-result")
    assert "step_time" not in values(record)


def test_a_relay_computes_what_one_runtime_does(shared, retrained):
    relay, alone = retrained[RELAY, "sgd", "old", 1], retrained["python", "sgd", "old", 1]
    assert relay["status"] == "ok", relay["message"]
    assert [turn["end"] for turn in relay["details"]["turns"]] == [5, 10, 15, 20]
    assert loss(shared, relay) == pytest.approx(loss(shared, alone), rel=1e-6)
