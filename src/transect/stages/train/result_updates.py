"""Of ranks that push gradients to a server: whether all were applied, and how stale they were."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from transect.training.layout import Layout

# Series of rank 0 with a number for each applied gradient, in the order of application; the first is a metric too.
OF_EACH_GRADIENT = ("staleness", "lead", "applied_worker")
# A 95th percentile says something from so many on: five lie above it.
_ENOUGH = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Updates:
    """What server and workers counted. `bound` is the allowed staleness in steps, None: any.

    `series` holds `OF_EACH_GRADIENT` (gradients,), `ranks` what each rank says of itself, `step_time` (steps,) are the
    server's seconds.
    """

    layout: Layout
    step_time: np.ndarray
    bound: int | None
    series: dict[str, np.ndarray]
    ranks: list[dict[str, Any]]

    def values(self) -> dict[str, float]:
        """Return the metrics."""
        staleness = self.series.get("staleness", np.empty(0))
        if not staleness.size:
            return {}
        values = {"staleness": float(np.median(staleness))}
        if staleness.size >= _ENOUGH:
            values["staleness_p95"] = float(np.percentile(staleness, 95))
        return values

    def details(self) -> dict[str, Any]:
        """Return the counts: `gradients_sent` of all workers, `gradients_applied`, and the largest of each series."""
        found: dict[str, Any] = {
            "workers": self.layout.replicas,
            "staleness_bound": self.bound,
            "gradients_sent": self._sent(),
            "gradients_applied": self._applied(),
        }
        for name in OF_EACH_GRADIENT[:2]:
            if len(self.series.get(name, ())):
                found[f"largest_{name}"] = int(self.series[name].max())
        # Without a bound a worker is at another span than the server, which cannot tell who is there.
        if self.layout.workers and self.bound is not None:
            found["spans"] = list(self._spans())
        return found

    def _spans(self) -> Iterator[dict[str, Any]]:
        """Of each span in which as many workers were there: how many, its steps, and the median seconds of one."""
        steps = self.step_time.size
        spans = np.arange(steps) * len(self.layout.workers) // steps
        for number, workers in enumerate(self.layout.workers):
            times = self.step_time[spans == number]
            yield {"workers": workers, "steps": times.size, "step_time_s": float(np.median(times))}

    def fault(self) -> str | None:
        """Say what was lost or too stale, or None."""
        workers, steps = self.layout.replicas, self.step_time.size
        sent, applied, asked = self._sent(), self._applied(), workers * steps
        if not sent == applied == asked:
            return (
                f"{_amount(sent)} gradients were sent and {_amount(applied)} applied: expected "
                f"{asked}, one of each of {workers} parts of a batch in each of {steps} steps"
            )
        logged = [len(self.series.get(name, ())) for name in OF_EACH_GRADIENT]
        if set(logged) != {asked}:
            return f"of {asked} applied gradients the server reports {logged} times {', '.join(OF_EACH_GRADIENT)}"
        of_each = np.bincount(self.series["applied_worker"].astype(np.int64), minlength=workers + 1)
        expected = [
            sum(len(self.layout.parts(rank, step, steps)) for step in range(steps)) for rank in range(workers + 1)
        ]
        if of_each.tolist() != expected:
            return f"gradients applied by rank are {of_each.tolist()}: expected {expected}"
        ends = {rank.get("weights_crc32") for rank in self.ranks}
        if len(ends) != 1 or None in ends:
            return f"the ranks end with {len(ends)} different weights, by their checksums"
        if self.bound is None:
            return None
        staleness, lead = (int(self.series[name].max()) for name in OF_EACH_GRADIENT[:2])
        if lead > self.bound:
            return f"a worker was {lead} steps ahead of the slowest: staleness {self.bound} allows no more"
        # The others were at most `bound` steps behind when the weights were sent, and are as much ahead when
        # the gradient arrives, each with one more on its way.
        # Where workers come and go, two of them may be at the same part in different steps.
        most = (workers - (not self.layout.workers)) * (2 * self.bound + 1) if self.bound else 0
        if staleness > most:
            return f"a gradient was {staleness} updates late: with staleness {self.bound}, {workers} workers make it {most} at most"
        return None

    def _sent(self) -> int | None:
        counts = [rank.get("gradients_sent") for rank in self.ranks[self.layout.servers :]]
        return None if None in counts else int(sum(counts))  # type: ignore[arg-type]

    def _applied(self) -> int | None:
        return self.ranks[0].get("gradients_applied")


def _amount(amount: int | None) -> str:
    return "an unknown number of" if amount is None else str(amount)
