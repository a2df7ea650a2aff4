"""Finding on right results: does every trainer follow the float64 reference?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from transect.analysis.entries import AnyRecord
from transect.analysis.groups import blind_step, leaves_reference
from transect.analysis.labels import people_name
from transect.domain.record import Cause, Status
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, joined, names
from transect.report.engine.text import count, number
from transect.stats.comparisons import Confidence


def equality_findings(context: Context) -> list[Finding]:
    """Say whether every trainer's loss and weights follow the reference within tolerance."""
    trained = [record for record in context.records if record.stage == "train"]
    leaving = {id(record) for record in trained if leaves_reference(record)}
    checked = [r for r in trained if id(r) in leaving or r.value("equality_ratio") is not None]
    apart = [record for record in trained if record.status is Status.OK and "not_checkable" in record.details]
    if not checked:
        return [_uncheckable(apart)] if apart else []
    wrong = [record for record in checked if id(record) in leaving]
    bad = _called(wrong)
    good = len(checked) - len(wrong)
    if bad:
        claim = (
            f"{good} of {count(len(checked), 'training run')} compute what the reference computes; "
            f"{names(bad)} {'does' if len(wrong) == 1 else 'do'} not."
        )
    elif len(checked) == 1:
        claim = "the one training run computes what the reference computes."
    else:
        claim = f"all {count(len(checked), 'training run')} compute what the reference computes."
    evidence = [
        f"largest deviation of {what} {number(max(ratios))} times its tolerance{when}"
        for what, name, when in (
            ("the loss", "equality_ratio", ", at any checked step"),
            ("the weights", "weights_equality_ratio", ", after the last checked step"),
            ("the loss", "restart_ratio", ", after any restart"),
        )
        if (ratios := [r for record in checked if (r := record.value(name)) is not None])
    ]
    diverged = sum(record.cause is Cause.DIVERGED and id(record) not in leaving for record in checked)
    if diverged:
        evidence.append(f"{count(diverged, 'run')} that follow{'s' if diverged == 1 else ''} it diverged, as it does")
    synthetic = {id(r) for group in context.of("train") if group.kind.synthetic for r in group.records}
    random = sum(id(record) in synthetic for record in checked)
    if random:
        evidence.append(f"{count(random, 'run')} on synthetic input, which has no quality")
    unverified = any(group.unverified for group in context.of("train"))
    blind = [record for record in checked if id(record) not in leaving and blind_step(record) is not None]
    if blind:
        how = "only up to a step of their own" if unverified else "from a step of their own on in restarts"
        claim = f"{claim.removesuffix('.')}; {len(blind)} of them {how}."
        evidence.append("from that step on the tolerance exceeds what a run could tell")
    alone = [record for record in checked if record.details.get("restarts_not_checkable")]
    if alone:
        evidence.append(f"{count(len(alone), 'run')} could not be checked by restarts")
    if apart:
        evidence.append(f"{_apart(apart)}, and time to quality judges them")
    return [
        Finding(
            subject="equality",
            claim=claim,
            kind="equality",
            alarm=bool(bad),
            confidence=Confidence.PROVISIONAL if unverified else Confidence.CONFIRMED,
            evidence=joined(*evidence) or "by the status of the records",
        )
    ]


def _apart(records: Sequence[AnyRecord]) -> str:
    return (
        f"{count(len(records), 'run')} not checkable: asynchronous ({names(_called(records))}); all their gradients "
        "were applied"
    )


def _uncheckable(apart: Sequence[AnyRecord]) -> Finding:
    """Say so where nothing else ran."""
    return Finding(
        subject="equality",
        kind="equality",
        confidence=Confidence.INCONCLUSIVE,
        evidence=_apart(apart),
        claim="no training run can be held to the reference step by step; time to quality judges them.",
    )


def _called(records: Sequence[AnyRecord]) -> list[str]:
    """Name the cells of records, those of several with their number."""
    cells = [record.point for record in records]
    amounts = Counter(people_name(cell, cells, always=("ranks",)) + f" on {cell.workload}" for cell in cells)
    return [f"{name} ({count(amount, 'run')})" if amount > 1 else name for name, amount in amounts.items()]
