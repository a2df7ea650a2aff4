"""The target of a training: what it is in words, who reached it, and whose time to it counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from transect.analysis.groups import Group

TIME = "time_to_quality"


def quality_target(groups: Sequence[Group]) -> str:
    """Return the target in words, e.g. `accuracy 0.95`: the one that most groups have."""
    targets = Counter(target for group in groups if (target := target_of(group)))
    return next((target for target, _ in targets.most_common(1)), "the quality target")


def target_of(group: Group) -> str:
    """Return a group's own target in words; empty where no record tells it."""
    for record in group.records:
        quality = record.details.get("quality")
        if isinstance(quality, dict) and quality.get("target") is not None:
            return f"{quality.get('metric', 'quality')} {quality['target']}"
    return ""


def reaches_target(group: Group) -> bool:
    """Whether every usable repeat reached the target: one that did not took infinitely long."""
    return bool(group.ok) and len(group.values(TIME)) == len(group.ok)


def may_be_ranked(group: Group) -> bool:
    """Whether its time to the target counts: reached in every run, and known to be by training."""
    return reaches_target(group) and not group.unverified
