"""What a function of the user's makes: an optimiser of torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from transect.domain.errors import BadInput
from transect.training.optimisers import OPTIMISERS, Optimiser

if TYPE_CHECKING:
    from transect.training.workloads import Parameters


@OPTIMISERS.register("function")
class Function(Optimiser):
    """What `NAME` in `FILE.py` makes of a module and the learning rate; in a study `optimiser: FILE.py:NAME`.

    Of a study's own module alone: torch updates the weights, in float64 those of the reference. A schedule changes each
    group's own rate. It is begun anew where a trainer is restarted, for what it keeps has no name here.
    """

    states = 0
    takes = ()
    # What it looks at is its own business.
    by_array = True

    def operations(self, rule: Parameters) -> int:
        """A product and a difference at least."""
        return 2

    def live_states(self, rule: Parameters) -> int:
        """None that is known."""
        return 0

    def update(
        self,
        rule: Parameters,
        weights: np.ndarray,
        gradient: np.ndarray,
        states: list[np.ndarray],
        learning_rate: float,
        step: int,
    ) -> None:
        """There is no rule in numpy. Raises BadInput."""
        raise BadInput(
            "the optimiser `function` is torch's, for a study's own module: expected `optimiser: FILE.py:NAME` there"
        )
