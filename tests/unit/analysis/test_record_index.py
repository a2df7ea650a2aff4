"""The index of records: never stale, made again when damaged, and no record parsed twice."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from factories import make_record, train_cell
from sealed import resealed
from transect.analysis import index, load
from transect.analysis.entries import Entry, Pool, entry_of, row_of
from transect.analysis.index import index_file
from transect.analysis.load import load_records
from transect.domain import files
from transect.domain.record import MetricValue, Record, read_record, write_record


def timed(framework: str, value: float = 1.0) -> Record:
    return make_record(
        train_cell(framework),
        [MetricValue.of("step_time", value, "all")],
        details={"global_batch": 8},
        parameters={"seed": 3, "layers": [1, 2]},
        provenance={"host": "h", "load_before": [value], "slurm": {"SLURM_JOB_NODELIST": "n1"}},
    )


def write(study: Path, made: Record) -> Path:
    path = study / made.stage / made.cell_id / "record.json"
    write_record(path, made)
    return path


@pytest.fixture(autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's cache folder of its own, an index from the first record on, and no record too young for it."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("TRANSECT_ENVS", str(folder / "envs"))
    monkeypatch.setattr(index, "FEW", 1)
    monkeypatch.setattr(files, "YOUNG_NS", 0)
    return folder / "records"


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Path]]:
    """Paths of the records that were parsed."""
    seen: list[Path] = []

    def counting(path: Path) -> Record:
        seen.append(path)
        return read_record(path)

    monkeypatch.setattr(load, "read_record", counting)
    yield seen


def values(study: Path) -> list[float]:
    return [record.metrics[0].value for record in load_records(study).records]


def test_a_second_reading_parses_only_what_is_new_and_says_the_same(tmp_path: Path, parsed: list[Path]) -> None:
    write(tmp_path, timed("numpy", 1.0))
    first = load_records(tmp_path).records[0]
    assert len(parsed) == 1
    second = load_records(tmp_path).records[0]
    assert len(parsed) == 1
    assert isinstance(first, Entry) and isinstance(second, Entry)
    for name in ("metrics", *set(Entry.__slots__) - {"metric_names"}):
        assert getattr(first, name) == getattr(second, name), name
    assert second.provenance == {"host": "h", "slurm": {"SLURM_JOB_NODELIST": "n1"}}
    new = write(tmp_path, timed("torch", 2.0))
    assert values(tmp_path) == [1.0, 2.0]
    assert parsed[1:] == [new]


def replaced(path: Path) -> None:
    write_record(path, timed("numpy", 9.0))


def overwritten(path: Path) -> None:
    """Change it in place, with the same size and the same time of its content."""
    before = path.stat()
    resealed(path, lambda content: content["metrics"][0].update(value=9.0))
    assert path.stat().st_size == before.st_size
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("change", [replaced, overwritten])
def test_a_changed_record_shows(tmp_path: Path, change: Callable[[Path], None]) -> None:
    path = write(tmp_path, timed("numpy", 1.0))
    assert values(tmp_path) == [1.0] == values(tmp_path)
    change(path)
    assert values(tmp_path) == [9.0]


def test_a_vanished_and_a_truncated_record_show(tmp_path: Path) -> None:
    gone, cut = write(tmp_path, timed("numpy")), write(tmp_path, timed("torch"))
    assert len(load_records(tmp_path).records) == 2
    gone.unlink()
    gone.parent.rmdir()
    cut.write_text(cut.read_text()[:100])
    for _ in ("parsed", "from the index"):
        loaded = load_records(tmp_path)
        assert loaded.records == []
        assert [problem.where for problem in loaded.unreadable] == [f"train/{cut.parent.name}"]


def test_a_record_that_may_still_change_is_not_kept(tmp_path, parsed, monkeypatch) -> None:
    monkeypatch.setattr(files, "YOUNG_NS", 10**12)
    write(tmp_path, timed("numpy"))
    load_records(tmp_path)
    load_records(tmp_path)
    assert len(parsed) == 2


def changed(old: str, new: str) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        with sqlite3.connect(path) as database:
            assert database.execute("SELECT count(*) FROM kept WHERE instr(text, ?)", (old,)).fetchone() != (0,)
            database.execute("UPDATE kept SET text = replace(text, ?, ?)", (old, new))

    return damage


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"no database" * 1000),
        lambda path: os.truncate(path, path.stat().st_size // 2),
        changed('"metrics": [1.0]', '"metrics": [7.0]'),
        changed("step_time", "load_time"),
        lambda path: sqlite3.connect(path).execute("PRAGMA user_version = 1"),
    ],
    ids=["empty", "foreign", "cut", "row", "shared", "code"],
)
def test_a_damaged_index_is_made_again(tmp_path: Path, parsed: list[Path], damage: Callable[[Path], None]) -> None:
    write(tmp_path, timed("numpy", 1.0))
    load_records(tmp_path)
    path = index_file(tmp_path)
    assert path is not None
    damage(path)
    for _ in ("made again", "known"):
        [record] = load_records(tmp_path).records
        assert record.value("step_time", "all") == 1.0
        assert len(parsed) == 2


def test_a_cache_folder_that_takes_no_file_is_done_without(tmp_path: Path, cache_folder: Path) -> None:
    write(tmp_path, timed("numpy", 1.0))
    cache_folder.write_text("a file where a folder should be")
    assert values(tmp_path) == [1.0] == values(tmp_path)


def test_readings_at_the_same_time_all_see_every_record(tmp_path: Path, cache_folder: Path) -> None:
    names = ["numpy", "torch", "mxnet", "keras-2", "tensorflow"]
    for number, name in enumerate(names):
        write(tmp_path, timed(name, number))
    with ThreadPoolExecutor(8) as pool:
        seen = list(pool.map(values, [tmp_path] * 24))
    assert {tuple(sorted(some)) for some in seen} == {tuple(map(float, range(len(names))))}
    assert list(cache_folder.iterdir()) == [index_file(tmp_path)]


def test_the_record_of_another_cell_is_a_problem(tmp_path: Path) -> None:
    path = write(tmp_path, timed("numpy"))
    copy = tmp_path / "train" / "other~01234567" / "record.json"
    copy.parent.mkdir()
    copy.write_bytes(path.read_bytes())
    loaded = load_records(tmp_path)
    assert len(loaded.records) == 1
    assert loaded.problems[0].what.endswith(f" train/{path.parent.name}")


def test_a_row_names_every_axis_of_its_cell_as_defaults_may_be_others_when_it_is_read() -> None:
    made = timed("numpy")
    point = json.loads(row_of(made).shared[0])
    assert set(type(made.cell).model_fields) - {"repeat"} <= set(point)
    assert entry_of(row_of(made), Pool()).cell == made.cell
