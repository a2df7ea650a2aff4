"""A client's turn: what an engine is given, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """One client's turn: the `client`, its `number` among all turns, the weights that it is given, flat (d,) in the
    cell's precision, its `rows` for each step, int64 (steps, batch), numbers of rows of `Task.x`, and the `seeds` of
    what each step draws, such as dropout, (steps,).

    A method adds mu (w - `anchor`) + `correction` to each step's gradient of what is trained, before it is clipped:
    vectors like `given`, the anchor being `given` itself and the correction nothing where they are None.
    """

    client: int
    number: int
    given: np.ndarray
    rows: np.ndarray
    seeds: np.ndarray
    mu: float = 0.0
    anchor: np.ndarray | None = None
    correction: np.ndarray | None = None

    @property
    def pulled_to(self) -> np.ndarray:
        """What `mu` pulls weights to, (d,)."""
        return self.given if self.anchor is None else self.anchor

    @property
    def extended(self) -> bool:
        """Whether anything is added to gradients: where not, steps are those of a plain turn in every bit."""
        return self.mu != 0 or (self.correction is not None and bool(self.correction.any()))

    def added(self, weights: np.ndarray, part: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Return what is added to the gradient, (p,), given the weights (p,) of a `part` of the vector."""
        pull = weights.dtype.type(self.mu) * (weights - self.pulled_to[part])
        return np.asarray(pull if self.correction is None else pull + self.correction[part])


@dataclass(frozen=True, kw_only=True, slots=True)
class Turned:
    """What some turns came to, in their order: `weights` (n, d) in the cell's precision, mean `losses` of their steps (n,)."""

    weights: np.ndarray
    losses: np.ndarray
