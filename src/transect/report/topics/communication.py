"""What ranks spend on talking to each other, beside the least that the network allows."""

from __future__ import annotations

from collections.abc import Iterator

from transect.analysis.labels import people_name
from transect.analysis.network import BOUND_NAME, Communication, NetworkFit, communications
from transect.report.engine.blocks import Chip, Explained, Heading, Lead, Part, code, digits, note, table, words
from transect.report.engine.charts.chart import drawn
from transect.report.engine.charts.lines import line_plot
from transect.report.engine.charts.marks import Line
from transect.report.engine.columns import NOT_TOLD, labelled
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, joined
from transect.report.engine.parts import FindingMaker, Section, StageReport
from transect.report.engine.text import clean, count, in_unit, number, percent, quantity, scale_for, spread
from transect.stats.comparisons import Confidence

_TICKS = (4, 64, 1024, 16384, 262144, 4194304)
# Lines of one chart: more cannot be told apart.
_MAX_LINES = 8


def communication_findings(context: Context) -> list[Finding]:
    """Per workload: the cell with the largest share of communication.

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
    top = max(rows, key=lambda row: (row.share or 0.0, row.ratio or 0.0, row.group.cell.id))
    if top.bound is None or top.fit is None:
        raise ValueError(f"{top.group.cell.id}: communication without a bound")
    label = people_name(top.group.cell, cells, always=("ranks", "network"), never=("workload",))
    times = f"{number(top.ratio or 0.0)} times the {BOUND_NAME}"
    claim = (
        f"the communication of {label} takes {times} of an all-reduce"
        if top.share is None
        else f"waiting for communication takes {percent(top.share)} of a step of "
        f"{label}, and what is under way {times} of an all-reduce"
    )
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
    if (top.ratio or 0.0) < 1:
        evidence.append("less than the bound allows, so the probe or the fit is off")
    if left_out:
        evidence.append(f"{left_out} over-subscribed left out")
    doubtful = over or (top.ratio or 0.0) < 1 or top.fit.model.poor
    return Finding(
        subject=workload,
        claim=claim + ".",
        evidence=joined(*evidence),
        kind="communication",
        confidence=Confidence.INCONCLUSIVE if doubtful else Confidence.PROVISIONAL,
    )


def communication_body(context: Context) -> Iterator[Part]:
    """List each workload's communication, and the networks; nothing without messages, or a probe."""
    fits = context.network_fits
    measured = {
        workload: communications([g for g in context.of("train", workload) if g.ok], fits)
        for workload in context.workloads("train")
    }
    if not fits or not any(measured.values()):
        return
    ratios = [row.ratio for rows in measured.values() for row in rows if row.ratio]
    below = sum(ratio < 1 for ratio in ratios)
    odd = f"; {below} below it, which cannot be: look at the probe" if below else ""
    span = f"{number(min(ratios))} to {number(max(ratios))} times" if ratios else "beside"
    yield Lead(f"Messages of a step are under way {span} the {BOUND_NAME} of an all-reduce of the gradient{odd}.")
    for workload, rows in measured.items():
        if rows:
            yield Heading(workload)
            yield from _workload(workload, rows)
    yield Heading("Networks")
    yield _messages(context, fits[:_MAX_LINES])
    yield _networks(fits)
    yield Explained(
        "Bound: max(⌈log2 p⌉ α, 2 (p − 1)/p · n/β) for n bytes on p nodes, with the latency α and the bandwidth β of the "
        "network probe. A measured time also holds waiting for the slowest rank. Ranks that share a model send other things, "
        "and are not among these."
    )


def _workload(workload: str, rows: list[Communication]) -> Iterator[Part]:
    over = sum(row.group.over_subscribed for row in rows)
    if over:
        yield note(
            f"{over} of {count(len(rows), 'cell')} are over-subscribed: their time holds waiting for a core besides the "
            "network, and carries no claim."
        )
    scale = scale_for([row.time.median for row in rows], "s")
    caption = (
        f"{workload}: communication per step, the {BOUND_NAME} of an all-reduce of the gradient, "
        "and their ratio. 2x4 ranks are 2 nodes with 4 ranks on each."
    )
    columns = [
        labelled(rows, always=("ranks", "nodes", "network")),
        digits(f"Per step ({scale.unit})", lambda row: row.time.median, scale),
        digits("Range or interval", lambda row: spread(row.time, scale)),
        digits("Runs", lambda row: row.time.count),
        digits("Waited, of the step", lambda row: row.share, percent, NOT_TOLD),
        digits("Gradient", lambda row: row.gradient_bytes, in_unit("B")),
        digits(f"Bound ({scale.unit})", lambda row: row.bound.time_s if row.bound else None, scale),
        words("Set by", lambda row: row.bound.kind if row.bound else "–"),
        digits("Ratio", lambda row: row.ratio),
        words("", _mark),
    ]
    yield table(rows, columns, caption=caption)


def _mark(row: Communication) -> Chip | None:
    warnings = {
        "over-subscribed": row.group.over_subscribed,
        "disturbed": row.group.disturbed,
        "poor fit": row.bound and row.fit and row.fit.model.poor,
        "below the bound": row.ratio is not None and row.ratio < 1,
        clean(row.missing): row.missing,
    }
    marks = ", ".join(warning for warning, holds in warnings.items() if holds)
    return Chip(marks, "warn") if marks else None


def _networks(fits: list[NetworkFit]) -> Part:
    def measured(value: float, error: float, unit: str) -> str:
        scale = scale_for([value], unit)
        return f"{scale.text(value)} ± {scale.text(error)} {scale.unit}"

    columns = [
        words("Network", _where),
        digits("Nodes x ranks", lambda fit: f"{fit.cell.nodes} x {fit.cell.ranks_per_node}"),
        digits("Latency α ± standard error", lambda fit: measured(fit.model.alpha_s, fit.model.alpha_error_s, "s")),
        digits("Bandwidth β ± standard error", lambda fit: measured(fit.model.beta, fit.model.beta_error, "B/s")),
        digits("Relative residual", lambda fit: fit.model.residual, percent),
        digits("Points", lambda fit: fit.model.points),
        words("Remark", lambda fit: fit.model.remark or "–"),
        code("Probe", lambda fit: fit.cell.id),
    ]
    return table(fits, columns, caption="Fits of t(n) = α + n/β to half round trips, by least squares of log t")


def _messages(context: Context, fits: list[NetworkFit]) -> Part:
    """Draw measured half round trips and the fitted lines over the size of the message."""
    scale = scale_for([time for fit in fits for _, time in fit.medians], "s")
    lines, rows = [], []
    for fit in fits:
        name = f"{_where(fit)} · {fit.cell.nodes} x {fit.cell.ranks_per_node}"
        style = context.styles.get(name)
        points = [(float(size), time / scale.factor) for size, time in fit.medians if size > 0]
        model = [(size, fit.model.time(size) / scale.factor) for size, _ in points]
        lines.append(Line(points=points, style=style, joined=False, name=name, about=fit))
        lines.append(Line(points=model, style=style, symbols=False, width=1.5, name=f"{name}, fitted", about=fit))
        rows += [(name, size, time, fit.model.time(size)) for size, time in fit.medians]
    unit = f"half a round trip ({scale.unit})"
    return drawn(
        line_plot(lines, x_title="message (B)", y_title=unit, x_log=True, y_log=True, ticks=_TICKS, height=260),
        rows,
        [
            words("Network", lambda row: row[0]),
            digits("Bytes", lambda row: row[1]),
            digits(f"Half a round trip ({scale.unit})", lambda row: row[2], scale),
            digits(f"Fit ({scale.unit})", lambda row: row[3], scale),
        ],
        title=f"Messages over their size: at best {quantity(min(f.model.alpha_s for f in fits), 's')} to begin one",
        name="messages",
        notes=("Symbols: medians of the probe. Lines: the fit. Empty messages are fitted, not drawn.",),
    )


def _where(fit: NetworkFit) -> str:
    if fit.cell.nodes == 1:
        return "within a node"
    return clean(fit.cell.network or "default network")


REPORT = StageReport(
    stage="train",
    sections=(Section(key="communication", title="Communication", order=300, make=communication_body),),
    findings=(FindingMaker(name="communication", order=400, make=communication_findings, section="communication"),),
)
