"""What stands beside the records: cells at work, to come, of earlier studies, and unknown stages."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from make_framework_records import train_record
from make_records import make_record

from transect.analysis.load import cell_states, load_records
from transect.domain.cell import Cell
from transect.domain.files import digest
from transect.domain.paths import StudyPaths
from transect.domain.record import Cause, MetricValue, Record, Status, write_record
from transect.execution import strict
from transect.execution.make_report import make_report
from transect.report import making
from transect.report.build import build_report
from transect.report.context import Context
from transect.report.parts import FindingMaker, Section


def write(study: Path, *records: Record) -> None:
    for record in records:
        write_record(study / record.stage / record.cell_id / "record.json", record)


def key(record: Record) -> tuple[str, str]:
    return (record.stage, record.cell_id)


def failed(framework: str) -> Record:
    return train_record(framework, "single").model_copy(
        update={"status": Status.FAILED, "cause": Cause.CRASH, "message": "signal 11"}
    )


def page_of(study: Path, folder: Path, **given: Any) -> tuple[dict[str, Any], str]:
    summary = build_report(study, folder / "report.html", title="t", questions=[], **given)
    return summary, (folder / "report.html").read_text(encoding="utf-8")


def text(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return tmp_path / "results" / "s"


def test_earlier_cells_are_listed_apart_and_stand_in_no_count_or_verdict(
    study: Path, tmp_path: Path
) -> None:
    kept, gone = train_record("numpy", "single"), failed("torch")
    fast = train_record("mxnet", "single", changes={"time_to_quality": 1e-6})
    write(study, kept, gone, fast)
    summary, page = page_of(study, tmp_path, planned=[key(kept)])
    assert summary["counts"] == {"ok": 1, "failed": 0, "skipped": 0}
    assert summary["failures"] == []
    assert summary["earlier"] == sorted("/".join(key(one)) for one in (gone, fast))
    assert "2 earlier cells that the study no longer has; `transect clean` removes them" in page
    assert not [one for one in summary["findings"] if "mxnet" in one["text"]]
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


def test_the_plan_beside_the_records_says_which_cells_the_study_has(
    study: Path, tmp_path: Path
) -> None:
    kept, gone = train_record("numpy", "single"), failed("torch")
    write(study, kept, gone)
    file = tmp_path / "s.yaml"
    file.write_text("name: s\n", encoding="utf-8")
    plan = StudyPaths(results=study.parent, study="s").plan
    plan.write_text(
        json.dumps({"file": str(file), "cells": {"/".join(key(kept)): kept.fingerprint}})
    )
    assert make_report(file, study.parent)["counts"] == {"ok": 1, "failed": 0, "skipped": 0}


def attempt(pid: int | None = None) -> str:
    return json.dumps({"host": os.uname().nodename, "pid": pid or os.getpid()})


def ended_pid() -> int:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid


def test_a_cell_at_work_is_running_and_no_problem(study: Path, tmp_path: Path) -> None:
    done, at_work, to_come, begun = (
        train_record(name, "single") for name in ("numpy", "torch", "mxnet", "keras-2")
    )
    write(study, done)
    for one in (at_work, begun):
        (study / one.stage / one.cell_id).mkdir(parents=True)
    (study / at_work.stage / at_work.cell_id / "attempt.json").write_text(attempt())
    # Interrupted, its runner gone: it has to run again.
    (study / begun.stage / begun.cell_id / "attempt.json").write_text(attempt(ended_pid()))
    planned = [key(one) for one in (done, at_work, to_come, begun)]
    summary, page = page_of(study, tmp_path, planned=planned)
    assert summary["problems"] == []
    assert summary["pending"] == {"running": 1, "waiting": 2}
    assert summary["running"] == ["/".join(key(at_work))]
    assert "1 running" in text(page) and "2 not there yet" in text(page)
    pending = [one["text"] for one in summary["findings"] if one["kind"] == "progress"]
    assert pending == ["3 cells still to come: 1 running and 2 not there yet."]
    states = {one.cell: one.state for one in cell_states(study, planned)}
    assert states == {
        done.cell_id: "ok", at_work.cell_id: "running", to_come.cell_id: "waiting",
        begun.cell_id: "waiting",
    }  # fmt: skip


def test_a_record_of_an_earlier_plan_is_no_result_of_this_one(study: Path, tmp_path: Path) -> None:
    now, kept, before, unknown = (
        train_record(name, "single") for name in ("numpy", "torch", "mxnet", "keras-2")
    )
    inputs = ["data 0123"]
    now = now.model_copy(update={"fingerprint": digest(["planned"])[:16]})
    taken = {"fingerprint": digest(["planned", *inputs])[:16], "inputs": inputs}
    kept, unknown = (
        kept.model_copy(update=taken),
        unknown.model_copy(update={"fingerprint": "planned"}),
    )
    old = {"fingerprint": digest(["edited since", *inputs])[:16], "inputs": inputs}
    before = before.model_copy(update=old)
    write(study, now, kept, before, unknown)
    planned = dict.fromkeys(map(key, (now, kept, before, unknown)), "planned")
    for _ in range(2):  # read, and from the cache
        summary, _ = page_of(study, tmp_path, planned=planned)
        assert summary["counts"] == {"ok": 3, "failed": 0, "skipped": 0}
        assert summary["pending"] == {"running": 0, "waiting": 1}
    [state] = [one for one in cell_states(study, planned) if one.state == "waiting"]
    assert state.cell == before.cell_id and "an earlier plan" in state.message


def test_without_a_plan_a_cell_at_work_is_running_and_a_bare_folder_is_a_problem(
    study: Path,
) -> None:
    for name, files in (("a~00000001", ["attempt.json"]), ("b~00000002", [])):
        (study / "train" / name).mkdir(parents=True)
        for file in files:
            (study / "train" / name / file).write_text(attempt())
    loaded = load_records(study)
    assert loaded.running == [("train", "a~00000001")]
    assert [problem.where for problem in loaded.problems] == ["train/b~00000002/record.json"]
    assert "stopped before" in loaded.problems[0].what


def test_states_name_cause_and_message(study: Path) -> None:
    write(study, failed("torch"))
    [state] = cell_states(study)
    assert (state.stage, state.state, state.cause, state.message) == (
        "train", "failed", "crash", "signal 11",
    )  # fmt: skip


def unknown(repeat: int, value: float) -> Record:
    cell = Cell.of(stage="forecast", workload="w", horizon=12, method="arima", repeat=repeat)
    return make_record(cell, [MetricValue.of("accuracy", value)])


def test_a_stage_that_is_not_installed_stays_readable_and_is_listed(
    study: Path, tmp_path: Path
) -> None:
    write(study, unknown(0, 0.5), unknown(1, 0.7), train_record("numpy", "single"))
    for _ in ("parsed", "from the cache"):
        summary, page = page_of(study, tmp_path)
        assert summary["problems"] == []
        assert summary["by_stage"]["forecast"]["ok"] == 2
        part = re.search(r'<section id="others">.*?</section>', page, re.S)
        assert part is not None
        assert "forecast" in part.group() and "0.5 – 0.7" in part.group()
        table = pd.read_parquet(tmp_path / "records.parquet")
        row = table[table["stage"] == "forecast"].iloc[0]
        assert (row["horizon"], row["method"]) == (12, "arima")


def raises(context: Context) -> Any:
    raise RuntimeError("no <b>luck</b>")


def test_a_section_and_a_finding_that_raise_say_so_in_the_report(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(study, train_record("numpy", "single"))
    parts = making.all_parts()
    parts.sections.insert(0, Section(key="unlucky", title="Unlucky", order=1, make=raises))
    parts.findings.append(FindingMaker(order=1, make=raises))
    monkeypatch.setattr("transect.report.build.all_parts", lambda: parts)
    summary, page = page_of(study, tmp_path)
    assert [problem.split(":")[0] for problem in summary["problems"]] == [
        "raises", "section unlucky",
    ]  # fmt: skip
    assert "this section could not be made: RuntimeError" in text(page)
    assert "Raises could not be made: RuntimeError" in text(page)
    assert "<b>luck</b>" not in page
    assert summary["counts"]["ok"] == 1 and "numpy · single" in page


CELL = '''
"""A forecast: how far ahead, and by which method."""

from typing import Annotated, Literal

from transect.domain.cell import Axis, Cell


class ForecastCell(Cell):
    """One forecast."""

    stage: Literal["forecast"] = "forecast"
    workload: Annotated[str, Axis(place=20, name=True)]
    method: Annotated[str, Axis(place=30, name=True)]
    horizon: Annotated[int, Axis(place=120, label=lambda n: f"{n} steps ahead")] = 1
    season: Annotated[str, Axis(place=150, label=lambda s: f"{s} season", kind=True)] = "none"
'''
REPORT = '''
"""What a report says of forecasts."""

from transect.analysis.comparisons import Sureness
from transect.analysis.groups import group_labels
from transect.report.blocks import Body, table, words
from transect.report.findings.finding import Finding
from transect.report.parts import FindingMaker, Section


def body(context):
    groups = context.of("forecast")
    labels = group_labels(groups)
    columns = [words("Forecast", lambda group: labels[group.cell]),
               words("Kind", lambda group: group.kind.words)]
    return Body(lead="How well it is foreseen.", blocks=[table(groups, columns)])


def findings(context):
    return [Finding(subject="w", claim="arima sees it.", evidence="by eye", named=True,
                    sureness=Sureness.OPEN, kind="forecast")]


SECTIONS = (Section(key="forecast", title="Forecasts", order=650, make=body),)
FINDINGS = (FindingMaker(order=750, make=findings),)
'''
SCRIPT = """
import sys
from pathlib import Path
from transect.domain.cell import Cell
from transect.domain.record import write_record
from transect.report.build import build_report
sys.path.insert(0, sys.argv[2])
from make_records import make_record

study = Path(sys.argv[1])
for method, horizon, season in (("arima", 1, "none"), ("arima", 6, "yearly")):
    cell = Cell.of(stage="forecast", workload="w", method=method, horizon=horizon, season=season)
    record = make_record(cell, {"accuracy": 0.5})
    write_record(study / "forecast" / cell.id / "record.json", record)
build_report(study, study / "report.html", title="t", questions=[])
"""


def made_with_plugin(study: Path, folder: Path, report_file: str) -> tuple[dict[str, Any], str]:
    """Make the report of a plug-in folder's stage, in a process that knows the folder."""
    for name, source in (("cell", CELL), ("report", report_file)):
        path = folder / "forecast" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    environment = {**os.environ, "TRANSECT_PLUGINS": str(folder)}
    here = str(Path(__file__).parent)
    command = [sys.executable, "-c", SCRIPT, str(study), here]
    subprocess.run(command, check=True, env=environment, timeout=300)
    summary = json.loads((study / "summary.json").read_text(encoding="utf-8"))
    return summary, (study / "report.html").read_text(encoding="utf-8")


def test_a_stage_of_a_plugin_folder_brings_section_finding_labels_kind_and_columns(
    study: Path, tmp_path: Path
) -> None:
    summary, page = made_with_plugin(study, tmp_path / "plugins", REPORT)
    assert summary["problems"] == []
    order = re.findall(r'<section id="([a-z]+)">', page)
    assert order[order.index("forecast") - 1 : order.index("forecast") + 2] == [
        "runtimes", "forecast", "roofline",
    ]  # fmt: skip
    part = re.search(r'<section id="forecast">.*?</section>', page, re.S)
    assert part is not None
    assert "arima · 6 steps ahead · yearly season" in part.group()
    assert "<td>yearly season</td>" in part.group()
    assert [one["text"] for one in summary["findings"] if one["kind"] == "forecast"] == [
        "w: arima sees it."
    ]
    table = pd.read_parquet(study / "records.parquet")
    assert list(table.columns[-3:]) == ["horizon", "method", "season"]
    assert sorted(table["horizon"]) == [1, 6]


def test_a_stage_whose_report_file_is_broken_is_listed_with_its_error(
    study: Path, tmp_path: Path
) -> None:
    summary, page = made_with_plugin(study, tmp_path / "plugins", "import nothing_of_the_kind\n")
    [problem] = summary["problems"]
    assert problem.startswith("stage forecast:") and "nothing_of_the_kind" in problem
    assert '<section id="others">' in page, "its records are shown all the same"


def test_of_thousands_of_failures_the_first_show_their_logs_and_the_rest_are_counted(
    study: Path, tmp_path: Path
) -> None:
    alike = [
        failed("torch").model_copy(update={"log_tail": f"log of {batch}"}) for batch in range(60)
    ]
    for batch, one in enumerate(alike):
        cell = one.cell.model_copy(update={"batch": batch + 1})
        cell = Cell.of(**cell.axes())
        write(study, one.model_copy(update={"cell": cell, "cell_id": cell.id}))
    other = train_record("mxnet", "single").model_copy(
        update={"status": Status.FAILED, "cause": Cause.TIMEOUT, "log_tail": "the late one"}
    )
    write(study, other)
    summary, page = page_of(study, tmp_path)
    assert summary["counts"]["failed"] == len(summary["failures"]) == 61
    assert page.count("<pre>log of") == 4
    assert "the late one" in page, "every cause shows a log"
    assert "56 more cells did not end well" in page
    assert f"{study}/STAGE/CELL/output.log" in page
