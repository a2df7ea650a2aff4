"""What a cell really runs is in its sources: seen from inside every process of a real study."""

from __future__ import annotations

import fnmatch
import json

import pytest

from nobodys import NO_CELLS_OWN

pytestmark = pytest.mark.study

STUDY = """
name: seen
workloads: {iris-mlp-ce: {epochs: 1}}
train:
  repeats: 1
  grids:
    - {workloads: [iris-mlp-ce], frameworks: [numpy, torch], strategies: [single]}
    - {workloads: [iris-mlp-ce], frameworks: [numpy], strategies: [mpi-allreduce], ranks: [2]}
    - {workloads: [iris-mlp-ce], frameworks: [torch], strategies: [ddp-gloo], ranks: [2]}
export: {workloads: [iris-mlp-ce], exporters: [torchscript]}
infer:
  max_seconds: 0.1
  grids:
    - {workloads: [iris-mlp-ce], runtimes: [python, torch-eager]}
bench:
  grids:
    - {benchmarks: [memory-bandwidth-probe]}
    - {benchmarks: [message-sweep], ranks: [2], options: [{max_size: 1024, seconds: 1}]}
ingest: {paths: [logs]}
"""

# Python runs this at the start of each process that finds it on its path: those of the study.
# Every function call in the package is noted with the cell that it was for. What runs only
# because a registry looks for plug-ins does not count: no outcome is a function of it.
HOOK = '''
import os, sys, threading

HOME, OUT = {home!r}, {out!r}
CELL = os.environ.get("TRANSECT_CELL")
NOTED = set()


def cell_of(frame):
    """Return the cell of a call, None when it is for none; a payload has one cell only."""
    cell = CELL
    while frame is not None:
        code = frame.f_code
        if code.co_name == "_discover" and code.co_filename.endswith("/domain/registry.py"):
            return None
        runs = "/stages/" in code.co_filename or code.co_filename.endswith(
            ("/engine/payload.py", "/engine/stage_helpers.py")
        )
        if cell is None and runs and code.co_flags & 1 and "job" in code.co_varnames:
            job = frame.f_locals.get("job")
            cell = None if job is None else str(job.folder)
        frame = frame.f_back
    return cell


def note(frame, event, _):
    if event != "call":
        return
    code = frame.f_code
    # Bodies of classes run while their module is imported.
    if not code.co_filename.startswith(HOME) or not (code.co_flags & 1 or code.co_name == "<module>"):
        return
    if (CELL, code.co_filename) in NOTED:
        return
    cell = cell_of(frame)
    if cell is not None and (cell, code.co_filename) not in NOTED:
        NOTED.add((cell, code.co_filename))
        with open(f"{{OUT}}/{{os.getpid()}}.txt", "a") as stream:
            stream.write(f"{{cell}}\\t{{code.co_filename[len(HOME):]}}\\n")


# A report that is made while the study runs is made between two cells.
if "transect.engine.make_report" not in getattr(sys, "orig_argv", sys.argv):
    threading.setprofile(note)
    sys.setprofile(note)
'''


@pytest.fixture(scope="module")
def seen(checkout):
    """The files that each cell's processes ran, by `STAGE/ID`, and the checkout."""
    out = checkout.folder / "seen"
    out.mkdir()
    source = checkout.folder / "src"
    (source / "sitecustomize.py").write_text(HOOK.format(home=f"{source}/", out=str(out)))
    (checkout.folder / "seen.yaml").write_text(STUDY)
    (checkout.folder / "logs").mkdir()
    (checkout.folder / "logs" / "notes.txt").write_text("nothing that a parser knows\n")
    run = checkout.snakemake("--config", "study=seen.yaml")
    assert run.returncode == 0, run.stderr
    found: dict[str, set[str]] = {}
    for path in out.glob("*.txt"):
        for line in path.read_text().splitlines():
            folder, file = line.split("\t")
            found.setdefault("/".join(folder.split("/")[-2:]), set()).add(file)
    return checkout, found


def sources(checkout, name):
    """Return the files that a cell's fingerprint depends on, and the stages of its inputs."""
    folder = checkout.folder / "results/seen"
    spec = json.loads((folder / name / "spec.json").read_text())
    files = json.loads((folder / "specs/sources" / f"{spec['sources']}.json").read_text())
    return set(files), {stage for stage, _ in spec["inputs"].values()}


def nobodys(file: str, inputs: set[str]) -> bool:
    """Whether an edit of the file may leave the record of a cell as it is.

    To read a record, all classes of cells are imported; what counts of an input is its checksum.
    """
    inside = file.removeprefix("transect/")
    if inside.startswith("domain/axes/"):
        return True
    return any(fnmatch.fnmatchcase(inside, pattern) for pattern in NO_CELLS_OWN)


def test_what_a_cell_runs_is_in_its_sources(seen):
    checkout, found = seen
    assert found.keys() == checkout.records("seen").keys()
    missing = {}
    for name, files in found.items():
        known, inputs = sources(checkout, name)
        missing[name] = {file for file in files - known if not nobodys(file, inputs)}
    assert missing == {key: set() for key in missing}


# What the hook has to have seen: part of a cell's name, files that it ran, files that it did not.
SEEN = {
    "numpy.mpi-allreduce": (
        ["payloads/train.py", "training/strategies/_mpi.py", "launch/launchers/mpiexec.py", "stages/train/result.py"],
        ["training/frameworks/torch_.py", "launch/launchers/srun.py"],
    ),
    "torch-eager": (["../runners/torch-eager/run.py", "training/frameworks/_torch_modules.py"], []),
    "message-sweep": (["hpc/parsers/message_sweep.py", "hpc/probes/messages.py"], ["hpc/parsers/hpl.py"]),
}


def test_what_runs_was_seen_and_what_is_only_discovered_does_not_count(seen):
    _, found = seen
    for part, (ran, did_not) in SEEN.items():
        (files,) = (files for name, files in found.items() if part in name)
        inside = {f.removeprefix("transect/") if f.startswith("transect/") else f"../{f}" for f in files}
        assert set(ran) <= inside, sorted(inside)
        assert not set(did_not) & inside
