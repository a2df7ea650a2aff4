"""A small study of classifiers, run whole: longer runs go on with shorter ones, and a search."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.study

STUDY = """
name: told
tickets:
  corpora: {made: {format: synthetic, label: owner, options: {tickets: 240, owners: 4, queues: 4}}}
  splits: {plain: {train: 0.6, validation: 0.2, test: 0.2}}
  embeddings: {drawn: {method: random, width: 16}}
classify:
  models: {encoder: {kind: transformer, options: {ffn: 16}}}
  grids:
    - {corpora: [made], splits: [plain], embeddings: [drawn], models: [encoder], epochs: [3, 1]}
search:
  searches:
    rate: {corpora: [made], split: plain, embeddings: drawn, model: encoder, budget: 3, epochs: 1, keep: 2,
           rungs: 2, space: {learning_rates: [0.01, 1.0e+30]}}
"""
FILE = "told.yaml"


def test_a_longer_run_and_a_search_go_on_with_what_is_there(place):
    file = place.folder / FILE
    file.write_text(STUDY)
    ran = place.transect("run", FILE, "classify", "search")
    assert ran.returncode == 1, ran.stdout + ran.stderr  # one rate of the search is far too high
    records = place.records("told", "classify").values()
    short, long = sorted(records, key=lambda record: record["cell"]["epochs"])
    assert {short["status"], long["status"]} == {"ok"}
    assert long["details"]["went_on_from"] == short["cell_id"]
    assert long["details"]["history"][:1] == short["details"]["history"]
    assert any(line.startswith("state.npz ") for line in long["inputs"])
    places = {(r["cell"]["rung"], r["cell"]["place"]): r for r in place.records("told", "search").values()}
    assert sorted(places) == [(0, 0), (0, 1), (1, 0)]
    first = {record["status"]: record for key, record in places.items() if not key[0]}
    assert (first["failed"]["cause"], first["failed"]["metrics"]) == ("diverged", [])
    last = places[1, 0]
    assert last["status"] == "ok" and last["details"]["from"] == first["ok"]["cell_id"]
    assert last["details"]["point"] == first["ok"]["details"]["point"] == {"learning_rate": 0.01}
    before = {name: record["ended"] for name, record in place.records("told").items()}
    file.write_text(STUDY.replace("epochs: [3, 1]", "epochs: [3, 1, 4]"))
    assert place.transect("run", FILE, "classify").returncode == 0
    after = place.records("told", "classify")
    [new] = after.keys() - before.keys()
    assert [entry["epoch"] for entry in after[new]["details"]["history"]] == [1, 2, 3, 4]
    assert all(after[name]["ended"] == before[name] for name in after.keys() & before.keys())
