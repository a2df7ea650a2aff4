"""`snakemake --report` on a study that has run: the page, its data, and what the workflow did."""

from __future__ import annotations

import html
import json

import pytest

from checkouts import ROOT

pytestmark = pytest.mark.study

LOG = ROOT / "tests/data/hpc"
CONFIG = "study=logs.yaml"


@pytest.fixture(scope="module")
def done(checkout):
    """A checkout in which a study of logs has run, and its workflow's report beside it."""
    log = sorted(path for path in LOG.rglob("*") if path.is_file())[0]
    (checkout.folder / "logs.yaml").write_text(f"name: logs\ningest: {{paths: ['{log}']}}\n")
    run = checkout.snakemake("--config", CONFIG)
    assert run.returncode == 0, run.stderr
    before = times_of(checkout)
    told = checkout.snakemake("--report", "workflow-report.html", "--config", CONFIG)
    assert told.returncode == 0, told.stderr
    assert times_of(checkout) == before, "it reads, and changes no result"
    return checkout


def times_of(checkout):
    """Return when each file of the study was written."""
    paths = (checkout.folder / "results/logs").rglob("*")
    return {path: path.stat().st_mtime_ns for path in paths if path.is_file()}


def test_it_holds_the_page_and_its_data_by_category(done):
    page = (done.folder / "workflow-report.html").read_text()
    for name, category in (("report.html", "Report"), ("records.parquet", "Data"), ("summary.json", "Data")):
        assert f'"name": "{name}"' in page or name in page
        assert f'"{category}"' in page
    for caption in ("The study&#x27;s report", "A row for each record and metric", "Counts of cells"):
        assert caption in page or html.unescape(caption) in page
    assert "Results of one study of transect" in page


def test_the_command_writes_formats_and_a_crate_beside_it_and_snakemake_goes_on(done):
    told = done.transect("report", "logs.yaml", "--format", "markdown", "--format", "json", "--json")
    assert told.returncode == 0, told.stderr
    written = json.loads(told.stdout)["written"]
    assert [one["format"] for one in written] == ["figures", "markdown", "json"]
    sealed = done.transect("crate", "logs.yaml")
    assert sealed.returncode == 0, sealed.stderr
    assert done.transect("verify", "logs.yaml").returncode == 0
    (done.folder / "results/logs/report.md").write_text("edited")
    told = done.transect("verify", "logs.yaml")
    assert told.returncode == 1 and "report.md" in told.stdout
    refused = done.transect("report", "logs.yaml", "--format", "markdown")
    assert refused.returncode == 2 and "report.md would be overwritten" in refused.stderr
    assert done.summary(CONFIG) == set()
