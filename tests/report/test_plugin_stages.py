"""Stages that a report does not know, sections that raise, and stages of a folder of plug-ins."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from make_framework_records import train_record
from pages import Page, page_of

from factories import make_record
from factories import write_records as write
from transect.domain.cell import Cell
from transect.domain.record import Record
from transect.report import making
from transect.report.context import Context
from transect.report.parts import FindingMaker, Section

# Each makes its report in a process that knows the folder of plug-ins.
in_a_process = pytest.mark.env


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return tmp_path / "results" / "s"


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
    parts = making.all_parts()
    parts.sections.insert(0, Section(key="unlucky", title="Unlucky", order=1, make=raises))
    parts.findings.append(FindingMaker(order=1, make=raises))
    monkeypatch.setattr("transect.report.made.all_parts", lambda: parts)
    summary, page = page_of(study, tmp_path)
    assert [problem.split(":")[0] for problem in summary["problems"]] == ["raises", "section unlucky"]
    read = Page.read(page)
    assert "RuntimeError: no <b>luck</b>" in read.section("unlucky").text
    [fault] = [one for one in summary["findings"] if one["kind"] == "report"]
    assert "RuntimeError" in fault["text"] and fault["confidence"] == "inconclusive"
    assert "<b>luck</b>" not in page
    assert summary["counts"]["ok"] == 1 and "numpy · single" in read.text


CELL = '''
"""An outlook: how far ahead, and by which method."""

from typing import Annotated, Literal

from transect.domain.cell import Axis, Cell


class OutlookCell(Cell):
    """One outlook."""

    stage: Literal["outlook"] = "outlook"
    workload: Annotated[str, Axis(place=20, name=True)]
    method: Annotated[str, Axis(place=30, name=True)]
    horizon: Annotated[int, Axis(place=120, label=lambda n: f"{n} steps ahead")] = 1
    season: Annotated[str, Axis(place=150, label=lambda s: f"{s} season", kind=True)] = "none"
'''


REPORT = '''
"""What a report says of outlooks."""

from transect.analysis.comparisons import Confidence
from transect.analysis.labels import group_labels
from transect.report.blocks import Body, table, words
from transect.report.findings.finding import Finding
from transect.report.parts import FindingMaker, Section


def body(context):
    groups = context.of("outlook")
    labels = group_labels(groups)
    columns = [words("Outlook", lambda group: labels[group.cell]),
               words("Kind", lambda group: group.kind.words)]
    return Body(lead="How well it is foreseen.", blocks=[table(groups, columns)])


def findings(context):
    return [Finding(subject="w", claim="arima sees it.", evidence="by eye", named=True,
                    confidence=Confidence.INCONCLUSIVE, kind="outlook")]


SECTIONS = (Section(key="outlook", title="Outlooks", order=650, make=body),)
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
    cell = Cell.of(stage="outlook", workload="w", method=method, horizon=horizon, season=season)
    record = make_record(cell, {"accuracy": 0.5})
    write_record(study / "outlook" / cell.id / "record.json", record)
build_report(study, study / "report.html", title="t", questions=[])
"""


def made_with_plugin(study: Path, folder: Path, report_file: str) -> tuple[dict[str, Any], str]:
    """Make the report of a plug-in folder's stage, in a process that knows the folder."""
    for name, source in (("cell", CELL), ("report", report_file)):
        path = folder / "outlook" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    environment = {**os.environ, "TRANSECT_PLUGINS": str(folder)}
    here = str(Path(__file__).parent)
    command = [sys.executable, "-c", SCRIPT, str(study), here]
    subprocess.run(command, check=True, env=environment, timeout=300)
    summary = json.loads((study / "summary.json").read_text(encoding="utf-8"))
    return summary, (study / "report.html").read_text(encoding="utf-8")


@in_a_process
def test_a_stage_of_a_plugin_folder_brings_section_finding_labels_kind_and_columns(study: Path, tmp_path: Path) -> None:
    summary, page = made_with_plugin(study, tmp_path / "plugins", REPORT)
    assert summary["problems"] == []
    order = Page.read(page).sections
    assert order[order.index("outlook") - 1 : order.index("outlook") + 2] == ["runtimes", "outlook", "roofline"]
    [rows] = Page.read(page).section("outlook").tables.values()
    assert [row[1] for row in rows[1:]] == ["", "yearly season"]
    assert rows[2][0].split(" · ") == ["arima", "6 steps ahead", "yearly season"]
    [sees] = [one["text"] for one in summary["findings"] if one["kind"] == "outlook"]
    assert sees.startswith("w: arima")
    table = pd.read_parquet(study / "records.parquet")
    assert list(table.columns[-3:]) == ["horizon", "method", "season"]
    assert sorted(table["horizon"]) == [1, 6]


@in_a_process
def test_a_stage_whose_report_file_is_broken_is_listed_with_its_error(study: Path, tmp_path: Path) -> None:
    summary, page = made_with_plugin(study, tmp_path / "plugins", "import nothing_of_the_kind\n")
    [problem] = summary["problems"]
    assert problem.startswith("stage outlook:") and "nothing_of_the_kind" in problem
    assert "others" in Page.read(page).sections, "its records are shown all the same"
