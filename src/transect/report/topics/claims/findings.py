"""What is said of published claims on communication, memory and hybrids: what the same comparison gives here."""

from __future__ import annotations

from collections.abc import Iterator

from transect.analysis.extrapolation import speed_up
from transect.analysis.parallelism import divided
from transect.analysis.scaling import TrainGroup
from transect.report.engine.blocks import Chip, Explained, Lead, Part, digits, table, words
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, joined, limited_confidence
from transect.report.engine.text import clean, ends, factor
from transect.report.topics.claims.facts import CLAIMS, Answer, Evidence, Judgement, answers
from transect.report.topics.forecasts import all_forecasts, mean_error
from transect.report.topics.parallel.exchange import exchanges
from transect.report.topics.parallel.memory import sweeps


def claim_answers(context: Context) -> list[Answer]:
    """Answer every published claim; empty where the study asks for none, or has no cell that bears on one."""
    works = {claim.source for claim in CLAIMS}
    if not any(context.asks_for(work, "claim", section="claims") for work in works):
        return []
    groups: list[TrainGroup] = context.of("train")
    found = context.curves
    speaks = divided(groups) or found or exchanges(groups, context.floors) or sweeps(groups, context.floors)
    evidence = Evidence(
        groups=groups,
        floors=context.floors,
        asked=context.asks("claim"),
        error=mean_error(all_forecasts(context)),
        speed_up=lambda replicas: speed_up(found, replicas),
    )
    return answers(evidence) if speaks else []


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
    claim, gain, made = answer.claim, gain_words(answer), answer.result
    here = (f"{gain} here, " if gain else "") + answer.judgement + (", by extrapolation" if answer.extrapolated else "")
    short = f"{claim.source}, {claim.what}: {factor(claim.factor)}x published"
    return Finding(
        subject="claims",
        kind="claim",
        confidence=limited_confidence(answer.confidence, *((made.group, made.base) if made else ())),
        named=True,
        short=f"{short}; {here}",
        claim=f"{short} over {claim.against}; {here}.",
        evidence=joined(
            f"compared here: {clean(answer.compared)}" if answer.compared != "–" else "",
            clean(answer.reason),
            claim.differs,
        ),
        contrasts=(made,) if made else (),
    )


_TONES = {Judgement.REACHED: "good", Judgement.LESS: "plain", Judgement.NONE: "warn", Judgement.OPEN: "plain"}


def claims_body(context: Context) -> Iterator[Part]:
    """List every claim; nothing where no cell of the study could speak to one."""
    found = claim_answers(context)
    if not found:
        return
    yield Lead(
        "What S-Caffe, OC-DNN and HyPar-Flow published, and what the same comparison gives here: both sides in one study, "
        "on equal ranks, with equal work."
    )
    yield table(
        found,
        [
            words("Claim", lambda answer: f"{answer.claim.source}: {answer.claim.what}"),
            digits("Published", lambda answer: answer.claim.factor, lambda value: f"{factor(value)}x"),
            digits("Here", lambda answer: gain_words(answer) or None),
            words("", _verdict),
            words("Compared here", lambda answer: clean(answer.compared)),
            words("Why", lambda answer: clean(answer.reason)),
            words("There", lambda answer: clean(f"over {answer.claim.against}; {answer.claim.differs}")),
        ],
        caption="Published and here: how many times shorter the claimed way takes",
    )
    yield Explained("What is extrapolated was simulated, not run.")


def _verdict(answer: Answer) -> Chip:
    if answer.extrapolated:
        return Chip(f"extrapolated: {answer.judgement}", "warn")
    return Chip(answer.judgement, _TONES[answer.judgement])
