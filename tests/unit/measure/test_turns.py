"""Waiting for a turn: what is said, and that it is in no time; and whether anybody else used the machine meanwhile."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from transect.measure import busy
from transect.measure.turn_series import by_turns
from transect.measure.turns import TURNS_VARIABLE, Turns
from transect.measure.usage import EnergyCounter, Usage
from transect.payloads import train as payload


@pytest.fixture
def engine() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        yield server


def joined(server: socket.socket) -> tuple[Turns, socket.socket]:
    turns = Turns({TURNS_VARIABLE: f"127.0.0.1:{server.getsockname()[1]}:{'k' * 32}"})
    connection, _ = server.accept()
    assert connection.recv(32, socket.MSG_WAITALL) == b"k" * 32
    return turns, connection


def test_a_payload_says_that_it_is_ready_that_a_turn_is_over_and_that_it_has_no_more(engine: socket.socket) -> None:
    turns, connection = joined(engine)
    connection.sendall(struct.pack("<qqq", 2, 3, 5))
    assert turns.begin() == 2 and not turns.step() and turns.step()
    assert turns.wait() == 3 and not turns.step() and not turns.step() and turns.step() and turns.wait() == 5
    turns.end()
    assert connection.recv(4, socket.MSG_WAITALL) == b"rdde"
    # It says so once, and waits no more.
    turns.end()
    assert not any(turns.step() for _ in range(9))


def test_after_the_last_turn_it_goes_on_without_waiting(engine: socket.socket) -> None:
    turns, connection = joined(engine)
    connection.sendall(struct.pack("<qq", 1, 0))
    assert turns.begin() == 1 and turns.step() and turns.wait() == 0
    assert not any(turns.step() for _ in range(9))
    turns.end()
    connection.setblocking(False)
    assert connection.recv(9) == b"rd"


def test_who_was_told_of_no_turns_never_waits_and_who_lost_the_engine_does_not_go_on_alone(
    engine: socket.socket,
) -> None:
    alone = Turns({})
    assert not alone.taken and not alone.step()
    alone.end()
    turns, connection = joined(engine)
    connection.close()
    with pytest.raises(OSError, match=r"engine that gives turns has gone|reset"):
        turns.begin()
        turns.wait()


class Alone:
    """A strategy and a trainer of one rank whose step and test take a while."""

    sharded = False

    def step(self, *_: Any) -> tuple[float, float, float, float, float]:
        return 1.0, 0.0, 0.0, 0.0, 0.0

    def barrier(self) -> None:
        """Nobody is there."""

    end_epoch = barrier

    def finish(self, _: Any) -> None:
        """Nothing remains."""

    def predict(self, *_: Any) -> None:
        """Nobody asks."""


def test_neither_waiting_nor_testing_the_model_is_in_any_series(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]

    def spend(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(payload.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(payload, "score_test", lambda *_: spend(100.0) or 3.0)
    one: Any = Alone()
    monkeypatch.setattr(one, "step", lambda *_: spend(1.0) or (1.0, 1.0, 0.0, 0.0, 0.0), raising=False)
    batches: Any = [[(0, 0)] * 2] * 3
    place: Any = SimpleNamespace(rank=0)
    rule: Any = SimpleNamespace(ema=None)
    series = payload.train(
        one, rule, one, one, place, batches, np.ones(6), lambda _: spend(10.0), wait=lambda: spend(1000.0)
    )
    assert series["step"].tolist() == [1.0] * 6 and series["input"].tolist() == [0.0] * 6
    assert series["epoch_end"].tolist() == [2.0, 4.0, 6.0]
    assert series["evaluation"].tolist() == [100.0] * 3 and series["score_sum"].tolist() == [3.0] * 3


def test_what_others_used_in_their_turns_is_in_no_usage() -> None:
    joules = [0]
    created = time.perf_counter()
    watch = Usage("cpu", 1)
    counter = EnergyCounter("rapl:package-0", lambda: joules[0], 1.0)
    watch._counters = [counter]
    joules[0] += 5
    watch.pause()
    begin = time.perf_counter()
    joules[0] += 1000
    while time.perf_counter() < begin + 0.05:
        pass
    watch.resume()
    joules[0] += 7
    used = watch.stop()
    others_left_out = time.perf_counter() - created - 0.05
    assert used["energy"][0]["joules"] == 12
    assert used["wall_s"] < others_left_out > used["energy"][0]["seconds"]


BURN = "import time\nend = time.process_time() + 600\nwhile time.process_time() < end: pass"


@pytest.mark.env
def test_the_processor_time_of_another_process_is_known_while_it_runs() -> None:
    child = subprocess.Popen([sys.executable, "-c", BURN])
    try:
        while busy.cpu_s(child.pid) < 0.2:
            assert child.poll() is None
        known = busy.cpu_s(child.pid)
    finally:
        before = sum(os.times()[2:4])
        child.kill()
        child.wait()
    # What the kernel charged to this process's children for it in the end, in ticks.
    assert 0.2 <= known <= sum(os.times()[2:4]) - before + 0.02
    assert busy.cpu_s(child.pid) == 0.0


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A clock, and what all cores have done."""
    state = SimpleNamespace(now=0.0, busy=0.0)
    monkeypatch.setattr(busy.time, "monotonic", lambda: state.now)
    monkeypatch.setattr(busy, "busy_s", lambda: state.busy)
    return state


def turn(machine: SimpleNamespace, window: busy.Window, seconds: float, own: float, others: float) -> list[bool]:
    window.begin()
    machine.now += seconds
    machine.busy += own + others
    return window.end(own)


def test_a_turn_is_quiet_unless_others_computed(machine: SimpleNamespace) -> None:
    window = busy.Window()
    # Two of its own threads are nobody else; a fifth of a core is, beyond what ticks hide.
    assert turn(machine, window, 0.2, 0.4, 0.0) == [True]
    assert turn(machine, window, 0.2, 0.4, 0.05) == [True]
    assert turn(machine, window, 0.2, 0.2, 0.2) == [False]
    assert turn(machine, window, 0.2, 0.2, 0.0) == [True]
    # What others did between two turns disturbed none.
    machine.now, machine.busy = machine.now + 9, machine.busy + 9
    assert turn(machine, window, 0.2, 0.2, 0.0) == [True]


def test_short_turns_are_judged_together_as_ticks_tell_nothing_of_one(machine: SimpleNamespace) -> None:
    window = busy.Window()
    assert [turn(machine, window, 0.04, 0.04, 0.04) for _ in range(3)] == [[], [], [False] * 3]
    assert turn(machine, window, 0.04, 0.04, 0.0) == []
    # Too short for a verdict of its own: as those before.
    assert window.judge() == [False] and window.judge() == []


def test_the_machine_counts_what_this_process_does() -> None:
    before, own, begin = busy.busy_s(), time.process_time(), time.monotonic()
    thread = threading.Thread(target=lambda: None)
    thread.start()
    while time.process_time() < own + 0.3:
        pass
    thread.join()
    took = time.monotonic() - begin
    if Path("/proc/stat").read_text().split()[4] == "0":
        pytest.skip("this kernel counts nothing")
    assert 0.2 < busy.busy_s() - before < took * (os.cpu_count() or 1) + 0.1


def test_a_turn_tells_its_median_and_where_all_iterations_count_its_mean() -> None:
    turns = {"heat": "h", "counts": [1, 5, 5], "quiet": [True, False, True], "trials": 1}
    times = [9.0, 8.0, 1.0, 1.0, 1.0, 5.0, 8.0, 2.0, 2.0, 2.0, 2.0]
    told, kept = by_turns(turns, "step_time", seconds=times, mean_seconds=times)
    assert (told["seconds"], told["mean_seconds"]) == ([1.0, 2.0], [2.0, 2.0])
    assert (told["counts"], told["quiet"]) == ([4, 4], [False, True])
    assert kept == [slice(7, 11)], "the first iteration of a turn, and what was not quiet, do not count"
