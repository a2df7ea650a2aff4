"""Options that all pipeline strategies have."""

from __future__ import annotations

from transect.domain.options import Option
from transect.training.cuts import CUTS

STAGES = Option(default=0, min=0, description="ranks that compute one replica; 0: all, one replica")
MICRO_BATCHES = Option(default=4, min=1, description="parts in which a replica's share goes through")
CUT = Option(
    default="compute",
    choices=tuple(CUTS),
    # One way to write it: another would be another cell's id.
    pattern=r"[1-9][0-9]*(-[1-9][0-9]*)*",
    example="3-7",
    description="where stages begin: `compute` (stages of equal operations, as counted), "
    "`parameters`, `equal` (layers), or the layers themselves, such as 3-7",
)
