"""Metrics, files, studies: the words of the project."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.domain.errors import BadInput
from transect.domain.files import digest, write_atomic, write_if_changed
from transect.domain.metrics import METRICS, Direction, Mean, register_metric
from transect.domain.record import MetricValue
from transect.domain.study import Section
from transect.planning.stage import STAGES


def test_rates_are_averaged_harmonically_and_times_arithmetically():
    for metric in METRICS.values():
        if metric.unit.endswith("/s"):
            assert metric.mean is Mean.HARMONIC, metric.name
        if metric.unit == "s":
            assert metric.mean is Mean.ARITHMETIC, metric.name


def test_a_metric_has_one_meaning():
    with pytest.raises(BadInput, match="step_time"):
        register_metric("step_time", "ms", Direction.LOWER, Mean.ARITHMETIC, "other")
    with pytest.raises(BadInput, match="'step_time'"):
        MetricValue.of("step_tim", 1.0)


@given(st.lists(st.binary(max_size=4), max_size=4), st.lists(st.binary(max_size=4), max_size=4))
def test_digest_tells_lists_apart(a, b):
    assert (digest(a) == digest(b)) == (a == b)


def test_write_if_changed_keeps_the_time_stamp(tmp_path):
    path = tmp_path / "spec.json"
    assert write_if_changed(path, "a")
    stamp = path.stat().st_mtime_ns
    assert not write_if_changed(path, "a")
    assert path.stat().st_mtime_ns == stamp
    assert write_if_changed(path, "b")


def test_failed_write_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "record.json"
    write_atomic(path, "old")

    def refuse(*_):
        raise OSError(28, "no space left")

    monkeypatch.setattr("pathlib.Path.replace", refuse)
    with pytest.raises(OSError):
        write_atomic(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_key_of_a_section_says_what_it_is():
    STAGES.names()
    sections = [Section]
    for section in sections:
        assert [name for name, key in section.model_fields.items() if not key.description] == [], section
        sections += section.__subclasses__()
    assert len(sections) > 20
