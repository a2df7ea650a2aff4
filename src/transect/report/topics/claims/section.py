"""Section: published claims on communication, memory and hybrids, each with what decides it here."""

from __future__ import annotations

from collections.abc import Iterator

from transect.report.engine.blocks import Chip, Explained, Lead, Part, digits, table, words
from transect.report.engine.context import Context
from transect.report.engine.text import clean, factor
from transect.report.topics.claims.facts import Answer, Judgement
from transect.report.topics.claims.findings import claim_answers, gain_words

_TONES = {Judgement.REACHED: "good", Judgement.LESS: "plain", Judgement.NONE: "warn", Judgement.OPEN: "plain"}
_WORDS = {
    Judgement.REACHED: "as much or more",
    Judgement.LESS: "a gain, but less",
    Judgement.NONE: "no gain",
    Judgement.OPEN: "not known",
}


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
    word = _WORDS[answer.judgement]
    if answer.extrapolated:
        return Chip(f"extrapolated: {word}", "warn")
    return Chip(word, _TONES[answer.judgement])
