"""Interruptions leave nothing corrupt, and the next call goes on where it stopped.

One study is interrupted in one way after another; each test goes on with two records of the one before it.
"""

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
workloads: {iris-mlp-ce: {epochs: 2}}
train:
  repeats: 12
  grids:
    - {workloads: [iris-mlp-ce], frameworks: [numpy], strategies: [mpi-allreduce], ranks: [2]}
"""
CONFIG = "study=long.yaml"
CELLS = 12
# Against hanging, on a machine however busy.
BOUND_S = 600


def records(checkout):
    return sorted(checkout.folder.glob("results/long/train/*/record.json"))


def wait_for(condition):
    """Wait for a condition."""
    limit = time.monotonic() + BOUND_S
    while not condition():
        assert time.monotonic() < limit, "the condition never came true"
        time.sleep(0.05)


def runners(checkout):
    """Return the processes that run blocks of this checkout."""
    found = []
    for process in psutil.process_iter():
        try:
            ours = process.cwd() == str(checkout.folder)
            if ours and "transect.engine.run_block" in process.cmdline():
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def start(checkout, ignored=()):
    """Start the study, in a process group of its own, with some signals ignored."""
    (checkout.folder / "long.yaml").write_text(STUDY)
    return subprocess.Popen(
        checkout.command("--config", CONFIG),
        cwd=checkout.folder,
        env=checkout.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: [signal.signal(number, signal.SIG_IGN) for number in ignored],
    )


def begun(checkout):
    """Leave at most two records; return when they were written."""
    for path in records(checkout)[2:]:
        path.unlink()
    return finished(checkout)


def finished(checkout):
    """Return when each record was written; all of them are whole, and of cells that ended well."""
    for path in records(checkout):
        assert json.loads(path.read_text())["status"] == "ok"
    return {path: path.stat().st_mtime_ns for path in records(checkout)}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_run_goes_on(checkout, number):
    before = begun(checkout)
    running = start(checkout)
    try:
        wait_for(lambda: len(records(checkout)) > len(before) and checkout.payloads())
    finally:
        # Ctrl-C reaches the whole foreground group, the other signal one process.
        if number == signal.SIGINT:
            os.killpg(running.pid, number)
        else:
            running.send_signal(number)
        running.wait(timeout=BOUND_S)
    wait_for(lambda: not checkout.payloads() and not runners(checkout))
    after = finished(checkout)
    assert len(before) < len(after) < CELLS
    assert before.items() <= after.items(), "a finished cell ran again"


def test_a_live_run_is_named_and_respected_and_ends_by_an_interruption_in_the_background_of_a_shell_too(checkout):
    """Which starts it with SIGINT ignored, as `nohup` does with SIGHUP; the latter stays so."""
    before = begun(checkout)
    running = start(checkout, ignored=(signal.SIGINT, signal.SIGHUP))
    try:
        wait_for(lambda: len(records(checkout)) > len(before) and checkout.payloads())
        (runner,) = runners(checkout)
        runner.suspend()
        try:
            second = checkout.snakemake("--config", CONFIG)
        finally:
            runner.resume()
        assert second.returncode != 0
        assert f"pid {running.pid}" in second.stderr
        assert running.poll() is None
        held = len(records(checkout))
        os.killpg(running.pid, signal.SIGHUP)
        wait_for(lambda: len(records(checkout)) > held and checkout.payloads())
    finally:
        running.send_signal(signal.SIGINT)
        running.wait(timeout=BOUND_S)
    assert running.returncode != 0
    wait_for(lambda: not checkout.payloads() and not runners(checkout))
    # `finished` takes no record of a cell that was killed.
    after = finished(checkout)
    assert len(before) < len(after) < CELLS


def test_the_next_run_ends_the_runner_that_a_killed_one_left(checkout):
    before = begun(checkout)
    running = start(checkout)
    try:
        wait_for(lambda: len(records(checkout)) > len(before) and checkout.payloads())
        (left,) = {process.pid for process in runners(checkout)} - {running.pid}
    finally:
        running.kill()
        running.wait(timeout=BOUND_S)
    before = finished(checkout)
    again = checkout.snakemake("--config", CONFIG)
    assert again.returncode == 0, again.stderr
    assert not psutil.pid_exists(left) and not runners(checkout)
    after = finished(checkout)
    assert len(after) == CELLS
    assert before.items() <= after.items(), "a finished cell ran again"
    assert (checkout.folder / "results/long/report.html").is_file()
