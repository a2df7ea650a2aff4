"""The one-file promise: a framework, a strategy, a runtime and a parser, one file each."""

from __future__ import annotations

import json

import pytest

from checkouts import ROOT

pytestmark = pytest.mark.study

STUDY = """
name: extra
plugins: [{plugins}]
workloads: {{iris-mlp-ce: {{epochs: 2}}}}
train:
  repeats: 1
  grids:
    - workloads: [iris-mlp-ce]
      frameworks: [extra-framework]
      strategies: [extra-reduce-broadcast]
      ranks: [2]
    - {{workloads: [iris-mlp-ce], frameworks: [torch], strategies: [single], memories: [plain, extra-recompute]}}
export: {{workloads: [iris-mlp-ce], exporters: [torchscript]}}
infer:
  max_seconds: 0.1
  grids:
    - {{workloads: [iris-mlp-ce], runtimes: [extra-runtime], exporters: [torchscript]}}
ingest: {{paths: [logs]}}
"""


def test_single_files_join_a_run(checkout):
    plugins = ROOT / "tests" / "plugins" / "extra"
    (checkout.folder / "extra.yaml").write_text(STUDY.format(plugins=plugins))
    (checkout.folder / "logs").mkdir()
    (checkout.folder / "logs" / "extra.log").write_text("noise\nEXTRA BENCH: 12.5 GB/s\n")
    run = checkout.snakemake("--config", "study=extra.yaml")
    assert run.returncode == 0, run.stderr
    records = {}
    for path in checkout.folder.glob("results/extra/*/*/record.json"):
        record = json.loads(path.read_text())
        records[record["cell_id"].split("~")[0]] = record
    assert {r["status"] for r in records.values()} == {"ok"}, run.stderr
    trained = records["iris-mlp-ce.extra-framework.extra-reduce-broadcast.n1x2.b16.fp32"]
    ratio = [m["value"] for m in trained["metrics"] if m["name"] == "equality_ratio"]
    assert 0 <= ratio[0] <= 1
    assert any("extra-runtime" in name for name in records)
    (read,) = records["logs"]["details"]["runs"]
    assert read["benchmark"] == "extra-benchmark"
    assert records["logs"]["metrics"][0]["value"] == 12.5e9
    html = (checkout.folder / "results/extra/report.html").read_text()
    for name in (
        "extra-framework",
        "extra-reduce-broadcast",
        "extra-recompute",
        "extra-runtime",
        "extra-benchmark",
    ):
        assert name in html
