"""Findings on communication: how much of a step it takes, and how far from the bound it is."""

from __future__ import annotations

from transect.analysis.labels import people_name
from transect.analysis.network import BOUND_NAME, Communication, communications
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, joined
from transect.report.engine.text import number, percent, quantity
from transect.stats.comparisons import Confidence


def communication_findings(context: Context) -> list[Finding]:
    """Per workload: the cell with the largest share of communication, and the largest ratio.

    Cells within their cores come before over-subscribed ones. Nothing without a network probe.
    """
    fits = context.network_fits
    findings = []
    for workload in context.workloads("train") if fits else []:
        groups = [group for group in context.of("train", workload) if group.ok]
        bounded = [row for row in communications(groups, fits) if row.ratio is not None]
        able = [row for row in bounded if not row.group.over_subscribed] or bounded
        if able:
            findings.append(_finding(workload, able, len(bounded) - len(able)))
    return findings


def _finding(workload: str, rows: list[Communication], left_out: int) -> Finding:
    cells = [row.group.cell for row in rows]

    def name(row: Communication) -> str:
        return people_name(row.group.cell, cells, always=("ranks", "network"), never=("workload",))

    top = max(rows, key=lambda row: (row.share or 0.0, row.ratio or 0.0, row.group.cell.id))
    worst = max(rows, key=lambda row: (row.ratio or 0.0, row.group.cell.id))
    if top.bound is None or top.fit is None:
        raise ValueError(f"{top.group.cell.id}: communication without a bound")
    label, times = name(top), f"{number(top.ratio or 0.0)} times the {BOUND_NAME}"
    claim = (
        f"the communication of {label} takes {times} of an all-reduce"
        if top.share is None
        else f"waiting for communication takes {percent(top.share)} of a step of "
        f"{label}, and what is under way {times} of an all-reduce"
    )
    if worst is not top:
        claim += f"; the most is {number(worst.ratio or 0.0)} times, of {name(worst)}"
    over = top.group.over_subscribed
    if over:
        claim += "; its ranks share cores, so waiting for a core is part of it"
    model = top.fit.model
    evidence = [
        f"{quantity(top.time.median, 's')} per step"
        + (
            f", {top.time.word} {quantity(top.time.low, 's')} to {quantity(top.time.high, 's')}"
            if top.time.count > 1
            else ", one run"
        ),
        f"{quantity(top.gradient_bytes, 'B')} of gradients",
        f"bound {quantity(top.bound.time_s, 's')}, set by {top.bound.kind}",
        f"latency {quantity(model.alpha_s, 's')} and bandwidth {quantity(model.beta, 'B/s')} from "
        f"{top.fit.cell.id}, relative residual {percent(model.residual)}",
    ]
    if model.remark:
        evidence.append(model.remark)
    if min(row.ratio or 0.0 for row in (top, worst)) < 1:
        evidence.append("less than the bound allows, so the probe or the fit is off")
    if left_out:
        evidence.append(f"{left_out} over-subscribed left out")
    doubtful = over or any(
        (row.ratio or 0.0) < 1 or (row.fit is not None and row.fit.model.poor) for row in (top, worst)
    )
    return Finding(
        subject=workload,
        claim=claim + ".",
        evidence=joined(*evidence),
        kind="communication",
        confidence=Confidence.INCONCLUSIVE if doubtful else Confidence.PROVISIONAL,
    )
