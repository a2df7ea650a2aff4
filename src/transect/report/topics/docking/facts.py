"""The docking kernel in several programming models: which configurations may be set beside each other.

What is compared is time per pose, on one deck with equal poses and threads, never the counted rate: that
depends on the poses per work-item (Poenaru, Lin and McIntosh-Smith, ISC High Performance 2021).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from transect.analysis.groups import Group, grouped
from transect.analysis.labels import settings_of, word

BENCHMARK = "docking-probe"
POSE = "pose_time"
_POSE, _RATE, _COUNTED, _FIRST = (
    (POSE, "pose-time_median"),
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
    where: str = ""
    schedule: str = ""
    chunk: int = 0
    pose_time: Sequence[float]
    interactions: Sequence[float]
    flops: Sequence[float]
    first_run: Sequence[float]

    @property
    def name(self) -> str:
        """How it is called among others on the same deck and threads."""
        parts = [
            word("implementation", self.model),
            self.compiler,
            self.options,
            "GPU" if self.device == "cuda" else "",
        ]
        return " ".join(filter(None, (*parts, f"PPWI {self.per_item}")))

    @property
    def words(self) -> str:
        """What it is called in a sentence: `OpenMP (clang, threads pinned)`."""
        more = [self.compiler if self.compiler != "gcc" else "", "threads pinned" if self.pinned else ""]
        more += ["on a GPU" if self.device == "cuda" and self.model != "cuda" else ""]
        listed = ", ".join(filter(None, more))
        return word("implementation", self.model) + (f" ({listed})" if listed else "")

    @property
    def time(self) -> float:
        """The median of its times per pose."""
        return median(self.pose_time)


@dataclass(frozen=True, kw_only=True, slots=True)
class Contest:
    """Configurations on one deck, with equal poses and threads, the fastest first."""

    deck: str
    poses: int
    threads: int
    rows: Sequence[Contestant]

    @property
    def best_of_models(self) -> list[Contestant]:
        """The fastest configuration of each model, in order."""
        best: dict[str, Contestant] = {}
        for row in self.rows:
            best.setdefault(row.model, row)
        return [*best.values()]


def _printed(group: Group[Any]) -> dict[str, Any]:
    """Return the parameters that the log of the group's first good record names."""
    runs = group.ok[0].details.get("runs") if group.ok else None
    return (runs[0].get("parameters") or {}) if runs else {}


def _row(group: Group[Any]) -> Contestant | None:
    parameters = _printed(group)
    pose_time, interactions, flops, first_run = (group.counted(*metric) for metric in (_POSE, _RATE, _COUNTED, _FIRST))
    if not parameters or not pose_time or min(pose_time) <= 0:
        return None
    options = settings_of(group.cell)
    pin = str(options.get("pin", "none"))
    places = "on hardware threads" if options.get("places") == "threads" else ""
    where = " ".join(filter(None, ("" if pin == "none" else "close" if pin == "cores" else pin, places)))
    parts = [
        str(parameters.get("schedule", "")) if "schedule" in options else "",
        f"chunk {options['chunk']}" if "chunk" in options else "",
        f"group {options['work_group']}" if "work_group" in options else "",
        where,
    ]
    return Contestant(
        group=group,
        model=str(parameters.get("implementation", "")),
        compiler=str(parameters.get("compiler", "")),
        options=" ".join(filter(None, parts)),
        deck=str(parameters.get("deck", "")),
        poses=parameters.get("poses", 0),
        per_item=parameters.get("poses_per_item", 0),
        threads=group.cell.threads,
        device=group.cell.device,
        pinned=pin != "none",
        where=where,
        schedule=str(options.get("schedule", "")),
        chunk=int(options.get("chunk", 0)),
        pose_time=pose_time,
        interactions=interactions,
        flops=flops,
        first_run=first_run,
    )


def docking_rows(groups: Iterable[Group[Any]]) -> list[Contestant]:
    """Return every configuration of the docking kernel that gave right energies."""
    docking = (group for group in groups if group.cell.get("benchmark") == BENCHMARK)
    return [row for group in docking if (row := _row(group)) is not None]


def _place(row: Contestant) -> tuple[str, int, int]:
    """Return what makes times per pose those of equal work."""
    return row.deck, row.poses, row.threads


def without_result(groups: Iterable[Group[Any]]) -> list[Group[Any]]:
    """Return the groups of the kernel in which no repeat gave a right result."""
    return [group for group in groups if group.cell.get("benchmark") == BENCHMARK and _row(group) is None]


def contests(rows: Iterable[Contestant]) -> list[Contest]:
    """Group by deck, poses and threads; those of more rows first, without what only ways to deal out work differ in."""
    made = [
        Contest(deck=deck, poses=poses, threads=threads, rows=sorted(members, key=lambda row: (row.time, row.name)))
        for (deck, poses, threads), members in grouped(rows, _place).items()
        if not all(row.schedule for row in members)
    ]
    return sorted(made, key=lambda contest: (-len(contest.rows), contest.deck, contest.poses, contest.threads))
