"""Twins: what input costs against random numbers, and what the batch's rules do to a training."""

from __future__ import annotations

from transect.analysis.comparisons import Verdict
from transect.analysis.groups import Group, group_labels
from transect.analysis.twins import InputPenalty, input_penalties, rate_factor, rule_groups
from transect.report.blocks import Block, Chip, Prose, Value, digits, table, words
from transect.report.context import Context
from transect.report.findings.finding import median
from transect.report.findings.training import TIME, reaches_target
from transect.report.sections.columns import RANKS, accuracy_text, label_column, marks, undecided
from transect.report.text import number, percent, scale_for

__all__ = ["input_blocks", "rule_blocks"]

# A longer table is folded.
_MOST_OPEN = 16


def input_blocks(context: Context, workload: str, groups: list[Group]) -> list[Block]:
    """List what each group loses to its input against its synthetic twin; nothing without twins."""
    every = input_penalties(groups, context.floors)
    if not every:
        return []
    labels = group_labels([loss.group for loss in every])
    columns = [
        words("Cell", lambda loss: labels[loss.group.cell]),
        words("Input", lambda loss: loss.group.cell.get("input")),
        digits("samples/s", lambda loss: number(loss.rate.median)),
        digits("Synthetic samples/s", lambda loss: number(loss.twin_rate.median)),
        digits("Runs", lambda loss: str(loss.rate.count)),
        digits("Penalty", lambda loss: _percent(loss.value)),
        digits("From – to", lambda loss: f"{_percent(loss.low)} – {_percent(loss.high)}"
               if loss.rate.count > 1 else "–"),
        words("", _verdict),
    ]  # fmt: skip
    note = (
        "Penalty: 1 − samples/s over those of a twin that trains on random numbers on the device. "
        "The twin learns nothing, and its speed is not the workload's."
    )
    caption = f"{workload}: what input costs"
    return [table(every, columns, caption=caption), Prose(note, quiet=True)]


def _percent(share: float) -> str:
    tenths = round(1000 * share)
    return f"−{percent(-tenths / 1000, 1)}" if tenths < 0 else percent(tenths / 1000, 1)


def _verdict(loss: InputPenalty) -> Value:
    if loss.comparison is None:
        return Chip("over-subscribed", "warn")
    if loss.comparison.verdict is Verdict.SAME:
        return undecided(loss.comparison)
    better = loss.comparison.verdict is Verdict.BETTER
    return None if better else Chip("faster than its twin", "warn")


def rule_blocks(workload: str, groups: list[Group]) -> list[Block]:
    """List mean and sum, fixed and linear rate, strong and weak scaling; nothing without twins."""
    every = rule_groups([group for group in groups if group.ok or group.wrong])
    if not every:
        return []
    labels = group_labels(every, never=("ranks", "batch", "reduce", "learning_rate_rule"))
    scale = scale_for([median(group, TIME) for group in every], "s")

    def optional(value: float | None) -> str:
        return "–" if value is None else number(value)

    columns = [
        label_column(labels, "Framework and strategy"), RANKS,
        digits("Global batch", lambda group: str(group.global_batch or "–")),
        words("Gradients", lambda group: group.cell.get("reduce")),
        words("Rate's rule", lambda group: group.cell.get("learning_rate_rule")),
        digits("Rate's factor", lambda group: optional(rate_factor(group))),
        digits("Final loss", lambda group: optional(median(group, "final_loss"))),
        digits("Accuracy", accuracy_text),
        digits(f"Time to quality ({scale.unit})", lambda group: scale.text(median(group, TIME))
               if reaches_target(group) else "not reached"),
        words("", lambda group: Chip("diverged" if group.diverged else "wrong result", "bad")
              if group.wrong else marks(group)),
    ]  # fmt: skip
    note = (
        "Rate's factor: how many times the workload's own learning rate the mean gradient of a "
        "step counts. A sum over p ranks counts p times, so what it speeds up is partly the rate."
    )
    caption = f"{workload}: what the batch's rules do to the training"
    shown = table(every, columns, caption=caption, fold_above=_MOST_OPEN,
                  fold_title="What the batch's rules do")  # fmt: skip
    return [shown, Prose(note, quiet=True)]
