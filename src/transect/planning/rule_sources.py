"""The files of the rules that hyper-parameters name."""

from __future__ import annotations

from pathlib import Path

from transect.training.losses import LOSSES
from transect.training.optimisers import OPTIMISERS
from transect.training.schedules import SCHEDULES


def rule_sources() -> list[Path]:
    """Return those of every loss, optimiser and schedule: which one a cell takes is a parameter, and no plug-in of its own."""
    return [registry.source(name) for registry in (LOSSES, OPTIMISERS, SCHEDULES) for name in registry]
