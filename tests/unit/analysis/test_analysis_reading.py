"""Many records at once: processes give what one gives, and lose nothing when they are ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from factories import make_record, train_cell, write_records
from transect.analysis import reading
from transect.analysis.cache import Packed
from transect.analysis.load import load_records
from transect.analysis.reading import Key, read_rows
from transect.domain.record import MetricValue, Record

MANY = 60


def odd_record(batch: int, repeat: int) -> Record:
    return make_record(
        train_cell(batch=batch, repeat=repeat),
        [MetricValue.of("step_time", 1.0 + batch, "tab\tline\n\u2028")],
        details={"said": "é\t\n"},
        provenance={"host": "h"},
    )


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Records of which some are half written, of another cell, or no JSON."""
    for number in range(MANY):
        made = odd_record(8 + number // 3, number % 3)
        write_records(tmp_path, made)
        path = tmp_path / "train" / made.cell_id / "record.json"
        if number == 7:
            path.write_bytes(path.read_bytes()[:300])
        if number == 11:
            path.write_text("!not JSON\t\n")
    return tmp_path


@pytest.fixture
def keys(study: Path) -> list[Key]:
    return sorted((path.parent.parent.name, path.parent.name) for path in study.glob("*/*/*.json"))


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_MANY", 1)
    monkeypatch.setattr(reading, "_TURN", 7)
    monkeypatch.setattr(reading, "_cores", lambda: 3)


@pytest.mark.env
def test_processes_give_what_one_gives(study: Path, keys: list[Key], request: pytest.FixtureRequest) -> None:
    alone = list(read_rows(study, keys))
    one = [(r.cell.id, r.value("step_time"), r.details) for r in load_records(study).records]
    request.getfixturevalue("processes")
    assert list(read_rows(study, keys)) == alone
    loaded = load_records(study)
    assert [(r.cell.id, r.value("step_time"), r.details) for r in loaded.records] == one
    assert len(one) == MANY - 2 == sum(isinstance(row, Packed) for row in alone)
    assert len(loaded.unreadable) == 2


@pytest.mark.env
@pytest.mark.usefixtures("processes")
def test_a_process_that_is_killed_loses_nothing(study: Path, keys: list[Key], monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[reading._Reader] = []
    begin = reading._Reader.__init__

    def spoilt(self: reading._Reader, *given: object) -> None:
        begin(self, *given)  # type: ignore[arg-type]
        started.append(self)
        if len(started) == 2:
            # Before its interpreter has begun.
            assert self._process is not None
            self._process.kill()

    expected = list(read_rows(study, keys))
    monkeypatch.setattr(reading._Reader, "__init__", spoilt)
    assert list(read_rows(study, keys)) == expected
    assert len(started) == 3
    assert all(reader._process is None for reader in started)


@pytest.mark.env
@pytest.mark.usefixtures("processes")
def test_without_an_interpreter_everything_is_read_here(
    study: Path, keys: list[Key], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = list(read_rows(study, keys))
    monkeypatch.setattr(reading.sys, "executable", str(study / "none"))
    assert list(read_rows(study, keys)) == expected
