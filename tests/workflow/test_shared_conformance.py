"""Runtimes run ONNX's operator tests in a study: made once, compared in the report."""

from __future__ import annotations

import json

import pytest

from checkouts import edited

pytestmark = [pytest.mark.study, pytest.mark.timeout(7200)]

FILE = "shared.yaml"


def of(shared) -> dict[str, dict]:
    """Return the records of operator tests by stage and id."""
    return shared.records("shared", "nodetests") | shared.records("shared", "conformance")


def test_the_tests_are_a_cell_of_their_own_and_the_runtime_another(shared):
    records = of(shared)
    assert sorted(name.split("/")[0] for name in records) == ["conformance", "nodetests"]
    assert {record["status"] for record in records.values()} == {"ok"}
    found = next(one for name, one in records.items() if name.startswith("conformance/"))
    rate = next(one for one in found["metrics"] if one["name"] == "conformance_pass_rate")
    assert rate["value"] == pytest.approx(16 / 24)
    assert found["inputs"][0].startswith("nodetests.tar ")
    assert found["files"].keys() == {"result.json", "runner.jsonl", "runner.log", "verdicts.json"}


def test_the_report_has_the_pass_rates_by_opset_and_why_tests_do_not_pass(shared):
    html = (shared.folder / "results/shared/report.html").read_text()
    assert "16 · 100.0 %" in html and "16 · 66.7 %" in html and "Unsupported model IR version" in html
    summary = json.loads((shared.folder / "results/shared/summary.json").read_text())
    claims = [one["text"] for one in summary["findings"] if one["kind"] == "conformance"]
    assert claims == ["On cpu: python passes 16 of 24 operator tests."]


def test_a_pattern_that_no_test_has_is_the_cell_s_failure(shared):
    with edited(shared.folder / FILE, "test_cast*FLOAT*", "conv"):
        run = shared.transect("run", FILE, "conformance")
        (record,) = shared.records("shared", "conformance").values()
    # What others look at holds again.
    assert shared.transect("run", FILE, "conformance").returncode == 0
    assert run.returncode == 1, run.stderr
    assert (record["status"], record["cause"]) == ("failed", "bad-input")
    assert "'conv'" in record["message"]
