"""Finding on right results: does every trainer follow the float64 reference?"""

from __future__ import annotations

from transect.analysis.comparisons import Sureness
from transect.analysis.groups import leaves_reference
from transect.analysis.kinds import kind_of
from transect.domain.record import Cause
from transect.report.context import Context
from transect.report.findings.finding import Finding, joined, names
from transect.report.text import count, number

__all__ = ["equality_findings"]


def equality_findings(context: Context) -> list[Finding]:
    """Say whether every trainer's loss and weights follow the reference within tolerance."""
    checked = [
        record
        for record in context.records
        if record.stage == "train"
        and (leaves_reference(record) or record.value("equality_ratio") is not None)
    ]
    if not checked:
        return []
    bad = [record.cell_id.split("~")[0] for record in checked if leaves_reference(record)]
    good = len(checked) - len(bad)
    if bad:
        claim = (
            f"{good} of {count(len(checked), 'training run')} follow the reference within "
            f"tolerance; {names(bad)} {'does' if len(bad) == 1 else 'do'} not."
        )
    else:
        claim = f"all {count(len(checked), 'training run')} follow the reference within tolerance."
    evidence = [
        f"largest deviation of {what} {number(max(ratios))} times its tolerance{when}"
        for what, name, when in (
            ("the loss", "equality_ratio", ", at any checked step"),
            ("the weights", "weights_equality_ratio", ", after the last checked step"),
        )
        if (ratios := [r for record in checked if (r := record.value(name)) is not None])
    ]
    diverged = sum(
        record.cause is Cause.DIVERGED and not leaves_reference(record) for record in checked
    )
    if diverged:
        evidence.append(
            f"{count(diverged, 'run')} that follow{'s' if diverged == 1 else ''} it diverged, as it does"
        )
    random = sum(kind_of(record.cell).synthetic for record in checked)
    if random:
        evidence.append(f"{count(random, 'run')} on synthetic input, which has no quality")
    return [
        Finding(
            subject="equality", claim=claim, sureness=Sureness.FIRM, kind="equality",
            evidence=joined(*evidence) or "by the status of the records",
        )
    ]  # fmt: skip
