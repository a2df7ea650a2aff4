"""Plans ask the compilers of this machine, once, and are told its rates, measured once."""

from __future__ import annotations

from functools import cache

import pytest

from compilers_asked import compilers_asked
from transect.execution import planned_training
from transect.planner.machine import Machine, measured_here

__all__ = ["compilers_asked"]

_measured = cache(measured_here)


@pytest.fixture(scope="session")
def this_machine() -> Machine:
    """This machine as it was measured once."""
    return _measured(1)


@pytest.fixture(autouse=True)
def _measured_once(monkeypatch: pytest.MonkeyPatch, this_machine: Machine) -> None:
    monkeypatch.setattr(planned_training, "measured_here", _measured)
