"""The target of a training: what it is in words, who reached it, and whose time to it counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from transect.analysis.entries import inside
from transect.analysis.groups import Group
from transect.domain.metrics import METRICS, Direction, metric
from transect.domain.system import SystemPrice

TIME = "time_to_quality"
_USUAL = "accuracy"


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """What trainings are scored by on the test set.

    `name` is that of the series which a record keeps, one value for each epoch; `lower` says that less is better.
    """

    name: str
    lower: bool

    @property
    def words(self) -> str:
        """The name as people say it."""
        return _words(self.name)

    @property
    def is_share(self) -> bool:
        """Whether it is a share of one, as all accuracies of the registry are."""
        return self.name in METRICS and self.name.endswith(_USUAL)

    def at_end(self, group: Group) -> float | None:
        """Return the median of a group's values at the end; None: nobody told one."""
        return next((found.median for key in self._keys if (found := group.summary(*key)) is not None), None)

    def values(self, group: Group) -> list[float]:
        """Return what each usable repeat of a group has at its end."""
        return next((found for key in self._keys if (found := group.values(*key))), [])

    @property
    def _keys(self) -> tuple[tuple[str, str | None], ...]:
        # A study's own script may give its score any name: it is kept as the label of one of two metrics.
        return ("own_error", self.name), ("own_score", self.name), (self.name, None)


def score_of(groups: Iterable[Group]) -> Score:
    """Return what most groups are scored by; the accuracy where no record tells it."""
    members = list(groups)
    names = Counter(str(quality["metric"]) for group in members if (quality := _quality(group)).get("metric"))
    name = next((name for name, _ in names.most_common(1)), _USUAL)
    # A study's own name comes before that of the registry, whose metric may go the other way.
    for key, lower in (("own_error", True), ("own_score", False)):
        if any(group.values(key, name) for group in members):
            return Score(name=name, lower=lower)
    return Score(name=name, lower=name in METRICS and metric(name).direction is Direction.LOWER)


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


def misses_target(group: Group) -> bool | None:
    """Whether a group's score at the end is on the wrong side of its target; None where either is unknown."""
    score, target = score_of([group]), _quality(group).get("target")
    value = score.at_end(group)
    if value is None or target is None:
        return None
    return value > float(target) if score.lower else value < float(target)


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


def node_hours(group: Group, price: SystemPrice) -> float | None:
    """Return what a training takes to its target, in whole nodes times hours, of its median time.

    None where that time does not count, and of runs on another system than the price is of.
    """
    time = group.summary(TIME)
    systems = {inside(record.provenance, "system.name") for record in group.records}
    if time is None or not may_be_ranked(group) or systems != {price.system}:
        return None
    return group.cell.nodes * time.median / 3600


def may_be_ranked(group: Group) -> bool:
    """Whether its time to the target counts: reached in every run, and known to be by training."""
    return reaches_target(group) and not group.unverified
