"""How far a tolerance can tell right from wrong."""

from __future__ import annotations

import numpy as np

# A tolerance tells nothing any more when it exceeds this share of what it is held against.
SHARP = 0.1
# The change of the loss is taken over so many steps at least: in the first few it is nearly none.
_FIRST_STEPS = 10


def blind_from(loss: np.ndarray, tolerance: np.ndarray) -> int | None:
    """Return the first step whose tolerance is larger than `SHARP` times what it could tell, or None.

    That is the reference's loss (steps,) itself, as a trainer that is wrong by so much is as good as any,
    or the loss's change up to that step, which is all that training has done. A later step may have
    a large loss again: it does not show what happened in between.
    """
    could_tell = np.abs(loss)
    if len(loss) > 1:
        first = min(_FIRST_STEPS, len(loss)) - 1
        change = np.maximum.accumulate(loss) - np.minimum.accumulate(loss)
        could_tell = np.minimum(could_tell, np.maximum(change, change[first]))
    blind = np.flatnonzero(~(tolerance <= SHARP * could_tell))
    return int(blind[0]) if len(blind) else None
