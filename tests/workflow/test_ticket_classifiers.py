"""A small study of classifiers, run whole: longer runs go on with shorter ones, and a search."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.study

STUDY = """
name: told
tickets:
  corpora: {made: {format: synthetic, label: owner, options: {tickets: 240, owners: 4, queues: 4}}}
  partitions: {plain: {train: 0.6, valid: 0.2, test: 0.2}}
  vectors: {drawn: {method: drawn, width: 16}}
classify:
  models: {encoder: {kind: transformer, options: {ffn: 16}}}
  grids:
    - {corpora: [made], partitions: [plain], vectors: [drawn], models: [encoder], epochs: [3, 1]}
search:
  searches:
    rate: {corpora: [made], partition: plain, vectors: drawn, model: encoder, budget: 3, epochs: 1, keep: 2,
           rungs: 2, space: {learning_rates: [0.01, 1.0e+30]}}
"""
FILE = "told.yaml"


@pytest.fixture(scope="module")
def study(place):
    """A folder with the study, run once."""
    (place.folder / FILE).write_text(STUDY)
    ran = place.transect("run", FILE, "classify", "search")
    assert ran.returncode == 1, ran.stdout + ran.stderr  # one rate of the search is far too high
    return place


def test_a_longer_run_goes_on_with_the_shorter_one(study):
    records = study.records("told", "classify").values()
    short, long = sorted(records, key=lambda record: record["cell"]["epochs"])
    assert {short["status"], long["status"]} == {"ok"}
    assert long["details"]["went_on_from"] == short["cell_id"]
    assert long["details"]["history"][:1] == short["details"]["history"]
    assert any(one.startswith("state.npz ") for one in long["inputs"])
    assert long["details"]["synthetic"] and 0 < long["details"]["bayes_accuracy"] <= 1
    assert {"model.onnx", "predict.onnx", "probabilities.npz", "state.npz"} <= long["files"].keys()


def test_the_point_that_did_not_diverge_goes_on(study):
    records = {(one["cell"]["rung"], one["cell"]["place"]): one for one in study.records("told", "search").values()}
    assert sorted(records) == [(0, 0), (0, 1), (1, 0)]
    first = {one["status"]: one for place, one in records.items() if not place[0]}
    assert (first["failed"]["cause"], first["failed"]["metrics"]) == ("diverged", [])
    last = records[1, 0]
    assert last["status"] == "ok" and last["details"]["from"] == first["ok"]["cell_id"]
    assert last["details"]["point"] == first["ok"]["details"]["point"] == {"learning_rate": 0.01}
    assert [entry["epoch"] for entry in last["details"]["history"]] == [1, 2]


def test_a_second_run_keeps_all_and_more_epochs_add_one_cell(study):
    before = {name: one["ended"] for name, one in study.records("told").items()}
    assert study.transect("run", FILE, "classify", "search").returncode == 1
    assert {name: one["ended"] for name, one in study.records("told").items()} == before
    file = study.folder / FILE
    file.write_text(STUDY.replace("epochs: [3, 1]", "epochs: [3, 1, 4]"))
    assert study.transect("run", FILE, "classify").returncode == 0
    after = study.records("told", "classify")
    [new] = after.keys() - before.keys()
    assert after[new]["details"]["went_on_from"].startswith("made.conversation.pseudonyms.plain.drawn")
    assert [entry["epoch"] for entry in after[new]["details"]["history"]] == [1, 2, 3, 4]
    assert all(after[name]["ended"] == before[name] for name in after.keys() & before.keys())
