"""Different, the same within a margin, or open: verdicts on two sets of a few repeats.

One 95 % interval decides, of two middles with moderated variances (`transect.stats.noise`): the same where it lies within
the margin (two one-sided t tests at 2.5 %; Schuirmann, J. Pharmacokinetics and Biopharmaceutics 15, 1987), else different
where it leaves out 1. `tests/benchmarks/bench_decisions.py` shows how often a verdict is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from scipy.special import stdtr, stdtrit

from transect.domain.until import MARGIN, MIN_RUNS
from transect.stats.noise import Noise, location, logs_of, moderated

# At most this share of verdicts may be wrong, and of a study's findings any at all.
LEVEL = 0.05
# Haybittle and Peto: who stops early only at a level far below that of the end may look after each repeat. It lies below
# 0.05 / n, at which one of n comparisons is sure, for some hundreds of them.
EARLY = 1e-6
# From this many on, the middle stands whatever one or two of them are.
_ENOUGH = 5
# Where a quarter of all pairs of repeats of one cell are apart by more than this, so many runs were
# disturbed that trimming does not help: what tells then is what no repeats of one cell differ by.
_TOO_NOISY = 0.5
# Where runs are in one of two states (a clock, a place in memory), three of five in one of them look quiet, the
# other two trimmed. Below this many a difference has to exceed what two fifths of those pairs are apart.
_MANY = 10
_BEYOND_OFTEN = 1.1
# Logarithms that differ by less are equal: what is left is rounding.
_EPSILON = 1e-12


class Answer(StrEnum):
    """What repeats say about two groups."""

    DIFFERENT = "different"
    SAME = "the same within the margin"
    OPEN = "open"


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """Verdict on a ratio a / b. `low` and `high` are its interval at 1 - `level`, `error` the standard one of its logarithm.

    `p` is the probability of the test that the answer rests on; that of a difference where it is open. `p_other` is that
    of the test that it does not rest on. Either is `level` where an end of the interval is at 1, or at the margin.
    """

    answer: Answer
    ratio: float
    low: float
    high: float
    p: float
    p_other: float = 1.0
    error: float = math.inf
    freedom: float = 1.0
    pairs: int | None = None
    level: float = LEVEL

    def at(self, level: float, margin: float) -> Decision:
        """Return the verdict at another level."""
        if math.isinf(self.error):
            return replace(self, level=level)
        return _verdict(math.log(self.ratio), self.error**2, self.freedom, margin, self.pairs, level)

    @property
    def half_width(self) -> float:
        """Half the width of the interval of the ratio's logarithm; inf where nothing tells the noise."""
        return (math.log(self.high) - math.log(self.low)) / 2 if self.low > 0 else math.inf


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Chance:
    """A test behind a claim that ranks no groups. `p` and `p_other` as in `Decision`, `n_comparisons` as in `corrected`.

    Not `claimed`: it is not said to show anything, and counts as one of all that were made. `same`: it shows no difference
    beyond the margin. `rival`: it stands for one that no single contrast sets beside the best. Two are never the same one.
    """

    p: float
    p_other: float = 1.0
    n_comparisons: float = 1.0
    claimed: bool = True
    same: bool = False
    rival: bool = False


def chance_of_shift(differences: Sequence[float], *, claimed: bool = True) -> Chance | None:
    """Test that differences, one for each seed, are around 0 (Yuen's t). None of fewer than two seeds.

    Where those that are not trimmed are equal, as of small counts, no spread is known: then it is a sign test.
    """
    if len(differences) < 2:
        return None
    differences_location = location(differences)
    error = math.sqrt(differences_location.variance / differences_location.count)
    if error > _EPSILON * abs(differences_location.centre):
        p = 2 * float(stdtr(differences_location.freedom, -abs(differences_location.centre) / error))
    else:
        above, below = (sum(sign * difference > 0 for difference in differences) for sign in (1, -1))
        signs = above + below
        p = 2 * sum(math.comb(signs, n) for n in range(min(above, below) + 1)) / 2**signs
    return Chance(p=min(1.0, p), claimed=claimed)


def decide(a: Sequence[float], b: Sequence[float], noise: Noise | None, margin: float = MARGIN) -> Decision | None:
    """Decide about a / b from runs that have nothing in common. None without a positive value."""
    logs = logs_of(a), logs_of(b)
    if not all(logs):
        return None
    sides = [location(side) for side in logs]
    spreads = [moderated(side, noise) for side in sides]
    variance = sum(spread for spread, _ in spreads)
    if math.isinf(variance):
        freedom = 1.0
    elif variance > 0:
        # Welch and Satterthwaite.
        freedom = variance**2 / sum(spread**2 / degrees for spread, degrees in spreads)
    else:
        freedom = min(degrees for _, degrees in spreads)
    return _verdict(sides[0].centre - sides[1].centre, variance, freedom, margin)


def decide_logs(
    logs: Sequence[float], noise: Noise | None, *, margin: float = MARGIN, times: float = 1.0
) -> Decision | None:
    """Decide about a / b from the logarithm of each pair's ratio; `noise` is that of such a one, over `times`."""
    if not logs:
        return None
    ratios_location = location(logs, trim=False)
    return _verdict(ratios_location.centre, *moderated(ratios_location, noise, times), margin, len(logs))


def decide_paired(
    a: Mapping[int, float], b: Mapping[int, float], noise: Noise | None, margin: float = MARGIN
) -> Decision | None:
    """Decide about a / b repeat by repeat, over those that both have; `noise` of `paired_noise`."""
    logs = logs_of(a[n] / b[n] for n in sorted(a.keys() & b.keys()) if a[n] > 0 and b[n] > 0)
    # A ratio has the noise of both its sides.
    return decide_logs(logs, noise, margin=margin, times=2.0)


def _verdict(
    apart: float, variance: float, freedom: float, margin: float, pairs: int | None = None, level: float = LEVEL
) -> Decision:
    error = math.sqrt(variance)
    if math.isinf(error):
        return Decision(answer=Answer.OPEN, ratio=power(apart), low=0.0, high=math.inf, p=1.0, pairs=pairs)
    edge = math.log1p(margin)
    error = max(error, _EPSILON)
    different = min(1.0, 2 * float(stdtr(freedom, -abs(apart) / error)))
    # Both one-sided tests have to reject: the larger probability counts.
    same = min(1.0, 2 * float(stdtr(freedom, (abs(apart) - edge) / error)))
    reach = float(stdtrit(freedom, 1 - level / 2)) * error
    if same <= level:
        answer, p, p_other = Answer.SAME, same, different
    elif different <= level:
        answer, p, p_other = Answer.DIFFERENT, different, same
    else:
        answer, p, p_other = Answer.OPEN, different, same
    return Decision(
        answer=answer,
        ratio=power(apart),
        low=power(apart - reach),
        high=power(apart + reach),
        p=p,
        p_other=p_other,
        error=error,
        freedom=freedom,
        pairs=pairs,
        level=level,
    )


def power(log: float) -> float:
    """Return what a logarithm is of, within what a number can hold."""
    return math.exp(min(max(log, -700.0), 700.0))


def is_confirmed(
    decision: Decision, runs: int, floor: float, margin: float = MARGIN, upper: float = 0.0, often: float = 0.0
) -> bool:
    """Whether a verdict may be confirmed: enough runs a side, in a noise that so few can be judged in.

    `floor` is the noise floor, a share: what two repeats of one cell differ by. A few runs that were all disturbed look
    as quiet as any: below five a side a difference has to exceed the floor, and the floor may be twice the margin at
    most for sameness. Below ten a difference has to exceed what two fifths of all pairs of repeats differ by (`often`),
    and sameness needs that to lie within the margin. Where a quarter of the pairs differ by more than half (`upper`),
    nothing is the same, and a difference has to exceed the floor however many runs there are.
    """
    if decision.answer is Answer.OPEN or runs < MIN_RUNS:
        return False
    apart = max(decision.ratio, 1 / decision.ratio) - 1
    if decision.answer is Answer.SAME:
        few = runs < _ENOUGH and floor > 2 * margin
        return upper <= _TOO_NOISY and not few and (runs >= _MANY or often <= margin)
    if runs < _ENOUGH or upper > _TOO_NOISY:
        return apart > floor
    return runs >= _MANY or apart > _BEYOND_OFTEN * often


def half_width(values: Sequence[float], noise: Noise | None) -> float:
    """Return half the width of the 95 % interval of the middle, as a share; inf where unknown."""
    logs = logs_of(values)
    if not logs:
        return math.inf
    variance, freedom = moderated(location(logs), noise)
    if math.isinf(variance):
        return math.inf
    reach = float(stdtrit(freedom, 1 - LEVEL / 2)) * math.sqrt(variance)
    return math.expm1(min(reach, 700.0))


def corrected(decisions: Sequence[Decision | Chance], n_comparisons: Sequence[float]) -> list[float]:
    """Return the probability of each verdict, corrected for all of them, in their order.

    Every comparison tests two hypotheses, "no difference" and "apart by the margin or more", and may be
    wrong by either; but no ratio is both, so of the two at most one is true. Holm's procedure ("A simple
    sequentially rejective multiple test procedure", Scandinavian J. of Statistics 6, 1979) then counts
    comparisons and not tests, each until both of its hypotheses are rejected (Shaffer, "Modified
    sequentially rejective multiple test procedures", J. of the American Statistical Association 81,
    1986). That any of the verdicts is wrong, of either sort, has the level's probability at most.

    `n_comparisons`: of how many each was chosen, and so for how many it counts.
    """
    tests = [(decision.p, i) for i, decision in enumerate(decisions)]
    tests += [(decision.p_other, i) for i, decision in enumerate(decisions)]
    left, least = math.fsum(n_comparisons), 0.0
    seen: set[int] = set()
    adjusted: dict[int, float] = {}
    for p, i in sorted(tests, key=lambda test: test[0]):
        least = max(least, min(1.0, p * left))
        if i in seen:
            left -= n_comparisons[i]
        seen.add(i)
        if p == decisions[i].p:
            adjusted.setdefault(i, round(least, 15))
    return [adjusted[i] for i in range(len(decisions))]


def level_of_all(decisions: Sequence[Decision], level: float = LEVEL) -> float:
    """Return the level at which each of several is to be decided, so that at most this share of the decided ones is wrong.

    Benjamini and Hochberg ("Controlling the false discovery rate", J. of the Royal Statistical Society B 57, 1995); the
    intervals at that level are those of Benjamini and Yekutieli ("False discovery rate-adjusted multiple confidence
    intervals for selected parameters", J. of the American Statistical Association 100, 2005). Of the two hypotheses of a
    comparison one is true at most: the smaller probability counts.
    """
    ordered = sorted(min(decision.p, decision.p_other) for decision in decisions)
    amount = len(ordered)
    decided = max((n for n, p in enumerate(ordered, start=1) if p <= n * level / amount), default=1)
    return level * decided / max(1, amount)
