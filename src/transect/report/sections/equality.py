"""Section: does every trainer compute the same training?"""

from __future__ import annotations

from transect.analysis.groups import Group, group_labels
from transect.report.blocks import Block, Chart, Charts, Chip, Column, Prose, Section, Table, Value
from transect.report.charts.plots import Dot, dot_plot
from transect.report.charts.theme import render
from transect.report.context import Context
from transect.report.sections.throughput import MOST_DRAWN, left_out
from transect.report.text import clean, number

__all__ = ["equality_section"]

LOSS, WEIGHTS = "equality_ratio", "weights_equality_ratio"
_WHAT = {LOSS: "loss", WEIGHTS: "weights"}
_COLUMNS = (LOSS, "loss_deviation", WEIGHTS, "weights_deviation")


def equality_section(context: Context) -> Section:
    """Draw the largest deviation of each training cell as a share of its tolerance."""
    blocks: list[Block] = []
    charts, tables = [], []
    for workload in context.workloads("train"):
        groups = [g for g in context.of("train", workload) if _all(g, LOSS)]
        if groups:
            charts += [
                chart
                for name in (LOSS, WEIGHTS)
                if (chart := _chart(context, workload, groups, name)) is not None
            ]
            tables.append(_table(workload, groups))
    rules = _rules(context)
    if rules:
        columns = [Column("Workload"), Column("Precision"), Column("Tolerance rule")]
        blocks.append(Table(columns=columns, rows=rules, caption="Rules"))
    if charts:
        blocks += [Charts(items=charts), *tables]
    else:
        blocks.append(Prose("No training cell was compared with a reference.", quiet=True))
    lead = (
        "Every trainer starts from the same weights and sees the same batches in the same order. "
        "Its loss has to follow a single-process numpy float64 run on the same global batch at "
        "every checked step, and after the last of them all its weights, running statistics "
        "included, have to be the reference's. A ratio is the largest deviation over its "
        "tolerance: 1 or less passes. Batch norm: each rank normalises by its own part of the "
        "batch, and the reference cuts its batch into the same parts; the running statistics are "
        "those of rank 0. Synthetic input has a reference on the same random numbers."
    )
    return Section(id="equality", title="Equality of the trainers", lead=lead, blocks=blocks)


def _all(group: Group, name: str) -> list[float]:
    """All values, those of wrong results too: they are the point of this section."""
    found = (record.value(name) for record in group.records)
    return [value for value in found if value is not None]


def _rules(context: Context) -> list[list[str]]:
    found = set()
    for record in context.records:
        tolerance = record.details.get("tolerance")
        if record.stage == "train" and isinstance(tolerance, dict) and tolerance.get("rule"):
            precision = str(tolerance.get("precision") or record.cell.precision)
            found.add((record.cell.workload or "", precision, clean(str(tolerance["rule"]))))
    return [list(row) for row in sorted(found)]


def _passed(group: Group) -> bool:
    return not group.wrong and max(_all(group, LOSS)) <= 1


def _ranked(groups: list[Group], name: str) -> list[Group]:
    return sorted(
        (group for group in groups if _all(group, name)),
        key=lambda group: (not group.wrong, -max(_all(group, name)), group.cell.id),
    )


def _chart(context: Context, workload: str, groups: list[Group], name: str) -> Chart | None:
    labels = group_labels(groups, always=("ranks",))
    ranked = _ranked(groups, name)
    if not ranked:
        return None
    dots: list[Dot] = []
    rows: list[list[Value]] = []
    for group in ranked:
        # An exact match has no place on a log axis; a millionth of the tolerance stands for it.
        ratios = [max(ratio, 1e-6) for ratio in _all(group, name)]
        dots.append(
            Dot(
                label=labels[group.cell], value=max(ratios), low=min(ratios), high=max(ratios),
                points=ratios, style=context.style(group),
                right="" if _passed(group) else "wrong result",
            )
        )  # fmt: skip
        rows.append([labels[group.cell], number(max(_all(group, name))), str(len(ratios))])
    what = _WHAT[name]
    drawing = dot_plot(
        dots[:MOST_DRAWN], title="largest deviation / tolerance (log scale)", rule=1.0, log=True
    )
    note = "Left of the dashed line passes. Symbol: the worst repeat."
    return Chart(
        title=f"{workload}: {what} over tolerance",
        svg=render(drawing, name=f"{name}-{workload}",
                   alt_text=f"{workload}: ratio of the largest deviation of the {what} to its "
                   f"tolerance per cell; largest {number(max(dot.value for dot in dots))}, 1 or less passes."),
        alt=f"Equality ratio of the {what} per cell.",
        note=f"{left_out(len(dots), MOST_DRAWN, 'most equal')} {note}".strip(),
        table=Table(
            columns=[Column("Cell"), Column("Largest ratio", numeric=True),
                     Column("Runs", numeric=True)],
            rows=rows, folded="Numbers",
        ),
    )  # fmt: skip


def _table(workload: str, groups: list[Group]) -> Table:
    labels = group_labels(groups, always=("ranks",))
    rows: list[list[Value]] = []
    for group in _ranked(groups, LOSS):
        values = [_all(group, name) for name in _COLUMNS]
        steps = {
            str(record.details["reference_steps"])
            for record in group.records
            if "reference_steps" in record.details
        }
        rows.append([
            labels[group.cell], *(number(max(some)) if some else "–" for some in values),
            ", ".join(sorted(steps)) or "–", str(len(values[0])),
            Chip("equal", "good") if _passed(group) else Chip("wrong result", "bad"),
        ])  # fmt: skip
    columns = [
        Column("Cell"), Column("Loss ratio", numeric=True), Column("Loss deviation", numeric=True),
        Column("Weights ratio", numeric=True), Column("Weights deviation", numeric=True),
        Column("Steps checked", numeric=True), Column("Runs", numeric=True), Column(""),
    ]  # fmt: skip
    caption = (
        f"{workload}: loss and weights beside the float64 reference, worst repeat. The loss "
        "deviates absolutely, the weights by their distance over the reference's norm."
    )
    folded = f"Loss and weights of {workload}" if len(rows) > MOST_DRAWN else ""
    return Table(columns=columns, rows=rows, caption=caption, folded=folded)
