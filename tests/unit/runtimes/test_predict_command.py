"""`transect predict`: tickets of a file to classes, and what is said of those that cannot be read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hostile_texts import CLASSES, probabilities

from checkouts import ROOT

# What the bundle's pipeline reads of the ticket `b`: the first message of a customer, without quotes,
# markup and names, and with a word for the address.
TICKETS = [
    {"id": "a", "text": "Hello w\u00f6rld"},
    {
        "id": "b",
        "messages": [
            {"role": "agent", "author": "Anna Schmidt", "text": "hello hello hello"},
            {"role": "customer", "text": "Stra\u00dfe Anna Schmidt, anna@example.org\n\n> hello hello\n> hello"},
        ],
    },
    {"id": "c", "text": "x " * 400_000},
    {"id": "ü", "text": "אבג\u202e <script>x</script>"},
]
READ = ["hello wörld", "straße emailaddress", "x " * 7, "אבג"]


@pytest.fixture
def tickets(tmp_path: Path) -> Path:
    path = tmp_path / "tickets.jsonl"
    path.write_text("".join(json.dumps(ticket) + "\n" for ticket in TICKETS))
    return path


def predict(*arguments: str | Path, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    # A terminal that is no UTF-8 makes no difference.
    variables = {
        "PYTHONPATH": str(ROOT / "src"),
        "TRANSECT_SALT_FILE": str(folder / "salt"),
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
    }
    done = subprocess.run(
        [sys.executable, "-m", "transect", "predict", *map(str, arguments)],
        env=os.environ | variables | more,
        capture_output=True,
        check=False,
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def test_tickets_are_read_as_in_training_and_told(bundle: Path, tickets: Path, tmp_path: Path) -> None:
    done = predict(bundle, tickets, folder=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (0, 1), done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["id"] for line in lines] == [ticket["id"] for ticket in TICKETS]
    unsure = 0
    for line, shares in zip(lines, probabilities([text.encode() for text in READ]), strict=True):
        order = np.argsort(-shares)
        assert [name for name, _ in line["likeliest"]] == [CLASSES[place] for place in order]
        printed = [share for _, share in line["likeliest"]]
        np.testing.assert_allclose(printed, shares[order], atol=2e-6)
        assert line["class"] == (CLASSES[order[0]] if shares.max() >= 0.6 else None)
        unsure += shares.max() < 0.6
    assert 0 < unsure < len(READ)
    assert done.stderr == f"tickets classified: 4, unsure: {unsure}, not read: 0\n"


def test_what_cannot_be_read_is_listed_and_the_rest_told(bundle: Path, tmp_path: Path) -> None:
    path = tmp_path / "tickets"
    lines = [
        b'{"id": "a", "text": "hello"}',
        b"{no json",
        b'{"id": "b", "text": " .\\u0000"}',
        b'{"id": "c"}',
        b'{"id": "d", "text": "\xff"}',
        '{"id": 7, "text": "é"}'.encode(),
    ]
    path.write_bytes(b"\n".join(lines))
    done = predict(bundle, path, "--format", "jsonl", folder=tmp_path)
    assert done.returncode == 1
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == ["a", "7"]
    messages = done.stderr.splitlines()
    assert [line.split(": ")[:2] for line in messages[:-1]] == [
        ["line 2", "broken-json"],
        ["ticket 3", "no-text"],
        ["line 4", "missing-column"],
        ["line 5", "broken-encoding"],
    ]
    assert "tickets classified: 2, " in messages[-1] and "not read: 4 (1 " in messages[-1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gone.jsonl"], "gone.jsonl: no such file"),
        (["tickets.jsonl", "--format", "jsnol"], "unknown ticket format 'jsnol': did you mean 'jsonl'"),
        (["tickets.jsonl", "--option", "largest"], "expected KEY=VALUE"),
        (["tickets.jsonl", "--unsure", "nan"], "a probability"),
        (["tickets.jsonl", "--output", "xml"], "--output 'xml': expected jsonl or csv"),
    ],
)
def test_what_cannot_be_used_is_one_message(
    bundle: Path, tickets: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "tickets.txt").write_text("")
    done = predict(bundle, tmp_path / arguments[0], *arguments[1:], folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_a_pipeline_with_other_classes_is_refused(bundle: Path, tickets: Path, tmp_path: Path) -> None:
    pipeline = json.loads((bundle / "pipeline.json").read_text())
    (tmp_path / "pipeline.json").write_text(json.dumps(pipeline | {"classes": CLASSES[:-1]}))
    (tmp_path / "predict.onnx").symlink_to(bundle / "predict.onnx")
    done = predict(tmp_path, tickets, folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{len(CLASSES)} classes: expected the {len(CLASSES) - 1}" in done.stderr
