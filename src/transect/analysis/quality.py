"""The target of a training: what it is in words, who reached it, and whose time to it counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from transect.analysis.groups import Group

TIME = "time_to_quality"


def quality_target(groups: Sequence[Group]) -> str:
    """Return the target in words, e.g. `accuracy 0.95`: the one that most groups have."""
    targets = Counter(target for group in groups if (target := target_of(group)))
    return next((target for target, _ in targets.most_common(1)), "the quality target")


def target_of(group: Group) -> str:
    """Return a group's own target in words, with what its times count from where that is unusual; empty where no record tells it."""
    quality = _quality(group)
    if not quality:
        return ""
    since = f" since {quality['since']}" if quality.get("since") else ""
    return f"{_words(quality.get('metric', 'quality'))} {quality['target']}{since}"


def least_accuracy(group: Group) -> float | None:
    """Return the accuracy that is a group's target, or None where it has another one."""
    quality = _quality(group)
    return float(quality["target"]) if quality.get("metric") == "accuracy" else None


def score_at_end(group: Group) -> tuple[str, float | None]:
    """Return what a group's target is a value of, and the median of its values at the end; None: nobody told one."""
    name = str(_quality(group).get("metric", "accuracy"))
    summaries = (group.summary(*key) for key in ((name, None), ("own_score", name), ("own_error", name)))
    return _words(name), next((summary.median for summary in summaries if summary is not None), None)


def _words(name: object) -> str:
    """Return a metric's name as people say it."""
    return str(name).replace("_", " ")


def _quality(group: Group) -> dict[str, Any]:
    told = (record.details.get("quality") for record in group.records)
    known = (quality for quality in told if isinstance(quality, dict) and quality.get("target") is not None)
    return next(known, {})


def reaches_target(group: Group) -> bool:
    """Whether every usable repeat reached the target: one that did not took infinitely long."""
    return bool(group.ok) and len(group.values(TIME)) == len(group.ok)


def may_be_ranked(group: Group) -> bool:
    """Whether its time to the target counts: reached in every run, and known to be by training."""
    return reaches_target(group) and not group.unverified
