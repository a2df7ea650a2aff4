"""Pages of a study, as the tests of what stands in them need them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pages import Page

from factories import make_record
from transect.domain.cell import Cell
from transect.domain.record import MetricValue, Record
from transect.report.build import build_report


def page_of(study: Path, folder: Path, **given: Any) -> tuple[dict[str, Any], str]:
    summary = build_report(study, folder / "report.html", title="t", questions=[], **given)
    return summary, (folder / "report.html").read_text(encoding="utf-8")


def text(page: str) -> str:
    return Page.read(page).text


def unknown(repeat: int, value: float) -> Record:
    cell = Cell.of(stage="outlook", workload="w", horizon=12, method="arima", repeat=repeat)
    return make_record(cell, [MetricValue.of("accuracy", value)])
