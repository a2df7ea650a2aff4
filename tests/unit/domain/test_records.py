"""Records: read, checked, refused, and written whole or not at all."""

from __future__ import annotations

import functools
import hashlib
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from factories import TRAIN, bare_record
from transect.domain.cell import Cell
from transect.domain.errors import BadInput
from transect.domain.record import MetricValue, Samples, raw_record, read_record, write_record

train_record = functools.partial(bare_record, Cell.of(**TRAIN))


def test_record_survives_a_round_trip(tmp_path):
    record = train_record(
        metrics=[MetricValue.of("step_time", 0.5)], samples={"loss": Samples(unit="1", values=[1.0, 0.5], count=2)}
    )
    write_record(tmp_path / "record.json", record)
    read = read_record(tmp_path / "record.json")
    assert read == record.model_copy(update={"checksum": read.checksum})
    assert record.value("step_time") == 0.5
    assert record.value("accuracy") is None


@pytest.mark.parametrize(
    "changes",
    [
        {"cause": "crash"},
        {"status": "failed"},
        {"status": "failed", "cause": "because"},
        {"metrics": [{"name": "x", "value": float("nan"), "unit": "s", "direction": "lower"}]},
    ],
)
def test_record_refuses_contradictions(changes):
    with pytest.raises(ValidationError):
        train_record(**changes)


def write(path, **changes):
    write_record(path, train_record(**changes))
    return json.loads(path.read_text())


def test_the_checksum_of_a_record_is_of_its_content_alone(tmp_path):
    path = tmp_path / "record.json"
    content = write(path, details={"µ": [1, 1.0, 1e-8], "b": None}, message="ü\n")
    # As docs/record.md says, with nothing of ours.
    sealed = {key: value for key, value in content.items() if key != "checksum"}
    text = json.dumps(sealed, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert content["checksum"] == hashlib.sha256(text.encode("utf-8")).hexdigest()
    # Another layout and order are the same record.
    path.write_text(json.dumps(dict(reversed(content.items())), ensure_ascii=True))
    assert read_record(path).message == "ü\n"


EDITS = {
    "a metric": lambda content: content["metrics"][0].update(value=0.25),
    "a cause": lambda content: content.update(status="failed", cause="crash"),
    "a new key": lambda content: content["details"].update(a=1),
    "a fingerprint": lambda content: content.update(fingerprint="0" * 16),
    "its checksum": lambda content: content.update(checksum="0" * 64),
    "an escape of half a character": lambda content: content.update(message="\ud800"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_record_is_refused(tmp_path, edit):
    path = tmp_path / "record.json"
    content = write(path, metrics=[MetricValue.of("step_time", 0.5)])
    EDITS[edit](content)
    path.write_text(json.dumps(content))
    for read in (read_record, raw_record):
        with pytest.raises(BadInput, match="checksum"):
            read(path)


@settings(deadline=None, max_examples=40)
@given(st.binary(max_size=40), st.integers(0, 10_000))
def test_whatever_stands_in_place_of_a_record_is_refused_by_name(content, length):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "record.json"
        write(path)
        whole = path.read_bytes()
        for damaged in (content, whole[: length % (len(whole) - 2)], whole[length % 50 + 1 :]):
            path.write_bytes(damaged)
            with pytest.raises(BadInput, match=r"record\.json: "):
                read_record(path)
        path.unlink()
        path.mkdir()
        with pytest.raises(BadInput, match=r"record\.json: cannot"):
            read_record(path)


def test_a_name_that_is_no_text_costs_no_record(tmp_path):
    write_record(tmp_path / "record.json", train_record(inputs=["b\udcff 1"], log_tail="\udcfe"))
    read = read_record(tmp_path / "record.json")
    assert (read.inputs, read.log_tail) == (["b? 1"], "?")


def test_samples_are_in_one_place():
    with pytest.raises(ValidationError):
        Samples(unit="s", count=0)
    with pytest.raises(ValidationError):
        Samples(unit="s", values=[1.0], file="x.npz", count=1)
