"""Which model runs under which runtime, and how its latency stands to that of C++."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from transect.analysis.contrasts import contrast
from transect.analysis.groups import grouped
from transect.analysis.serving import (
    REFERENCE,
    RUN,
    WHOLE,
    InferGroup,
    base_point,
    is_coarse,
    measure_of,
    partly_compared,
    takes_onnx,
    was_compared,
)
from transect.domain.record import Status
from transect.report.engine.blocks import Chip, Column, Part, note, table, words
from transect.report.engine.context import Context
from transect.report.engine.finding import median
from transect.report.engine.text import clipped, count, factor, quantity
from transect.report.topics.serving.condition_findings import gives_wrong_output
from transect.report.topics.serving.facts import faithful_groups
from transect.runtimes.options import EQUAL
from transect.stats.verdicts import Answer

_REASON = 140
# Stands after a number that a clock's steps make coarse.
_COARSE = "†"


@dataclass(frozen=True, kw_only=True)
class _Row:
    """One model: the runs of one exporter's file under each runtime, at the base point."""

    workload: str
    exporter: str
    precision: str
    runs: dict[str, InferGroup]
    reference: InferGroup | None


def matrix_blocks(context: Context) -> Iterator[Part]:
    """A table per provider, models by runtimes."""
    asked = [
        group
        for group in context.of("infer")
        if group.cell.options == EQUAL and group.cell.load is None and group.cell.sessions == 1
    ]
    right = {id(group) for name in context.workloads("infer") for group in faithful_groups(context, name)}
    several, coarse = len({group.cell.runtime for group in asked}) > 1, False
    for provider, groups in sorted(grouped(asked, lambda group: group.cell.provider).items()):
        rows = [row for members in _points(groups) for row in _rows(members, right)]
        names = sorted({name for row in rows for name in row.runs}, key=lambda n: (n != REFERENCE, n))
        if several:
            yield table(
                rows, _columns(context, rows, names, right), caption=f"Models by runtimes, on {provider}{_shared(rows)}"
            )
            shown = list(dict.fromkeys(group for row in rows for group in row.runs.values()))
            coarse = coarse or any(is_coarse(group) for group in shown if id(group) in right)
    if several:
        yield note(
            "✓ passes: the output is the framework's; of a file in another precision than fp32 what ONNX Runtime itself "
            "computes of it. The number is the latency over that of C++, or a time where C++ has none, at the smallest batch "
            "and with the fewest threads that the runtime ran with; ≈ where the two are not shown to differ."
        )
        if coarse:
            yield note(
                f"{_COARSE} A clock of the two ticks in steps of more than 2 % of the latency that "
                "it measures, as a browser's does: the number is coarse."
            )


def _points(groups: Sequence[InferGroup]) -> Iterator[list[InferGroup]]:
    """Yield the groups of each workload and precision at the smallest batch and fewest threads.

    What did not run there follows at its own such point, beside C++.
    """
    alike = grouped(groups, lambda group: (group.cell.workload, group.cell.precision))
    for _, members in sorted(alike.items()):
        remaining = members
        while first := base_point(remaining):
            shown = set(map(_who, first))
            yield first + [group for group in members if _is_base_of(group, first)]
            remaining = [group for group in remaining if _who(group) not in shown]


def _who(group: InferGroup) -> tuple[str, str | None]:
    return group.cell.runtime, group.cell.exporter


def _is_base_of(group: InferGroup, others: Sequence[InferGroup]) -> bool:
    """Whether a group is C++ at the point of `others`, on a model of theirs, and not among them."""
    cell = group.cell
    exporters = {member.cell.exporter for member in others}
    return (
        cell.runtime == REFERENCE
        and (cell.batch, cell.threads) == (others[0].cell.batch, others[0].cell.threads)
        and (cell.exporter in exporters or None in exporters)
        and group not in others
    )


def _rows(groups: Sequence[InferGroup], right: set[int]) -> Iterator[_Row]:
    """Yield a row per exporter; what takes no export stands in each of them."""
    without_export = {group.cell.runtime: group for group in groups if not takes_onnx(group)}
    exported = grouped(filter(takes_onnx, groups), lambda group: group.cell.exporter or "")
    for exporter, members in sorted(exported.items()) or [("", [])]:
        runs = {group.cell.runtime: group for group in members} | without_export
        reference = runs.get(REFERENCE)
        yield _Row(
            workload=groups[0].cell.workload,
            exporter=exporter,
            runs=runs,
            precision=groups[0].cell.precision,
            reference=reference if reference is not None and id(reference) in right else None,
        )


def _columns(context: Context, rows: Sequence[_Row], names: Sequence[str], right: set[int]) -> list[Column[_Row]]:
    columns: list[Column[_Row]] = [
        words("Model", lambda row: row.workload),
        words("From", lambda row: row.exporter or "–"),
    ]
    if len({row.precision for row in rows}) > 1:
        columns.append(words("Precision", lambda row: row.precision))
    if len(set(map(_point, rows))) > 1:
        columns.append(words("At", _point))
    columns += [words(name, partial(_verdict, context, name=name, right=right), missing="–") for name in names]
    return columns


def _shared(rows: Sequence[_Row]) -> str:
    """Say at which point all rows are, where it is one."""
    points = set(map(_point, rows))
    return f", at {points.pop()}" if len(points) == 1 else ""


def _point(row: _Row) -> str:
    cell = next(iter(row.runs.values())).cell
    return f"batch {cell.batch}, {count(cell.threads, 'thread')}"


def _verdict(context: Context, row: _Row, name: str, right: set[int]) -> Chip | None:
    """Return pass with the ratio to C++, or in a word why there is none."""
    group = row.runs.get(name)
    if group is None:
        return None
    if id(group) not in right:
        return _outcome(group)
    passed, tone = _passed(group)
    measure = measure_of(ran for ran in row.runs.values() if id(ran) in right and ran.values(RUN))
    time = quantity(median(group, measure), "s") + (" end to end" if measure == WHOLE else "")
    coarse = any(is_coarse(side) for side in (group, row.reference) if side is not None)
    mark = _COARSE if coarse else ""
    if group is row.reference:
        return Chip(f"{passed} {time}{mark}", tone)
    pair = None
    if row.reference is not None:
        pair = contrast(group, row.reference, context.floors, measure, varies="runtime")
    if pair is None:
        return Chip(f"{passed} {time}{mark}", tone, title="C++ has no time")
    sign = "" if pair.answer is Answer.DIFFERENT else "≈ "
    return Chip(f"{passed} {sign}{factor(pair.ratio.value)}{mark}", tone, title=time)


def _passed(group: InferGroup) -> tuple[str, str]:
    """Return the words before a number, and their tone: a pass is one of outputs compared."""
    ended, every = len(group.ok), len(group.records)
    partly = partly_compared(group)
    sign = "✓" if was_compared(group) else "not compared"
    parts = [sign, f"{ended} of {every}" if ended < every else "", f"({partly})" if partly else ""]
    text = " ".join(filter(None, parts))
    whole = sign == "✓" and ended == every and not partly
    return (text, "good") if whole else (f"{text}:", "warn")


def _outcome(group: InferGroup) -> Chip:
    if gives_wrong_output(group):
        return Chip("wrong output", "bad", title=_reason(group))
    if group.ok:
        return Chip("export differs", "bad", title=_reason(group))
    record = group.records[0]
    tone = "warn" if record.status is Status.SKIPPED else "bad"
    return Chip(record.cause.value if record.cause else "failed", tone, title=_reason(group))


def _reason(group: InferGroup) -> str:
    message = next((record.message for record in group.records if record.message), "")
    if message:
        return clipped(message, _REASON)
    if group.ok and not gives_wrong_output(group):
        return "the export itself does not compute what the framework computes"
    return "no reason given"
