"""Only what changed runs again: each kind of edit, against `transect why`, what would be made, and Snakemake.

And what a cell really runs is in its sources, seen from inside every process of the first run.
"""

from __future__ import annotations

import fnmatch
import json
import shutil
from pathlib import Path

import pytest

from checkouts import edited
from nobodys import NO_CELLS_OWN
from seen_calls import watched

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
    - {workloads: [iris-mlp-ce], frameworks: [torch], strategies: [ddp-gloo], ranks: [2]}
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
def seen(checkout):
    """The files that each cell's processes ran, by `STAGE/ID`, as Snakemake ran the study once."""
    (checkout.folder / FILE).write_text(STUDY)
    (checkout.folder / "logs").mkdir()
    (checkout.folder / "logs" / "notes.txt").write_text("nothing that a parser knows\n")
    with watched(checkout) as found:
        run = checkout.snakemake("--config", CONFIG, "strict=true")
    assert run.returncode == 0, run.stderr
    assert {record["status"] for record in checkout.records("small").values()} == {"ok"}
    assert (checkout.folder / "results/small/strict.ok").is_file()
    return found


@pytest.fixture(scope="module")
def done(checkout, seen):
    """A checkout in which the study has run once."""
    return checkout


def nobodys(file: str) -> bool:
    """Whether an edit of the file may leave the record of a cell as it is.

    To read a record, all classes of cells are imported; what counts of an input is its checksum. What leads payloads to
    the package leads them all alike.
    """
    inside = file.removeprefix("transect/")
    return inside.startswith(("domain/axes/", "data/pythonpath/")) or any(
        fnmatch.fnmatchcase(inside, known) for known in NO_CELLS_OWN
    )


def test_what_a_cell_runs_is_in_its_sources(done, seen):
    assert seen.keys() == done.records("small").keys()
    folder, left_out = done.folder / "results/small", {}
    for name, files in seen.items():
        spec = json.loads((folder / name / "spec.json").read_text())
        known = json.loads((folder / "specs/sources" / f"{spec['sources']}.json").read_text())
        if missing := {file for file in files - set(known) if not nobodys(file)}:
            left_out[name] = missing
    assert left_out == {}


# What has to have been seen: part of a cell's name, files that it ran, files that it did not.
SEEN = {
    "numpy.mpi-allreduce": (
        ["payloads/train.py", "training/strategies/_mpi.py", "launch/launchers/mpiexec.py", "stages/train/result.py"],
        ["training/frameworks/torch_.py", "launch/launchers/srun.py"],
    ),
    "torch-eager": (["../runners/torch-eager/run.py", "training/frameworks/_torch_modules.py"], []),
    "message-sweep": (["hpc/parsers/message_sweep.py", "hpc/probes/messages.py"], ["hpc/parsers/hpl.py"]),
}


def test_what_runs_was_seen_and_what_is_only_discovered_does_not_count(seen):
    for part, (ran, did_not) in SEEN.items():
        (files,) = (files for name, files in seen.items() if part in name)
        inside = {f.removeprefix("transect/") if f.startswith("transect/") else f"../{f}" for f in files}
        assert set(ran) <= inside, sorted(inside)
        assert not set(did_not) & inside


def cells(checkout, *wanted: str) -> set[str]:
    """Return the cells whose `stage/id` begins with one of `wanted`, each with at least one."""
    names = checkout.records("small")
    for prefix in wanted:
        assert any(name.startswith(prefix) for name in names), prefix
    return {name for name in names if name.startswith(wanted)}


def check(checkout, *wanted: str, report: bool = True) -> dict[str, list[tuple[str, str]]]:
    """Assert that exactly these cells would run again; return the reasons.

    Exactly their blocks would be made, those that take from these blocks, and the report.
    """
    reasons = checkout.why(FILE)
    assert set(reasons) == (cells(checkout, *wanted) if wanted else set())
    outputs = checkout.stamps("small", reasons) | (REPORT if report else set())
    assert checkout.pending(FILE) == outputs
    return reasons


def test_no_edit_reruns_nothing(done):
    check(done, report=False)
    dry = done.make(FILE, dry=True)
    assert "no cell would run" in dry.stderr


def test_learning_rate_reruns_its_workload_but_not_its_data(done):
    with edited(done.folder / FILE, "epochs: 3", "epochs: 3, learning_rate: 0.01"):
        reasons = check(done, "reference/iris", "train/iris", "export/", "infer/")
        dry = done.make(FILE, dry=True)
    (name,) = cells(done, "train/iris-mlp-ce.torch.single")
    changed = [text for kind, text in reasons[name] if kind == "parameter"]
    assert len(changed) == 1 and changed[0].startswith("parameters.learning_rate: ")
    assert changed[0].endswith(" -> 0.01")
    count = sum(cell.startswith("train/") for cell in reasons)
    assert f"[transect] train: {count} cells would run" in dry.stderr and "[transect] data" not in dry.stderr


def test_report_template_reruns_the_report_alone(done):
    with edited(done.folder / SRC / "report/engine/templates/page.css", "{", "{ "):
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
        reasons_of = check(done, *wanted, report=bool(wanted))
    for reasons in reasons_of.values():
        assert {kind for kind, _ in reasons} <= {"source", "input"}
    named = [text for reasons in reasons_of.values() for kind, text in reasons if kind == "source"]
    assert bool(named) == bool(SOURCES[file])
    assert {Path(text).name for text in named} <= {Path(file).name}


def test_requirement_pin_reruns_its_environment_and_cells(done):
    with edited(done.folder / "envs/torch/requirements.txt", "onnx==", "# a pin\nonnx=="):
        reasons_of, pending = done.why(FILE), done.pending(FILE)
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
    with edited(done.folder / "envs/torch/requirements.txt", "onnx==", "# a pin\nonnx=="):
        pending = done.pending(FILE)
        assert done.summary(CONFIG) == pending > REPORT | {"results/environments/torch.json"}
    run = done.snakemake("--config", CONFIG)
    assert run.returncode == 0, run.stderr
    # The data came out equal: what takes nothing else of what changed did not run, although all of it was asked.
    # The other rate gives another model, which an inference knows by its content alone.
    trained = ("reference/iris", "train/iris", "export/", "infer/")
    wanted = cells(done, "ingest/", "bench/message-sweep", "dataset/", *trained)
    assert done.made_again("small", before) == wanted
    check(done, report=False)
    assert done.summary(CONFIG) == set()
