"""The stage toy in a study that asks for two of its cells.

Run it with pytest, by a Python that has transect. An environment that is missing is built first.
"""

from pathlib import Path

from transect.cli.check_plugin import know_plugins
from transect.cli.plugin_checks import answers
from transect.cli.plugin_runs import runs

PLUGINS = Path(__file__).resolve().parents[1]
know_plugins(None, PLUGINS)


def test_it_answers_as_its_kind_must():
    assert [check for check in answers("stage", "toy") if not check.holds] == []


def test_its_cells_run_and_the_report_has_its_section():
    checks = list(runs("stage", "toy", PLUGINS / "toys.yaml"))
    assert [check for check in checks if not check.holds] == []
    assert sum(check.given == "ok" for check in checks) == 3  # two cells, and the summary of both
