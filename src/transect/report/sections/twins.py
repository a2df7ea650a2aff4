"""Twins: what input costs against random numbers, and what the batch's rules do to a training."""

from __future__ import annotations

from collections.abc import Iterator

from transect.analysis.comparisons import Verdict
from transect.analysis.scaling import TrainGroup
from transect.analysis.twins import InputPenalty, input_penalties, rate_factor, rule_groups
from transect.report.blocks import Chip, Part, digits, note, table, words
from transect.report.columns import ACCURACY, MARKS, RANKS, labelled, medians, undecided
from transect.report.context import Context
from transect.report.findings.finding import median
from transect.report.findings.training import TIME, reaches_target
from transect.report.text import scale_for, tenths


def input_blocks(context: Context, workload: str, groups: list[TrainGroup]) -> Iterator[Part]:
    """List what each group loses to its input against its synthetic twin; nothing without twins."""
    every = input_penalties(groups, context.floors)
    if not every:
        return

    def ends(loss: InputPenalty) -> str | None:
        return f"{tenths(loss.low)} – {tenths(loss.high)}" if loss.rate.count > 1 else None

    columns = [
        labelled(every),
        words("Input", lambda loss: loss.group.cell.input),
        digits("samples/s", lambda loss: loss.rate.median),
        digits("Synthetic samples/s", lambda loss: loss.twin_rate.median),
        digits("Runs", lambda loss: loss.rate.count),
        digits("Penalty", lambda loss: loss.value, tenths),
        digits("From – to", ends),
        words("", _verdict),
    ]
    yield table(every, columns, caption=f"{workload}: what input costs")
    yield note(
        "Penalty: 1 − samples/s over those of a twin that trains on random numbers on the device. "
        "The twin learns nothing, and its speed is not the workload's."
    )


def _verdict(loss: InputPenalty) -> Chip | None:
    if loss.comparison is None:
        return Chip("over-subscribed", "warn")
    if loss.comparison.verdict is Verdict.SAME:
        return undecided(loss.comparison)
    better = loss.comparison.verdict is Verdict.BETTER
    return None if better else Chip("faster than its twin", "warn")


def rule_blocks(workload: str, groups: list[TrainGroup]) -> Iterator[Part]:
    """List mean and sum, fixed and linear rate, strong and weak scaling; nothing without twins."""
    every = rule_groups([group for group in groups if group.ok or group.wrong])
    if not every:
        return
    never = ("ranks", "batch", "reduce", "learning_rate_rule")
    time = scale_for([median(group, TIME) for group in every], "s")
    columns = [
        labelled(every, "Framework and strategy", never=never),
        RANKS,
        digits("Global batch", lambda group: group.global_batch),
        words("Gradients", lambda group: group.cell.reduce),
        words("Rate's rule", lambda group: group.cell.learning_rate_rule),
        digits("Rate's factor", rate_factor),
        medians("Final loss", "final_loss"),
        ACCURACY,
        digits(
            f"Time to quality ({time.unit})",
            lambda group: median(group, TIME) if reaches_target(group) else None,
            time,
            "not reached",
        ),
        MARKS,
    ]
    caption = f"{workload}: what the batch's rules do to the training"
    yield table(every, columns, caption=caption, fold_title="What the batch's rules do")
    yield note(
        "Rate's factor: how many times the workload's own learning rate the mean gradient of a "
        "step counts. A sum over p ranks counts p times, so what it speeds up is partly the rate."
    )
