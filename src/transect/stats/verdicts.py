"""Different, the same within a margin, or open: verdicts on two sets of a few repeats.

"Different" is a two-sided t test of two middles with moderated variances (`transect.stats.noise`);
"the same" two one-sided ones against the margin (Schuirmann, J. Pharmacokinetics and
Biopharmaceutics 15, 1987). `tests/benchmarks/bench_verdicts.py` shows how often a verdict is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from scipy.special import stdtr, stdtrit

from transect.domain.until import MARGIN, MIN_RUNS
from transect.stats.noise import Noise, location, logs_of, moderated

# At most this share of verdicts may be wrong, and of a study's findings any at all.
LEVEL = 0.05
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
    """Verdict on a ratio a / b. `low` and `high` are its 95 % interval, `error` the standard one of its logarithm.

    `p` is the probability of the test that the answer rests on, times the number of looks; that of
    a difference where it is open. `p_other` is that of the test that it does not rest on.
    """

    answer: Answer
    ratio: float
    low: float
    high: float
    p: float
    p_other: float = 1.0
    error: float = math.inf
    pairs: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Chance:
    """A test behind a claim that ranks no groups. `p` and `p_other` as in `Decision`, `n_comparisons` as in `corrected`.

    Not `claimed`: it is not said to show anything, and counts as one of all that were made. Two are never the same one.
    """

    p: float
    p_other: float = 1.0
    n_comparisons: float = 1.0
    claimed: bool = True


def chance_of_shift(differences: Sequence[float], *, looks: int = 1, claimed: bool = True) -> Chance | None:
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
    return Chance(p=min(1.0, looks * p), claimed=claimed)


def decide(
    a: Sequence[float], b: Sequence[float], noise: Noise | None, *, margin: float = MARGIN, looks: int = 1
) -> Decision | None:
    """Decide about a / b from runs that have nothing in common. None without a positive value.

    `looks`: how often one may have looked and gone on (`transect.domain.until.looks_of`).
    """
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
    return _verdict(sides[0].centre - sides[1].centre, variance, freedom, margin, looks)


def decide_paired(
    a: Mapping[int, float], b: Mapping[int, float], noise: Noise | None, *, margin: float = MARGIN, looks: int = 1
) -> Decision | None:
    """Decide about a / b repeat by repeat, over those that both have; `noise` of `paired_noise`."""
    common = [n for n in sorted(a.keys() & b.keys()) if a[n] > 0 and b[n] > 0]
    logs = logs_of(a[n] / b[n] for n in common)
    if not logs:
        return None
    ratios_location = location(logs)
    # A ratio has the noise of both its sides.
    variance, freedom = moderated(ratios_location, noise, times=2.0)
    return _verdict(ratios_location.centre, variance, freedom, margin, looks, pairs=len(logs))


def _verdict(
    apart: float, variance: float, freedom: float, margin: float, looks: int, pairs: int | None = None
) -> Decision:
    error = math.sqrt(variance)
    if math.isinf(error):
        return Decision(answer=Answer.OPEN, ratio=power(apart), low=0.0, high=math.inf, p=1.0, pairs=pairs)
    edge = math.log1p(margin)
    error = max(error, _EPSILON)
    different = min(1.0, looks * 2 * float(stdtr(freedom, -abs(apart) / error)))
    # Both one-sided tests have to reject: the larger probability counts.
    same = min(1.0, looks * float(stdtr(freedom, (abs(apart) - edge) / error)))
    reach = float(stdtrit(freedom, 1 - LEVEL / 2 / looks)) * error
    if same <= LEVEL:
        answer, p, p_other = Answer.SAME, same, different
    elif different <= LEVEL:
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
        pairs=pairs,
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


def half_width(values: Sequence[float], noise: Noise | None, *, looks: int = 1) -> float:
    """Return half the width of the 95 % interval of the middle, as a share; inf where unknown."""
    logs = logs_of(values)
    if not logs:
        return math.inf
    variance, freedom = moderated(location(logs), noise)
    if math.isinf(variance):
        return math.inf
    reach = float(stdtrit(freedom, 1 - LEVEL / 2 / looks)) * math.sqrt(variance)
    return math.expm1(min(reach, 700.0))


class _Probable(Protocol):
    @property
    def p(self) -> float: ...

    @property
    def p_other(self) -> float: ...


def corrected(decisions: Sequence[_Probable], n_comparisons: Sequence[float], beyond: float = 0.0) -> list[float]:
    """Return the probability of each verdict, corrected for all of them, in their order.

    Every comparison tests two hypotheses, "no difference" and "apart by the margin or more", and may be
    wrong by either; but no ratio is both, so of the two at most one is true. Holm's procedure ("A simple
    sequentially rejective multiple test procedure", Scandinavian J. of Statistics 6, 1979) then counts
    comparisons and not tests, each until both of its hypotheses are rejected (Shaffer, "Modified
    sequentially rejective multiple test procedures", J. of the American Statistical Association 81,
    1986). That any of the verdicts is wrong, of either sort, has the level's probability at most.

    `n_comparisons`: of how many each was chosen, and so for how many it counts. `beyond`: comparisons that are
    made elsewhere, and count as open.
    """
    tests = [(decision.p, i) for i, decision in enumerate(decisions)]
    tests += [(decision.p_other, i) for i, decision in enumerate(decisions)]
    left, least = math.fsum(n_comparisons) + beyond, 0.0
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
