"""Only what changed runs again: each kind of edit, against `transect why`, what would be made, and Snakemake."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from checkouts import edited

pytestmark = pytest.mark.study

STUDY = """
name: small
workloads: {iris-mlp-ce: {epochs: 3}, digits-mlp: {epochs: 1}}
train:
  repeats: 1
  grids:
    - {workloads: [iris-mlp-ce, digits-mlp], frameworks: [numpy], strategies: [single]}
    - {workloads: [iris-mlp-ce], frameworks: [torch], strategies: [single]}
    - {workloads: [iris-mlp-ce], frameworks: [numpy], strategies: [mpi-allreduce], ranks: [2]}
export: {workloads: [iris-mlp-ce], exporters: [torchscript]}
infer:
  max_seconds: 0.1
  grids:
    - {workloads: [iris-mlp-ce], runtimes: [python, torch-eager], exporters: [torchscript]}
bench:
  grids:
    - {benchmarks: [memory-bandwidth-probe]}
    - {benchmarks: [message-sweep], ranks: [2], options: [{max_size: 1024, seconds: 1}]}
ingest: {paths: [logs]}
"""
REPORT = {"results/small/report.html", "results/small/records.parquet", "results/small/summary.json"}
FILE = "small.yaml"
CONFIG = f"study={FILE}"
SRC = Path("src/transect")


@pytest.fixture(scope="module")
def done(checkout):
    """A checkout in which the study has run once."""
    (checkout.folder / FILE).write_text(STUDY)
    (checkout.folder / "logs").mkdir()
    (checkout.folder / "logs" / "notes.txt").write_text("nothing that a parser knows\n")
    run = checkout.snakemake("--config", CONFIG)
    assert run.returncode == 0, run.stderr
    assert {record["status"] for record in checkout.records("small").values()} == {"ok"}
    return checkout


def cells(checkout, *wanted: str) -> set[str]:
    """Return the cells whose `stage/id` begins with one of `wanted`, each with at least one."""
    names = checkout.records("small")
    for prefix in wanted:
        assert any(name.startswith(prefix) for name in names), prefix
    return {name for name in names if name.startswith(wanted)}


def check(checkout, *wanted: str, report: bool = True, snakemake: bool = False) -> dict[str, list[tuple[str, str]]]:
    """Assert that exactly these cells would run again; return the reasons.

    Exactly their blocks would be made, those that take from these blocks, and the report; Snakemake goes
    by the same fingerprints, and is asked now and then.
    """
    reasons = checkout.why(FILE)
    assert set(reasons) == (cells(checkout, *wanted) if wanted else set())
    outputs = checkout.stamps("small", reasons) | (REPORT if report else set())
    assert checkout.pending(FILE) == outputs
    if snakemake:
        assert checkout.summary(CONFIG) == outputs
    return reasons


def test_no_edit_reruns_nothing(done):
    check(done, report=False, snakemake=True)
    again = done.snakemake("--config", CONFIG)
    assert again.returncode == 0
    assert "[transect]" not in again.stderr
    dry = done.make(FILE, dry=True)
    assert "no cell would run" in dry.stderr


def test_learning_rate_reruns_its_workload_but_not_its_data(done):
    with edited(done.folder / FILE, "epochs: 3", "epochs: 3, learning_rate: 0.01"):
        reasons = check(done, "reference/iris", "train/iris", "export/", "infer/", snakemake=True)
        dry = done.make(FILE, dry=True)
    (name,) = cells(done, "train/iris-mlp-ce.torch")
    changed = [text for kind, text in reasons[name] if kind == "parameter"]
    assert len(changed) == 1 and changed[0].startswith("parameters.learning_rate: ")
    assert changed[0].endswith(" -> 0.01")
    count = sum(cell.startswith("train/") for cell in reasons)
    assert f"[transect] train: {count} cells would run" in dry.stderr and "[transect] data" not in dry.stderr


def test_report_template_reruns_the_report_alone(done):
    with edited(done.folder / SRC / "report/templates/page.css", "{", "{ "):
        check(done)


COMMENT = ("import annotations\n", "import annotations\n\n# Another comment.\n")
# A source file, and the cells that run again after an edit; what takes from them comes with them.
SOURCES = {
    "training/strategies/_mpi.py": ("train/iris-mlp-ce.numpy.mpi-allreduce",),
    "training/frameworks/torch_.py": ("train/iris-mlp-ce.torch", "export/", "infer/"),
    "training/frameworks/tensorflow_.py": (),
    # What turns the output of a payload into metrics.
    "stages/train/result.py": ("train/", "export/", "infer/"),
    # One parser: its own benchmark, and logs, which may be any benchmark's.
    "hpc/parsers/hpl.py": ("ingest/",),
    "hpc/probes/memory_bandwidth.py": ("bench/memory-bandwidth-probe",),
    "../runners/torch-eager/run.py": ("infer/iris-mlp-ce.torch-eager",),
    "training/datasets/iris.py": ("dataset/iris", "reference/iris", "train/iris", "export/", "infer/"),
    # What it decides stands in the specs, and these are the same.
    "stages/train/stage.py": (),
}


@pytest.mark.parametrize("file", SOURCES)
def test_source_reruns_the_cells_that_run_it(done, file):
    wanted = SOURCES[file]
    with edited(done.folder / SRC / file, *COMMENT):
        reasons_of = check(done, *wanted, report=bool(wanted), snakemake=file.endswith("hpl.py"))
    for reasons in reasons_of.values():
        assert {kind for kind, _ in reasons} <= {"source", "input"}
    named = [text for reasons in reasons_of.values() for kind, text in reasons if kind == "source"]
    assert bool(named) == bool(SOURCES[file])
    assert {Path(text).name for text in named} <= {Path(file).name}


def test_requirement_pin_reruns_its_environment_and_cells(done):
    with edited(done.folder / "envs/torch/requirements.txt", "onnx==", "# a pin\nonnx=="):
        reasons_of = done.why(FILE)
        pending = done.summary(CONFIG)
    expected = cells(done, "train/iris-mlp-ce.torch", "export/", "infer/")
    assert set(reasons_of) == expected
    for cell, reasons in reasons_of.items():
        # A runtime of ONNX has an environment of its own, and takes what this one makes.
        runs_onnx = cell.startswith("infer/iris-mlp-ce.torchscript.python")
        assert {kind for kind, _ in reasons} >= ({"input"} if runs_onnx else {"environment"})
    # Blocks share their environment's stamp: the kept cells of such a block are looked at again.
    stamps = done.stamps("small", expected)
    assert pending == stamps | REPORT | {"results/environments/torch.json"}


def test_log_file_reruns_its_ingest(done):
    with edited(done.folder / "logs/notes.txt", "nothing", "nothing at all"):
        reasons_of = check(done, "ingest/")
    assert {kind for reasons in reasons_of.values() for kind, _ in reasons} == {"input"}


def test_really_edits_of_a_parser_a_maker_of_data_and_a_rate_run_what_they_change(done):
    # As another clone on the same results: what Snakemake keeps of earlier runs is not there.
    shutil.rmtree(done.folder / ".snakemake")
    before = done.records("small")
    for file in ("hpc/parsers/message_sweep.py", "payloads/dataset.py"):
        path = done.folder / SRC / file
        path.write_text(path.read_text().replace(*COMMENT, 1))
    path = done.folder / FILE
    path.write_text(path.read_text().replace("epochs: 3}", "epochs: 3, learning_rate: 0.01}", 1))
    run = done.snakemake("--config", CONFIG)
    assert run.returncode == 0, run.stderr
    # The data came out equal: what takes nothing else of what changed did not run, although all of it was asked.
    # The other rate gives another model, which an inference knows by its content alone.
    trained = ("reference/iris", "train/iris", "export/", "infer/")
    wanted = cells(done, "ingest/", "bench/message-sweep", "dataset/", *trained)
    assert done.made_again("small", before) == wanted
    check(done, report=False, snakemake=True)
