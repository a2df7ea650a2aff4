"""How a strategy's ranks communicate in one step, for the prediction of the step's time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# What carries messages; each is measured by a probe of its own.
Carrier = Literal["none", "mpi", "gloo"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Traffic:
    """A strategy's step, as far as time goes.

    `pattern` is `none` (one rank), `pipeline`, `hierarchical`, or a name among `simulation.steps.PATTERNS`.
    `progress`: whether messages move on while a rank computes. `cuts`: layers at which parts begin
    that ranks compute by themselves: a pipeline's stages, or what has messages of its own. Buckets are
    gradients that are reduced together. Of pipelines: the schedule, how many parts a stage has, and
    whether parts are reduced behind the last backward passes. Of hierarchies: as the strategy's options,
    and whether rank 0 alone updates and sends weights. `copies`: how often in a step an array
    of all weights is handed out by the framework and another one taken back.
    """

    pattern: str
    carrier: Carrier
    progress: bool = True
    bucket_bytes: float = 25 * 2**20
    first_bucket_bytes: float = 2**20
    cuts: tuple[int, ...] = ()
    schedule: str = "1f1b"
    chunks: int = 1
    behind: bool = False
    group: int = 8
    chunk_bytes: float = 2**17
    upper: Literal["tree", "chain"] = "tree"
    root_updates: bool = False
    copies: int = 1
