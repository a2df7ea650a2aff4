"""Steps that were predicted before they were measured, and how far off they were."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import combinations
from typing import Any

from transect.analysis.contrast import Contrast
from transect.analysis.contrasts import contrast
from transect.analysis.entries import AnyRecord
from transect.analysis.groups import Floors, Group
from transect.analysis.parallelism import STEP, points
from transect.analysis.scaling import TrainGroup
from transect.domain.record import Status
from transect.stats.samples import Summary

PREDICTED = "predicted_step_time"


@dataclass(frozen=True, kw_only=True, slots=True)
class Forecast:
    """A training's step time and its prediction, both in s.

    `in_time` says that every training of the group began after the prediction was stored: one made
    later is no prediction, and counts nowhere. `made` and `trained` are these times as recorded.
    """

    group: TrainGroup
    record: AnyRecord
    predicted_s: float
    measured: Summary
    made: str
    trained: str
    in_time: bool

    @property
    def error(self) -> float:
        """Predicted over measured less one: 0.05 is 5 % too long."""
        return self.predicted_s / self.measured.median - 1

    @property
    def counts(self) -> bool:
        """Whether it counts for or against the predictor: made in time, of ranks with cores of their own."""
        return self.in_time and not self.group.over_subscribed


def forecasts(predictions: Iterable[Group[Any]], trained: Iterable[TrainGroup]) -> list[Forecast]:
    """Pair each stored prediction with its training; those without one are left out."""
    of_id = {group.cell.id: group for group in trained}
    found = []
    for record in (record for group in predictions for record in group.ok):
        group = of_id.get(str(record.details.get("for")))
        predicted = record.value(PREDICTED)
        measured = group.summary(STEP) if group is not None else None
        if group is None or predicted is None or measured is None or group.wrong:
            continue
        began = min((record.started for record in group.ok), key=_time)
        found.append(
            Forecast(
                group=group,
                record=record,
                predicted_s=predicted,
                measured=measured,
                made=record.ended,
                trained=began,
                in_time=_time(record.ended) <= _time(began),
            )
        )
    return found


def _time(text: str) -> datetime:
    """Read a time of a record; without a zone it is UTC, as all are."""
    read = datetime.fromisoformat(text)
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def unmatched(predictions: Iterable[Group[Any]], found: Sequence[Forecast]) -> list[AnyRecord]:
    """Return the records of predictions without a training to compare with, failed ones too."""
    used = {id(forecast.record) for forecast in found}
    return [
        record
        for group in predictions
        for record in group.records
        if id(record) not in used or record.status is not Status.OK
    ]


def mean_error(found: Iterable[Forecast]) -> float | None:
    """Return the mean absolute error of those that count, as a share; None without any."""
    errors = [abs(forecast.error) for forecast in found if forecast.counts]
    return statistics.fmean(errors) if errors else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """Pairs of ways to do equal work that measurements decide, and for how many the prediction was right.

    `contrasts` are those that decide them.
    """

    right: int
    decided: int
    wrong: Sequence[tuple[Forecast, Forecast]]
    contrasts: tuple[Contrast, ...]


def order_of(found: Sequence[Forecast], floors: Floors, *, asked: bool = False) -> Order:
    """Compare the order of predictions with that of measurements: pairs on equal ranks with equal work."""
    by_group = {id(forecast.group): forecast for forecast in found if forecast.counts}
    right, wrong, apart = 0, [], []
    for members in points([forecast.group for forecast in by_group.values()]):
        for a, b in combinations(members, 2):
            found_apart = contrast(a, b, floors, STEP, varies="strategy", asked=asked)
            if found_apart is None or not found_apart.shown:
                continue
            apart.append(found_apart)
            first, second = by_group[id(a)], by_group[id(b)]
            if (first.predicted_s < second.predicted_s) == (found_apart.better is a):
                right += 1
            else:
                wrong.append((first, second))
    return Order(right=right, decided=right + len(wrong), wrong=wrong, contrasts=tuple(apart))
