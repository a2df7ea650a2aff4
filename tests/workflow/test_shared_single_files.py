"""The one-file promise: a framework, a strategy, a runtime and a parser, one file each."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.study, pytest.mark.timeout(7200)]


def test_single_files_join_a_run(shared):
    records = {one["cell_id"].split("~")[0]: one for one in shared.records("shared").values()}
    own = {name: one for name, one in records.items() if "extra" in name or name == "logs"}
    assert len(own) == 4
    assert {one["status"] for one in own.values()} == {"ok"}, own
    trained = records["iris-mlp-ce.extra-framework.extra-reduce-broadcast.n1x2.b16.fp32"]
    ratio = [m["value"] for m in trained["metrics"] if m["name"] == "equality_ratio"]
    assert 0 <= ratio[0] <= 1
    assert any("extra-runtime" in name for name in records)
    (read,) = records["logs"]["details"]["runs"]
    assert read["benchmark"] == "extra-benchmark"
    assert records["logs"]["metrics"][0]["value"] == 12.5e9
    html = (shared.folder / "results/shared/report.html").read_text()
    for name in ("extra-framework", "extra-reduce-broadcast", "extra-recompute", "extra-runtime", "extra-benchmark"):
        assert name in html
