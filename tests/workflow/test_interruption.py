"""Interruptions leave nothing corrupt, and the next call goes on where it stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time

import psutil
import pytest

pytestmark = pytest.mark.study

STUDY = """
name: long
workloads: {iris-mlp-ce: {epochs: 2}, digits-cnn: {epochs: 2}}
train:
  repeats: 4
  grids:
    - {workloads: [iris-mlp-ce, digits-cnn], frameworks: [numpy], strategies: [mpi-allreduce], ranks: [2]}
"""
CONFIG = "study=long.yaml"


def records(checkout):
    return sorted(checkout.folder.glob("results/long/train/*/record.json"))


def wait_for(condition, seconds=120.0):
    """Wait for a condition; a bound, not a measurement."""
    limit = time.monotonic() + seconds
    pause = psutil.Process()
    while not condition():
        assert time.monotonic() < limit, "the condition never came true"
        try:
            # A bounded wait on ourselves: returns after the timeout.
            pause.wait(timeout=0.05)
        except psutil.TimeoutExpired:
            continue


def payloads(checkout):
    mine, found = str(checkout.folder), []
    for process in psutil.process_iter():
        try:
            if mine in process.environ().get("TRANSECT_CELL", ""):
                found.append(process)
        except psutil.Error:
            continue
    return found


def runners(checkout):
    """Return the processes that run blocks of this checkout."""
    found = []
    for process in psutil.process_iter():
        try:
            ours = process.cwd() == str(checkout.folder)
            if ours and "transect.execution.run_block" in process.cmdline():
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def start(checkout):
    """Start the study from its first training cell, in a process group of its own."""
    (checkout.folder / "long.yaml").write_text(STUDY)
    for record in records(checkout):
        record.unlink()
    return subprocess.Popen(
        checkout.command("--config", CONFIG),
        cwd=checkout.folder,
        env=checkout.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_interrupted_run_goes_on(checkout, number):
    running = start(checkout)
    try:
        wait_for(lambda: len(records(checkout)) >= 2 and payloads(checkout))
    finally:
        # Ctrl-C reaches the whole foreground group, the other signals one process.
        if number == signal.SIGINT:
            os.killpg(running.pid, number)
        else:
            running.send_signal(number)
        running.wait(timeout=60)
    # A runner whose Snakemake was killed ends with its cell, not with its block.
    wait_for(lambda: not payloads(checkout) and not runners(checkout))
    done = {path: path.stat().st_mtime_ns for path in records(checkout)}
    assert 2 <= len(done) < 8
    for path in done:
        assert json.loads(path.read_text())["status"] == "ok"
    again = checkout.snakemake("--config", CONFIG)
    assert again.returncode == 0, again.stderr
    if number == signal.SIGKILL:
        assert "cleared the lock" in again.stderr
    assert len(records(checkout)) == 8
    for path, stamp in done.items():
        assert path.stat().st_mtime_ns == stamp, "a finished cell ran again"
    assert (checkout.folder / "results/long/report.html").is_file()


def test_the_next_run_ends_the_runner_that_a_killed_one_left(checkout):
    running = start(checkout)
    try:
        wait_for(lambda: records(checkout) and payloads(checkout))
        (left,) = {process.pid for process in runners(checkout)} - {running.pid}
    finally:
        running.kill()
        running.wait(timeout=60)
    again = checkout.snakemake("--config", CONFIG)
    assert again.returncode == 0, again.stderr
    assert not psutil.pid_exists(left) and not runners(checkout)
    assert len(records(checkout)) == 8
    for path in records(checkout):
        assert json.loads(path.read_text())["status"] == "ok"


def test_live_lock_is_named_and_respected(checkout):
    running = start(checkout)
    try:
        wait_for(lambda: payloads(checkout))
        second = checkout.snakemake("--config", CONFIG)
        assert second.returncode != 0
        assert f"pid {running.pid}" in second.stderr
        assert running.poll() is None
    finally:
        running.send_signal(signal.SIGTERM)
        running.wait(timeout=60)
