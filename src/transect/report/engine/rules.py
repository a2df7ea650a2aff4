"""The rules whose findings can answer a question of a study, by name: docs/studies.md says what each decides."""

from __future__ import annotations

from collections.abc import Iterable

from transect.domain.errors import unknown_name
from transect.domain.study import Question
from transect.report.engine.finding import rule_fits
from transect.report.engine.parts import Parts

# `*` stands for any part of a name.
RULES = (
    "training.fastest",
    "training.limit",
    "training.scaling",
    "training.scaling.most",
    "distribution",
    "twin.input",
    "twin.reduction",
    "communication",
    "pipeline",
    "exchange",
    "memory",
    "asynchronous",
    "language",
    "language.installed",
    "claim",
    "forecast",
    "rank.near-linear",
    "rank.stop",
    "rank.sum-rate",
    "rank.point-to-point",
    "rank.larger-batch",
    "equality",
    "export",
    "serving.runtime",
    "serving.exporter",
    "offered_load.load",
    "runtime.language",
    "runtime.framework",
    "overhead.call",
    "overhead.ffi-overhead",
    "condition.conditions",
    "condition.versions",
    "condition.outputs",
    "conformance",
    "retraining.path",
    "retraining.speed",
    "retraining.relay",
    "factor.retraining-factor",
    "factor.retraining-gain",
    "classifier.best",
    "hyperparameter",
    "doubt.*",
    "ticket.tickets-rejected",
    "ticket.lengths",
    "docking.fastest",
    "docking.threads",
    "docking.poses",
    "docking.claim",
    "messages.library",
    "container.start-up",
    "container.step",
    "container.latency",
    "container.bandwidth",
    "container.files",
    "container.claim",
    "hardware.limit",
    "hardware",
    "bound",
    "system",
    "energy",
    "coverage",
    "coverage.progress",
    "coverage.noise",
)


# Rules and sections that have another name now.
_RENAMED = {"knob.knobs": "hyperparameter", "knob.*": "hyperparameter", "knobs": "classifier-hyperparameters"}


def _known(parts: Parts) -> list[str]:
    """Return the rules of a report. A plug-in's maker says none: its own name stands for all of them."""
    roots = {rule.partition(".")[0] for rule in RULES}
    others = [maker.name for maker in parts.findings if maker.name not in roots]
    return [*RULES, *others, *(f"{name}.*" for name in others)]


def _unknown(what: str, name: str, known: Iterable[str]) -> str:
    new = _RENAMED.get(name)
    return f"{what} '{name}' is called '{new}' now" if new else str(unknown_name(f"{what} of this report", name, known))


def unknown_names(questions: Iterable[Question], parts: Parts) -> list[tuple[str, str]]:
    """Return the questions that name a rule or a section that no part of the report has, and which."""
    rules = _known(parts)
    sections = [section.key for section in parts.sections]
    unknown = []
    for question in questions:
        unknown += [
            (question.ask, _unknown("rule", named, rules))
            for named in question.answered_by
            if not any(rule_fits(rule, named) or rule_fits(named, rule) for rule in rules)
        ]
        unknown += [
            (question.ask, _unknown("section", named, sections)) for named in question.shown_in if named not in sections
        ]
    return unknown
