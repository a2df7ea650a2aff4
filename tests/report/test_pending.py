"""What stands beside the records: cells at work, to come, and of earlier studies; stages and sections that fail."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from make_framework_records import train_record
from pages import Page, page_of

from factories import make_record
from factories import write_records as write
from transect.adapters.snakemake import strict
from transect.analysis.load import cell_states
from transect.domain.cell import Cell
from transect.domain.files import digest
from transect.domain.record import Cause, Record, Status
from transect.engine.make_report import make_report
from transect.report.engine.context import Context
from transect.report.engine.parts import FindingMaker, Section, StageReport, all_parts


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return tmp_path / "results" / "s"


def key(record: Record) -> tuple[str, str]:
    return (record.stage, record.cell_id)


def failed(framework: str) -> Record:
    return train_record(framework, "single").model_copy(
        update={"status": Status.FAILED, "cause": Cause.CRASH, "message": "signal 11"}
    )


def test_earlier_cells_are_listed_apart_and_stand_in_no_count_or_verdict(study: Path, tmp_path: Path) -> None:
    kept, gone = train_record("numpy", "single"), failed("torch")
    fast = train_record("mxnet", "single", changes={"time_to_quality": 1e-6})
    write(study, kept, gone, fast)
    summary, page = page_of(study, tmp_path, planned=[key(kept)])
    assert summary["counts"] == {"ok": 1, "failed": 0, "skipped": 0}
    assert summary["failures"] == []
    assert summary["earlier"] == sorted("/".join(key(record)) for record in (gone, fast))
    assert "2 earlier cells" in Page.read(page).text and "<code>transect clean</code>" in page
    assert not [finding for finding in summary["findings"] if "mxnet" in finding["text"]]
    assert set(pd.read_parquet(tmp_path / "records.parquet")["cell"]) == {kept.cell_id}


def test_strict_passes_when_only_an_earlier_cell_failed(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, gone = train_record("numpy", "single"), failed("torch")
    write(study, kept, gone)
    file = tmp_path / "s.yaml"
    file.write_text("name: s\n", encoding="utf-8")
    arguments = ["strict", "--summary", str(study / "summary.json"), "--out", str(tmp_path / "ok")]
    monkeypatch.setattr("sys.argv", arguments)
    make_report(file, study.parent, planned=lambda paths: None)
    assert strict.main() == 1
    make_report(file, study.parent, planned=lambda paths: ["/".join(key(kept))])
    assert strict.main() == 0


def attempt(pid: int | None = None) -> str:
    return json.dumps({"host": os.uname().nodename, "pid": pid or os.getpid()})


@pytest.fixture(scope="module")
def ended_pid() -> int:
    """The number of a process that has ended."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid


@pytest.mark.env
def test_a_cell_at_work_is_running_and_no_problem(study: Path, tmp_path: Path, ended_pid: int) -> None:
    done, at_work, to_come, begun = (train_record(name, "single") for name in ("numpy", "torch", "mxnet", "keras-2"))
    write(study, done)
    for record in (at_work, begun):
        (study / record.stage / record.cell_id).mkdir(parents=True)
    (study / at_work.stage / at_work.cell_id / "attempt.json").write_text(attempt())
    # Interrupted, its runner gone: it has to run again.
    (study / begun.stage / begun.cell_id / "attempt.json").write_text(attempt(ended_pid))
    planned = [key(record) for record in (done, at_work, to_come, begun)]
    summary, page = page_of(study, tmp_path, planned=planned)
    assert summary["problems"] == []
    assert summary["pending"] == {"running": 1, "waiting": 2}
    assert summary["running"] == ["/".join(key(at_work))]
    assert "1 running" in Page.read(page).text and "2 not there" in Page.read(page).text
    [progress] = [finding["text"] for finding in summary["findings"] if finding["kind"] == "progress"]
    assert re.findall(r"\d+", progress) == ["3", "1", "2"]
    states = {cell.cell: cell.state for cell in cell_states(study, planned)}
    assert states == {
        done.cell_id: "ok",
        at_work.cell_id: "running",
        to_come.cell_id: "waiting",
        begun.cell_id: "waiting",
    }


def test_a_record_of_an_earlier_plan_is_no_result_of_this_one(study: Path, tmp_path: Path) -> None:
    now, kept, before, unknown = (train_record(name, "single") for name in ("numpy", "torch", "mxnet", "keras-2"))
    inputs = ["data 0123"]
    now = now.model_copy(update={"fingerprint": digest(["planned"])[:16]})
    taken = {"fingerprint": digest(["planned", *inputs])[:16], "inputs": inputs}
    kept, unknown = (kept.model_copy(update=taken), unknown.model_copy(update={"fingerprint": "planned"}))
    old = {"fingerprint": digest(["edited since", *inputs])[:16], "inputs": inputs}
    before = before.model_copy(update=old)
    write(study, now, kept, before, unknown)
    planned = dict.fromkeys(map(key, (now, kept, before, unknown)), "planned")
    for _ in range(2):  # read, and from the cache
        summary, _ = page_of(study, tmp_path, planned=planned)
        assert summary["counts"] == {"ok": 3, "failed": 0, "skipped": 0}
        assert summary["pending"] == {"running": 0, "waiting": 1}
    [state] = [state for state in cell_states(study, planned) if state.state == "waiting"]
    assert state.cell == before.cell_id and "earlier plan" in state.message


def unknown(repeat: int, value: float) -> Record:
    cell = Cell.of(stage="outlook", workload="w", horizon=12, method="arima", repeat=repeat)
    return make_record(cell, {"accuracy": value})


def test_a_stage_that_is_not_installed_stays_readable_and_is_listed(study: Path, tmp_path: Path) -> None:
    write(study, unknown(0, 0.5), unknown(1, 0.7), train_record("numpy", "single"))
    for _ in ("parsed", "from the cache"):
        summary, page = page_of(study, tmp_path)
        assert summary["problems"] == []
        assert summary["by_stage"]["outlook"]["ok"] == 2
        others = Page.read(page).section("others").text
        assert "outlook" in others and "0.5 – 0.7" in others
        table = pd.read_parquet(tmp_path / "records.parquet")
        row = table[table["stage"] == "outlook"].iloc[0]
        assert (row["horizon"], row["method"]) == (12, "arima")


def raises(context: Context) -> Any:
    raise RuntimeError("no <b>luck</b>")


def test_a_section_and_a_finding_that_raise_say_so_in_the_report(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(study, train_record("numpy", "single"))
    parts = all_parts()
    parts.sections.insert(0, Section(key="unlucky", title="Unlucky", order=1, make=raises))
    parts.findings.append(FindingMaker(name="raises", order=1, make=raises))
    monkeypatch.setattr("transect.report.engine.report.all_parts", lambda: parts)
    summary, page = page_of(study, tmp_path)
    assert [problem.split(":")[0] for problem in summary["problems"]] == ["raises findings", "section unlucky"]
    read = Page.read(page)
    assert "RuntimeError: no <b>luck</b>" in read.section("unlucky").text
    [fault] = [finding for finding in summary["findings"] if finding["kind"] == "report"]
    assert "RuntimeError" in fault["text"] and fault["confidence"] == "inconclusive"
    assert "<b>luck</b>" not in page
    assert summary["counts"]["ok"] == 1 and "numpy · single" in read.text


def test_a_stage_whose_report_file_cannot_be_imported_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transect.report.engine.parts.report_files", lambda: [Path("outlook/report.py")])
    [problem] = all_parts().problems
    assert problem.where == "stage outlook" and "cannot be used" in problem.what


ODD = Section(key="odd", title="Odd", order=1, make=raises)


@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        (ODD, "'Section' object is not iterable"),
        ([replace(ODD, order="1")], "'<' not supported"),
        ([replace(ODD, key="equality")], "the keys of these sections are taken: equality"),
        ([ODD, ODD], "the keys of these sections are taken: odd"),
    ],
)
def test_a_stage_whose_part_fits_no_report_costs_itself_alone(
    sections: Any, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = all_parts()
    monkeypatch.setattr("transect.report.engine.parts.report_files", lambda: [Path("outlook/report.py")])
    module = SimpleNamespace(REPORT=StageReport(sections=sections))
    monkeypatch.setitem(sys.modules, "transect.stages.outlook.report", module)
    parts = all_parts()
    [problem] = parts.problems
    assert expected in problem.what and [one.key for one in parts.sections] == [one.key for one in before.sections]
