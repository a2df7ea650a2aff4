"""Charts are drawn by a process beside this one; what it cannot draw is drawn, or refused, here."""

from __future__ import annotations

import gc
import subprocess
import sys
from functools import cache

import pytest

from transect.analysis.collecting import uncollected
from transect.report.charts import drawing
from transect.report.charts.marks import Dot
from transect.report.charts.plots import dot_plot
from transect.report.charts.svg import render
from transect.report.charts.theme import palette

pytestmark = pytest.mark.env

ROWS = [Dot(label="<script>", value=2.0, style=palette(1)[0]), Dot(label="b", value=3.0, style=palette(2)[1])]


def lines(**changed: object) -> dict[str, object]:
    return {**dot_plot(ROWS, title="seconds"), **changed}


@pytest.fixture
def alone(monkeypatch):
    """A process of its own for a test: returns what starts it, to be ended or replaced."""
    started: list[subprocess.Popen[bytes] | None] = []
    begin = drawing._started

    def keep() -> subprocess.Popen[bytes] | None:
        started.append(begin())
        return started[-1]

    monkeypatch.setattr(drawing, "_started", keep)
    # The one that other tests draw by goes on.
    monkeypatch.setattr(drawing, "_asked", cache(drawing._asked.__wrapped__))
    yield started
    for process in started:
        if process is not None:
            process.kill()
            process.communicate()


def drawn(given: dict[str, object]) -> str:
    return str(drawing.begin(given, alt_text="two", name="x").result(timeout=120))


def test_a_process_draws_what_would_be_drawn_here_also_after_it_is_gone(alone):
    first = drawn(lines())
    assert 'aria-label="two"' in first and "&lt;script&gt;" in first and "<script" not in first
    assert alone[0] is not None and alone[0].poll() is None
    for process in alone:
        process.kill()
        process.wait()
    assert drawn(lines()) == first, "drawn here"


def test_a_drawing_is_taken_as_it_was_asked_for(alone):
    given = lines()
    future = drawing.begin(given, alt_text="two", name="x")
    given.clear()
    assert "<svg" in future.result(timeout=120)


def test_what_cannot_be_drawn_raises_for_whoever_waits_and_the_next_is_drawn(alone):
    with pytest.raises(Exception, match="nonsense"):
        drawn({"layer": [{"mark": {"type": "nonsense"}, "encoding": {}}]})
    assert "<svg" in drawn(lines())
    assert alone[0] is not None and alone[0].poll() is None


def test_without_a_process_charts_are_drawn_here(alone, monkeypatch):
    monkeypatch.setattr(drawing, "_started", lambda: None)
    assert "<svg" in drawn(lines()) and not alone


def test_what_an_interpreter_says_first_is_no_chart(alone, monkeypatch, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("print('[1]')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert 'aria-label="two"' in drawn(lines())
    assert alone[0] is not None and alone[0].poll() is None


def test_without_a_known_interpreter_charts_are_drawn_here(alone, monkeypatch):
    monkeypatch.setattr(sys, "executable", None)
    assert "<svg" in drawn(lines()) and set(alone) == {None}


def test_a_name_of_anything_stays_within_its_attribute():
    square = {
        "mark": {"type": "rect", "clip": True},
        "data": {"values": [{"x": 1}]},
        "encoding": {"x": {"field": "x", "type": "quantitative"}},
    }
    made = str(render(square, alt_text="", name='b\\d\\g<9>"><b>'))
    assert 'id="b-d-g-9-b--clip' in made and "<b>" not in made


def test_the_process_ends_with_whoever_started_it():
    code = "from transect.report.charts import drawing\ndrawing.begin({}, alt_text='', name='x')\nraise SystemExit(3)\n"
    assert subprocess.run([sys.executable, "-c", code], timeout=600).returncode == 3


def test_the_search_for_circles_goes_on_afterwards():
    @uncollected()
    def ask() -> bool:
        return gc.isenabled()

    assert gc.isenabled() and not ask() and gc.isenabled()
    with pytest.raises(ValueError, match="x"), uncollected():
        raise ValueError("x")
    assert gc.isenabled()
