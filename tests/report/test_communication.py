"""The section on communication: bound beside measurement, networks apart, doubt in words."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from make_multi_node_records import write_multi_node_study
from pages import Page
from said_of_records import context, written

from transect.analysis.load import load_records
from transect.analysis.network import communications
from transect.report.build import write_page
from transect.report.findings.finding import Finding
from transect.report.made import Made, make_all
from transect.report.making import MadeSection, all_parts, make_section

KEY = "communication"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make_all(write_multi_node_study(tmp_path_factory.mktemp("multi-node")), title="Two")


@pytest.fixture(scope="module")
def page(made: Made, tmp_path_factory: pytest.TempPathFactory) -> Page:
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_page(made, path)
    return Page.read(path)


@pytest.fixture(scope="module")
def finding(made: Made) -> Finding:
    [found] = [one for one in made.findings if one.kind == KEY]
    return found


def test_prose(finding: Finding, made: Made, snapshot: Any) -> None:
    scaling = [one for one in made.findings if one.kind == "scaling"]
    assert written([finding, *scaling]) == snapshot


def test_it_follows_speed_and_scaling_and_nothing_went_wrong(page: Page) -> None:
    order = page.sections
    assert order[order.index("speed") + 1 :][:2] == ["scaling", KEY]
    assert page.summary["problems"] == []


def test_each_network_has_a_panel_with_its_bound_and_a_text_for_those_who_do_not_see(page: Page) -> None:
    plots = page.section(KEY).plots
    fast, slow, messages = (str(plot["aria-label"]) for plot in plots)
    assert fast.startswith("digits-cnn, 1gbit:") and slow.startswith("digits-cnn, 1gbit-50us:")
    assert all("lower bound" in label for label in (fast, slow)) and "2 x 1" in messages
    for plot in map(str, plots):
        assert not re.search(r'(?:fill|stroke)="(?:#|black|white|rgb)', plot)
        assert "NaN" not in plot


def test_the_table_says_what_the_bound_is_and_how_far_from_it_each_cell_is(page: Page) -> None:
    [(_, *rows)] = [r for name, r in page.section(KEY).tables.items() if "their ratio" in name]
    found = {row[0]: row for row in rows}
    row = found["numpy · mpi-allreduce · 2x2 ranks · 1gbit"]
    # Two nodes: 76 000 B / 1.2e8 B/s = 0.633 ms.
    assert float(row[6]) == pytest.approx(0.633, rel=0.05)
    assert row[7] == "bandwidth"
    assert float(row[8]) == pytest.approx(1.5, rel=0.1)
    assert row[9] == ""
    slow = found["numpy · mpi-sendrecv · 4x2 ranks · 1gbit-50us"]
    assert slow[9] == "over-subscribed"
    within = found["numpy · mpi-sendrecv · 1x2 ranks · 1gbit"]
    assert within[7] == "–" and within[9].startswith("no probe")
    assert not [label for label in found if "1x1 ranks" in label]


def test_over_subscription_is_said_and_the_fits_stand_with_their_errors(page: Page, made: Made) -> None:
    part = page.section(KEY)
    rows = communications(made.context.of("train"), made.context.network_fits)
    assert (sum(row.group.over_subscribed for row in rows), len(rows)) == (4, 12)
    assert "4 of 12" in part.text
    [(_, *fits)] = [rows for name, rows in part.tables.items() if name.startswith("Fits")]
    assert [(row[0], row[1]) for row in fits] == [
        ("1gbit", "2 x 1"),
        ("1gbit-50us", "2 x 1"),
        ("1gbit", "4 x 1"),
        ("1gbit-50us", "4 x 1"),
    ]
    assert all("±" in row[2] and row[2].endswith("µs") for row in fits)
    assert all("±" in row[3] and row[3].endswith("MB/s") for row in fits)


def test_the_finding_names_cell_share_ratio_and_leaves_over_subscribed_cells_out(finding: Finding, made: Made) -> None:
    rows = communications(made.context.of("train"), made.context.network_fits)
    able = [row for row in rows if row.ratio is not None and not row.group.over_subscribed]
    top = max(able, key=lambda row: row.share or 0.0)
    assert (top.group.cell.strategy, top.group.cell.nodes) == ("mpi-sendrecv", 2)
    assert top.share is not None and f"{100 * top.share:.0f} %" in finding.text
    assert "2x2 ranks" in finding.text and "mpi-sendrecv" in finding.text
    assert "4 over-subscribed" in finding.evidence and "residual" in finding.evidence
    assert finding.confidence == "provisional"


def test_efficiency_and_charts_keep_networks_apart(page: Page, made: Made) -> None:
    tables = page.section("scaling").tables.values()
    efficiency = [row for rows in tables for row in rows if len(row) == 8 and row[4] == "strong"]
    for row in efficiency:
        own = row[0].rpartition(" · ")[2]
        assert own in ("1gbit", "1gbit-50us")
        assert row[2].endswith((f" · {own}", "1x1 ranks"))
    assert {row[0].rpartition(" · ")[2] for row in efficiency} == {"1gbit", "1gbit-50us"}
    scaling = next(one for one in made.findings if one.kind == "scaling")
    assert "over 1gbit" in scaling.text


def section_of(study: Path) -> MadeSection:
    [section] = [one for one in all_parts().sections if one.key == KEY]
    found = make_section(section, context(*load_records(study).records))
    assert found is not None
    return found


def test_without_a_probe_or_ranks_one_line_says_what_is_missing(tmp_path: Path) -> None:
    study = write_multi_node_study(tmp_path, probes=False)
    without = section_of(study)
    assert "probe" in without.body.lead and not without.body.blocks
    assert KEY not in {one.kind for one in make_all(study, title="t", only=()).findings}
    nothing = section_of(tmp_path / "nothing")
    assert nothing.body.lead not in ("", without.body.lead) and not nothing.body.blocks
