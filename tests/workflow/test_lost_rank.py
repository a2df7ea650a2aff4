"""A rank that is killed ends its cell in time, with its cause and with no process left."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import psutil
import pytest

from checkouts import ROOT

pytestmark = pytest.mark.study

# One of each rendezvous and communication library.
ROWS = {
    "torch.mpi-allreduce": "mpi",
    "torch.ddp-gloo": "tcp",
    "torch.fsdp": "tcp",
    "torch.torch-pipeline": "tcp",
    "torch.horovod-gloo": "horovod",
    "torch.horovod-mpi": "horovod-mpi",
    "tensorflow.multiworker-ring": "tf-config",
    "mxnet.kvstore-dist-sync": "dmlc",
}
LIMIT_S = 300
# Far more epochs than the limit has time for; the reference stops after two steps.
STUDY = """
name: lost
limits: {{seconds: {limit}, repeats_if_disturbed: 0}}
workloads: {{digits-mlp: {{epochs: 9000, reference_steps: 2}}}}
train:
  repeats: 1
  grids:
    - {{workloads: [digits-mlp], frameworks: [{framework}], strategies: [{strategy}], ranks: [2]}}
"""
TRAINS = "begins to train"


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
def test_killed_rank(place, row):
    framework, strategy = row.split(".")
    (place.folder / "lost.yaml").write_text(STUDY.format(limit=LIMIT_S, framework=framework, strategy=strategy))
    run = subprocess.Popen(
        [sys.executable, "-m", "transect", "run", "lost.yaml", "train", "--results", f"results/{row}"],
        cwd=place.folder,
        env=place.environment() | {"PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    folder = place.folder / "results" / row / "lost" / "train"
    try:
        # Environments may have to be built first.
        deadline = time.monotonic() + 1200
        while time.monotonic() < deadline and run.poll() is None:
            logs = [path.read_text(errors="replace") for path in folder.glob("*/output.log")]
            if sum(log.count(TRAINS) for log in logs) == 2:
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
    assert record["status"] == "failed"
    assert record["cause"] in ("killed", "crash"), record["message"]
    assert place.payloads() == []
