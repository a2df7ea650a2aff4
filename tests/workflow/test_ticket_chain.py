"""The chain of `thesis-full`, small: tickets with owners through training, both exports, inference and retraining."""

from __future__ import annotations

import json

import numpy as np
import pytest
import yaml

from checkouts import ROOT
from transect.onnx_models.tensors import read_tensors

pytestmark = pytest.mark.study

WORKLOAD = "tickets-owners"


def _study() -> dict:
    """Return the study at a size of seconds; the tickets that it asks for are not there."""
    text = (ROOT / "config" / "studies" / "thesis-full.yaml").read_text(encoding="utf-8")
    study = yaml.safe_load(text.replace("tickets-owners-published", WORKLOAD))
    del study["classify"], study["claims"], study["questions"]
    dialogues = study["tickets"]["corpora"]["dialogues"]
    dialogues["otherwise"]["options"] |= {"tickets": 300, "owners": 24}
    study["tickets"]["embeddings"]["train"] |= {"method": "random"}
    study["workloads"] = {WORKLOAD: {"epochs": 2, "reference_steps": 4}}
    study["train"]["grids"] = [{"workloads": [WORKLOAD], "frameworks": ["torch"], "strategies": ["single"]}]
    for stage, few in (("infer", {"runtimes": ["python", "torch-eager"]}), ("retrain", {"steps": [6], "repeats": 1})):
        study[stage]["grids"][0] |= few
        del study[stage]["grids"][1:]
    study["retrain"]["grids"][0]["runtimes"] = ["python"]
    study["infer"] |= {"repeats": 1, "max_seconds": 0.05}
    return study


def test_retraining_is_on_the_tickets_kept_for_devices_and_scored_on_those_that_test(place):
    (place.folder / "chain.yaml").write_text(yaml.safe_dump(_study() | {"name": "chain"}))
    ran = place.transect("run", "chain.yaml", "infer", "retrain")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    results = place.folder / "results" / "chain"
    records = list(place.records("chain").values())
    assert {record["status"] for record in records} == {"ok"}
    [corpus] = [record["details"] for record in records if record["stage"] == "corpus"]
    assert (corpus["instead_of"], corpus["synthetic"], corpus["tickets"]) == ("tickets-with-owners.jsonl", True, 300)
    infer = [record["cell"] for record in records if record["stage"] == "infer"]
    assert {(cell["runtime"], cell["exporter"]) for cell in infer} == {
        ("python", "dynamo"),
        ("python", "torchscript"),
        ("torch-eager", None),
    }

    [encode] = results.glob("encode/*/rows_test.npy")
    rows = {part: np.load(encode.parent / f"rows_{part}.npy") for part in ("train", "test", "on_device")}
    assert len(np.unique(np.concatenate([*rows.values()]))) == sum(map(len, rows.values())) == 120 + 60 + 60
    [step] = results.glob("export-training-step/*/facts.json")
    for folder, part in (("data", "on_device"), ("test", "test")):
        tensors = read_tensors(step.parent / folder)
        given = np.load(encode.parent / f"x_{part}.npy")
        length = min(given.shape[1], tensors["x"].shape[1])
        np.testing.assert_array_equal(tensors["x"][:, :length], given[:, :length])
        np.testing.assert_array_equal(tensors["y"], np.load(encode.parent / f"y_{part}.npy"))
    assert (facts := json.loads(step.read_text()))["trained_on"] == "device" and facts["rows"] == 60
    [retrained] = [record for record in records if record["stage"] == "retrain"]
    assert (retrained["details"]["trained_on"], retrained["details"]["test_rows"]) == ("device", 60)
    values = {metric["name"]: metric["value"] for metric in retrained["metrics"]}
    assert values["equality_ratio"] <= 1 and values["accuracy_before"] == pytest.approx(facts["base_scores"]["0"])
    page = (results / "report.html").read_text(encoding="utf-8")
    assert "rows kept for devices, scored on 60 that neither saw" in page
    assert "tickets-with-owners.jsonl was not there" in page
