"""What disturbs a cell, told in words, and who is seen to disturb it."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time

import pytest

from transect.measure.guard import Guard, disturbances, snapshot


def calm(host: str = "n1", **change: object) -> dict[str, object]:
    return {
        "host": host,
        "load": [0.0, 0.0, 0.0],
        "foreign": [],
        "unseen_cores": 0.0,
        "memory_available_bytes": 8 << 30,
        "memory_total_bytes": 16 << 30,
        "swapped_bytes": 0,
        "disk": None,
        "clock_mhz": None,
        "throttle_count": 3,
        "gpus": [],
    } | change


GPU = {"index": 0, "throttle_reasons": 0, "processes": []}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"foreign": [{"pid": 5, "name": "make", "cores": 0.8}]}, r"make \(pid 5\) .*0\.8 cores"),
        ({"unseen_cores": 1.0}, "1 cores of n1"),
        ({"memory_available_bytes": 1 << 20}, "memory .*n1"),
        ({"swapped_bytes": 4096}, "n1 swapped"),
        ({"throttle_count": 4}, "n1 .*throttled"),
        ({"gpus": [GPU | {"throttle_reasons": 0x8}]}, r"GPU 0 of n1 .*0x8"),
        ({"gpus": [GPU | {"processes": [77]}]}, "pid 77 .*GPU 0 of n1"),
    ],
)
def test_each_disturbance_is_told_in_words(change, message):
    assert disturbances([calm()], [calm()]) == []
    (reason,) = disturbances([calm()], [calm(**change)])
    assert re.search(message, reason)


def test_a_node_that_does_not_answer_is_named():
    missing = {"host": "n2", "missing": True}
    (reason,) = disturbances([calm(), calm("n2")], [calm(), missing])
    assert reason.startswith("n2 ") and "answer" in reason


@pytest.mark.env
def test_the_guard_sees_a_busy_stranger_and_not_itself():
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    # Beside busy neighbours it would have too small a share of a core.
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, busy.pid, -20)
    try:
        limit = time.monotonic() + 600
        while not any(process["pid"] == busy.pid for process in snapshot()["foreign"]):
            assert time.monotonic() < limit, "never seen"
        assert all(process["pid"] != os.getpid() for process in Guard().look()[0]["foreign"])
    finally:
        busy.kill()
        busy.wait()
