"""The rules whose findings can answer a question of a study, and what each decides."""

from __future__ import annotations

from collections.abc import Iterable

from transect.domain.errors import unknown_name
from transect.domain.study import Question
from transect.report.engine.finding import rule_fits
from transect.report.engine.parts import Parts

# What each decides. `*` stands for any part of a name.
RULES = {
    "training.fastest": "which cell reaches the quality soonest, by how much",
    "training.batch": "which batch learns soonest, in one process",
    "training.limit": "what a step of the fastest is made of, how near it is to its bound",
    "training.scaling": "what the most ranks bring",
    "training.scaling.most": "who is fastest on the most ranks",
    "distribution": "what the best distributed cell costs over a perfect split",
    "twin.hyperparameters": "an optimiser, a schedule or a rate beside the workload's own",
    "twin.input": "what input costs beside synthetic input",
    "twin.mpi": "a step with another MPI library",
    "twin.reduction": "a sum of gradients beside their mean",
    "communication": "communication beside its alpha-beta bound",
    "pipeline": "pipelines and hybrids beside data parallelism",
    "exchange": "overlapped reduction",
    "memory": "training past the memory",
    "asynchronous": "updates that wait for nobody beside those that wait",
    "asynchronous.workers": "workers that come and go beside workers that stay",
    "language": "a step in another language beside numpy's",
    "language.installed": "what has to be installed, and the first step",
    "claim": "published claims, by the rules that were fixed before the run",
    "forecast": "predicted beside measured steps",
    "rank.near-linear": "published scaling by its own numbers",
    "rank.stop": "where more ranks stop to help",
    "rank.sum-rate": "a sum as a learning rate",
    "rank.point-to-point": "send and receive beside the collective",
    "rank.larger-batch": "larger batches",
    "equality": "training that follows the reference",
    "export": "exports that compute what the framework does",
    "serving.runtime": "who answers one request first, and who serves most",
    "serving.exporter": "whether it matters whose file is served",
    "offered_load.load": "who keeps up with which load",
    "runtime.language": "languages beside each other",
    "runtime.framework": "runtimes beside the framework",
    "overhead.call": "what a call costs",
    "overhead.ffi-overhead": 'whether what a call costs was the "FFI overhead"',
    "condition.conditions": "equal conditions",
    "condition.versions": "one version",
    "condition.outputs": "the framework's outputs",
    "conformance": "operator tests that runtimes pass",
    "retraining.path": "what an exported step computes",
    "retraining.speed": "how fast an exported step is",
    "retraining.relay": "going on in another language",
    "federated.path": "federated learning that follows the reference",
    "federated.aggregation": "which aggregation ends with the best score",
    "federated.method": "what clients gain by more than plain local steps",
    "federated.waiting": "whether a server that waits for fewer updates is sooner at the target",
    "federated.partition": "what rows that are not alike cost",
    "federated.engine": "which engine computes a federation soonest",
    "federated.ranks": "what more ranks bring to a simulation",
    "factor.retraining-factor": "what each factor of a retraining changes, over all combinations of the others",
    "factor.retraining-gain": "what a gain of retraining is due to",
    "classifier.best": "the best classifier of tickets",
    "hyperparameter": "which hyper-parameters matter",
    "doubt.*": "what is doubtful in a published study",
    "ticket.tickets-rejected": "tickets that were left out",
    "ticket.tickets-made-up": "tickets that were generated, as their file was not there",
    "ticket.lengths": "how long tickets are",
    "docking.fastest": "the fastest programming model of docking",
    "docking.threads": "threads, and where they are",
    "docking.poses": "poses per work-item",
    "docking.schedule": "how OpenMP deals out work-items to threads, and what a chunk costs",
    "messages.library": "which library moves messages between ranks soonest, at one size",
    "container.start-up": "what a container costs when it starts",
    "container.step": "what a container costs a training step",
    "container.latency": "what a container costs a small message between ranks",
    "container.bandwidth": "what a container costs a large message between ranks",
    "container.files": "what a container costs when files are read",
    "hardware.limit": "the best inference cell beside its roofline",
    "hardware": "benchmark runs that are not valid",
    "bound": "cells above a bound",
    "storage": "how long reading the training data and writing a checkpoint take at least",
    "system": "the fastest of several systems, by logs of one benchmark under the same settings",
    "energy": "energy by counters",
    "coverage": "what failed",
    "coverage.progress": "what is still to come",
    "coverage.noise": "how noisy it was",
}


# Rules and sections that have another name now.
_RENAMED = {
    "knob.knobs": "hyperparameter",
    "knob.*": "hyperparameter",
    "knobs": "classifier-hyperparameters",
    "docking.claim": "claim",
    "container.claim": "claim",
    "published": "claims",
}


def rules_of(parts: Parts) -> dict[str, str]:
    """Return the rules of a report, and what each decides.

    A plug-in's maker names none: its own name stands for all of them.
    """
    roots = {rule.partition(".")[0] for rule in RULES}
    others = {
        maker.name: f"findings of the plug-in's own {maker.name}" for maker in parts.findings if maker.name not in roots
    }
    return RULES | others | {f"{name}.*": about for name, about in others.items()}


def _unknown(what: str, name: str, known: Iterable[str]) -> str:
    new = _RENAMED.get(name)
    return f"{what} '{name}' is called '{new}' now" if new else str(unknown_name(f"{what} of this report", name, known))


def unknown_names(questions: Iterable[Question], parts: Parts) -> list[tuple[str, str]]:
    """Return the questions that name a rule or a section that no part of the report has, and which."""
    rules = rules_of(parts)
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
