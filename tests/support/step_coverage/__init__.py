"""What the portable training step is checked with: one list of cases, of which docs have a table."""

from step_coverage import functions, layers, losses, networks, sequences
from step_coverage.case import CASES, Case
from step_coverage.uncovered import UNCOVERED

__all__ = ["CASES", "UNCOVERED", "Case", "functions", "layers", "losses", "networks", "sequences"]
