"""Runtimes run ONNX's operator tests in a study: made once, compared in the report."""

from __future__ import annotations

import json

import pytest

from checkouts import edited

pytestmark = pytest.mark.study

STUDY = """
name: operators
conformance: {runtimes: [python], only: 'test_cast*FLOAT*'}
"""
CONFIG = "study=operators.yaml"


@pytest.fixture(scope="module")
def done(checkout):
    """A checkout in which the study has run once."""
    (checkout.folder / "operators.yaml").write_text(STUDY)
    run = checkout.snakemake("--config", CONFIG)
    assert run.returncode == 0, run.stderr
    return checkout


def test_the_tests_are_a_cell_of_their_own_and_the_runtime_another(done):
    records = done.records("operators")
    assert sorted(name.split("/")[0] for name in records) == ["conformance", "nodetests"]
    assert {record["status"] for record in records.values()} == {"ok"}
    found = next(one for name, one in records.items() if name.startswith("conformance/"))
    rate = next(one for one in found["metrics"] if one["name"] == "conformance_pass_rate")
    assert rate["value"] == pytest.approx(16 / 24)
    assert found["inputs"][0].startswith("nodetests.tar ")
    assert found["files"].keys() == {"result.json", "runner.jsonl", "runner.log", "verdicts.json"}


def test_the_report_has_the_pass_rates_by_opset_and_why_tests_do_not_pass(done):
    html = (done.folder / "results/operators/report.html").read_text()
    assert "Tests that pass, by the opset" in html
    assert "16 · 100.0 %" in html and "16 · 66.7 %" in html
    assert "Unsupported model IR version" in html
    summary = json.loads((done.folder / "results/operators/summary.json").read_text())
    claims = [one["text"] for one in summary["findings"] if one["kind"] == "conformance"]
    assert claims == ["On cpu: python passes 16 of 24 operator tests."]


def test_nothing_runs_again_without_an_edit(done):
    assert done.why("operators.yaml") == {}
    assert done.pending(CONFIG) == set()


def test_other_tests_run_the_runtime_again_and_are_not_made_again(done):
    with edited(done.folder / "operators.yaml", "test_cast*FLOAT*", "test_add*"):
        told = done.why("operators.yaml")
    assert [name.split("/")[0] for name in told] == ["conformance"]
    assert list(told.values()) == [[("parameter", "only: test_cast*FLOAT* -> test_add*")]]


BAD = {
    "unknown runtime": ("[python]", "[pyhton]", "did you mean 'python'"),
    "no onnx": ("[python]", "[torch-eager]", "'torch-eager' executes no ONNX models"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_mistake_is_told_before_anything_runs(done, what):
    old, new, expected = BAD[what]
    with edited(done.folder / "operators.yaml", old, new):
        told = done.transect("check", "operators.yaml")
    assert told.returncode == 2
    assert "conformance.runtimes" in told.stderr and expected in told.stderr


def test_a_pattern_that_no_test_has_is_the_cell_s_failure(done):
    with edited(done.folder / "operators.yaml", "test_cast*FLOAT*", "conv"):
        run = done.transect("run", "operators.yaml", "conformance")
        (record,) = done.records("operators", "conformance").values()
    assert run.returncode == 1, run.stderr
    assert (record["status"], record["cause"]) == ("failed", "bad-input")
    assert "no test of ONNX is called 'conv'" in record["message"]
