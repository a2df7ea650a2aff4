"""A study's classifier, applied to the tickets that it was tested with, tells what it told there."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from checkouts import ROOT

pytestmark = pytest.mark.study

STUDY = """
name: told
tickets:
  corpora: {own: {format: jsonl, path: own.jsonl, options: {signatures: keep}}}
  partitions: {halves: {by: stratified, train: 0.5, test: 0.5}}
  vectors: {small: {width: 8, epochs: 1}}
classify:
  models:
    tfidf: {kind: tfidf}
    right: {kind: transformer, options: {epochs: 2, ffn: 16}}
    # Columns of padding are not without effect on it: its file takes one length.
    published: {kind: transformer, options: {epochs: 1, ffn: 16, reshape: published, pooling: flatten}}
  grids:
    - {corpora: [own], views: [first], partitions: [halves], vectors: [small], models: [tfidf]}
    - {corpora: [own], names: [removed], stop_words: [true], partitions: [halves], vectors: [small], models: [right, published]}
"""
PEOPLE = ("Anna Schmidt", "Bernd Gröner", "chloé.durand@example.org")


def _tickets() -> list[dict[str, Any]]:
    """Return real tickets, dressed up with people, addresses, quotes, markup and text that is no word."""
    with (ROOT / "src/transect/text/data/tickets-sample.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))[:240]
    made = []
    for number, row in enumerate(rows):
        text, queue = row["Document"], row["Topic_group"]
        person, other = PEOPLE[number % 3], PEOPLE[(number + 1) % 3]
        asked = (
            f"Hallo {other}, 日本\u0301 {text} <b>Gru\u0308ße</b>\n-- \n{person}, +49 551 1234567"
        )
        answer = f"Dear {person}, mail me at a{number}@example.org\n\n> {text}\n> {text}"
        made.append({
            "id": f"ticket {number}", "queue": queue, "messages": [
                {"role": "customer", "author": person, "text": asked},
                {"role": "agent", "author": other, "text": answer},
            ],
        })  # fmt: skip
    return made


@pytest.fixture(scope="module")
def study(checkout: Any) -> Any:
    """A checkout in which the study has run."""
    lines = (json.dumps(one) + "\n" for one in _tickets())
    (checkout.folder / "own.jsonl").write_text("".join(lines))
    (checkout.folder / "told.yaml").write_text(STUDY)
    ran = checkout.python("-m", "transect", "run", "told.yaml", "classify", timeout=900)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return checkout


def test_new_tickets_are_told_as_those_of_the_test_were(study: Any) -> None:
    records = study.records("told", "classify")
    assert len(records) == 3
    for record in records.values():
        folder = study.folder / "results" / "told" / "classify" / record["cell_id"]
        pipeline = json.loads((folder / "pipeline.json").read_text())
        assert (pipeline["signatures"], pipeline["redact"]) == ("keep", True)
        assert pipeline["view"] == record["cell"]["view"]
        done = study.transect(
            "predict", str(folder), "own.jsonl", "--top", str(len(pipeline["classes"]))
        )
        assert done.returncode == 0, done.stderr
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        stage, cell_id = json.loads((folder / "spec.json").read_text())["inputs"]["encode"]
        rows = np.load(study.folder / "results" / "told" / stage / cell_id / "rows_test.npy")
        _compare(lines, rows, folder, pipeline["classes"])


def _compare(
    lines: list[dict[str, Any]], rows: np.ndarray, folder: Path, classes: list[str]
) -> None:
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
