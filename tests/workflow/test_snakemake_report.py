"""`snakemake --report` on a study that has run: the page, its data, and what the workflow did."""

from __future__ import annotations

import html

import pytest

from checkouts import ROOT

pytestmark = pytest.mark.study

LOG = ROOT / "tests/data/hpc"
CONFIG = "study=logs.yaml"


def times_of(checkout):
    """Return when each file of the study was written."""
    paths = (checkout.folder / "results/logs").rglob("*")
    return {path: path.stat().st_mtime_ns for path in paths if path.is_file()}


def test_it_holds_the_page_and_its_data_by_category_and_changes_no_result(checkout):
    log = sorted(path for path in LOG.rglob("*") if path.is_file())[0]
    (checkout.folder / "logs.yaml").write_text(f"name: logs\ningest: {{paths: ['{log}']}}\n")
    run = checkout.snakemake("--config", CONFIG)
    assert run.returncode == 0, run.stderr
    before = times_of(checkout)
    done = checkout.snakemake("--report", "workflow-report.html", "--config", CONFIG)
    assert done.returncode == 0, done.stderr
    assert times_of(checkout) == before
    page = html.unescape((checkout.folder / "workflow-report.html").read_text())
    for name, category in (("report.html", "Report"), ("records.parquet", "Data"), ("summary.json", "Data")):
        assert name in page and f'"{category}"' in page
    assert "Results of one study of transect" in page
