"""The section on communication: bound beside measurement, networks apart, doubt in words."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from make_multi_node_records import write_multi_node_study

from transect.report.build import build_report


def build(folder: Path, study: Path) -> tuple[str, dict[str, Any]]:
    build_report(study, folder / "report.html", title="Two networks", questions=[])
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    return (folder / "report.html").read_text(encoding="utf-8"), summary


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("multi-node")
    return build(folder, write_multi_node_study(folder))


def section(page: str) -> str:
    found = re.search(r'<section id="communication">.*?</section>', page, re.S)
    assert found is not None
    return found.group()


def text(part: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", part))


def test_it_follows_speed_and_scaling_and_nothing_went_wrong(
    built: tuple[str, dict[str, Any]],
) -> None:
    page, summary = built
    order = re.findall(r'<section id="([a-z]+)">', page)
    assert order[order.index("speed") + 1 :][:2] == ["scaling", "communication"]
    assert summary["problems"] == []


def test_each_network_has_a_panel_with_its_bound_and_a_text_for_those_who_do_not_see(
    built: tuple[str, dict[str, Any]],
) -> None:
    part = section(built[0])
    labels = re.findall(r'<svg class="plot"[^>]*aria-label="([^"]*)"', part)
    assert len(labels) == 3
    for network in ("1gbit,", "1gbit-50us,"):
        assert any(network.rstrip(",") in label.split(":")[0] for label in labels)
    assert all("alpha-beta lower bound" in label for label in labels[:2])
    assert "2, 4 nodes" not in labels[2] and "2 x 1" in labels[2]
    for plot in re.findall(r'<svg class="plot".*?</svg>', part, re.S):
        assert not re.search(r'(?:fill|stroke)="(?:#|black|white|rgb)', plot)
        assert "NaN" not in plot


def rows(part: str) -> list[list[str]]:
    return [
        [text(cell).strip() for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.S)]
        for row in re.findall(r"<tr[^>]*>(.*?)</tr>", part, re.S)
    ]


def test_the_table_says_what_the_bound_is_and_how_far_from_it_each_cell_is(
    built: tuple[str, dict[str, Any]],
) -> None:
    found = {row[0]: row for row in rows(section(built[0])) if len(row) == 10}
    row = found["numpy · mpi-allreduce · 2x2 ranks · 1gbit"]
    # Two nodes: 76 000 B / 1.2e8 B/s = 0.633 ms.
    assert float(row[6]) == pytest.approx(0.633, rel=0.05)
    assert row[7] == "bandwidth"
    assert float(row[8]) == pytest.approx(1.5, rel=0.1)
    assert row[9] == ""
    slow = found["numpy · mpi-sendrecv · 4x2 ranks · 1gbit-50us"]
    assert slow[9] == "over-subscribed"
    within = found["numpy · mpi-sendrecv · 1x2 ranks · 1gbit"]
    assert (within[7], within[9]) == ("–", "no probe of its network")
    assert not [label for label in found if "1x1 ranks" in label]


def test_over_subscription_is_said_in_words_and_the_fits_stand_with_their_errors(
    built: tuple[str, dict[str, Any]],
) -> None:
    part = text(section(built[0]))
    assert "4 of 12 points are over-subscribed" in part
    assert "share cores" in part
    fits = [row for row in rows(section(built[0])) if len(row) == 8][1:]
    assert [(row[0], row[1]) for row in fits] == [
        ("1gbit", "2 x 1"), ("1gbit-50us", "2 x 1"), ("1gbit", "4 x 1"), ("1gbit-50us", "4 x 1"),
    ]  # fmt: skip
    assert all("±" in row[2] and row[2].endswith("µs") for row in fits)
    assert all("±" in row[3] and row[3].endswith("MB/s") for row in fits)


def test_the_finding_names_cell_share_ratio_and_leaves_over_subscribed_cells_out(
    built: tuple[str, dict[str, Any]],
) -> None:
    (found,) = [one for one in built[1]["findings"] if one["kind"] == "communication"]
    assert "communication takes" in found["text"] and "2x2 ranks" in found["text"]
    assert "mpi-sendrecv" in found["text"]
    assert "times the alpha-beta lower bound of an all-reduce" in found["text"]
    assert "4 over-subscribed left out" in found["evidence"]
    assert "relative residual" in found["evidence"]
    assert found["sureness"] == "tentative"


def test_efficiency_and_charts_keep_networks_apart(built: tuple[str, dict[str, Any]]) -> None:
    page = built[0]
    speed = re.search(r'<section id="scaling">.*?</section>', page, re.S)
    assert speed is not None
    efficiency = [row for row in rows(speed.group()) if len(row) == 8 and row[4] == "strong"]
    for row in efficiency:
        own = row[0].rpartition(" · ")[2]
        assert own in ("1gbit", "1gbit-50us")
        assert row[2].endswith((f" · {own}", "1x1 ranks"))
    assert {row[0].rpartition(" · ")[2] for row in efficiency} == {"1gbit", "1gbit-50us"}
    scaling = [row for row in built[1]["findings"] if row["kind"] == "scaling"]
    assert " over 1gbit" in scaling[0]["text"]


def test_without_a_probe_one_line_says_what_is_missing(tmp_path: Path) -> None:
    page, summary = build(tmp_path, write_multi_node_study(tmp_path, probes=False))
    part = section(page)
    assert "No network probe ended well" in part
    assert "<table" not in part and "<svg" not in part
    assert not [one for one in summary["findings"] if one["kind"] == "communication"]


def test_without_ranks_one_line_says_so(tmp_path: Path) -> None:
    page, _ = build(tmp_path, tmp_path / "nothing")
    part = section(page)
    assert "nothing was communicated that an" in part
    assert "<table" not in part and "<svg" not in part
