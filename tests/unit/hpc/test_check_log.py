"""`transect check-plugin parser NAME --log FILE`: what a whole log and its halves must say."""

from __future__ import annotations

import pytest
from whole_logs import LOGS

from transect.cli.plugin_checks import check_log


def failed(checks):
    return [check.what for check in checks if not check.holds]


@pytest.mark.parametrize("name", ["hpl", "stream", "osu"])
def test_a_log_is_recognised_and_its_halves_say_nothing_else(name, tmp_path):
    log = LOGS[next(key for key, log in LOGS.items() if log.benchmark == name)]
    (tmp_path / "run.log").write_text(log.text)
    assert failed(check_log(name, tmp_path / "run.log")) == []
    (tmp_path / "half.log").write_text(log.text[: len(log.text) // 2])
    assert "statuses of its runs" in failed(check_log(name, tmp_path / "half.log"))
    assert "benchmarks in the log" in failed(check_log("graph500", tmp_path / "run.log"))
