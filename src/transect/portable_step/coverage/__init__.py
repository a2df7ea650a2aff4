"""What the portable training step is checked with: one list of cases, of which docs have a table."""

from transect.portable_step.coverage import functions as _functions
from transect.portable_step.coverage import layers as _layers
from transect.portable_step.coverage import losses as _losses
from transect.portable_step.coverage import networks as _networks
from transect.portable_step.coverage import sequences as _sequences
from transect.portable_step.coverage._case import CASES, Case
from transect.portable_step.coverage.uncovered import UNCOVERED

__all__ = ["CASES", "UNCOVERED", "Case"]

del _functions, _layers, _losses, _networks, _sequences
