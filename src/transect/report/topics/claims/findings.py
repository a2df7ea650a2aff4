"""Findings on published claims: what the same comparison gives here."""

from __future__ import annotations

from transect.analysis.extrapolation import speed_up
from transect.analysis.parallelism import divided
from transect.analysis.scaling import TrainGroup
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, joined
from transect.report.engine.text import clean, ends, factor
from transect.report.topics.claims.facts import CLAIMS, Answer, Evidence, Judgement, answers
from transect.report.topics.forecasts.facts import mean_error
from transect.report.topics.forecasts.findings import all_forecasts
from transect.report.topics.parallel.out_of_core import sweeps
from transect.report.topics.parallel.overlapped import exchanges

_JUDGEMENTS = {
    Judgement.REACHED: "as much as published, or more",
    Judgement.LESS: "a gain, but less than published",
    Judgement.NONE: "no gain at all",
    Judgement.OPEN: "not decided",
}


def claim_answers(context: Context) -> list[Answer]:
    """Answer every published claim; empty where the study asks for none, or has no cell that bears on one."""
    works = {claim.source for claim in CLAIMS}
    if not any(context.asks_for(work, "claim", section="claims") for work in works):
        return []
    groups: list[TrainGroup] = context.of("train")
    found = context.curves
    speaks = divided(groups) or found or exchanges(groups, context.floors) or sweeps(groups, context.floors)
    if not speaks:
        return []
    return answers(
        Evidence(
            groups=groups,
            floors=context.floors,
            asked=context.asks("claim"),
            error=mean_error(all_forecasts(context)),
            speed_up=lambda replicas: speed_up(found, replicas),
        )
    )


def gain_words(answer: Answer) -> str:
    """Write the gain with its ends; empty where nothing was compared."""
    if answer.gain is None:
        return ""
    interval = "" if answer.extrapolated else f" ({ends(answer.gain, factor)})"
    return f"{factor(answer.gain.value)}x{interval}"


def claim_findings(context: Context) -> list[Finding]:
    """One for each claim, the open ones too."""
    return [_finding(answer) for answer in claim_answers(context)]


def _finding(answer: Answer) -> Finding:
    claim, gain = answer.claim, gain_words(answer)
    judgement = _JUDGEMENTS[answer.judgement]
    if answer.extrapolated:
        judgement = f"{judgement}, by extrapolation"
    here = f"{gain} here, {judgement}" if gain else judgement
    return Finding(
        subject="claims",
        kind="claim",
        confidence=answer.confidence,
        named=True,
        short=f"{claim.source}, {claim.what}: {factor(claim.factor)}x published; {here}",
        claim=f"{claim.source}, {claim.what}: {factor(claim.factor)}x published over {claim.against}; {here}.",
        evidence=joined(
            f"compared here: {clean(answer.compared)}" if answer.compared != "–" else "",
            clean(answer.reason),
            claim.differs,
        ),
        contrasts=(answer.result,) if answer.result is not None else (),
    )
