"""Section: does every trainer compute the same training?"""

from __future__ import annotations

from transect.analysis.groups import Group, group_labels
from transect.report.blocks import Block, Chart, Charts, Chip, Column, Prose, Section, Table, Value
from transect.report.charts.plots import Dot, dot_plot
from transect.report.charts.theme import render
from transect.report.context import Context
from transect.report.text import clean, number

__all__ = ["equality_section"]

METRIC = "equality_ratio"


def equality_section(context: Context) -> Section:
    """Draw the largest deviation of each training cell as a share of its tolerance."""
    blocks: list[Block] = []
    charts = []
    for workload in context.workloads("train"):
        groups = [g for g in context.of("train", workload) if _ratios(g)]
        if groups:
            charts.append(_chart(context, workload, groups))
    rules = _rules(context)
    if rules:
        columns = [Column("Workload"), Column("Precision"), Column("Tolerance rule")]
        blocks.append(Table(columns=columns, rows=rules, caption="Rules"))
    if charts:
        blocks.append(Charts(items=charts))
    else:
        blocks.append(Prose("No training cell was compared with a reference.", quiet=True))
    lead = (
        "Every trainer starts from the same weights and sees the same batches in the same order. "
        "Its loss has to follow a single-process numpy float64 run on the same global batch at "
        "every step. The ratio is the largest deviation over its tolerance: 1 or less passes."
    )
    return Section(id="equality", title="Equality of the trainers", lead=lead, blocks=blocks)


def _ratios(group: Group) -> list[float]:
    """All ratios, those of wrong results too: they are the point of this section."""
    found = (record.value(METRIC) for record in group.records)
    return [value for value in found if value is not None]


def _rules(context: Context) -> list[list[str]]:
    found = set()
    for record in context.records:
        tolerance = record.details.get("tolerance")
        if record.stage == "train" and isinstance(tolerance, dict) and tolerance.get("rule"):
            precision = str(tolerance.get("precision") or record.cell.precision)
            found.add((record.cell.workload or "", precision, clean(str(tolerance["rule"]))))
    return [list(row) for row in sorted(found)]


def _chart(context: Context, workload: str, groups: list[Group]) -> Chart:
    labels = group_labels(groups, always=("ranks",))
    groups = sorted(groups, key=lambda group: (-max(_ratios(group)), group.cell.id))
    dots: list[Dot] = []
    rows: list[list[Value]] = []
    for group in groups:
        ratios = _ratios(group)
        worst = max(ratios)
        passed = worst <= 1 and not group.wrong
        dots.append(
            Dot(
                label=labels[group.cell], value=worst, low=min(ratios), high=worst, points=ratios,
                style=context.style(group), right="" if passed else "wrong result",
            )
        )  # fmt: skip
        deviations = [
            value
            for record in group.records
            if (value := record.value("loss_deviation")) is not None
        ]
        rows.append([
            labels[group.cell], number(worst), number(max(deviations)) if deviations else "–",
            str(len(ratios)), Chip("equal", "good") if passed else Chip("wrong result", "bad"),
        ])  # fmt: skip
    columns = [
        Column("Cell"), Column("Largest ratio", numeric=True),
        Column("Largest deviation", numeric=True), Column("Runs", numeric=True), Column(""),
    ]  # fmt: skip
    drawing = dot_plot(dots, title="largest deviation / tolerance (log scale)", rule=1.0, log=True)
    return Chart(
        title=f"{workload}: deviation over tolerance",
        svg=render(drawing, name=f"equality-{workload}",
                   alt_text=f"{workload}: ratio of the largest loss deviation to its tolerance per "
                   f"cell; largest {number(max(_ratios(groups[0])))}, 1 or less passes."),
        alt="Equality ratio per cell.",
        note="Left of the dashed line passes. Symbol: the worst repeat.",
        table=Table(columns=columns, rows=rows, folded="Numbers"),
    )  # fmt: skip
