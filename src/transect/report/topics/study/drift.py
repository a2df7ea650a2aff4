"""Findings on the machine while a study ran: did it drift, and what energy did it take?"""

from __future__ import annotations

from collections.abc import Iterator

from transect.analysis.groups import grouped
from transect.analysis.labels import people_name
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, joined, names
from transect.report.engine.text import clean, count, percent, quantity
from transect.report.topics.study.drift_facts import Drift, drift_of
from transect.report.topics.study.energy import STEP, Use, silences, uses
from transect.stats.comparisons import Confidence
from transect.stats.estimates import RATIO
from transect.stats.verdicts import Answer, Chance

_TIMES = {
    "train": ("step_time", "time of a training step"),
    "infer": ("latency", "time of a call"),
    "retrain": ("step_time", "time of a step of retraining"),
}


def drift_findings(context: Context) -> list[Finding]:
    """Per stage whose times are compared: the last third of its runs beside the first."""
    found = []
    for stage, (metric, what) in _TIMES.items():
        drift = drift_of(context.of(stage), metric, margin=context.analysis_plan.margin)
        if drift is not None:
            found.append(_drift(drift, what, context))
    return found


def _drift(drift: Drift, what: str, context: Context) -> Finding:
    decision, margin = drift.decision, percent(context.analysis_plan.margin)
    confidence = Confidence.CONFIRMED
    if decision.answer is Answer.SAME:
        claim = f"the machine stayed as it was: the {what} at the end is that of the beginning within {margin}."
    elif decision.answer is Answer.DIFFERENT:
        more = "more" if decision.ratio > 1 else "less"
        claim = f"the machine drifted: the {what} is {percent(abs(decision.ratio - 1), 1)} {more} at the end than at the beginning."
    else:
        claim, confidence = f"whether the {what} drifted is not known.", Confidence.INCONCLUSIVE
    evidence = (
        f"{RATIO} {decision.ratio:.3g}, 95 % interval {decision.low:.3g} to {decision.high:.3g}, of "
        f"{count(drift.cells, 'cell')} that ran in the first and in the last third, {count(drift.runs, 'run')} in all"
    )
    return Finding(
        subject="study",
        claim=claim,
        evidence=evidence,
        confidence=confidence,
        kind="drift",
        tests=(Chance(p=decision.p, p_other=decision.p_other, claimed=decision.answer is not Answer.OPEN),),
    )


def energy_findings(context: Context) -> list[Finding]:
    """Per workload and kind of counter: the least energy for a sample, and to the target."""
    trained = [group for group in context.of("train") if group.ok]
    if not trained:
        return []
    found = [finding for workload in context.workloads("train") for finding in _energy(context, workload)]
    if found:
        return found
    records = [record for group in trained for record in group.ok]
    asked = any("step_energy" in record.details for record in records)
    nobody = "neither RAPL nor NVML could be read here" + (", and Slurm's accounting tells none" if asked else "")
    unasked = "" if asked else "its system file names no Slurm that counts it (`step_energy`)"
    evidence = joined("no estimate stands in its place", unasked, clean(names(silences(records), 3)))
    claim = f"the energy of training is not known: {nobody}."
    return [Finding(subject="study", claim=claim, evidence=evidence, confidence=Confidence.INCONCLUSIVE, kind="energy")]


def _energy(context: Context, workload: str) -> Iterator[Finding]:
    groups = [g for g in context.of("train", workload) if g.ok and not g.wrong]
    used = [uses(group) for group in groups]
    silent = sum(not found for found in used)

    def name(use: Use) -> str:
        return people_name(use.group.cell, [group.cell for group in groups], always=("ranks",))

    of_kind = grouped((use for found in used for use in found), lambda use: use.counter)
    for counter, every in sorted(of_kind.items()):
        best = min(every, key=lambda use: (use.per_sample_j, use.group.cell.id))
        claim = f"{name(best)} takes least energy for a sample, {quantity(best.per_sample_j, 'J')}"
        if reached := [use for use in every if use.to_quality_j is not None]:
            least = min(reached, key=lambda use: (use.to_quality_j or 0.0, use.group.cell.id))
            claim += f"; {name(least)} takes least to the target, {quantity(least.to_quality_j, 'J')}"
        evidence = joined(
            f"medians of the counter {counter}, of whole nodes, "
            + ("over the whole job step" if counter == STEP else "over the training loop"),
            f"{count(len(every), 'cell')} tell it",
            f"{count(silent, 'cell')} do not" if silent else "",
        )
        yield Finding(
            subject=workload,
            claim=claim + ".",
            evidence=evidence,
            confidence=Confidence.PROVISIONAL,
            kind="energy",
            scope=f"by {counter}",
            groups=(best.group,),
            named=True,
        )
