"""Communication: bound beside measurement, networks apart, doubt in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from make_multi_node_records import write_multi_node_study
from said_of_records import Made, context, findings, prose

from transect.analysis.load import load_records
from transect.analysis.network import communications

KEY = "communication"


def test_prose(tmp_path: Path, snapshot: Any) -> None:
    records = load_records(write_multi_node_study(tmp_path / "a")).records
    without = load_records(write_multi_node_study(tmp_path / "b", probes=False)).records
    sections = {key: Made(key, *records).prose for key in (KEY, "scaling")} | {"no probe": Made(KEY, *without).prose}
    assert prose({"nodes": records}, KEY, "scaling") | sections == snapshot
    assert KEY not in findings(*without)


def test_the_finding_names_the_largest_share_of_cells_that_do_not_share_cores(tmp_path: Path) -> None:
    records = load_records(write_multi_node_study(tmp_path)).records
    made = context(*records)
    rows = communications(made.of("train"), made.network_fits)
    assert (sum(row.group.over_subscribed for row in rows), len(rows)) == (4, 12)
    able = [row for row in rows if row.ratio is not None and not row.group.over_subscribed]
    top = max(able, key=lambda row: row.share or 0.0)
    assert (top.group.cell.strategy, top.group.cell.nodes) == ("mpi-sendrecv", 2)
    [finding] = findings(*records)[KEY]
    assert f"{100 * (top.share or 0):.0f} %" in finding.text and "2x2 ranks" in finding.text
