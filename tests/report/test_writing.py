"""Exports beside one another, and training runs as MLPerf's logs."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest
from make_records import HOSTILE

from factories import make_record, provenance, train_cell, write_records
from transect import __version__
from transect.domain.axes.retrain import RetrainCell
from transect.domain.cell import Cell
from transect.domain.errors import BadInput
from transect.domain.record import Record, Samples, Status
from transect.hpc.base import RunStatus
from transect.hpc.scan import Scanner
from transect.report.engine.export import EXPORTS, older_exports, put, write_formats
from transect.report.engine.formats import REPORT_FORMATS, Contents
from transect.report.engine.report import Made, make_all


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != EXPORTS
    }


def write(folder: Path, state: str = "s", place: str = "mine/", **files: str) -> object:
    contents = Contents(files={name.replace("__", "/"): text.encode() for name, text in files.items()})
    return put(folder, "mine", place, contents, state=state)


def test_what_is_no_longer_made_goes_with_its_folder(tmp_path: Path) -> None:
    write(tmp_path, a="1", sub__b="2")
    write(tmp_path, a="3")
    assert files_of(tmp_path) == {"mine/a": b"3"}
    assert not (tmp_path / "mine/sub").exists()


def test_what_somebody_wrote_or_changed_is_refused_and_stays(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/a").write_text("my own")
    with pytest.raises(BadInput, match="mine/a would be overwritten"):
        write(tmp_path, a="1", b="2")
    assert files_of(tmp_path) == {"mine/a": b"my own"}, "nothing of it was written"
    (tmp_path / "mine/a").unlink()
    write(tmp_path, a="1", b="2")
    (tmp_path / "mine/a").write_text("edited")
    with pytest.raises(BadInput, match="changed since"):
        write(tmp_path, a="3", b="4")
    assert files_of(tmp_path) == {"mine/a": b"edited", "mine/b": b"2"}


def test_a_changed_file_that_is_no_longer_made_is_refused_and_stays(tmp_path: Path) -> None:
    write(tmp_path, a="1", b="2")
    (tmp_path / "mine/b").write_text("edited")
    (tmp_path / "mine/c").write_text("foreign")
    with pytest.raises(BadInput, match="mine/b would be"):
        write(tmp_path, a="1")
    (tmp_path / "mine/b").unlink()
    write(tmp_path, a="1")
    assert files_of(tmp_path) == {"mine/a": b"1", "mine/c": b"foreign"}


def test_an_export_that_was_ended_half_way_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, a="1", b="1")

    from transect.report.engine import export

    real = export.write_atomic

    def ends(path: Path, data: bytes | str) -> None:
        if path.name == "b":
            raise OSError("no space left")
        real(path, data)

    monkeypatch.setattr(export, "write_atomic", ends)
    with pytest.raises(OSError, match="no space"):
        write(tmp_path, a="2", b="2")
    monkeypatch.undo()
    write(tmp_path, a="3", b="3")
    assert files_of(tmp_path) == {"mine/a": b"3", "mine/b": b"3"}


@pytest.mark.parametrize("damage", ["", "[]", "{", '{"mine": 3}', '{"mine": {"state": "", "files": {"../x": ["1"]}}}'])
def test_a_damaged_list_removes_nothing(tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "study"
    (tmp_path / "x").write_text("outside")
    write(folder, a="1")
    (folder / EXPORTS).write_text(damage)
    write(folder, a="1")
    assert (tmp_path / "x").read_text() == "outside"
    assert files_of(folder) == {"mine/a": b"1"}


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x"])
def test_a_format_cannot_leave_its_place(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput, match="outside"):
        put(tmp_path, "mine", "mine/", Contents(files={name: b""}), state="")


def made_of(folder: Path, repeats: int) -> Made:
    # Records that are there stay as they are: they are no older than they were.
    there = len(list(folder.glob("train/*/record.json")))
    for repeat in range(there, repeats):
        write_records(folder, make_record(train_cell(repeat=repeat), {"step_time": 1e-3}))
    return make_all(folder, title="x", only=("methods",))


def test_exports_of_older_records_are_named_until_they_are_made_again(tmp_path: Path) -> None:
    first = made_of(tmp_path, 1)
    written = write_formats(first, tmp_path, ["markdown", "mlperf-logs"])
    assert [export.format for export in written] == ["figures", "markdown", "mlperf-logs"], "markdown needs the figures"
    assert older_exports(first, tmp_path) == []
    assert any("no quality" in sentence for sentence in written[2].left_out)
    second = made_of(tmp_path, 2)
    assert older_exports(second, tmp_path) == ["markdown"], "of the others there is no file"
    write_formats(second, tmp_path, ["markdown"])
    assert older_exports(second, tmp_path) == []


def test_an_unknown_format_is_named_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="did you mean 'markdown'"):
        write_formats(made_of(tmp_path, 1), tmp_path, ["html", "markdwn"])
    assert not (tmp_path / "report.html").exists(), "nothing is written before all names are known"


EPOCHS, STEPS, BEGAN = 4, 5, "2026-01-02T03:04:05+00:00"


def training(folder: Path, repeat: int, scores: list[float], score: str = "accuracy", **more: object) -> Record:
    """Write a training of four epochs of a second each, whose target is 0.9, or 0.1 of an error."""
    target = 0.9 if score == "accuracy" else 0.1
    better = [i for i, at in enumerate(scores) if (at >= target if score == "accuracy" else at <= target)]
    metrics = {"startup_time": 2.0, "train_time": 4.0}
    if better:
        metrics["time_to_quality"] = better[0] + 1.25  # a quarter of a second to load data
    series = {
        score: (scores, "1"),
        "epoch_end": ([1.0, 2.0, 3.0, 4.0], "s"),
        "step_time": ([0.18] * EPOCHS * STEPS, "s"),
        "loss": ([0.5] * EPOCHS * STEPS, "1"),
    }
    record = make_record(
        train_cell(repeat=repeat),
        metrics,
        samples={name: Samples(unit=unit, values=v, count=len(v)) for name, (v, unit) in series.items()},
        details={
            "global_batch": 16,
            "quality": {"metric": score, "target": target, "reached": bool(better)},
            "layout": {"replicas": 2, "model_parts": 1, "micro_batches": 1},
        },
        parameters={"optimiser": "sgd", "learning_rate": 0.1, "momentum": 0.9},
        provenance=provenance("base", system={"name": HOSTILE}),
        **more,
    ).model_copy(update={"started": BEGAN})
    write_records(folder, record)
    return record


def data(folder: Path) -> None:
    cell = Cell.of(stage="dataset", workload="iris-mlp")
    details = {"train": 112, "test": 38, "seeds_of_repeats": [7, 8, 9]}
    write_records(folder, make_record(cell, details=details))


def contents(folder: Path) -> Contents:
    return REPORT_FORMATS.get("mlperf-logs").contents(make_all(folder, title="x", only=()))


def written(exported: Contents) -> dict[str, list[str]]:
    """Return all files by their lines, and what is left out, without digests, versions and lines of our own code."""

    def plain(text: str) -> str:
        text = re.sub(r"~[0-9a-f]{8}\b", "", text).replace(__version__, "VERSION")
        return re.sub(r'"lineno": \d+', '"lineno": N', text)

    files = {plain(name): plain(data.decode()).splitlines() for name, data in exported.files.items()}
    return files | {"left out": [plain(sentence) for sentence in exported.left_out]}


def test_files(tmp_path: Path, snapshot: Any) -> None:
    """What trainings that reach their target and miss it become, and why the others are left out."""
    scored, errors = tmp_path / "scored", tmp_path / "errors"
    data(scored)
    training(scored, 0, [0.5, 0.6, 0.7, 0.8])
    training(scored, 1, [0.5, 0.8, 0.95, 0.97])
    wrong = {"status": Status.FAILED, "cause": "wrong-result", "message": "loss left"}
    training(scored, 2, [0.95] * 4, **wrong)
    training(scored, 3, [0.95] * 3)
    cell = RetrainCell(workload="iris-mlp", runtime="rust", provider="cpu", optimiser="sgd", steps=8, batch=4)
    write_records(scored, make_record(cell))
    # An error is better the lower it is.
    training(errors, 0, [0.5, 0.05, 0.2, 0.3], score="final_loss")
    assert [written(contents(folder)) for folder in (scored, errors)] == snapshot


def test_our_own_parser_reads_them(tmp_path: Path) -> None:
    training(tmp_path, 1, [0.5, 0.8, 0.95, 0.97])
    (log,) = (log for file, log in contents(tmp_path).files.items() if file.endswith(".txt"))
    (run,) = Scanner().scan(io.BytesIO(log), "log")
    assert run.status is RunStatus.OK
    values = {"time_to_train": 3.25, "eval_accuracy": 0.95}
    assert {metric.name: metric.value for metric in run.metrics if metric.name in values} == pytest.approx(values)
