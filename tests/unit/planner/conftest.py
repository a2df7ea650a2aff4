"""Plans are told the rates of this machine, measured once."""

from __future__ import annotations

from functools import cache

import pytest

from transect.cli import planned_training
from transect.planner.machine import Machine, measured_here

_measured = cache(measured_here)


@pytest.fixture(scope="session")
def this_machine() -> Machine:
    """This machine as it was measured once."""
    return _measured(1)


@pytest.fixture(autouse=True)
def _measured_once(monkeypatch: pytest.MonkeyPatch, this_machine: Machine) -> None:
    monkeypatch.setattr(planned_training, "measured_here", _measured)
