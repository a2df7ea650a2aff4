"""Section: published claims on communication, memory and hybrids, each with what decides it here."""

from __future__ import annotations

from collections.abc import Iterator

from transect.report.engine.blocks import Chip, Facts, Lead, Part, digits, note, table, words
from transect.report.engine.context import Context
from transect.report.engine.text import clean, factor
from transect.report.topics.claims.facts import Answer, Judgement
from transect.report.topics.claims.findings import claim_answers, gain_words

_TONES = {Judgement.REACHED: "good", Judgement.LESS: "plain", Judgement.NONE: "warn", Judgement.OPEN: "plain"}
_WORDS = {
    Judgement.REACHED: "as much or more",
    Judgement.LESS: "a gain, but less",
    Judgement.NONE: "no gain",
    Judgement.OPEN: "open",
}


def claims_body(context: Context) -> Iterator[Part]:
    """List every claim; nothing where no cell of the study could speak to one."""
    found = claim_answers(context)
    if not found:
        return
    yield Lead(
        "What S-Caffe, OC-DNN and HyPar-Flow published, and what the same comparison gives here: both sides in "
        "one study, on equal ranks, with equal work; what leaves the float64 reference takes no part. A published "
        "factor is one of its machine and of its rival; where the rival has become better, the factor is gone, "
        "whoever is right."
    )
    yield table(
        found,
        [
            words("Claim", lambda answer: f"{answer.claim.source}: {answer.claim.what}"),
            digits("Published", lambda answer: answer.claim.factor, lambda value: f"{factor(value)}x"),
            digits("Here", _here),
            words("", _verdict),
        ],
        caption="Published and here",
    )
    yield Facts(items=[(f"{row.claim.source}, {factor(row.claim.factor)}x", _details(row)) for row in found])
    yield note(
        "Here: how many times shorter the claimed way takes, with its interval from six runs a side on, or range. "
        "Open: no cells, ranks that share cores, or a difference within the noise: its reason stands above. "
        "What is extrapolated was simulated, not run."
    )


def _here(answer: Answer) -> str | None:
    return gain_words(answer) or None


def _details(answer: Answer) -> str:
    """Say what was compared with what, there and here, and why that decides it or does not."""
    claim = answer.claim
    here = "" if answer.compared == "–" else f" Here: {answer.compared}."
    return clean(
        f"There, {claim.what} over {claim.against}.{here} {_sentence(answer.reason)} {_sentence(claim.differs)}"
    )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _verdict(answer: Answer) -> Chip:
    word = _WORDS[answer.judgement]
    if answer.extrapolated:
        return Chip(f"extrapolated: {word}", "warn")
    return Chip(word, _TONES[answer.judgement])
