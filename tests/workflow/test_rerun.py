"""Only changed stages rerun: each kind of edit, against Snakemake's own summary."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.study

STUDY = """
name: small
workloads: {iris-mlp-ce: {epochs: 3}, digits-cnn: {epochs: 1}}
train:
  repeats: 1
  grids:
    - {workloads: [iris-mlp-ce, digits-cnn], frameworks: [numpy], strategies: [single]}
    - {workloads: [iris-mlp-ce], frameworks: [torch], strategies: [single]}
    - {workloads: [iris-mlp-ce], frameworks: [numpy], strategies: [mpi-allreduce], ranks: [2]}
export: {workloads: [iris-mlp-ce], exporters: [torchscript]}
infer:
  max_seconds: 0.1
  grids:
    - {workloads: [iris-mlp-ce], runtimes: [python, torch-eager], exporters: [torchscript]}
ingest: {paths: [logs]}
"""
REPORT = {
    "results/small/report.html",
    "results/small/records.parquet",
    "results/small/summary.json",
}
CONFIG = "study=small.yaml"


@pytest.fixture(scope="module")
def done(checkout):
    """A checkout in which the study has run once."""
    (checkout.folder / "small.yaml").write_text(STUDY)
    (checkout.folder / "logs").mkdir()
    (checkout.folder / "logs" / "notes.txt").write_text("nothing that a parser knows\n")
    run = checkout.snakemake("--config", CONFIG)
    assert run.returncode == 0, run.stderr
    return checkout


@contextlib.contextmanager
def edited(path: Path, old: str, new: str) -> Iterator[None]:
    """Replace text in a file, and put it back with its old time stamp."""
    before, times = path.read_text(), path.stat()
    assert old in before, f"{path} does not hold {old!r}"
    path.write_text(before.replace(old, new, 1))
    try:
        yield
    finally:
        path.write_text(before)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def outputs(checkout, *wanted: str) -> set[str]:
    """Return the records whose `stage/cell` begins with one of `wanted`."""
    records = checkout.folder.glob("results/small/*/*/record.json")
    names = {str(path.relative_to(checkout.folder)) for path in records}
    return {n for n in names if n.removeprefix("results/small/").startswith(wanted)}


IRIS_MODEL = ("export/iris-mlp-ce.", "infer/iris-mlp-ce.", "infer/torch-eager.", "infer/python.")


def test_every_cell_is_ok(done):
    told = done.transect("status", "results/small")
    assert "0 failed, 0 skipped" in told.stdout, told.stdout


def test_no_edit_reruns_nothing(done):
    assert done.pending(CONFIG) == set()
    again = done.snakemake("--config", CONFIG)
    assert again.returncode == 0
    assert "[transect]" not in again.stderr


def test_learning_rate_reruns_its_workload_but_not_its_data(done):
    with edited(done.folder / "small.yaml", "epochs: 3", "epochs: 3, learning_rate: 0.01"):
        expected = outputs(done, "reference/iris", "train/iris", "export/", "infer/") | REPORT
        assert done.pending(CONFIG) == expected


def test_report_template_reruns_the_report_alone(done):
    template = done.folder / "src/transect/report/templates/style.css"
    with edited(template, "{", "{ "):
        assert done.pending(CONFIG) == REPORT


def test_training_source_reruns_what_imports_it(done):
    strategies = done.folder / "src/transect/training/strategies"
    with edited(strategies / "mpi_allreduce.py", "op=MPI.SUM", "op = MPI.SUM"):
        expected = outputs(done, "train/iris-mlp-ce.numpy.mpi-allreduce") | REPORT
        assert done.pending(CONFIG) == expected
    frameworks = done.folder / "src/transect/training/frameworks"
    with edited(frameworks / "torch_.py", "import annotations\n", "import annotations\n\n"):
        expected = outputs(done, "train/iris-mlp-ce.torch", "export/", "infer/") | REPORT
        assert done.pending(CONFIG) == expected


def test_requirement_pin_reruns_its_environment_and_cells(done):
    with edited(done.folder / "envs/torch/requirements.txt", "onnx==", "# a pin\nonnx=="):
        expected = outputs(done, "train/iris-mlp-ce.torch", "export/", "infer/") | REPORT
        assert done.pending(CONFIG) == expected | {"results/environments/torch.json"}


def test_log_file_reruns_its_ingest(done):
    with edited(done.folder / "logs/notes.txt", "nothing", "nothing at all"):
        assert done.pending(CONFIG) == outputs(done, "ingest/") | REPORT


def test_parser_source_does_not_rerun_training(done):
    with edited(done.folder / "src/transect/hpc/parsers/hpl.py", '"""', '""" '):
        assert done.pending(CONFIG) == outputs(done, "ingest/") | REPORT
