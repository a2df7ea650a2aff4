"""How a stage's payloads take turns with those that they are compared with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Turns:
    """How a payload takes turns: it opens so many `connections`, one for each of its processes that measure.

    `iterations` is how many it has, such as the steps of a training; None: as many as it is asked for. The first
    `warmup` of them count in no turn. A turn takes about so many `seconds`, and longer where at `least` so many calls are to
    be timed in all.
    """

    connections: int
    iterations: int | None = None
    warmup: int = 0
    seconds: float = 0.1
    least: int = 0
