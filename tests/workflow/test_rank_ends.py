"""Ranks that end badly, by any library and in any language: a record with its cause, in time, and nothing left."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from datetime import datetime

import psutil
import pytest

from checkouts import ROOT

pytestmark = pytest.mark.study

STUDY = """
name: ends
plugins: [{plugins}]
limits: {{seconds: {seconds}, memory_mb: {memory}, repeats_if_disturbed: 0}}
workloads: {{{workload}: {rule}}}
train:
  repeats: 1
  grids: [{{workloads: [{workload}], frameworks: [{frameworks}], strategies: [{strategies}], ranks: [{ranks}]{more}}}]
"""


def write(place, **parts) -> None:
    usual = {"plugins": "", "seconds": 300, "memory": 8000, "rule": "{reference_steps: 0}", "ranks": 2, "more": ""}
    (place.folder / "ends.yaml").write_text(STUDY.format(**usual | parts))


def ends(place, axis: str, **parts) -> dict[str, dict]:
    """Run it; return the records by an axis. Data and reference are the first run's while they took less than the limit."""
    write(place, **parts)
    run = place.make("ends.yaml", report=False)
    assert run.returncode == 0, run.stderr
    return {record["cell"][axis]: record for record in place.records("ends", "train").values()}


def check(place, found, expected) -> None:
    """Assert causes, and what messages say of them; nothing runs on."""
    causes = {name: (found[name]["status"], found[name]["cause"]) for name in expected}
    assert causes == {name: ("failed", cause) for name, (cause, *_) in expected.items()}, {
        name: record["message"] for name, record in found.items()
    }
    for name, (_, *words) in expected.items():
        assert all(part in found[name]["message"] for part in words), found[name]["message"]
    assert place.payloads() == []


# One of each rendezvous and communication library.
ROWS = [
    "torch.mpi-allreduce",
    "torch.ddp-gloo",
    "torch.fsdp",
    "torch.torch-pipeline",
    "torch.horovod-gloo",
    "torch.horovod-mpi",
    "tensorflow.multiworker-ring",
    "mxnet.kvstore-dist-sync",
]
LIMIT_S = 300


def ranks(place):
    """Return the processes that train, by command line: not launchers, servers or shells."""
    found = []
    for process in place.payloads():
        try:
            line, role = process.cmdline(), process.environ().get("DMLC_ROLE", "worker")
        except (psutil.Error, OSError):
            continue
        # Launchers and rank.py hold the ranks' command in their own.
        trains = line[1:4] == ["-m", "transect.payloads", "transect.payloads.train:run_rank"]
        if trains and role == "worker":
            found.append(process)
    return found


@pytest.mark.parametrize("row", ROWS)
def test_a_killed_rank_ends_its_cell_in_time(place, row):
    framework, strategy = row.split(".")
    # Far more epochs than the limit has time for; the reference stops after two steps.
    rule = "{epochs: 9000, reference_steps: 2}"
    write(place, seconds=LIMIT_S, workload="digits-mlp", rule=rule, frameworks=framework, strategies=strategy)
    run = subprocess.Popen(
        [sys.executable, "-m", "transect", "run", "ends.yaml", "train", "--results", f"results/{row}"],
        cwd=place.folder,
        env=place.environment() | {"PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    folder = place.folder / "results" / row / "ends" / "train"
    try:
        # Environments may have to be built first.
        deadline = time.monotonic() + 1200
        while time.monotonic() < deadline and run.poll() is None:
            logs = [path.read_text(errors="replace") for path in folder.glob("*/output.log")]
            if sum(log.count("begins to train") for log in logs) == 2:
                break
            time.sleep(0.1)
        victims = ranks(place)
        assert len(victims) == 2, [process.cmdline() for process in place.payloads()]
        victims[-1].send_signal(signal.SIGKILL)
        output, _ = run.communicate(timeout=LIMIT_S + 600)
    finally:
        if run.poll() is None:
            run.kill()
            run.communicate()
    assert run.returncode == 1, output
    (path,) = folder.glob("*/record.json")
    record = json.loads(path.read_text())
    assert record["status"] == "failed" and record["cause"] in ("killed", "crash"), record["message"]
    assert place.payloads() == []


GO = '''
"""Ranks in Go that end badly, by their names."""

from transect.training.frameworks import FRAMEWORKS
from transect.training.frameworks.go_ import GoFramework


class Faulty(GoFramework):
    def command(self, files):
        return ["{program}", str(files.plan)]


for name in {names}:
    FRAMEWORKS.register(name)(type("Faulty", (Faulty,), {{"__doc__": name}}))
'''
IN_GO = {
    "go-panics": ("crash", "rank 1", "index out of range [4]", "main.(*faulty).fail"),
    "go-panics-beside": ("crash", "rank 1", "panic", "main.(*faulty).fail.func1()"),
    "go-killed": ("killed", "rank 1", "SIGKILL"),
    "go-out-of-addresses": ("out-of-memory", "out of memory"),
}
# The limits of a cell end these.
HANGS = {"go-hangs": ("timeout", "60 s")}
FILLS = {"go-fills": ("out-of-memory", "ranks", "1500 MB")}


def test_ranks_in_go_that_end_badly_have_their_cause_and_leave_nothing(place, go_programs, tmp_path):
    # The program is the trainer's with another main.
    program, module = tmp_path / "go-faults", ROOT / "src" / "trainers" / "go"
    overlay = tmp_path / "overlay.json"
    source = ROOT / "tests" / "data" / "trainers" / "go_faults.go"
    overlay.write_text(json.dumps({"Replace": {str(module / "cmd/go-faults/main.go"): str(source)}}))
    subprocess.run(
        ["go", "build", "-tags", "mpi", "-overlay", overlay, "-o", program, "./cmd/go-faults"],
        cwd=module,
        check=True,
        env=os.environ
        | {"CC": str(go_programs / "mpicc"), "CGO_ENABLED": "1", "PATH": f"{os.environ['PATH']}:{go_programs}"},
    )
    (place.folder / "plugins-of-go").mkdir()
    names = [*IN_GO, *HANGS, *FILLS]
    (place.folder / "plugins-of-go" / "faulty.py").write_text(GO.format(program=program, names=names))
    found = {}
    for wanted, seconds, memory in ((IN_GO, 240, 8000), (HANGS, 60, 8000), (FILLS, 600, 1500)):
        cells = {"workload": "iris-mlp", "frameworks": ", ".join(wanted), "strategies": "mpi-allreduce"}
        found |= ends(place, "framework", plugins="plugins-of-go", seconds=seconds, memory=memory, **cells)
    check(place, found, IN_GO | HANGS | FILLS)
    assert "waits for what nobody ever sends" in found["go-hangs"]["log_tail"]


# Of a pipeline; who waits for ever is ended by the cell's limit.
IN_PIPELINES = {
    "seeded-nan": ("diverged", "step 3"),
    # 6 x 16 x 8 x 8 numbers of 4 bytes were expected, of one sample less came.
    "seeded-short": (
        "crash",
        "rank 1, stage 1 (layers 2 to 4): ",
        "of micro-batch 2 from stage 0, 24576 bytes, got 20480 bytes",
    ),
    "seeded-killed": ("killed", "rank 1, stage 1 (layers 2 to 4)"),
}
STOPS = {"seeded-stops": ("timeout", "60 s")}


def test_what_ends_a_pipeline_is_named(place):
    found = {}
    for wanted, seconds in ((IN_PIPELINES, 600), (STOPS, 60)):
        found |= ends(
            place,
            "strategy",
            plugins=ROOT / "tests" / "plugins" / "seeded",
            seconds=seconds,
            workload="digits-cnn",
            rule="{batch: 32, epochs: 1, reference_steps: 0}",
            frameworks="numpy",
            strategies=", ".join(wanted),
            ranks=3,
            more=", options: [{stages: 3, micro_batches: 5, cut: 2-5}]",
        )
    check(place, found, IN_PIPELINES | STOPS)
    killed = found["seeded-killed"]
    at = float(re.search(r"killed at ([0-9.]+)", killed["log_tail"])[1])
    # The others wait for its results, and nobody sends them: they are ended with it, in two seconds on
    # an idle machine.
    assert datetime.fromisoformat(killed["ended"]).timestamp() - at < 200
    assert "nothing goes on from here" in found["seeded-stops"]["log_tail"]
