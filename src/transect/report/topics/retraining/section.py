"""Section: base models that runtimes go on training, held to PyTorch's float64 path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from transect.report.engine.blocks import Chip, Column, Heading, Lead, Part, Value, digits, table, words
from transect.report.engine.columns import ended, labelled, medians
from transect.report.engine.context import Context
from transect.report.engine.contrast_words import contrast_columns
from transect.report.engine.finding import median
from transect.report.engine.text import in_unit, number, percent, tenths
from transect.report.topics.retraining.factors import factor_parts
from transect.report.topics.retraining.facts import STEP_TIME, RetrainGroup, is_relay, points, sorted_by_time
from transect.report.topics.retraining.findings import path_text, relay_words, shares


def retraining_body(context: Context) -> Iterator[Part]:
    """Tell of each workload who trains how fast and whether right, then relays and factors."""
    groups: list[RetrainGroup] = context.of("retrain")
    if not groups:
        return
    yield Lead(
        f"{path_text(groups)} A step is gathering the rows, binding, running and reading the loss; "
        "times of a run whose path is wrong are not kept."
    )
    for workload in context.workloads("retrain"):
        of_workload: list[RetrainGroup] = context.of("retrain", workload)
        first, *others = points(of_workload) or [[]]
        if first:
            yield Heading(f"{workload}: who trains")
            yield _runtimes(context, first)
        if further := [group for members in others for group in members]:
            yield table(further, _columns(context, further), folded=f"{len(further)} more retrainings")
        if relays := [group for group in of_workload if is_relay(group)]:
            caption = f"{workload}: in turn, each from the state that the one before left"
            yield table(relays, _columns(context, relays), caption=caption)
        yield from factor_parts(workload, of_workload)


def _path(group: RetrainGroup) -> Value:
    """Return whether the loss path is PyTorch's, and by what share of the tolerance it is off."""
    if group.wrong:
        return Chip("diverged" if group.diverged else "wrong result", "bad")
    known = shares([group])
    blind = "" if group.check_inconclusive_from is None else f", cannot tell from step {group.check_inconclusive_from}"
    return f"{percent(max(known), 1)} of the tolerance{blind}" if known else None


def _state(group: RetrainGroup) -> Value:
    """Return why a group has no number, as its first record says."""
    if group.ok:
        return Chip("disturbed", "warn") if group.disturbed else None
    return ended(group.records[0])


def _columns(context: Context, groups: Sequence[RetrainGroup]) -> list[Column[RetrainGroup]]:
    pairs = {id(pair.group): pair for pair in context.contrasts.of("retraining.speed")}
    columns: list[Column[RetrainGroup]] = [
        medians("Step", STEP_TIME, in_unit("s")),
        *contrast_columns("Times PyTorch's", lambda group: pairs.get(id(group))),
        medians("Samples/s", "samples_per_second"),
        medians("First step", "first_step_time", in_unit("s")),
        medians("Session", "session_time", in_unit("s")),
        medians("Checkpoint", "checkpoint_time", in_unit("s")),
        medians("Peak memory", "peak_memory", in_unit("B")),
        words("Loss path and weights", _path),
        medians("Last loss", "final_loss"),
        medians("Accuracy", "accuracy", tenths),
        digits("Runs", lambda group: len(group.ok)),
        words("", _state),
    ]
    label = (
        words("In turn", lambda group: relay_words(group.cell)) if is_relay(groups[0]) else labelled(groups, "Runtime")
    )
    return [label, *(column for column in columns if any(column.value(group) is not None for group in groups))]


def _rows(groups: Sequence[RetrainGroup]) -> str:
    """Say on what was retrained where the base has not seen it."""
    details = next((group.ok[0].details for group in groups if group.ok), {})
    if details.get("trained_on") != "device":
        return ""
    tested = f", scored on {number(details['test_rows'])} that neither saw" if "test_rows" in details else ""
    return f" on {number(details['rows'])} rows kept for devices{tested}"


def _runtimes(context: Context, groups: Sequence[RetrainGroup]) -> Part:
    """List every runtime of one point, the shortest step first, those without a time last."""
    timed = sorted_by_time(groups)
    untimed = [group for group in groups if group not in timed]
    cell = groups[0].cell
    before = median(next((group for group in groups if group.ok), groups[0]), "accuracy_before")
    score = "" if before is None else f", from an accuracy of {tenths(before)}"
    caption = f"{cell.workload}, {cell.optimiser}, {cell.rate} rate, batch {cell.batch}, {cell.steps} steps{_rows(groups)}{score}"
    return table([*timed, *untimed], _columns(context, groups), caption=caption)
