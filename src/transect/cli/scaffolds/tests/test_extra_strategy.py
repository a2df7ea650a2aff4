"""The strategy extra-reduce-broadcast on two ranks.

Run it with pytest, by a Python that has transect. An environment that is missing is built first.
"""

from pathlib import Path

from transect.cli.check_plugin import know_plugins
from transect.cli.plugin_checks import answers
from transect.cli.plugin_runs import runs

know_plugins(None, Path(__file__).resolve().parents[1])


def test_it_answers_as_its_kind_must():
    assert [check for check in answers("strategy", "extra-reduce-broadcast") if not check.holds] == []


def test_two_ranks_train_as_the_reference_does():
    checks = {check.what.rpartition(": ")[2]: check for check in runs("strategy", "extra-reduce-broadcast")}
    assert [check for check in checks.values() if not check.holds] == []
    assert checks["equality_ratio"].given <= 1
