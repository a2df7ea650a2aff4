"""Charts are drawn by processes beside this one; without them they are drawn, or refused, here."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import cache

import psutil
import pytest

from transect.report.engine.charts import drawing
from transect.report.engine.charts.marks import Dot
from transect.report.engine.charts.plots import dot_plot
from transect.report.engine.charts.svg import render
from transect.report.engine.charts.theme import Styles

pytestmark = pytest.mark.env

STYLES = Styles([], [])
ROWS = [Dot(label=name, value=value, style=STYLES.get(name)) for name, value in (("<script>", 2.0), ("b", 3.0))]
BEGIN = "from transect.report.engine.charts import drawing\nasked = drawing.begin({}, alt_text='', name='x')\n"


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Processes of its own for a test: those that other tests draw by go on."""
    monkeypatch.setattr(drawing, "_processes", cache(drawing._processes.__wrapped__))
    yield
    drawing._processes().shutdown()


def drawn(given: dict[str, object]) -> str:
    return str(drawing.begin(given, alt_text="two", name="x").result(timeout=120))


def test_what_a_process_was_asked_for_is_drawn_here_when_it_is_killed(alone: None) -> None:
    first = drawn(dot_plot(ROWS, title="seconds"))
    [*workers] = drawing._processes()._processes.values()
    for worker in workers:
        os.kill(worker.pid, signal.SIGSTOP)
    asked = [drawing.begin(dot_plot(ROWS, title="seconds"), alt_text="two", name="x") for _ in range(3)]
    for worker in workers:
        os.kill(worker.pid, signal.SIGKILL)
    assert [str(future.result(timeout=120)) for future in asked] == [first] * 3


def test_what_cannot_be_drawn_raises_for_whoever_waits_and_the_next_is_drawn() -> None:
    with pytest.raises(Exception, match="nonsense"):
        drawn({"layer": [{"mark": {"type": "nonsense"}, "encoding": {}}]})
    assert "<svg" in drawn(dot_plot(ROWS, title="seconds"))


def test_a_name_of_anything_stays_within_its_attribute() -> None:
    square = {
        "mark": {"type": "rect", "clip": True},
        "data": {"values": [{"x": 1}]},
        "encoding": {"x": {"field": "x", "type": "quantitative"}},
    }
    made = str(render(square, alt_text="", name='b\\d\\g<9>"><b>'))
    assert 'id="b-d-g-9-b--clip' in made and "<b>" not in made


def test_the_processes_end_when_whoever_started_them_is_killed() -> None:
    program = f"{BEGIN}asked.exception()\nprint(*drawing._processes()._processes, flush=True)\ninput()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as asking:
        assert asking.stdout is not None
        found = [psutil.Process(int(pid)) for pid in asking.stdout.readline().split()]
        asking.kill()
    assert found and psutil.wait_procs(found, timeout=60)[1] == []
