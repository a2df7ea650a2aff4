"""An archive of logs: read once, summed up, and as a report without any study."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from pathlib import Path

import pytest
from network_logs import OSU_ALLREDUCE, OSU_BARRIER
from storage_logs import LOGS
from typer.testing import CliRunner

from transect.cli.logs import logs_report
from transect.cli.main import app
from transect.domain.errors import BadInput
from transect.hpc.archive import read_archive
from transect.hpc.refusal import Refusal


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRANSECT_ENVS", str(tmp_path / "cache" / "envs"))
    monkeypatch.setattr("transect.domain.files.YOUNG_NS", 0)
    folder = tmp_path / "archive"
    for system, name in (("aster", "ior 3.3.0"), ("aster", "mdtest 3.3.0"), ("birch", "ior 3.3.0")):
        place = folder / system / f"{name.replace(' ', '-')}.txt"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(LOGS[name])
    slow = folder / "birch" / "ior-3.3.0.txt"
    slow.write_text(slow.read_text().replace("POSIX", "MPIIO"))
    (folder / "birch" / "cut.txt").write_text(LOGS["ior 4.1.0"][:900])
    (folder / "notes.md").write_text("nothing\n")
    return folder


def test_a_second_reading_takes_what_has_not_changed(archive: Path, tmp_path: Path) -> None:
    cache = tmp_path / "kept"
    first = read_archive([archive], cache=cache)
    assert (first.files, first.known, first.note) == (5, 0, "")
    again = read_archive([archive], cache=cache)
    assert (again.known, again.runs) == (5, first.runs)
    (archive / "notes.md").write_text(LOGS["mdtest 4.1.0"])
    seen: list[tuple[int, int, int, int]] = []
    changed = read_archive([archive], cache=cache, progress=lambda *progress: seen.append(progress))
    assert changed.known == 4 and [progress[:2] for progress in seen] == [(n, 5) for n in range(1, 6)]
    assert {run.benchmark for run in changed.runs} == {"ior", "mdtest"}
    strict = read_archive([archive], cache=cache, refusal=Refusal(strict=True))
    assert strict.known == 5 and read_archive([archive], cache=cache).runs == changed.runs


def test_a_log_with_half_a_character_is_read_again(archive: Path, tmp_path: Path) -> None:
    job = {"jobname": "\ud800", "job options": {"name": "\ud800"}, "read": {"bw_bytes": 1, "runtime": 1}}
    (archive / "fio.json").write_text(json.dumps({"fio version": "fio-3.28", "jobs": [job]}))
    first = read_archive([archive], cache=tmp_path / "kept")
    assert "ud800" in repr(first.runs)
    again = read_archive([archive], cache=tmp_path / "kept")
    assert (again.known, again.runs) == (5, first.runs)


def test_a_log_under_another_name_has_that_name(archive: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(archive)
    first = read_archive([archive], cache=tmp_path / "kept")
    renamed = read_archive([link], cache=tmp_path / "kept")
    assert renamed.known == first.files
    assert all(run.file.startswith(str(link)) for run in renamed.runs)


@pytest.mark.parametrize(("damage", "note"), [("text", "is made again"), ("folder", "nothing is kept"), ("row", "")])
def test_a_cache_that_is_damaged_costs_time_and_no_run(archive: Path, tmp_path: Path, damage: str, note: str) -> None:
    cache = tmp_path / "kept"
    first = read_archive([archive], cache=cache)
    (file,) = cache.glob("*.sqlite")
    if damage == "row":
        with sqlite3.connect(file) as connection:
            connection.execute("UPDATE kept SET text = '{'")
    elif damage == "text":
        file.write_text("no database\n" * 100)
    else:
        shutil.rmtree(cache)
        cache.write_text("a file in its place")
    again = read_archive([archive], cache=cache)
    assert again.runs == first.runs and again.known == 0
    assert note in again.note and bool(note) == bool(again.note)
    if damage != "folder":
        healed = read_archive([archive], cache=cache)
        assert (healed.known, healed.note, healed.runs) == (5, "", first.runs)


def test_a_log_behind_a_link_counts_in_the_summary(archive: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text(LOGS["mdtest 4.1.0"])
    (archive / "link.txt").symlink_to(outside)
    for paths in ([archive], [archive / "birch", archive], [archive / ".." / "archive"]):
        arguments = ["ingest", *map(str, paths), "--summary", "--format", "json"]
        summary = json.loads(CliRunner().invoke(app, arguments).stdout)
        assert summary["files"] == 6
        assert sum(sum(row["counts"].values()) for row in summary["counted"]) == 6, paths


def test_the_summary_counts_rates_and_refuses(archive: Path) -> None:
    done = CliRunner().invoke(app, ["ingest", str(archive), "--summary", "--format", "json"])
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout)
    counted = {(row["benchmark"], row["system"], row["version"]): row["counts"] for row in summary["counted"]}
    assert counted["ior", "aster", "3.3.0"] == counted["ior", "birch", "3.3.0"] == {"ok": 1}
    assert counted["ior", "birch", "4.1.0"] == {"truncated": 1}
    assert counted["unknown", "", ""] == {"no-result": 1}
    best = [row for row in summary["best"] if row["benchmark"] == "ior"]
    assert best and {row["systems"] for row in best} == {2}
    (refused,) = summary["refused"]
    assert (refused["benchmark"], refused["status"], refused["runs"]) == ("ior", "truncated", 1)
    table = CliRunner().invoke(app, ["ingest", str(archive), "--summary"])
    assert "5 files had not" in table.stdout
    assert "Refused" in table.stdout and "Best valid value" in table.stdout


def test_tests_of_one_benchmark_do_not_compete(archive: Path) -> None:
    for system, log in (("aster", OSU_ALLREDUCE), ("birch", OSU_BARRIER)):
        (archive / system / "osu.txt").write_text(log)
    summary = json.loads(summary_of(archive, "--format", "json"))
    best = [row for row in summary["best"] if row["metric"] == "collective_time"]
    assert {(row["variant"], row["system"]) for row in best} == {("mpi allreduce", "aster"), ("mpi barrier", "birch")}


def test_a_best_value_with_a_doubt_says_so_and_why(archive: Path) -> None:
    log = archive / "aster" / "mdtest-3.3.0.txt"
    log.write_text(re.sub(r"(File stat +:).*", r"\1 9e13 9e13 9e13 0.000", log.read_text()))
    rows = json.loads(summary_of(archive, "--format", "json"))["doubted"]
    doubted = {(row["benchmark"], row["status"], row["runs"]) for row in rows}
    assert doubted == {("mdtest", "suspicious", 1)}
    table = summary_of(archive)
    assert "9e13 1/s (suspicious)" in table
    _, _, doubts = table.partition("Suspicious:")
    assert "9e13" in doubts and "aster/mdtest-3.3.0.txt:" in doubts
    assert str(archive) not in doubts, "below the folder that was given"


def summary_of(archive: Path, *options: str) -> str:
    done = CliRunner().invoke(app, ["ingest", str(archive), "--summary", *options])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_what_summaries_do_not_take_is_refused(archive: Path) -> None:
    for wrong in (["--format", "csv"], ["--benchmark", "ior"]):
        done = CliRunner().invoke(app, ["ingest", str(archive), "--summary", *wrong])
        assert isinstance(done.exception, BadInput)


@pytest.mark.env
def test_a_report_without_a_study(archive: Path, tmp_path: Path) -> None:
    output = tmp_path / "new" / "logs.html"
    summary = logs_report(archive, output)
    assert summary["counts"]["ok"] == 1 and not summary["problems"]
    page = output.read_text()
    assert 'id="hardware"' in page and 'id="export"' not in page
    assert "Logs of archive" in page and "aster" in page and "birch" in page
    with pytest.raises(BadInput, match="no such file"):
        logs_report(tmp_path / "missing", output)


@pytest.mark.env
def test_a_page_of_logs_opens_with_them_and_hides_no_benchmark_and_no_doubt(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transect.report.topics.hardware.systems.MAX_OPEN", 1)
    log = archive / "aster" / "mdtest-3.3.0.txt"
    log.write_text(re.sub(r"(File stat +:).*", r"\1 9e13 9e13 9e13 0.000", log.read_text()))
    logs_report(archive, tmp_path / "logs.html")
    page = (tmp_path / "logs.html").read_text()
    assert page.count('<details class="part" open>') == 1
    assert "#failures" not in page, "counts of cells, of which an archive has none"
    assert "Best valid values: mdtest" in page
    assert ">suspicious</span>" in page


def test_a_log_that_is_written_again_at_once_is_read_again(archive, tmp_path, monkeypatch) -> None:
    """Time stamps have steps: within one of them a log of the same size looks as it did before."""
    cache, log = tmp_path / "kept", archive / "notes.md"
    log.write_text("one line\n")
    before, looked = log.stat(), Path.stat
    monkeypatch.setattr(Path, "stat", lambda path, **how: before if path == log else looked(path, **how))
    monkeypatch.setattr("transect.domain.files.YOUNG_NS", 10**12)
    read_archive([archive], cache=cache)
    log.write_text("two line\n")
    (run,) = (run for run in read_archive([archive], cache=cache).runs if run.file == str(log))
    assert "two line" in run.reason


def test_what_could_not_be_read_is_tried_again(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, opened = tmp_path / "kept", Path.open

    def failing(path: Path, *args: str, **named: str) -> object:
        if path.name == "cut.txt":
            raise OSError(5, "Input/output error")
        return opened(path, *args, **named)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", failing)
        first = read_archive([archive], cache=cache)
    assert [run.reason for run in first.runs if run.file.endswith("cut.txt")] == ["cannot be read: Input/output error"]
    again = read_archive([archive], cache=cache)
    assert again.known == 4
    assert {run.status.value for run in again.runs if run.file.endswith("cut.txt")} == {"truncated"}


def test_files_that_were_not_read_are_listed_as_such(archive: Path) -> None:
    (archive / "packed.gz").write_bytes(b"\x1f\x8b" + bytes(range(30)))
    (archive / "lost.txt").symlink_to("nowhere")
    done = CliRunner().invoke(app, ["ingest", str(archive), "--summary", "--format", "json"])
    refused = json.loads(done.stdout)["refused"]
    reasons = {row["example"] for row in refused if row["benchmark"] == "unknown"}
    assert reasons == {"the file is binary: packed data: unpack it first", "cannot be read: No such file or directory"}
