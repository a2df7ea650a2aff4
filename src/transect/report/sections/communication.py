"""Section: what ranks spend on talking to each other, beside the least that the network allows."""

from __future__ import annotations

from collections import defaultdict

from transect.analysis.groups import group_labels
from transect.analysis.network import BOUND_NAME, Communication, NetworkFit, communications
from transect.domain.cell import Cell
from transect.report.blocks import (
    Block,
    Body,
    Chart,
    Charts,
    Chip,
    Column,
    Heading,
    Prose,
    code,
    digits,
    table,
    words,
)
from transect.report.charts.chart import MOST_PANELS, drawn
from transect.report.charts.plots import Line, line_plot, log_is_better
from transect.report.charts.theme import MUTED, Style, legend, palette
from transect.report.context import Context
from transect.report.sections.columns import NOT_TOLD
from transect.report.text import Scale, clean, count, number, percent, quantity, scale_for, spread

__all__ = ["communication_body"]

_BOUND = Style(MUTED, "square", (2, 2))
_TICKS = (4, 64, 1024, 16384, 262144, 4194304)
# Lines of one chart: more cannot be told apart.
_MOST_LINES = 16


def communication_body(context: Context) -> Body:
    """Draw and list each workload's communication; one line when something is missing for it."""
    fits = context.network_fits
    measured = {
        workload: communications([g for g in context.of("train", workload) if g.ok], fits)
        for workload in context.workloads("train")
    }
    blocks: list[Block] = []
    lead = (
        f"Time per step in which messages are under way, against the {BOUND_NAME} of an all-reduce "
        "of the gradient: max(⌈log2 p⌉ α, 2 (p − 1)/p · n/β) for n bytes on p nodes, with the latency α "
        "and the bandwidth β of the network probe. No strategy can be faster on that network; a "
        "measured time also holds waiting for the slowest rank."
    )
    if not any(measured.values()):
        lead = "No training cell ended well on more than one rank: nothing was communicated."
    elif not fits:
        lead = (
            "No network probe ended well in this study (benchmark network-probe, on two ranks or "
            "more): communication has no bound to stand against."
        )
    else:
        for workload, rows in measured.items():
            if rows:
                blocks += _workload(context, workload, rows)
        blocks += _networks(fits)
    return Body(lead=lead, blocks=blocks)


def _workload(context: Context, workload: str, rows: list[Communication]) -> list[Block]:
    blocks: list[Block] = [Heading(workload)]
    over = sum(row.group.over_subscribed for row in rows)
    if over:
        blocks.append(
            Prose(
                f"{over} of {count(len(rows), 'point')} {'is' if over == 1 else 'are'} "
                "over-subscribed: ranks, or nodes that are no machines of their own, share cores. "
                "Their time holds waiting for a core besides the network, and carries no claim. "
                "Hollow symbols.",
                quiet=True,
            )
        )
    panels: dict[str, list[Communication]] = defaultdict(list)
    for row in rows:
        if row.group.cell.nodes > 1:
            panels[row.group.cell.network or ""].append(row)
    charts = [
        _chart(context, workload, name, panels[name]) for name in sorted(panels)[:MOST_PANELS]
    ]
    if charts:
        blocks.append(Charts(items=charts))
    labels = group_labels([row.group for row in rows], always=("ranks", "nodes", "network"))
    scale = scale_for([row.time.median for row in rows], "s")
    caption = (
        f"{workload}: communication per step, the {BOUND_NAME} of an all-reduce of the gradient, "
        "and their ratio. 2x4 ranks are 2 nodes with 4 ranks on each."
    )
    columns = [
        _label(labels), digits(f"Per step ({scale.unit})", lambda row: scale.text(row.time.median)),
        digits("Range or interval", lambda row: spread(row.time, scale)),
        digits("Runs", lambda row: str(row.time.count)),
        digits("Waited, of the step",
               lambda row: NOT_TOLD if row.share is None else percent(row.share)),
        digits("Gradient", lambda row: quantity(row.gradient_bytes, "B")),
        _bound(f"Bound ({scale.unit})", scale),
        words("Set by", lambda row: row.bound.kind if row.bound else "–"),
        digits("Ratio", lambda row: "–" if row.ratio is None else number(row.ratio)),
        words("", _mark),
    ]  # fmt: skip
    return [*blocks, table(rows, columns, caption=caption)]


def _label(labels: dict[Cell, str]) -> Column[Communication]:
    return words("Cell", lambda row: labels[row.group.cell])


def _bound(title: str, scale: Scale) -> Column[Communication]:
    return digits(title, lambda row: scale.text(row.bound.time_s) if row.bound else "–")


def _mark(row: Communication) -> Chip | None:
    said = [
        word
        for word, holds in (
            ("over-subscribed", row.group.over_subscribed),
            ("disturbed", row.group.disturbed),
            ("poor fit", bool(row.bound and row.fit and row.fit.model.poor)),
            ("below the bound", row.ratio is not None and row.ratio < 1),
            (clean(row.missing), bool(row.missing)),
        )
        if holds
    ]
    return Chip(", ".join(said), "warn") if said else None


def _chart(context: Context, workload: str, network: str, rows: list[Communication]) -> Chart:
    """Draw one network's panel: measured time and bound over nodes."""
    scale = scale_for([row.time.median for row in rows], "s")
    labels = group_labels([row.group for row in rows], always=("ranks", "nodes"))
    several = len({row.group.cell.ranks_per_node for row in rows}) > 1
    series: dict[tuple[str, ...], list[Communication]] = defaultdict(list)
    for row in rows:
        cell = row.group.cell
        key = (cell.get("framework"), cell.get("strategy"), cell.ranks_per_node, cell.threads,
               row.group.kind.words, cell.get("batch"), cell.device)  # fmt: skip
        series[tuple(map(str, key))].append(row)
    lines, legends = [], []
    for members in list(series.values())[:_MOST_LINES]:
        cell, style = members[0].group.cell, context.style(members[0].group)
        parts = [cell.get("framework"), cell.get("strategy")]
        parts += [f"{cell.ranks_per_node} per node"] if several else []
        legends.append((" · ".join(part for part in parts if part), style))
        for hollow in (False, True):
            alike = [row for row in members if row.group.over_subscribed is hollow]
            if alike:
                lines.append(_line(alike, style, scale.factor, hollow=hollow))
    bounds: dict[float, float] = {}
    for row in rows:
        if row.bound is not None:
            nodes, least = float(row.group.cell.nodes), row.bound.time_s / scale.factor
            bounds[nodes] = min(bounds.get(nodes, least), least)
    if bounds:
        lines.append(Line(points=sorted(bounds.items()), style=_BOUND, width=1.5))
        legends.append((BOUND_NAME, _BOUND))
    nodes_drawn = sorted({row.group.cell.nodes for row in rows})
    where = network or "default network"
    worst = max(rows, key=lambda row: (row.time.median, row.group.cell.id))
    cut = len(series) - _MOST_LINES
    return drawn(
        line_plot(
            lines, x_title="nodes", y_title=f"communication per step ({scale.unit})",
            x_log=len(nodes_drawn) > 1, ticks=nodes_drawn, height=260,
            y_log=log_is_better([y for line in lines for _, y in line.points]),
        ),
        rows,
        [
            _label(labels),
            digits(f"Median ({scale.unit})", lambda row: scale.text(row.time.median)),
            _bound(f"Lower bound ({scale.unit})", scale),
        ],
        title=f"Communication over {clean(where)}",
        name=f"communication-{workload}-{network or 'default'}", legend=legend(legends),
        alt=f"{workload}, {where}: communication time per step on "
        f"{', '.join(map(str, nodes_drawn))} nodes beside the {BOUND_NAME}. Longest: "
        f"{labels[worst.group.cell]}, {quantity(worst.time.median, 's')}.",
        notes=("" if bounds else f"No bound: {clean(rows[0].missing)}.",
               f"{count(cut, 'series', 'series')} more in the numbers." if cut > 0 else ""),
    )  # fmt: skip


def _line(rows: list[Communication], style: Style, factor: float, *, hollow: bool) -> Line:
    points = [(float(row.group.cell.nodes), row.time.median / factor) for row in rows]
    scatter = [
        (float(row.group.cell.nodes), value / factor) for row in rows for value in row.values
    ]
    return Line(
        points=sorted(points), scatter=scatter, style=style, joined=not hollow, hollow=hollow
    )


def _networks(fits: list[NetworkFit]) -> list[Block]:
    scale = scale_for([fit.model.alpha_s for fit in fits], "s")

    def bandwidth(fit: NetworkFit) -> str:
        speed = scale_for([fit.model.beta], "B/s")
        return _plus_minus(fit.model.beta, fit.model.beta_error, speed)

    columns = [
        words("Network", _where),
        digits("Nodes x ranks", lambda fit: f"{fit.cell.nodes} x {fit.cell.ranks_per_node}"),
        digits("Latency α ± standard error",
               lambda fit: _plus_minus(fit.model.alpha_s, fit.model.alpha_error_s, scale)),
        digits("Bandwidth β ± standard error", bandwidth),
        digits("Relative residual", lambda fit: percent(fit.model.residual)),
        digits("Points", lambda fit: str(fit.model.points)),
        words("Remark", lambda fit: fit.model.remark or "–"),
        code("Probe", lambda fit: fit.cell.id),
    ]  # fmt: skip
    caption = "Fits of t(n) = α + n/β to half round trips, by least squares of log t"
    return [
        Heading("Networks"),
        Charts(items=[_messages(fits)]),
        table(fits, columns, caption=caption),
    ]


def _where(fit: NetworkFit) -> str:
    if fit.cell.nodes == 1:
        return "within a node"
    return clean(fit.cell.network or "default network")


def _plus_minus(value: float, error: float, scale: Scale) -> str:
    return f"{scale.text(value)} ± {scale.text(error)} {scale.unit}"


def _messages(fits: list[NetworkFit]) -> Chart:
    """Draw measured half round trips and the fitted lines over the size of the message."""
    cut, fits = len(fits) - _MOST_LINES, fits[:_MOST_LINES]
    names = [f"{_where(fit)} · {fit.cell.nodes} x {fit.cell.ranks_per_node}" for fit in fits]
    scale = scale_for([time for fit in fits for _, time in fit.medians], "s")
    lines, legends = [], []
    for fit, style, name in zip(fits, palette(len(fits)), names, strict=True):
        points = [(float(n), t / scale.factor) for n, t in fit.medians if n > 0]
        sizes = sorted({n for n, _ in points})
        model = [(n, fit.model.time(n) / scale.factor) for n in sizes]
        lines.append(Line(points=points, style=style, joined=False))
        lines.append(Line(points=model, style=style, symbols=False, width=1.5))
        legends.append((name, style))
    rows = [
        (name, size, time, fit.model.time(size))
        for fit, name in zip(fits, names, strict=True)
        for size, time in fit.medians
    ]
    return drawn(
        line_plot(
            lines, x_title="message (B)", y_title=f"half a round trip ({scale.unit})", x_log=True,
            y_log=True, ticks=_TICKS, height=260,
        ),
        rows,
        [
            words("Network", lambda row: row[0]), digits("Bytes", lambda row: str(row[1])),
            digits(f"Half a round trip ({scale.unit})", lambda row: scale.text(row[2])),
            digits(f"Fit ({scale.unit})", lambda row: scale.text(row[3])),
        ],
        title="Messages over their size", name="messages", legend=legend(legends),
        alt="Half a round trip between two ranks over the size of the message, with the fitted "
        f"line, for {count(len(fits), 'network probe')}: {', '.join(names[:4])}.",
        notes=("Symbols: medians of the probe. Lines: the fit. Empty messages are fitted, not "
               "drawn.", f"{count(cut, 'probe')} more in the table." if cut > 0 else ""),
    )  # fmt: skip
