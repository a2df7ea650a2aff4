"""Section: what ranks spend on talking to each other, beside the least that the network allows."""

from __future__ import annotations

from collections.abc import Iterator

from transect.analysis.network import BOUND_NAME, Communication, NetworkFit, communications
from transect.report.engine.blocks import Chip, Explained, Heading, Lead, Part, code, digits, note, table, words
from transect.report.engine.charts.chart import drawn
from transect.report.engine.charts.marks import Line
from transect.report.engine.charts.plots import line_plot
from transect.report.engine.charts.theme import legend, palette
from transect.report.engine.columns import NOT_TOLD, labelled
from transect.report.engine.context import Context
from transect.report.engine.text import clean, count, in_unit, number, percent, scale_for, spread

_TICKS = (4, 64, 1024, 16384, 262144, 4194304)
# Lines of one chart: more cannot be told apart.
_MAX_LINES = 16


def communication_body(context: Context) -> Iterator[Part]:
    """Draw and list each workload's communication; one line when something is missing for it."""
    fits = context.network_fits
    measured = {
        workload: communications([g for g in context.of("train", workload) if g.ok], fits)
        for workload in context.workloads("train")
    }
    if not any(measured.values()):
        yield Lead(
            "No training cell ended well on more than one rank that shares the data alone: nothing was "
            "communicated that an all-reduce could be set beside."
        )
        return
    if not fits:
        yield Lead(
            "No network probe ended well in this study (benchmark network-probe, on two ranks or "
            "more): communication has no bound to stand against."
        )
        return
    ratios = [row.ratio for rows in measured.values() for row in rows if row.ratio]
    below = sum(ratio < 1 for ratio in ratios)
    odd = f"; {below} below it, which cannot be: look at the probe" if below else ""
    span = f"{number(min(ratios))} to {number(max(ratios))} times" if ratios else "beside"
    yield Lead(f"Messages of a step are under way {span} the {BOUND_NAME} of an all-reduce of the gradient{odd}.")
    for workload, rows in measured.items():
        if rows:
            yield Heading(workload)
            yield from _workload(context, workload, rows)
    yield Heading("Networks")
    yield _messages(fits)
    yield _networks(fits)
    yield Explained(
        "Bound: max(⌈log2 p⌉ α, 2 (p − 1)/p · n/β) for n bytes on p nodes, with the latency α and the bandwidth β of the "
        "network probe. A measured time also holds waiting for the slowest rank. Ranks that share a model send other things, "
        "and are not among these."
    )


def _workload(context: Context, workload: str, rows: list[Communication]) -> Iterator[Part]:
    over = sum(row.group.over_subscribed for row in rows)
    if over:
        yield note(
            f"Hollow: {over} of {count(len(rows), 'point')} over-subscribed; their time holds waiting for a core besides the "
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
        digits(f"Bound ({scale.unit})", _least, scale),
        words("Set by", lambda row: row.bound.kind if row.bound else "–"),
        digits("Ratio", lambda row: row.ratio),
        words("", _mark),
    ]
    yield table(rows, columns, caption=caption)


def _least(row: Communication) -> float | None:
    return row.bound.time_s if row.bound else None


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
    scale = scale_for([fit.model.alpha_s for fit in fits], "s")

    def latency(fit: NetworkFit) -> str:
        value, error = fit.model.alpha_s, fit.model.alpha_error_s
        return f"{scale.text(value)} ± {scale.text(error)} {scale.unit}"

    def bandwidth(fit: NetworkFit) -> str:
        speed = scale_for([fit.model.beta], "B/s")
        value, error = fit.model.beta, fit.model.beta_error
        return f"{speed.text(value)} ± {speed.text(error)} {speed.unit}"

    columns = [
        words("Network", _where),
        digits("Nodes x ranks", lambda fit: f"{fit.cell.nodes} x {fit.cell.ranks_per_node}"),
        digits("Latency α ± standard error", latency),
        digits("Bandwidth β ± standard error", bandwidth),
        digits("Relative residual", lambda fit: fit.model.residual, percent),
        digits("Points", lambda fit: fit.model.points),
        words("Remark", lambda fit: fit.model.remark or "–"),
        code("Probe", lambda fit: fit.cell.id),
    ]
    caption = "Fits of t(n) = α + n/β to half round trips, by least squares of log t"
    return table(fits, columns, caption=caption)


def _where(fit: NetworkFit) -> str:
    if fit.cell.nodes == 1:
        return "within a node"
    return clean(fit.cell.network or "default network")


def _messages(fits: list[NetworkFit]) -> Part:
    """Draw measured half round trips and the fitted lines over the size of the message."""
    cut, fits = len(fits) - _MAX_LINES, fits[:_MAX_LINES]
    names = [f"{_where(fit)} · {fit.cell.nodes} x {fit.cell.ranks_per_node}" for fit in fits]
    styles = palette(len(fits))
    scale = scale_for([time for fit in fits for _, time in fit.medians], "s")
    lines = []
    for fit, name, style in zip(fits, names, styles, strict=True):
        points = [(float(size), time / scale.factor) for size, time in fit.medians if size > 0]
        model = [(size, fit.model.time(size) / scale.factor) for size in sorted({x for x, _ in points})]
        lines.append(Line(points=points, style=style, joined=False, name=name, about=fit))
        lines.append(Line(points=model, style=style, symbols=False, width=1.5, name=f"{name}, fitted", about=fit))
    rows = [
        (name, size, time, fit.model.time(size))
        for fit, name in zip(fits, names, strict=True)
        for size, time in fit.medians
    ]
    return drawn(
        line_plot(
            lines,
            x_title="message (B)",
            y_title=f"half a round trip ({scale.unit})",
            x_log=True,
            y_log=True,
            ticks=_TICKS,
            height=260,
        ),
        rows,
        [
            words("Network", lambda row: row[0]),
            digits("Bytes", lambda row: row[1]),
            digits(f"Half a round trip ({scale.unit})", lambda row: row[2], scale),
            digits(f"Fit ({scale.unit})", lambda row: row[3], scale),
        ],
        title="Messages over their size",
        name="messages",
        legend=legend(zip(names, styles, strict=True)),
        alt="Half a round trip between two ranks over the size of the message, with the fitted "
        f"line, for {count(len(fits), 'network probe')}: {', '.join(names[:4])}.",
        notes=(
            "Symbols: medians of the probe. Lines: the fit. Empty messages are fitted, not drawn.",
            f"{count(cut, 'probe')} more in the table." if cut > 0 else "",
        ),
    )
