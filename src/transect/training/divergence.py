"""When a training has diverged: its loss is not finite, or ends far above its start."""

from __future__ import annotations

import numpy as np

# Of 192 short runs of four workloads at rates from too small to absurd, those that learned ended below
# their first loss, those that were stuck at guessing below three times it; what left that exploded.
FAR_ABOVE = 4.0
# The end is a median over this share of the steps, and over so many at least where there are.
_SHARE, _MIN_COUNT = 0.1, 5


def end_of_run(loss: np.ndarray) -> tuple[float, int]:
    """Return the median loss of the last steps, and how many they are.

    A tenth of the steps (n,), or 5 where that is less; never the first one, unless it is alone.
    """
    steps = min(max(_MIN_COUNT, round(_SHARE * len(loss))), max(1, len(loss) - 1))
    return float(np.median(loss[-steps:])), steps


def divergence(loss: np.ndarray) -> str:
    """Say why a run with this loss per step (n,) has diverged; nothing when it has not.

    The first loss is that of weights that have learned nothing; a median at the end is not moved
    by a few steps that spike. A first loss of 0 or less has no multiples, so only what is not
    finite counts then.
    """
    finite = np.isfinite(loss)
    if not finite.all():
        step = int(np.argmin(finite))
        return f"the loss is {loss[step]} at step {step}"
    end, steps = end_of_run(loss)
    if 0 < loss[0] * FAR_ABOVE < end:
        return (
            f"the loss ends at {end:.4g} (median of its last {steps} steps), more than "
            f"{FAR_ABOVE:g} times the {loss[0]:.4g} of its first step"
        )
    return ""
