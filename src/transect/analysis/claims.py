"""Published claims held beside cells: each by the rule that its file fixed before the run (`transect.domain.claims`).

Every rule comes down to an interval on the axis of the published number, and a band around that. A claim of several
comparisons is decided by all of them together, each at its share of the level.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

from transect.analysis.claim_cells import best_of, matches, pairs_of, selector_words, series_of, value_of
from transect.analysis.claim_verdicts import Decided, Evidence, Point, Verdict, gap_of, holm, judged, ordered, together
from transect.analysis.contrast import Contrast
from transect.analysis.contrasts import contrast
from transect.analysis.entries import moment_of
from transect.analysis.groups import Group
from transect.domain.claims import Claim, Kind, Measured, Rule, Work, of_study, rule_id, takes_time
from transect.domain.metrics import Direction
from transect.domain.metrics import metric as metric_of
from transect.domain.record import Status
from transect.domain.until import MIN_RUNS
from transect.stats.estimates import Estimate, decided_ratio
from transect.stats.noise import logs_of, middle
from transect.stats.samples import Spread
from transect.stats.verdicts import LEVEL, decide_logs

__all__ = ["Decided", "Evidence", "Point", "Verdict", "decide_all", "decide_claim", "matches"]


def decide_all(works: Iterable[Work], evidence: Evidence) -> list[Decided]:
    """Decide every claim of some works by the cells of a study, in their order."""
    return [decide_claim(work, claim, evidence) for work in works for claim in work.claims]


def decide_claim(work: Work, claim: Claim, evidence: Evidence) -> Decided:
    """Decide one claim: by the first of its measurements that tells, in the order of its file, each at its share of the level."""
    if claim.rule is None:
        return Decided(work=work, claim=claim, verdict=Verdict.NOT_COMPARABLE, reason=claim.not_comparable)
    ways = of_study(work, claim, evidence.study)
    made = [_Judge(work, claim, claim.rule, one, evidence, LEVEL / len(ways)).decided() for one in ways]
    known = [each for each in made if each.points]
    if known:
        return next((each for each in known if each.verdict is not Verdict.OPEN), known[0])
    reason = "; ".join(dict.fromkeys(each.reason for each in made)) or "no study measures it"
    return Decided(work=work, claim=claim, verdict=Verdict.OPEN, reason=reason)


@dataclass(frozen=True, slots=True)
class _Judge:
    """One claim by one measurement."""

    work: Work
    claim: Claim
    rule: Rule
    measured: Measured
    evidence: Evidence
    level: float

    def decided(self) -> Decided:
        kinds = {Kind.VALUE: self._value, Kind.ORDER: self._order, Kind.SHAPE: self._shape}
        made = self._simulated() if self.measured.replicas else kinds.get(self.claim.kind, self._ratio)()
        if not made.groups:
            return made
        if unlike := list(self._unlike(made.groups)):
            why = f"other work: {', '.join(dict.fromkeys(unlike))}"
            return replace(made, verdict=Verdict.NOT_COMPARABLE, reason=why, firm=False)
        return self._fixed_before(made)

    # What becomes of each kind of claim.

    def _ratio(self) -> Decided:
        measured = self.measured
        own, base = self._groups(measured.cells), self._groups(measured.cells | measured.over)
        if not own or not base:
            return self._nothing(
                own or base, selector_words(measured.cells if base else measured.cells | measured.over)
            )
        every = self.claim.kind is Kind.NO_EFFECT
        pairs = pairs_of(own, base, measured, all_of=every)
        made = [self._contrast(*sides) for sides in pairs]
        # Where none may be apart, one that has no number, a wrong one, or no rival is lacking.
        held = {id(group) for group, _, _ in pairs}
        lacking = [group.cell.id for group in own if every and id(group) not in held and not _skipped(group)]
        told = {each: (each.group.cell.id, self.claim.numbers[0]) for each in made if each is not None}
        if not told:
            return self._nothing(
                [*own, *base], f"{selector_words(measured.cells)} beside {selector_words(measured.over)}"
            )
        return self._by_contrasts(told, lacking)

    def _shape(self) -> Decided:
        claim, told, missing = self.claim, {}, []
        values, at = claim.axis_of(self.measured), claim.axis_values.index(claim.anchor)
        for members in self._series(values):
            for place, value in enumerate(values):
                if place == at:
                    continue
                each = self._beside(members, place, at)
                if each is None:
                    missing.append(str(value))
                else:
                    told[each] = f"{self._axis} {value}", claim.numbers[place] / claim.numbers[at]
        if not told:
            return self._nothing(
                self._groups(self.measured.cells),
                f"{self._axis} {values[at]} and one more of {', '.join(map(str, values))}",
            )
        return self._by_contrasts(told, missing)

    def _order(self) -> Decided:
        claim, values = self.claim, self.claim.axis_of(self.measured)
        claimed = [
            (a, b)
            for a, b in permutations(range(len(values)), 2)
            if claim.numbers[a] > claim.numbers[b] * self.rule.factor
        ]
        made: list[Contrast] = []
        points: list[Point] = []
        missing: list[str] = []
        for members in self._series(values):
            points += self._points(members, values)
            for a, b in claimed:
                each = self._beside(members, a, b)
                if each is None:
                    missing.append(f"{values[a]} beside {values[b]}")
                else:
                    made.append(each)
        if not made:
            return self._nothing(self._groups(self.measured.cells), f"two values of {self._axis}")
        rights = list(holm(made, self.level))
        words = (
            f"{value_of(each.group.cell, self._axis)} over {value_of(each.base.cell, self._axis)} "
            f"{'open' if right is None else 'shown' if right else 'not so'}"
            for each, right in zip(made, rights, strict=True)
        )
        reason = _joined("pairs of the published order, Holm-corrected: " + ", ".join(words), _lacking(missing))
        return self._made(ordered(rights, whole=not missing), reason, points, made)

    def _value(self) -> Decided:
        groups, metric, published = self._groups(self.measured.cells), self.measured.metric, self.claim.numbers[0]
        best = best_of(groups, metric)
        if best is None:
            return self._nothing(groups, selector_words(self.measured.cells))
        values = best.counted(metric)
        able = sum(not group.wrong and bool(group.counted(metric)) for group in groups)
        logs = logs_of(value / published for value in values if value > 0)
        floor = self.evidence.floors.get(best.cell.stage, best.cell.workload, metric, best.kind)
        decision = decide_logs(logs, floor.noise if floor else None, margin=self.rule.factor - 1)
        here = _range(values)
        verdict, reason = Verdict.OPEN, f"{len(values)} of the {MIN_RUNS} runs that a verdict takes"
        if best.over_subscribed and takes_time(self.claim, self.measured):
            reason = "processes share cores"
        elif decision is not None and len(logs) == len(values) >= MIN_RUNS and decision.low > 0:
            gain = decided_ratio(decision.at(self.level / able, self.rule.factor - 1))
            here = replace(gain, value=gain.value * published, low=gain.low * published, high=gain.high * published)
            lower = metric_of(metric).direction is Direction.LOWER
            verdict = judged(self.rule, gain.inverse if lower else gain, 1.0)
            reason = f"{len(values)} runs of {best.cell.id}"
        point = Point(label="", published=published, here=here, samples=values, compared=best.cell.id)
        firm = verdict is not Verdict.OPEN and not best.disturbed and self.evidence.asked
        return replace(self._made(verdict, reason, [point], ()), groups=(best,), firm=firm)

    def _simulated(self) -> Decided:
        """Hold the simulator's speed-up, an extrapolation, beside the published one."""
        replicas, evidence = self.measured.replicas, self.evidence
        found = evidence.speed_up(replicas)
        if found is None:
            return self._nothing((), "a shared model's profile with a network for the simulator")
        value, poor = found
        # Nearer to the published factor than predictions were to measurements, it may be on either side.
        off, seen = 1 + (evidence.error or 0.0), "nothing was predicted beforehand, so its error is not known"
        if evidence.error is not None:
            seen = f"predictions of cells that ran were {100 * evidence.error:.1f} % off in the mean"
        here = Estimate(value=value, low=value / off, high=value * off, spread=Spread.SINGLE)
        known = not poor and evidence.error is not None
        verdict = judged(self.rule, here, self.claim.numbers[0]) if known else Verdict.OPEN
        words = f"simulated speed-up of {replicas} replicas of a shared model over one, equal work for each"
        point = Point(label="", published=self.claim.numbers[0], here=here, compared=words)
        poorly = "over a network whose probed messages lie on no line" if poor else ""
        made = self._made(verdict, _joined(f"extrapolated, not measured: {seen}", poorly), [point], ())
        return replace(made, groups=tuple(evidence.groups("profile")))

    # What they have in common.

    def _by_contrasts(self, told: Mapping[Contrast, tuple[str, float]], missing: Sequence[str] = ()) -> Decided:
        """Judge each comparison at its share of the level, then all of them together."""
        points, verdicts = [], []
        series = self.claim.kind is Kind.SHAPE
        # The best of several is held to the level of one of all their pairs, as Bonferroni has it.
        share = self.level / math.fsum(each.n_comparisons for each in told)
        for made, (label, published) in told.items():
            here = self._oriented(made.at(share).ratio)
            able = not made.barred and here.spread is Spread.INTERVAL
            verdicts.append(judged(self.rule, here, published) if able else Verdict.OPEN)
            values, base = made.group.counted(made.metric), middle(made.base.counted(made.metric))
            samples = [self._oriented(_single(value / base)).value for value in values if value > 0 and base > 0]
            words = f"{made.group.cell.id} beside {made.base.cell.id}"
            points.append(
                Point(
                    label=label if series or len(told) > 1 else "",
                    published=published,
                    here=here,
                    samples=samples,
                    compared=words,
                )
            )
        verdict = together(self.rule, verdicts, whole=not missing)
        lead = next(
            made for made, each in zip(told, verdicts, strict=True) if each is verdict or verdict not in verdicts
        )
        more = f"would take {lead.needs}" if verdict is Verdict.OPEN and lead.needs else ""
        return self._made(verdict, _joined(_rests_on(lead), _lacking(missing), more), points, list(told))

    def _oriented(self, ratio: Estimate) -> Estimate:
        """Return how many times better it is; of a shape how many times as long it takes as at the anchor, as published."""
        lower = metric_of(self.measured.metric).direction is Direction.LOWER
        return ratio.inverse if lower != (self.claim.kind is Kind.SHAPE) else ratio

    def _groups(self, wanted: Mapping[str, Any]) -> list[Group[Any]]:
        return [group for group in self.evidence.groups(self.measured.stage) if matches(group.cell, wanted)]

    @property
    def _axis(self) -> str:
        return self.measured.along.axis if self.measured.along else ""

    def _beside(self, members: Mapping[int, tuple[Group[Any], int]], place: int, other: int) -> Contrast | None:
        if place not in members or other not in members:
            return None
        (group, amount), (base, rivals) = members[place], members[other]
        return self._contrast(group, base, amount + rivals)

    def _series(self, values: Sequence[Any]) -> list[dict[int, tuple[Group[Any], int]]]:
        return series_of(self._groups(self.measured.cells), self.measured, self._axis, values)

    def _points(self, members: Mapping[int, tuple[Group[Any], int]], values: Sequence[Any]) -> Iterator[Point]:
        for place, value in enumerate(values):
            point = Point(label=f"{self._axis} {value}", published=self.claim.numbers[place])
            if place in members:
                group, _ = members[place]
                samples = group.counted(self.measured.metric)
                point = replace(point, here=_range(samples), samples=samples, compared=group.cell.id)
            yield point

    def _contrast(self, group: Group[Any], base: Group[Any], candidates: int) -> Contrast | None:
        told: dict[str, Any] = {"varies": next(iter(self.measured.over), self._axis), "asked": self.evidence.asked}
        metric, floors = self.measured.metric, self.evidence.floors
        return contrast(group, base, floors, metric, by="run", candidates=candidates, **told)

    def _unlike(self, groups: Iterable[Group[Any]]) -> Iterator[str]:
        """Say in which hyper-parameters records are other work than what was published, or do not say what they are."""
        for record in (record for group in groups for record in group.ok):
            for name, wanted in self.measured.parameters.items():
                if (value := record.parameters.get(name, "not stated")) != wanted:
                    yield f"{name.replace('_', ' ')} {value} here, {wanted} published"

    def _nothing(self, groups: Sequence[Group[Any]], what: str) -> Decided:
        why = next((record.message for group in groups for record in group.records if record.message), "")
        return self._made(
            Verdict.OPEN, _joined(f"no result of {what}" if groups else f"no cell of {what}", why), (), ()
        )

    def _made(self, verdict: Verdict, reason: str, points: Sequence[Point], contrasts: Sequence[Contrast]) -> Decided:
        groups = {id(group): group for each in contrasts for group in (each.group, each.base)}
        return Decided(
            work=self.work,
            claim=self.claim,
            measured=self.measured,
            verdict=verdict,
            reason=reason,
            points=points,
            contrasts=contrasts,
            groups=tuple(groups.values()),
            gap=gap_of(points),
            firm=bool(contrasts) and verdict is not Verdict.OPEN and all(each.sound for each in contrasts),
        )

    def _fixed_before(self, made: Decided) -> Decided:
        """Let a rule decide nothing that ran before it was fixed."""
        since = self.evidence.since or {}
        fixed = moment_of(since.get(rule_id(self.work, self.claim), ""))
        started = (moment_of(record.started) for group in made.groups for record in group.ok)
        if fixed is not None and all(moment is not None and moment >= fixed for moment in started):
            return made
        when = f"{fixed:%Y-%m-%d %H:%M} UTC" if fixed else "later than these cells were planned"
        reason = f"its rule is of {when}, younger than runs that it would judge: it decides later ones alone"
        return replace(made, verdict=Verdict.OPEN, firm=False, edited=True, reason=reason)


def _skipped(group: Group[Any]) -> bool:
    return all(record.status is Status.SKIPPED for record in group.records)


def _rests_on(made: Contrast) -> str:
    """Say what a comparison is made of and why it is no surer; its interval stands beside it."""
    return _joined(
        made.comparison.of, made.barred, made.doubt, "" if made.asked else "no question of the study asks for it"
    )


def _range(values: Sequence[float]) -> Estimate:
    return Estimate(value=middle(values), low=min(values), high=max(values), spread=Spread.RANGE)


def _single(value: float) -> Estimate:
    return Estimate(value=value, low=value, high=value, spread=Spread.SINGLE)


def _joined(*parts: str) -> str:
    return "; ".join(filter(None, parts))


def _lacking(missing: Sequence[str]) -> str:
    return f"without a result here: {', '.join(dict.fromkeys(missing))}" if missing else ""
