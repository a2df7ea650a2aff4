"""Findings on updates that wait for nobody: by the time to the target, beside the all-reduce of as many replicas."""

from __future__ import annotations

from transect.analysis.asynchronous import AsyncRow, async_rows
from transect.analysis.comparisons import Sureness
from transect.report.context import Context
from transect.report.findings.finding import Finding, joined, no_firmer
from transect.report.findings.parallel import strategy_words
from transect.report.text import clean, count, ends, factor, number

__all__ = ["async_findings"]


def async_findings(context: Context) -> list[Finding]:
    """One for each training that tells how late its gradients are."""
    return [_finding(row) for row in async_rows(context.of("train"), context.floors)]


def _finding(row: AsyncRow) -> Finding:
    group, cell = row.group, row.group.cell
    late = f"gradients of {strategy_words(group)} are {number(row.staleness)} updates late in the median"
    if row.late is not None:
        late += f", {number(row.late)} at the 95th percentile"
    sureness, reason = Sureness.OPEN, ""
    if row.result is not None and row.other is not None:
        doubt = "; these runs cannot tell the two apart" if not row.result.shown else ""
        doubt = (
            "; ranks share cores, so this decides nothing" if row.result.over_subscribed else doubt
        )
        said = (
            f"and the target is reached in {factor(row.result.ratio.value)} times ({ends(row.result.ratio, factor)}) the time of "
            f"{strategy_words(row.other)} on as many replicas{doubt}"
        )
        sureness, reason = no_firmer(row.result.sureness, row.other), row.result.reason
    elif not row.reached:
        said = "and the target is not reached in every run, so no time is compared"
    else:
        said = "and no all-reduce of as many replicas reached the target in every run beside it"
    scope = clean(f"{cell.framework}, batch {cell.batch}, {count(cell.ranks, 'rank')}")
    return Finding(
        subject=str(cell.workload), scope=scope, kind="asynchronous", sureness=sureness,
        claim=f"{late}, {said}.",
        evidence=joined(f"{count(len(group.ok), 'run')}", reason,
                        "step by step it equals nothing, so nothing but counts and the end is checked"
                        if not group.values("equality_ratio") else "in step it follows the float64 reference"),
    )  # fmt: skip
