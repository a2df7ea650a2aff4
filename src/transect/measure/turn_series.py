"""A series of times cut into the turns that its program took with others (`measure/turns.py`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from transect.domain.errors import BadInput


def by_turns(
    turns: Mapping[str, Any], metric: str, **series: Sequence[float] | np.ndarray
) -> tuple[dict[str, Any], list[slice]]:
    """Return what a record's details tell of turns, with the middle of each series in each; and the iterations that count.

    That is the median, because a neighbour takes whole time slices, which land in few iterations: beside busy processes
    means of turns of 0.05 s spread by 0.3 to 0.7 (sd of the log ratio), medians by 0.01. Of a series `mean_NAME` it is the
    mean, which alone tells how long all iterations take together. `turns`: `Job.turns`. The first
    iteration of a turn comes after a wait, with cold caches and sleeping threads: where there are more, it is left out,
    and so are the first `trials` turns. Those of quiet turns count, of all where none was. Raises BadInput when the
    turns are not those of the series.
    """
    counts, quiet = turns["counts"], turns["quiet"]
    lengths = {len(values) for values in series.values()}
    if min(counts, default=0) < 1 or len(quiet) != len(counts) or lengths != {sum(counts)}:
        raise BadInput(
            f"{max(lengths)} iterations were timed, and the turns are of {counts!r:.200}, {len(quiet)} marks"
        )
    ends = np.cumsum(counts).tolist()
    cut = [slice(end - count + (count > 1), end) for end, count in zip(ends, counts, strict=True)]
    trials = turns.get("trials", 0)
    cut, quiet = (cut[trials:], quiet[trials:]) if trials < len(cut) else (cut, quiet)
    told = {"heat": turns["heat"], "metric": metric, "counts": [turn.stop - turn.start for turn in cut]}
    for name, values in series.items():
        middle = np.mean if name.startswith("mean_") else np.median
        told[name] = [float(middle(values[turn])) for turn in cut]
    return told | {"quiet": list(quiet)}, [turn for turn, calm in zip(cut, quiet, strict=True) if calm] or cut
