"""Encoded tickets as a workload's data."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from payload_calls import payload_arguments
from transect.domain.axes.text import EncodeCell
from transect.domain.errors import BadInput
from transect.domain.record import Record, Status, read_record, write_record
from transect.engine.stage import RUNNERS
from transect.payloads.__main__ import main
from transect.payloads.dataset import prepare
from transect.training.datasets import DATASETS, DerivedDataset

OPTIONS = {"corpus": "made", "split": "random", "embeddings": "words", "length": 48, "vocabulary": 4096}
CLASSES = [f"queue {number}" for number in range(8)]


@pytest.fixture
def encoded(tmp_path: Path) -> Path:
    """The folder of an encode cell: 40 texts of 60 words to train with and 10 of 3 to test."""
    folder = tmp_path / "encode"
    folder.mkdir()
    generator = np.random.default_rng(1)
    for part, rows, words in (("train", 40, 60), ("test", 10, 3)):
        x = generator.integers(2, 4096, (rows, 60)).astype(np.int32)
        x[:, words:] = 0
        x[0, :2] = 5000, 1
        np.save(folder / f"x_{part}.npy", x)
        np.save(folder / f"y_{part}.npy", np.arange(rows) % 8)
    cell = EncodeCell(corpus="made", split="random", embeddings="words", words="quantile")
    record = Record(
        study="s",
        stage="encode",
        cell=cell,
        cell_id=cell.id,
        status=Status.OK,
        fingerprint="f",
        started="2026-11-22T00:00:00Z",
        ended="2026-11-22T00:00:01Z",
        details={"classes": CLASSES, "synthetic": True},
    )
    write_record(folder / "record.json", record)
    return folder


def spec(**options: Any) -> dict[str, Any]:
    parameters = {"batch": 16, "epochs": 2, "test_fraction": 0.25, "dataset_options": OPTIONS | options}
    return {"workload": "tickets-transformer", "seed": 1, "repeats": 1, "parameters": parameters}


def test_rows_are_cut_and_rare_words_unknown(encoded: Path, tmp_path: Path) -> None:
    manifest = prepare(spec(), tmp_path / "data", {"encode": encoded})
    with np.load(tmp_path / "data" / "data.npz") as file:
        data = dict(file)
    given = np.load(encoded / "x_train.npy")
    assert data["x_train"].dtype == np.int64 and data["x_train"].shape == (40, 48)
    assert data["x_train"][0, :2].tolist() == [1, 1]
    np.testing.assert_array_equal(data["x_train"][:, 2:], given[:, 2:48])
    assert data["x_test"].shape == (10, 48) and not data["x_test"][:, 3:].any()
    # The parts are the split's: nothing is drawn anew.
    np.testing.assert_array_equal(data["y_test"], np.arange(10) % 8)
    assert (manifest["train"], manifest["test"], manifest["classes"]) == (40, 10, CLASSES)
    assert manifest["source"] == "tickets of 'made', encoded, synthetic"


def test_what_is_kept_for_devices_neither_trains_nor_tests(encoded: Path, tmp_path: Path) -> None:
    kept = np.random.default_rng(2).integers(2, 4096, (12, 60)).astype(np.int32)
    np.save(encoded / "x_on_device.npy", kept)
    np.save(encoded / "y_on_device.npy", np.arange(12) % 8)
    before = prepare(spec(), tmp_path / "before", {"encode": encoded})
    with np.load(tmp_path / "before" / "data.npz") as file:
        data = dict(file)
    np.testing.assert_array_equal(data["x_device"], kept[:, :48])
    np.testing.assert_array_equal(data["y_device"], np.arange(12) % 8)
    np.testing.assert_array_equal(data["x_train"][1:], np.load(encoded / "x_train.npy")[1:, :48])
    assert data["x_test"].shape == (10, 48) and data["x_train"].shape == (40, 48)
    assert (before["train"], before["test"], before["device"]) == (40, 10, 12)


def test_rows_kept_for_devices_are_in_no_part_that_is_drawn(
    encoded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tickets = DATASETS.get("tickets")
    assert isinstance(tickets, DerivedDataset)
    samples = tickets.load_from(OPTIONS, {"encode": encoded})
    undivided = replace(
        samples, x=np.arange(50)[:, None] + np.zeros(48, np.int64), test=None, device=np.arange(0, 50, 5)
    )
    monkeypatch.setattr(type(tickets), "load_from", lambda *_: undivided)
    made = prepare(spec(), tmp_path / "data", {"encode": encoded})
    assert (made["device"], made["train"] + made["test"]) == (10, 40)
    with np.load(tmp_path / "data/data.npz") as data:
        rows = {part: data[f"x_{part}"][:, 0] for part in ("train", "test", "device")}
    assert sorted(np.concatenate([*rows.values()])) == [*range(50)]
    assert rows["device"].tolist() == [*range(0, 50, 5)]
    empty = replace(undivided, device=np.arange(0))
    monkeypatch.setattr(type(tickets), "load_from", lambda *_: empty)
    with pytest.raises(BadInput, match="part for devices has no rows"):
        prepare(spec(), tmp_path / "empty", {"encode": encoded})


def test_shorter_rows_are_padded_and_the_worker_is_told_where_cells_lie(encoded: Path, tmp_path: Path) -> None:
    for part in ("train", "test"):
        np.save(encoded / f"x_{part}.npy", np.load(encoded / f"x_{part}.npy")[:, :5])
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "spec.json").write_text(json.dumps(spec()))
    assert main(payload_arguments("dataset", tmp_path / "data", encode=encoded)) == 0
    with np.load(tmp_path / "data" / "data.npz") as file:
        assert file["x_train"].shape == (40, 48) and not file["x_train"][:, 5:].any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"length": 40}, r"samples have shape \(40,\), the model takes \(48,\)"),
        ({"length": 0}, "option 'length' of dataset tickets"),
        ({"colour": "red"}, "option 'colour' of dataset tickets"),
        ({"corpus": 3}, "option 'corpus' of dataset tickets"),
    ],
)
def test_options_that_do_not_fit(encoded: Path, tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        prepare(spec(**options), tmp_path / "data", {"encode": encoded})


def test_an_empty_part_is_named(encoded: Path, tmp_path: Path) -> None:
    (encoded / "x_test.npy").unlink()
    with pytest.raises(BadInput, match="split 'random' has no tickets in its part `test`"):
        prepare(spec(), tmp_path / "data", {"encode": encoded})


def test_other_names_of_the_same_classes_make_the_data_anew(encoded: Path) -> None:
    """As a changed salt does, which changes no row: the old hashes would stay in the record."""
    spec: dict[str, Any] = {"inputs": {"encode": ["encode", "one"]}, "parameters": {"dataset_options": OPTIONS}}
    more = {"dataset_details": ["classes", "synthetic"], "dataset_paths": []}
    job: Any = SimpleNamespace(spec=spec | more, input=lambda role: encoded)
    before = RUNNERS.get("dataset").inputs(job)
    record = read_record(encoded / "record.json")
    same = record.model_copy(update={"details": record.details | {"payload_s": 9}})
    write_record(encoded / "record.json", same)
    assert RUNNERS.get("dataset").inputs(job) == before
    renamed = record.model_copy(update={"details": record.details | {"classes": CLASSES[::-1]}})
    write_record(encoded / "record.json", renamed)
    assert RUNNERS.get("dataset").inputs(job) != before


def test_it_names_the_cell_that_it_takes() -> None:
    dataset = DATASETS.get("tickets")
    assert isinstance(dataset, DerivedDataset)
    cell = dataset.cells(OPTIONS | {"view": "first", "names": "kept", "words": "gaussian"})["encode"]
    assert cell.axes() | {"view": "first", "words": "gaussian", "corpus": "made"} == cell.axes()
    with pytest.raises(BadInput, match="no encoded tickets have the options"):
        dataset.cells(OPTIONS | {"view": "last"})
