"""What pairs of runs say of two groups: a log ratio for each repeat, of turns where the two took turns."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from transect.analysis.entries import AnyRecord
from transect.analysis.groups import Group
from transect.analysis.serving import RUN, measure_of
from transect.domain.metrics import Nature, metric, nature_of
from transect.domain.until import MARGIN, MIN_RUNS
from transect.stats.noise import Noise, fit, location

# Of fewer contrasts nothing is said of the noise of a kind.
_MIN_KIND = 3
# Two variances of ratios with one group in common: that group's runs are in both.
_SHARED = 0.25
# Of fewer quiet turns no middle is taken.
_MIN_TURNS = 4
# Under which key a record's turns have the seconds of a metric, where it is not the one that they name.
_SECONDS = {"end_to_end_time": "end_to_end_seconds"}
# Under which key they have the mean of a metric in each turn.
_MEANS = "mean_seconds"
# Rates, and the time of which each turn tells their inverse.
_RATES = {"samples_per_second": "step_time", "throughput": "latency"}
# By what share first steps, which load and compile, and what is before them, such as joining, may change the ratio of
# times to a target for it to be that of steps.
_FIRST = math.log1p(MARGIN)
# The time to a target, and that of what it is made of.
TO_TARGET, STEP, STEPS = "time_to_quality", "step_time", "steps_to_quality"


@dataclass(frozen=True, kw_only=True, slots=True)
class Paired:
    """Log ratios of two groups by repeat, group over base, of those that enter.

    `by`: `turn` of launches that took turns, `seed` of runs with one start, `run` of neighbours. `left_out` counts repeats
    that were disturbed; not `quiet`: too few were not, so all are in. `lost`: runs of a side that lack the metric.
    """

    metric: str
    by: str
    logs: dict[int, float]
    left_out: int = 0
    quiet: bool = True
    disturbed: bool = False
    lost: int = 0
    values: tuple[dict[int, float], dict[int, float]] = field(default_factory=lambda: ({}, {}))


def paired(group: Group[Any], base: Group[Any], name: str) -> Paired | None:
    """Pair two groups' runs by repeat; None where they have none in common that tells the metric.

    Where both take as many steps to their target for each seed, the time to it differs by that of a step alone: by the means
    of quiet turns, since all steps count; of others by medians, which hide what a neighbour took. Not where one joins or
    compiles for longer than the other, nor where workers come and go, of whose steps the median is of neither number of
    workers: then the times themselves are compared.
    """
    lost = sum(record.value(name) is None for side in (group, base) for record in side.ok)
    all_steps = name == TO_TARGET and _same_steps(group, base) and _begin_alike(group, base)
    if all_steps:
        name = STEP
    elif name == RUN:
        name = measure_of((group, base))
    sides = {record.repeat: record for record in group.ok}, {record.repeat: record for record in base.ok}
    logs: dict[int, float] = {}
    quiet: dict[int, float] = {}
    means: dict[int, float] = {}
    turned: set[int] = set()
    # Of a result, or of simulated time, other programs change nothing.
    calm = bool(nature_of(name) & (Nature.QUALITY | Nature.EXACT))
    for repeat in sorted(sides[0].keys() & sides[1].keys()):
        both = sides[0][repeat], sides[1][repeat]
        turns = _of_turns(*both, name)
        found, still = turns if turns is not None else (_ratio(*(record.value(name) for record in both)), True)
        if turns is not None:
            turned.add(repeat)
        if found is None:
            continue
        logs[repeat] = found
        if calm or (still and not any(record.details.get("disturbed") for record in both)):
            quiet[repeat] = found
            if all_steps and (mean := _of_turns(*both, name, key=_MEANS)) is not None:
                means[repeat] = mean[0]
    if not logs:
        return None
    if len(means) == len(quiet):
        quiet = means
    enough = len(quiet) >= MIN_RUNS or len(quiet) == len(logs)
    kept = quiet if enough else logs
    by = "turn" if turned.issuperset(kept) else "seed" if name == TO_TARGET or metric(name).unit == "1" else "run"
    if by != "turn":
        # One estimator for all repeats.
        kept = {n: r for n in kept if (r := _ratio(*(side[n].value(name) for side in sides))) is not None}
        if not kept:
            return None
    values = tuple({n: v for n in kept if (v := side[n].value(name)) is not None} for side in sides)
    return Paired(
        metric=name,
        by=by,
        logs=kept,
        left_out=len(logs) - len(kept),
        quiet=enough,
        disturbed=not quiet,
        lost=lost,
        values=(values[0], values[1]),
    )


def _same_steps(group: Group[Any], base: Group[Any]) -> bool:
    """Whether both reach their target for each repeat that both have, in the same steps, which are alike all the time."""
    if group.kind.coming or base.kind.coming:
        return False
    a, b = group.by_repeat(STEPS), base.by_repeat(STEPS)
    common = {record.repeat for record in group.ok} & {record.repeat for record in base.ok}
    return bool(common) and all(n in a and a[n] == b.get(n) for n in common)


def _begin_alike(group: Group[Any], base: Group[Any]) -> bool:
    """Whether what is before second steps changes the ratio of times to the target within the usual margin, or nobody tells it."""
    a, b = _after_first_step(group), _after_first_step(base)
    changes = [abs(math.log(a[n] / b[n])) for n in a.keys() & b.keys()]
    return not changes or statistics.median(changes) <= _FIRST


def _after_first_step(side: Group[Any]) -> dict[int, float]:
    """Return by repeat what share of its time to the target comes behind the first step."""
    first, whole = side.by_repeat("first_step_time"), side.by_repeat(TO_TARGET)
    # Script's and older records do not tell it.
    before = {record.repeat: record.details.get("data_to_start_s") or 0.0 for record in side.ok}
    return {n: max(1e-9, 1 - (before[n] + first[n]) / whole[n]) for n in first.keys() & whole.keys()}


def _ratio(a: Any, b: Any) -> float | None:
    # Details are anybody's.
    if not all(isinstance(side, (int, float)) and 0 < side < math.inf for side in (a, b)):
        return None
    return math.log(a) - math.log(b)


def _of_turns(a: AnyRecord, b: AnyRecord, name: str, key: str | None = None) -> tuple[float, bool] | None:
    """Return the log ratio of two records that took turns with each other, the middle of those turn by turn, and whether it is quiet.

    Of the turns that were quiet on both sides; of all, where these are too few: each side may have enough of its own.
    """
    mine, theirs = a.details.get("turns"), b.details.get("turns")
    if not isinstance(mine, dict) or not isinstance(theirs, dict) or mine.get("heat") != theirs.get("heat"):
        return None
    sides = [_seconds(turns, name, key) for turns in (mine, theirs)]
    if not all(sides):
        return None
    logs = []
    quiet = [told if isinstance(told := turns.get("quiet"), list) else [] for turns in (mine, theirs)]
    for x, y, *still in zip(*sides, *quiet, strict=False):
        if (ratio := _ratio(x, y)) is not None:
            logs.append((ratio, all(still)))
    kept = [ratio for ratio, still in logs if still]
    enough = len(kept) >= min(_MIN_TURNS, len(logs))
    if not enough:
        kept = [ratio for ratio, _ in logs]
    if not kept:
        return None
    middle = location(kept).centre
    if name not in _RATES:
        return middle, enough
    # A rate counts samples: of the two batches there are as many as the cells say.
    batches = _ratio(*(record.details.get("global_batch") or record.point.get("batch") or 1 for record in (a, b)))
    return None if batches is None else (batches - middle, enough)


def _seconds(turns: dict[str, Any], name: str, key: str | None = None) -> list[float]:
    """Return the seconds of each turn that tell a metric, or nothing; those that stand under `key`, where it is given."""
    told = turns.get(key or _SECONDS.get(name, "seconds"))
    of_metric = name in _SECONDS or turns.get("metric") == _RATES.get(name, name)
    return told if of_metric and isinstance(told, list) else []


# Stage, workload (None: all), metric, how runs are paired, whether they were quiet.
_Kind = tuple[str, str | None, str, str, bool]


class PairNoise:
    """The noise of log ratios of each kind of contrast: of a stage, workload, metric and way of pairing."""

    def __init__(self, every: Iterable[tuple[Group[Any], Group[Any], Paired]] = ()) -> None:
        made: dict[_Kind, list[tuple[Group[Any], Group[Any], Paired]]] = defaultdict(list)
        for group, base, found in every:
            for kind in _kinds(group, found):
                made[kind].append((group, base, found))
        self._fitted = {kind: _fitted(members) for kind, members in made.items() if len(members) >= _MIN_KIND}

    def of(self, group: Group[Any], found: Paired) -> Noise | None:
        """Return the noise of its workload or of its stage: that which tells more, as all are alike in it."""
        known = (self._fitted.get(kind) for kind in _kinds(group, found))
        return max((noise for noise in known if noise is not None), key=lambda noise: noise.freedom, default=None)


def _kinds(group: Group[Any], found: Paired) -> tuple[_Kind, _Kind]:
    cell = group.cell
    of_all = (found.metric, found.by, found.quiet)
    return (cell.stage, cell.workload, *of_all), (cell.stage, None, *of_all)


def _fitted(members: Sequence[tuple[Group[Any], Group[Any], Paired]]) -> Noise | None:
    points = Counter(id(side) for group, base, _ in members for side in (group, base))
    # Of two contrasts, those that share a group.
    shared = sum(math.comb(amount, 2) for amount in points.values())
    ways = math.comb(len(members), 2)
    return fit([location([*found.logs.values()], trim=False) for _, _, found in members], alike=_SHARED * shared / ways)
