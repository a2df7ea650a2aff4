"""Which inference cells stand beside each other, and how their times compare."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from transect.analysis.groups import Group, grouped
from transect.domain.axes.infer import InferCell
from transect.runtimes.options import EQUAL

InferGroup = Group[InferCell]

# Whose latency others are measured in.
REFERENCE = "cpp"

# Run alone; bind, Run and copy together.
RUN = "latency"
WHOLE = "end_to_end_time"
# A clock's step over the time that it measures, beyond which the time is coarse.
_COARSE = 0.02
_IDENTITY = re.compile(r"identity-(\d+)([km]?)")
_FACTORS = {"": 1, "k": 1000, "m": 1_000_000}


def takes_onnx(group: InferGroup) -> bool:
    """Whether it executes an exported model; a baseline takes the framework's own."""
    return group.cell.exporter is not None


def identity_size(workload: str) -> int | None:
    """Return how many numbers a model that computes nothing hands on, or None for other models.

    >>> [identity_size(name) for name in ("identity-1", "identity-1k", "identity-1m", "iris")]
    [1, 1000, 1000000, None]
    """
    found = _IDENTITY.fullmatch(workload)
    return int(found[1]) * _FACTORS[found[2]] if found else None


def comparable(groups: Iterable[InferGroup]) -> dict[str, list[InferGroup]]:
    """Part groups without offered load by what keeps them from being compared, sorted by its words.

    Provider and precision always do. Of several sets of session options `equal` alone is compared
    between runtimes; without it each set stands for itself.
    """
    closed = [group for group in groups if group.cell.load is None and group.cell.sessions == 1]
    equal = [group for group in closed if group.cell.options == EQUAL]

    def words(group: InferGroup) -> str:
        # Options and precision make a kind; the usual ones go without saying.
        return ", ".join(filter(None, (group.cell.provider, group.kind.words)))

    return dict(sorted(grouped(equal or closed, words).items()))


def base_point(groups: Iterable[InferGroup], *, most_threads: bool = False) -> list[InferGroup]:
    """Return the groups at the smallest batch, and there with the fewest or the most threads."""
    groups = list(groups)
    batch = min((group.cell.batch for group in groups), default=0)
    first = [group for group in groups if group.cell.batch == batch]
    pick = max if most_threads else min
    threads = pick((group.cell.threads for group in first), default=0)
    return [group for group in first if group.cell.threads == threads]


def details_of(group: InferGroup, key: str) -> list[Any]:
    """Return what the usable records' details have under a key."""
    return [record.details[key] for record in group.ok if record.details.get(key) is not None]


def versions(groups: Iterable[InferGroup]) -> list[str]:
    """Return the versions of the runtime that these groups ran, sorted."""
    return sorted({str(version) for group in groups for version in details_of(group, "runtime_version")})


def changed_settings(group: InferGroup, base: InferGroup) -> dict[str, Any] | None:
    """Return the session options in which a group differs from its base; one not set is None.

    None when either does not report what it set.
    """
    changed, usual = (details_of(side, "session_options")[:1] for side in (group, base))
    if not changed or not usual or not isinstance(changed[0], dict) or not isinstance(usual[0], dict):
        return None
    keys = sorted(changed[0].keys() | usual[0].keys())
    return {key: changed[0].get(key) for key in keys if changed[0].get(key) != usual[0].get(key)}


def is_coarse(group: Group) -> bool:
    """Whether its clock ticks in steps of more than 2 % of its latency, as a browser's may."""
    steps_ns = (record.details.get("clock_resolution_ns") for record in group.ok)
    step_s = max((ns * 1e-9 for ns in steps_ns if isinstance(ns, (int, float))), default=0.0)
    summary = group.summary(RUN)
    return summary is not None and step_s > _COARSE * summary.median


def was_compared(group: Group) -> bool:
    """Whether any output was held beside the expected one: classes are those of few models."""
    return any(group.values(name) for name in ("max_abs_difference", "top1_agreement"))


def partly_compared(group: Group) -> str:
    """Say how many outputs were compared where others are no tensor, `1 of 2 outputs`, or nothing."""
    amounts = [
        (compared, every)
        for record in group.ok
        if isinstance(compared := record.details.get("outputs_compared"), int)
        and isinstance(every := record.details.get("outputs_expected"), int)
    ]
    compared, every = min(amounts, default=(0, 0))
    return f"{compared} of {every} outputs" if compared < every else ""


def run_includes(group: Group) -> list[str]:
    """Return the parts that a language does inside of Run, whose time holds them there."""
    held = (record.details.get("run_includes") for record in group.ok)
    return sorted({str(part) for parts in held if isinstance(parts, list) for part in parts})


def measure_of(groups: Iterable[Group]) -> str:
    """Return the metric by which groups are compared: their Run alone, or whole calls.

    Where languages do different parts inside of Run, Run alone is different work; then it is the
    time end to end, if all of them tell it.
    """
    groups = list(groups)
    differ = len({tuple(run_includes(group)) for group in groups}) > 1
    return WHOLE if differ and all(group.values(WHOLE) for group in groups) else RUN


def rates(group: Group, measure: str) -> list[float]:
    """Return the samples per second of each run, by its Run alone or by whole calls."""
    if measure == RUN:
        return group.counted("throughput")
    return [(group.cell.get("batch") or 1) / time for time in group.counted(measure) if time > 0]
