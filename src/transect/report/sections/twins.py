"""Twins: what input costs against random numbers, and what the batch's rules do to a training."""

from __future__ import annotations

from transect.analysis.comparisons import Verdict
from transect.analysis.groups import Group, group_labels
from transect.analysis.twins import InputPenalty, input_penalties, rate_factor, rule_groups
from transect.report.blocks import Block, Chip, Column, Prose, Table, Value
from transect.report.context import Context
from transect.report.findings.training import TIME, reaches_target
from transect.report.sections.throughput import accuracy_text, marks, undecided
from transect.report.text import number, percent, scale_for

__all__ = ["input_blocks", "rule_blocks"]

# A longer table is folded.
_MOST = 16


def input_blocks(context: Context, workload: str, groups: list[Group]) -> list[Block]:
    """List what each group loses to its input against its synthetic twin; nothing without twins."""
    every = input_penalties(groups, context.floors)
    if not every:
        return []
    labels = group_labels([one.group for one in every])
    rows: list[list[Value]] = [
        [
            labels[one.group.cell], one.group.cell.input, number(one.rate.median),
            number(one.twin_rate.median), str(one.rate.count), _percent(one.value),
            f"{_percent(one.low)} – {_percent(one.high)}" if one.rate.count > 1 else "–",
            _verdict(one),
        ]
        for one in every
    ]  # fmt: skip
    columns = [
        Column("Cell"), Column("Input"), Column("samples/s", numeric=True),
        Column("Synthetic samples/s", numeric=True), Column("Runs", numeric=True),
        Column("Penalty", numeric=True), Column("From – to", numeric=True), Column(""),
    ]  # fmt: skip
    note = (
        "Penalty: 1 − samples/s over those of a twin that trains on random numbers on the device. "
        "The twin learns nothing, and its speed is not the workload's."
    )
    caption = f"{workload}: what input costs"
    return [Table(columns=columns, rows=rows, caption=caption), Prose(note, quiet=True)]


def _percent(share: float) -> str:
    tenths = round(1000 * share)
    return f"−{percent(-tenths / 1000, 1)}" if tenths < 0 else percent(tenths / 1000, 1)


def _verdict(one: InputPenalty) -> Value:
    if one.comparison is None:
        return Chip("over-subscribed", "warn")
    if one.comparison.verdict is Verdict.SAME:
        return undecided(one.comparison)
    return (
        None if one.comparison.verdict is Verdict.BETTER else Chip("faster than its twin", "warn")
    )


def rule_blocks(workload: str, groups: list[Group]) -> list[Block]:
    """List mean and sum, fixed and linear rate, strong and weak scaling; nothing without twins."""
    every = rule_groups([group for group in groups if group.ok or group.wrong])
    if not every:
        return []
    labels = group_labels(every, never=("ranks", "batch", "reduce", "learning_rate_rule"))
    scale = scale_for([s.median for g in every if (s := g.summary(TIME))], "s")
    rows: list[list[Value]] = []
    for group in every:
        time, loss, factor = group.summary(TIME), group.summary("final_loss"), rate_factor(group)
        rows.append([
            labels[group.cell], str(group.cell.ranks), str(group.global_batch or "–"),
            group.cell.reduce, group.cell.learning_rate_rule,
            number(factor) if factor is not None else "–",
            number(loss.median) if loss else "–", accuracy_text(group),
            scale.text(time.median) if time and reaches_target(group) else "not reached",
            Chip("wrong result", "bad") if group.wrong else marks(group),
        ])  # fmt: skip
    columns = [
        Column("Framework and strategy"), Column("Ranks", numeric=True),
        Column("Global batch", numeric=True), Column("Gradients"), Column("Rate's rule"),
        Column("Rate's factor", numeric=True), Column("Final loss", numeric=True),
        Column("Accuracy", numeric=True), Column(f"Time to quality ({scale.unit})", numeric=True),
        Column(""),
    ]  # fmt: skip
    note = (
        "Rate's factor: how many times the workload's own learning rate the mean gradient of a "
        "step counts. A sum over p ranks counts p times, so what it speeds up is partly the rate."
    )
    caption = f"{workload}: what the batch's rules do to the training"
    folded = "What the batch's rules do" if len(rows) > _MOST else ""
    return [
        Table(columns=columns, rows=rows, caption=caption, folded=folded), Prose(note, quiet=True)
    ]  # fmt: skip
