"""Section: what ranks spend on talking to each other, beside the least that the network allows."""

from __future__ import annotations

from collections import defaultdict

from transect.analysis.groups import group_labels
from transect.analysis.network import (
    BOUND_NAME,
    Communication,
    NetworkFit,
    communications,
    network_fits,
)
from transect.report.blocks import (
    Block,
    Chart,
    Charts,
    Chip,
    Column,
    Heading,
    Prose,
    Section,
    Table,
    Value,
)
from transect.report.charts.plots import Line, line_plot, log_is_better
from transect.report.charts.theme import MUTED, Style, legend, palette, render
from transect.report.context import Context
from transect.report.sections.throughput import NOT_TOLD
from transect.report.text import clean, count, number, percent, quantity, scale_for, spread

__all__ = ["communication_section"]

_BOUND = Style(MUTED, "square", (2, 2))
_TICKS = (4, 64, 1024, 16384, 262144, 4194304)


def communication_section(context: Context) -> Section:
    """Draw and list each workload's communication; one line when something is missing for it."""
    fits = network_fits(context.records)
    found = {
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
    if not any(found.values()):
        lead = "No training cell ended well on more than one rank: nothing was communicated."
    elif not fits:
        lead = (
            "No network probe ended well in this study (benchmark network-probe, on two ranks or "
            "more): communication has no bound to stand against."
        )
    else:
        for workload, rows in found.items():
            if rows:
                blocks += _workload(context, workload, rows)
        blocks += _networks(fits)
    return Section(id="communication", title="Communication", lead=lead, blocks=blocks)


def _workload(context: Context, workload: str, rows: list[Communication]) -> list[Block]:
    blocks: list[Block] = [Heading(workload)]
    over = sum(one.group.over_subscribed for one in rows)
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
    for one in rows:
        if one.group.cell.nodes > 1:
            panels[one.group.cell.network or ""].append(one)
    charts = [_chart(context, workload, name, panels[name]) for name in sorted(panels)]
    if charts:
        blocks.append(Charts(items=charts))
    blocks.append(_table(workload, rows))
    return blocks


def _table(workload: str, rows: list[Communication]) -> Table:
    labels = group_labels([one.group for one in rows], always=("ranks", "nodes", "network"))
    scale = scale_for([one.time.median for one in rows], "s")
    lines: list[list[Value]] = [
        [
            labels[one.group.cell], scale.text(one.time.median), spread(one.time, scale),
            str(one.time.count), NOT_TOLD if one.share is None else percent(one.share),
            quantity(one.gradient_bytes, "B"),
            scale.text(one.bound.time_s) if one.bound else "–",
            one.bound.kind if one.bound else "–",
            number(one.ratio) if one.ratio is not None else "–", _mark(one),
        ]
        for one in rows
    ]  # fmt: skip
    columns = [
        Column("Cell"), Column(f"Per step ({scale.unit})", numeric=True),
        Column("Range or interval", numeric=True), Column("Runs", numeric=True),
        Column("Waited, of the step", numeric=True), Column("Gradient", numeric=True),
        Column(f"Bound ({scale.unit})", numeric=True), Column("Set by"),
        Column("Ratio", numeric=True), Column(""),
    ]  # fmt: skip
    caption = (
        f"{workload}: communication per step, the {BOUND_NAME} of an all-reduce of the gradient, "
        "and their ratio. 2x4 ranks are 2 nodes with 4 ranks on each."
    )
    return Table(columns=columns, rows=lines, caption=caption)


def _mark(one: Communication) -> Chip | None:
    words = [
        word
        for word, holds in (
            ("over-subscribed", one.group.over_subscribed),
            ("disturbed", one.group.disturbed),
            ("poor fit", bool(one.bound and one.fit and one.fit.model.poor)),
            ("below the bound", one.ratio is not None and one.ratio < 1),
            (clean(one.missing), bool(one.missing)),
        )
        if holds
    ]
    return Chip(", ".join(words), "warn") if words else None


def _chart(context: Context, workload: str, network: str, rows: list[Communication]) -> Chart:
    """Draw one network's panel: measured time and bound over nodes."""
    scale = scale_for([one.time.median for one in rows], "s")
    labels = group_labels([one.group for one in rows], always=("ranks", "nodes"))
    several = len({one.group.cell.ranks_per_node for one in rows}) > 1
    series: dict[tuple[str, ...], list[Communication]] = defaultdict(list)
    for one in rows:
        cell = one.group.cell
        key = (cell.framework, cell.strategy, cell.ranks_per_node, cell.threads,
               one.group.kind.words, cell.batch, cell.device)  # fmt: skip
        series[tuple(map(str, key))].append(one)
    lines, legends = [], []
    for members in series.values():
        cell, style = members[0].group.cell, context.style(members[0].group)
        parts = [cell.framework, cell.strategy]
        parts += [f"{cell.ranks_per_node} per node"] if several else []
        legends.append((" · ".join(part for part in parts if part), style))
        for hollow in (False, True):
            some = [one for one in members if one.group.over_subscribed is hollow]
            if some:
                lines.append(_line(some, style, scale.factor, hollow=hollow))
    bounds: dict[float, float] = {}
    for one in rows:
        if one.bound is not None:
            nodes, least = float(one.group.cell.nodes), one.bound.time_s / scale.factor
            bounds[nodes] = min(bounds.get(nodes, least), least)
    if bounds:
        lines.append(Line(points=sorted(bounds.items()), style=_BOUND, width=1.5))
        legends.append((BOUND_NAME, _BOUND))
    nodes_drawn = sorted({one.group.cell.nodes for one in rows})
    where = network or "default network"
    worst = max(rows, key=lambda one: (one.time.median, one.group.cell.id))
    drawing = line_plot(
        lines, x_title="nodes", y_title=f"communication per step ({scale.unit})",
        x_log=len(nodes_drawn) > 1, ticks=nodes_drawn, height=260,
        y_log=log_is_better([y for line in lines for _, y in line.points]),
    )  # fmt: skip
    return Chart(
        title=f"Communication over {clean(where)}",
        svg=render(
            drawing,
            alt_text=f"{workload}, {where}: communication time per step on "
            f"{', '.join(map(str, nodes_drawn))} nodes beside the {BOUND_NAME}. Longest: "
            f"{labels[worst.group.cell]}, {quantity(worst.time.median, 's')}.",
            name=f"communication-{workload}-{network or 'default'}",
        ),
        alt="Communication time per step over the number of nodes, less is better.",
        note="" if bounds else f"No bound: {clean(rows[0].missing)}.",
        legend=legend(legends),
        table=Table(
            columns=[Column("Cell"), Column(f"Median ({scale.unit})", numeric=True),
                     Column(f"Lower bound ({scale.unit})", numeric=True)],
            rows=[[labels[one.group.cell], scale.text(one.time.median),
                   scale.text(one.bound.time_s) if one.bound else "–"] for one in rows],
            folded="Numbers",
        ),
    )  # fmt: skip


def _line(rows: list[Communication], style: Style, factor: float, *, hollow: bool) -> Line:
    points = [(float(one.group.cell.nodes), one.time.median / factor) for one in rows]
    scatter = [
        (float(one.group.cell.nodes), value / factor) for one in rows for value in one.values
    ]
    return Line(
        points=sorted(points), scatter=scatter, style=style, joined=not hollow, hollow=hollow
    )


def _networks(fits: list[NetworkFit]) -> list[Block]:
    scale = scale_for([fit.model.alpha_s for fit in fits], "s")
    rows: list[list[Value]] = []
    for fit in fits:
        model = fit.model
        speed = scale_for([model.beta], "B/s")
        rows.append([
            _where(fit), f"{fit.cell.nodes} x {fit.cell.ranks_per_node}",
            _plus_minus(model.alpha_s, model.alpha_error_s, scale.factor, scale.unit),
            _plus_minus(model.beta, model.beta_error, speed.factor, speed.unit),
            percent(model.residual), str(model.points), model.remark or "–", fit.cell.id,
        ])  # fmt: skip
    columns = [
        Column("Network"), Column("Nodes x ranks", numeric=True),
        Column("Latency α ± standard error", numeric=True),
        Column("Bandwidth β ± standard error", numeric=True),
        Column("Relative residual", numeric=True), Column("Points", numeric=True),
        Column("Remark"), Column("Probe", code=True),
    ]  # fmt: skip
    caption = "Fits of t(n) = α + n/β to half round trips, by least squares of log t"
    return [
        Heading("Networks"),
        Charts(items=[_messages(fits)]),
        Table(columns=columns, rows=rows, caption=caption),
    ]


def _where(fit: NetworkFit) -> str:
    if fit.cell.nodes == 1:
        return "within a node"
    return clean(fit.cell.network or "default network")


def _plus_minus(value: float, error: float, factor: float, unit: str) -> str:
    return f"{number(value / factor)} ± {number(error / factor)} {unit}"


def _messages(fits: list[NetworkFit]) -> Chart:
    """Draw measured half round trips and the fitted lines over the size of the message."""
    names = [f"{_where(fit)} · {fit.cell.nodes} x {fit.cell.ranks_per_node}" for fit in fits]
    scale = scale_for([time for fit in fits for _, time in fit.medians], "s")
    lines, legends, rows = [], [], []
    for fit, style, name in zip(fits, palette(len(fits)), names, strict=True):
        points = [(float(n), t / scale.factor) for n, t in fit.medians if n > 0]
        sizes = sorted({n for n, _ in points})
        model = [(n, fit.model.time(n) / scale.factor) for n in sizes]
        lines.append(Line(points=points, style=style, joined=False))
        lines.append(Line(points=model, style=style, symbols=False, width=1.5))
        legends.append((name, style))
        rows += [[name, str(n), scale.text(t), scale.text(fit.model.time(n))]
                 for n, t in fit.medians]  # fmt: skip
    drawing = line_plot(
        lines, x_title="message (B)", y_title=f"half a round trip ({scale.unit})", x_log=True,
        y_log=True, ticks=_TICKS, height=260,
    )  # fmt: skip
    return Chart(
        title="Messages over their size",
        svg=render(
            drawing, name="messages",
            alt_text="Half a round trip between two ranks over the size of the message, with the "
            f"fitted line, for {count(len(fits), 'network probe')}: {', '.join(names[:4])}.",
        ),
        alt="Time of a message over its size, less is better.",
        note="Symbols: medians of the probe. Lines: the fit. Empty messages are fitted, not drawn.",
        legend=legend(legends),
        table=Table(
            columns=[Column("Network"), Column("Bytes", numeric=True),
                     Column(f"Half a round trip ({scale.unit})", numeric=True),
                     Column(f"Fit ({scale.unit})", numeric=True)],
            rows=rows, folded="Numbers",
        ),
    )  # fmt: skip
