"""What many runs of one study say: a series for each metric of a cell, and where it changed."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeGuard

from transect.analysis.groups import Group, grouped
from transect.analysis.log_runs import LogCell
from transect.analysis.result_sets import ResultSet, differences_of
from transect.analysis.set_lines import Outcome
from transect.analysis.set_metrics import Chosen, Role, chosen
from transect.analysis.settings import settings_doubt, unlike
from transect.analysis.surroundings import Difference
from transect.analysis.timelines import Run
from transect.domain.cell import Cell
from transect.domain.metrics import Direction
from transect.domain.record import Status
from transect.domain.until import MARGIN
from transect.stats.change_points import ChangePoint, change_points
from transect.stats.comparisons import Comparison, Confidence, compare
from transect.stats.samples import NoiseFloor, noise_floor

# That any change is found where there is none: half of it for whole stages, half for cells.
LEVEL = 0.05
# Cells that make up a stage's own series.
_MIN_CELLS = 3


@dataclass(frozen=True, kw_only=True, eq=False)
class Series:
    """One number over all runs: the median of a cell's repeats, nan where a run has none.

    Without a `cell` it is that of a whole stage: the median over cells of what each is beside its own
    middle. `refused` names runs with other settings than the latest, and why.
    """

    stage: str
    chosen: Chosen
    values: Sequence[float]
    cell: Cell | None = None
    refused: Mapping[int, str]

    @property
    def places(self) -> list[int]:
        """The runs that have a value."""
        return [place for place, value in enumerate(self.values) if math.isfinite(value)]

    def groups(self, run: Run) -> dict[Cell, Group]:
        """The groups of a run that it is made of: its cell's, or all of its stage."""
        return {
            cell: group
            for cell, group in run.new_groups.items()
            if cell == self.cell or (self.cell is None and cell.stage == self.stage)
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class Change:
    """A series changes its level at run `at`. `before` and `after`: the runs on both sides.

    `p` is that of the change beside all series, `comparison` how far apart the sides are, the later one first;
    `surroundings` is in what the machine and software of the runs next to the change differ.
    """

    series: Series
    at: int
    before: Sequence[int]
    after: Sequence[int]
    p: float
    outcome: Outcome
    confidence: Confidence
    comparison: Comparison
    reason: str
    surroundings: Sequence[Difference]
    # The whole stage changed there, to the same side.
    shared: bool = False

    @property
    def ratio(self) -> float | None:
        """The later level over the earlier one; None where that is no number."""
        return self.comparison.times


@dataclass(frozen=True, kw_only=True, slots=True)
class Lost:
    """A cell that the latest runs have no usable result of: the last run that had one, and why."""

    cell: Cell
    last: int
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class History:
    """All series of a study's runs, those of stages first, their changes and the cells that were lost."""

    runs: Sequence[Run]
    series: Sequence[Series]
    changes: Sequence[Change]
    lost: Sequence[Lost]


def history_of(runs: Sequence[Run], *, metrics: Sequence[str] = (), margin: float = MARGIN) -> History:
    """Follow the cells through runs in their order. Raises BadInput as `chosen` does."""
    sets = [run.results for run in runs]
    asked = chosen(sets, metrics)
    cells = dict.fromkeys(cell for results in reversed(sets) for cell in results.groups)
    single = [
        series
        for cell in sorted(cells, key=lambda cell: (cell.stage, cell.id))
        for series in _of_cell(cell, runs, asked.get(cell.stage, ()))
    ]
    whole = list(_of_stages(single))
    changes = _changes(whole, runs, margin)
    changes += [_beside(change, changes) for change in _changes(single, runs, margin)]
    lost = [gone for cell in cells if (gone := _lost(cell, sets)) is not None]
    return History(runs=runs, series=[*whole, *single], changes=_at_quality(changes), lost=lost)


def _of_cell(cell: Cell, runs: Sequence[Run], asked: Iterable[Chosen]) -> list[Series]:
    sets = [run.results for run in runs]
    latest = next(results for results in reversed(sets) if cell in results.groups)
    settings = latest.settings(latest.groups[cell])
    refused: dict[int, str] = {}
    for place, result_set in enumerate(sets):
        group = result_set.groups.get(cell)
        if group and (differing := unlike(result_set.settings(group), settings)):
            refused[place] = "; ".join(f"{each.name}: {each.base}, later {each.other}" for each in differing)
    able = {
        place: group
        for place, run in enumerate(runs)
        if place not in refused and _usable(group := run.new_groups.get(cell)) and not group.over_subscribed
    }
    found = []
    for each in asked:
        values = [math.nan] * len(sets)
        for place, group in able.items():
            numbers = group.counted(each.metric, each.label)
            if numbers and each.units == 1:
                values[place] = statistics.median(numbers)
        if any(math.isfinite(value) for value in values):
            found.append(Series(stage=cell.stage, chosen=each, values=values, cell=cell, refused=refused))
    return found


def _usable(group: Group | None) -> TypeGuard[Group]:
    """Whether it has a result that counts. Of runs of many jobs, one that went wrong says nothing of the others."""
    return bool(group and group.ok and (isinstance(group.cell, LogCell) or not group.wrong))


def _of_stages(single: Sequence[Series]) -> Iterable[Series]:
    """Yield for each stage and metric of speed what its cells did together."""
    speeds = [series for series in single if series.chosen.role is Role.SPEED and series.chosen.label is None]
    for (stage, each), members in grouped(speeds, lambda series: (series.stage, series.chosen)).items():
        by_run: dict[int, list[float]] = defaultdict(list)
        for member in members:
            logs = {place: math.log(member.values[place]) for place in member.places if member.values[place] > 0}
            middle = statistics.median(logs.values()) if logs else 0.0
            for place, value in logs.items():
                by_run[place].append(value - middle)
        values = [
            math.exp(statistics.median(by_run[place])) if len(by_run[place]) >= _MIN_CELLS else math.nan
            for place in range(len(members[0].values))
        ]
        if any(math.isfinite(value) for value in values):
            yield Series(stage=stage, chosen=each, values=values, refused={})


def _changes(series: Sequence[Series], runs: Sequence[Run], margin: float) -> list[Change]:
    found = change_points({line: line.values for line in series}, level=LEVEL / 2)
    of_series = grouped(found, lambda point: point.series)
    floors = {
        key: noise_floor((part for line in lines for part in _parts(line, of_series.get(line, ()))), margin=margin)
        for key, lines in grouped(series, lambda line: (line.stage, line.chosen)).items()
    }
    return [_change(point, runs, floors[point.series.stage, point.series.chosen]) for point in found]


def _parts(series: Series, changes: Sequence[ChangePoint[Series]]) -> list[list[float]]:
    """Part a series at its changes: what is left in each part is noise from run to run."""
    ends = [0, *(point.at for point in changes), len(series.values)]
    return [[value for value in series.values[start:end] if math.isfinite(value)] for start, end in pairwise(ends)]


def _change(point: ChangePoint[Series], runs: Sequence[Run], floor: NoiseFloor | None) -> Change:
    series, each = point.series, point.series.chosen
    before = [place for place in series.places if point.since <= place < point.at]
    after = [place for place in series.places if point.at <= place < point.until]
    comparison = compare(
        [series.values[place] for place in after],
        [series.values[place] for place in before],
        direction=each.direction,
        floor=floor,
    )
    assert comparison is not None
    times = comparison.times
    lower = times < 1 if times is not None else comparison.a.median < comparison.b.median
    outcome = Outcome.BETTER if lower == (each.direction is Direction.LOWER) else Outcome.WORSE
    if comparison.equal:
        outcome = Outcome.SAME
    confidence = Confidence.PROVISIONAL if comparison.confidence is Confidence.INCONCLUSIVE else comparison.confidence
    reason = comparison.reason
    groups = [group for place in (*before, *after) for group in series.groups(runs[place]).values()]
    if confidence is Confidence.CONFIRMED and (doubt := settings_doubt(*groups)):
        confidence, reason = Confidence.PROVISIONAL, f"{reason}; {doubt}"
    # Of a whole stage, cells that both have: what one alone has, as of a damaged run, is no difference.
    last, first = runs[before[-1]], runs[after[0]]
    old, new = series.groups(last), series.groups(first)
    return Change(
        series=series,
        at=point.at,
        before=before,
        after=after,
        p=point.p,
        outcome=outcome,
        confidence=confidence,
        comparison=comparison,
        reason=reason,
        surroundings=differences_of(last.results, first.results, ((old[c], new[c]) for c in new if c in old)),
    )


def _beside(change: Change, of_stages: Sequence[Change]) -> Change:
    """Mark a cell's change that its whole stage made as well, a run earlier or later."""
    alike = any(
        stage_change.series.cell is None
        and stage_change.series.stage == change.series.stage
        and stage_change.series.chosen == change.series.chosen
        and abs(stage_change.at - change.at) <= 1
        and ((stage_change.ratio or 0.0) > 1) == ((change.ratio or 0.0) > 1)
        for stage_change in of_stages
    )
    return replace(change, shared=alike)


def _at_quality(changes: Sequence[Change]) -> list[Change]:
    """Return the changes, none better in speed where its cell became worse in quality."""
    worse = [bad for bad in changes if bad.series.chosen.role is Role.QUALITY and bad.outcome is Outcome.WORSE]
    found = []
    for judged in changes:
        at_cost = [
            bad.series.chosen.metric
            for bad in worse
            if bad.series.cell == judged.series.cell and abs(bad.at - judged.at) <= 1
        ]
        if at_cost and judged.series.chosen.role is Role.SPEED and judged.outcome is Outcome.BETTER:
            reason = f"faster at worse quality ({', '.join(at_cost)}) is not better; {judged.reason}"
            judged = replace(judged, outcome=Outcome.NOT_COMPARABLE, reason=reason)
        found.append(judged)
    return found


def _lost(cell: Cell, sets: Sequence[ResultSet]) -> Lost | None:
    """Say since when a cell has no usable result, if it had one before."""
    usable = [place for place, results in enumerate(sets) if _usable(results.groups.get(cell))]
    if not usable or usable[-1] == len(sets) - 1:
        return None
    later = [results.groups[cell] for results in sets[usable[-1] + 1 :] if cell in results.groups]
    if not later:
        return Lost(cell=cell, last=usable[-1], why="no later run has it")
    bad = [record for record in later[-1].records if record not in later[-1].ok]
    causes = sorted({str(record.cause or "wrong-result") for record in bad})
    status = "skipped" if all(r.status is Status.SKIPPED for r in bad) else "failed"
    return Lost(cell=cell, last=usable[-1], why=f"{status}: {', '.join(causes)}")
