"""The corpus stage: what it leaves of a source, and that nobody's identity is in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from transect.domain.errors import BadInput
from transect.domain.files import sha256_file
from transect.payloads.corpus import build
from transect.text.salt import Salt

SALT = Salt(b"k" * 32)
ARRAYS = ("labels", "times", "owners")


def spec(kind: str, path: Path | None, **rule: Any) -> dict[str, Any]:
    usual = {"options": {}, "label": "queue", "redact": True, "limit": None}
    rule = usual | {"format": kind, "path": path and str(path)} | rule
    return {"cell": {"stage": "corpus", "corpus": "x"}, "rule": rule, "seed": 5}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


class Made:
    """A corpus that was built."""

    def __init__(self, out: Path, result: dict[str, Any]) -> None:
        self.out, self.details = out, result["details"]
        self.tickets, self.rejected = lines(out / "tickets.jsonl"), lines(out / "rejected.jsonl")
        self.labels, self.times, self.owners = (np.load(out / f"{name}.npy") for name in ARRAYS)


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Made]:
    def make(kind: str, content: str | bytes | None = None, salt: Salt = SALT, **rule: Any) -> Made:
        path = None
        if content is not None:
            path = tmp_path / "source"
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        out = tmp_path / f"out-{len([*tmp_path.iterdir()])}"
        out.mkdir()
        return Made(out, build(spec(kind, path, **rule), salt, out))

    return make


FLAT = "Document,Topic_group\none,b\ntwo,a\n ,a\nthree,\nfour,b\nfive,c\n"


def test_what_a_corpus_leaves(made: Callable[..., Made], tmp_path: Path):
    corpus = made("flat-csv", FLAT)
    assert [ticket["messages"][0]["text"] for ticket in corpus.tickets] == ["one", "two", "four", "five"]
    assert corpus.labels.tolist() == [1, 0, 1, 2] and corpus.labels.dtype == np.int32
    assert np.isnan(corpus.times).all() and corpus.times.dtype == np.float64
    assert corpus.owners.tolist() == [-1] * 4 and corpus.owners.dtype == np.int32
    assert [(row["place"], row["cause"]) for row in corpus.rejected] == [
        ("ticket 3", "no-text"),
        ("ticket 4", "no-label"),
    ]
    details = corpus.details
    assert (details["tickets"], details["read"]) == (4, 6)
    assert details["rejected"] == {"no-text": 1, "no-label": 1}
    assert (details["classes"], details["class_counts"]) == (["a", "b", "c"], [1, 2, 1])
    assert details["source_sha256"] == sha256_file(tmp_path / "source")
    assert details["synthetic"] is False and details["bayes_accuracy"] is None
    assert {file.name for file in corpus.out.iterdir()} == {
        "tickets.jsonl",
        "rejected.jsonl",
        "labels.npy",
        "times.npy",
        "owners.npy",
    }


def test_of_tickets_with_one_id_the_first_stays(made: Callable[..., Made]):
    content = "".join(
        json.dumps({"id": number, "queue": "q", "text": f"text {place}"}) + "\n"
        for place, number in enumerate([1, 2, 1, 3, 2, 1])
    )
    corpus = made("jsonl", content)
    assert [ticket["messages"][0]["text"] for ticket in corpus.tickets] == ["text 0", "text 1", "text 3"]
    assert len(corpus.labels) == 3
    assert corpus.details["rejected"] == {"duplicate-id": 3}
    assert [(rejection["place"], rejection["detail"]) for rejection in corpus.rejected] == [
        ("ticket 3", "that of ticket 1"),
        ("ticket 5", "that of ticket 2"),
        ("ticket 6", "that of ticket 1"),
    ]


def test_a_limit_draws_tickets_in_their_order(made: Callable[..., Made]):
    content = "Document,Topic_group\n" + "".join(f"text {i},q{i % 3}\n" for i in range(100))
    whole = [ticket["messages"][0]["text"] for ticket in made("flat-csv", content).tickets]
    drawn = [ticket["messages"][0]["text"] for ticket in made("flat-csv", content, limit=10).tickets]
    assert len(drawn) == 10 and drawn == [text for text in whole if text in drawn]
    assert drawn != whole[:10]
    assert made("flat-csv", content, limit=10).details["classes"] == ["q0", "q1", "q2"]
    assert len(made("flat-csv", content, limit=1000).tickets) == 100


@pytest.mark.parametrize(
    ("kind", "content", "message"),
    [
        ("jsonl", "", "no ticket to use of 0"),
        ("jsonl", "{}\n{\n", "missing-column 1, broken-json 1"),
        ("flat-csv", "Document\na\n", "no-label 1"),
        ("mbox", "", "of 0"),
    ],
)
def test_a_source_without_a_ticket_is_an_error(made: Callable[..., Made], kind: str, content: str, message: str):
    with pytest.raises(BadInput, match=message):
        made(kind, content)


def test_made_up_tickets_say_so_and_what_can_be_reached(made: Callable[..., Made]):
    corpus = made("synthetic", None, options={"tickets": 60, "owners": 4, "queues": 2}, label="owner")
    assert corpus.details["synthetic"] is True and corpus.details["source_sha256"] is None
    best = corpus.details["bayes_accuracy"]
    assert 0 < best["first"]["removed"] <= best["conversation"]["kept"] <= 1
    kept = np.load(corpus.out / "bayes.npz")
    assert {f"{view}-{names}" for view in best for names in best[view]} == set(kept)
    assert all(len(kept[name]) == 60 and ((kept[name] > 0) & (kept[name] <= 1)).all() for name in kept)
