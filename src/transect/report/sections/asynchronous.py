"""Blocks on updates that wait for nobody: how late gradients are, and what that does to the time to the target."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from transect.analysis.asynchronous import TIME, AsyncRow, async_rows
from transect.analysis.parallelism import median_of
from transect.report.blocks import Chip, Part, digits, note, table, words
from transect.report.columns import ACCURACY, labelled
from transect.report.context import Context
from transect.report.text import number, scale_for, with_ends

__all__ = ["async_blocks"]


def async_blocks(context: Context) -> Iterator[Part]:
    """List the trainings that tell how late their gradients are; nothing without any."""
    rows = async_rows(context.of("train"), context.floors)
    if not rows:
        return
    time = scale_for([median_of(row.group, TIME) for row in rows], "s")
    yield table(
        rows,
        [
            labelled(rows, always=("workload", "framework", "ranks")),
            digits("Bound (steps)", _bound), digits("Staleness", lambda row: row.staleness),
            digits("95th percentile", lambda row: row.late), digits("Most", _most),
            digits("Steps to the target", lambda row: median_of(row.group, "steps_to_quality")),
            digits(f"Time to it ({time.unit})", lambda row: median_of(row.group, TIME), time.text),
            digits("Over the all-reduce's", lambda row: with_ends(row.result.ratio) if row.result else None),
            ACCURACY, words("", _mark),
        ],
        caption="Updates applied as they come, those whose gradients are least late first",
    )  # fmt: skip
    yield note(
        "Staleness: how many updates lie between the fetch of the weights that a gradient was made with and its own. The bound is how "
        "many steps a worker may be ahead of the slowest. With a bound of 0 all go in step and are held to the float64 reference; "
        "with any other there is no path to hold them to, so they are judged by the time to the target."
    )


def _told(row: AsyncRow, name: str) -> Any:
    found = row.group.ok[0].details.get("updates")
    return found.get(name) if isinstance(found, dict) else None


def _bound(row: AsyncRow) -> str:
    bound = _told(row, "staleness_bound")
    return "none" if bound is None else number(bound)


def _most(row: AsyncRow) -> int | None:
    return max(
        (found["largest_staleness"] for record in row.group.ok
         if isinstance(found := record.details.get("updates"), dict) and "largest_staleness" in found),
        default=None,
    )  # fmt: skip


def _mark(row: AsyncRow) -> Chip | None:
    if row.group.over_subscribed:
        return Chip("open: shared cores", "warn")
    if not row.reached:
        return Chip("target not reached", "warn")
    if row.result is None:
        return Chip("nothing in step to compare with")
    if not row.result.shown:
        return Chip("open: within noise", "plain", row.result.reason)
    sooner = row.result.ratio.value < 1
    return Chip("sooner" if sooner else "later", "good" if sooner else "plain", row.result.reason)
