"""The docking kernel in several programming models: who is fastest, and how each scales with threads.

What is compared is time per pose, on one deck with equal poses and threads, never the counted rate: that
depends on the poses per work-item (Poenaru, Lin and McIntosh-Smith, ISC High Performance 2021).
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from transect.analysis.groups import Group
from transect.analysis.side_by_side import under
from transect.domain.metrics import Direction
from transect.stats.comparisons import Comparison, compare
from transect.stats.estimates import Estimate, ratio_of
from transect.stats.noise import middle
from transect.stats.samples import NoiseFloor

BENCHMARK = "docking-probe"
_POSE, _RATE, _COUNTED, _FIRST = (
    ("pose_time", "pose-time_median"),
    ("interaction_rate", "interactions_median"),
    ("kernel_flops", "kernel_median"),
    ("warm_up_time", "warm-up_first"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Contestant:
    """One configuration of one model on one deck. Values are one for each repeat, in order.

    `first_run` is the first warm-up, in which some models compile. Rates are pairs and, by the published
    formula with `per_item` poses per work-item, operations per second.
    """

    group: Group[Any]
    model: str
    compiler: str
    options: str
    deck: str
    poses: int
    per_item: int
    threads: int
    device: str
    pinned: bool
    pose_time: Sequence[float]
    interactions: Sequence[float]
    flops: Sequence[float]
    first_run: Sequence[float]

    @property
    def name(self) -> str:
        """How it is called among others on the same deck and threads."""
        parts = [self.model, self.compiler, self.options, "GPU" if self.device == "cuda" else ""]
        return " ".join(part for part in (*parts, f"PPWI {self.per_item}") if part)

    @property
    def time(self) -> float:
        """The median of its times per pose."""
        return statistics.median(self.pose_time)


@dataclass(frozen=True, kw_only=True, slots=True)
class Contest:
    """Configurations on one deck, with equal poses and threads, the fastest first."""

    deck: str
    poses: int
    threads: int
    rows: Sequence[Contestant]
    floor: NoiseFloor | None = None

    def times_the_fastest(self, row: Contestant) -> Estimate | None:
        """Return how many times the fastest one's time per pose this one takes; None of the fastest itself."""
        comparison = None if row is self.rows[0] else self.told_apart(row)
        return comparison.ratio.inverse if comparison is not None and comparison.ratio is not None else None

    def told_apart(self, row: Contestant) -> Comparison | None:
        """Compare the fastest with another."""
        first = self.rows[0]
        found = compare(first.pose_time, row.pose_time, direction=Direction.LOWER, floor=self.floor)
        # The fastest of so many.
        return found and under(replace(found, n_candidates=len(self.rows)), first.group, row.group)

    def rivals(self) -> list[Contestant]:
        """Return the fastest of each other model than the first one's, in order."""
        best: dict[str, Contestant] = {}
        for row in self.rows:
            best.setdefault(row.model, row)
        return [row for model, row in best.items() if model != self.rows[0].model]

    def rival(self) -> Contestant | None:
        """Return the fastest of another model than the first one's."""
        return next(iter(self.rivals()), None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Curve:
    """One configuration over threads, at least one and more of them, in order."""

    rows: Sequence[Contestant]

    def speed_up(self, row: Contestant) -> Estimate | None:
        """Return how many times faster than on the fewest threads, which is its base."""
        return ratio_of(self.rows[0].pose_time, row.pose_time)

    @property
    def base(self) -> int:
        """The threads of the first point."""
        return self.rows[0].threads


def _printed(group: Group[Any]) -> dict[str, Any]:
    """Return the parameters that the log of the group's first good record names."""
    runs = group.ok[0].details.get("runs") if group.ok else None
    first = runs[0] if isinstance(runs, list) and runs else {}
    parameters = first.get("parameters") if isinstance(first, dict) else None
    return parameters if isinstance(parameters, dict) else {}


def _whole(parameters: dict[str, Any], name: str) -> int:
    value = parameters.get(name)
    return value if isinstance(value, int) else 0


def _row(group: Group[Any]) -> Contestant | None:
    parameters = _printed(group)
    series = [group.values(*metric) for metric in (_POSE, _RATE, _COUNTED, _FIRST)]
    if not parameters or not series[0] or min(series[0]) <= 0:
        return None
    options = dict(group.cell.options)
    pin = str(options.get("pin", "none"))
    places = str(options.get("places", "cores"))
    parts = [str(parameters.get("schedule", "")) if "schedule" in options else ""]
    parts += [f"chunk {options['chunk']}" if "chunk" in options else ""]
    parts += [f"group {options['work_group']}" if "work_group" in options else ""]
    parts += [f"{'close' if pin == 'cores' else pin}" if pin != "none" else ""]
    parts += [f"on hardware {places}" if places == "threads" else ""]
    return Contestant(
        group=group,
        model=str(parameters.get("implementation", "")),
        compiler=str(parameters.get("compiler", "")),
        options=" ".join(part for part in parts if part),
        deck=str(parameters.get("deck", "")),
        poses=_whole(parameters, "poses"),
        per_item=_whole(parameters, "poses_per_item"),
        threads=int(group.cell.threads),
        device=str(group.cell.device),
        pinned=pin != "none",
        pose_time=series[0],
        interactions=series[1],
        flops=series[2],
        first_run=series[3],
    )


def docking_rows(groups: Iterable[Group[Any]]) -> list[Contestant]:
    """Return every configuration of the docking kernel that gave right energies."""
    docking = (group for group in groups if group.cell.get("benchmark") == BENCHMARK)
    return [row for group in docking if (row := _row(group)) is not None]


def without_result(groups: Iterable[Group[Any]]) -> list[Group[Any]]:
    """Return the groups of the kernel in which no repeat gave a right result."""
    return [group for group in groups if group.cell.get("benchmark") == BENCHMARK and _row(group) is None]


def contests(rows: Iterable[Contestant], floor: NoiseFloor | None = None) -> list[Contest]:
    """Group by deck, poses and threads; those of more rows first."""
    found: dict[tuple[str, int, int], list[Contestant]] = {}
    for row in rows:
        found.setdefault((row.deck, row.poses, row.threads), []).append(row)
    made = [
        Contest(
            deck=deck,
            poses=poses,
            threads=threads,
            floor=floor,
            rows=sorted(members, key=lambda row: (middle(row.pose_time), row.name)),
        )
        for (deck, poses, threads), members in found.items()
    ]
    return sorted(made, key=lambda contest: (-len(contest.rows), contest.deck, contest.poses, contest.threads))


def curves(rows: Iterable[Contestant]) -> list[Curve]:
    """Return each configuration that ran on several numbers of threads of the CPU, by name."""
    found: dict[tuple[str, str, int], list[Contestant]] = {}
    for row in rows:
        if row.device == "cpu":
            found.setdefault((row.name, row.deck, row.poses), []).append(row)
    return [
        Curve(rows=sorted(members, key=lambda row: row.threads))
        for _, members in sorted(found.items())
        if len({row.threads for row in members}) > 1
    ]
