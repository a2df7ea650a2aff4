"""Which model runs under which runtime, and how its latency stands to that of C++."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from transect.analysis.contrasts import contrast
from transect.analysis.groups import grouped
from transect.analysis.labels import word
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
from transect.report.engine.text import clipped, factor, quantity
from transect.report.topics.serving.condition_facts import gives_wrong_output
from transect.report.topics.serving.facts import faithful_groups, place_of
from transect.runtimes.options import EQUAL
from transect.stats.verdicts import Answer

_REASON = 140
# Stands after a number that a clock's steps make coarse.
_COARSE = "†"


@dataclass(frozen=True, kw_only=True)
class _Row:
    """One model at one point: the runs of one exporter's file under each runtime, and which of them are right."""

    exporter: str
    runs: Mapping[str, InferGroup]
    right: frozenset[int]

    @property
    def any(self) -> InferGroup:
        """One of its runs: its model, precision and point are those of all."""
        return next(iter(self.runs.values()))

    @property
    def reference(self) -> InferGroup | None:
        """The run of C++, where it is right."""
        found = self.runs.get(REFERENCE)
        return found if found is not None and id(found) in self.right else None

    @property
    def measure(self) -> str:
        """The metric by which its runs are compared."""
        return measure_of(ran for ran in self.runs.values() if id(ran) in self.right and ran.values(RUN))


def matrix_blocks(context: Context) -> Iterator[Part]:
    """A table per provider, models by runtimes; nothing of one runtime."""
    asked = [
        group
        for group in context.of("infer")
        if group.cell.options == EQUAL and group.cell.load is None and group.cell.sessions == 1
    ]
    if len({group.cell.runtime for group in asked}) < 2:
        return
    right = frozenset(id(group) for name in context.workloads("infer") for group in faithful_groups(context, name))
    coarse = False
    for provider, groups in sorted(grouped(asked, lambda group: group.cell.provider).items()):
        rows = [row for members in _points(groups) for row in _rows(members, right)]
        places = set(map(_point, rows))
        at = f", at {places.pop()}" if len(places) == 1 else ""
        yield table(rows, _columns(context, rows), caption=f"Models by runtimes, on {provider}{at}")
        coarse = coarse or any(is_coarse(g) for row in rows for g in row.runs.values() if id(g) in right)
    yield note(
        "A language stands for ONNX Runtime that is called from it. ✓ passes: the output is the framework's; of a file in another precision than fp32 what ONNX Runtime itself "
        "computes of it. The number is the latency over that of C++, or a time where C++ has none, at the smallest batch "
        "and with the fewest threads that the runtime ran with; ≈ where the two are not shown to differ."
    )
    if coarse:
        yield note(
            f"{_COARSE} A clock of the two ticks in steps of more than 2 % of the latency that "
            "it measures, as a browser's does: the number is coarse."
        )


def _points(groups: Sequence[InferGroup]) -> Iterator[list[InferGroup]]:
    """Yield the groups of each workload and precision, each runtime at its smallest batch and fewest threads, beside C++."""
    alike = grouped(groups, lambda group: (group.cell.workload, group.cell.precision))
    for _, members in sorted(alike.items()):
        of_whom = grouped(members, lambda group: (group.cell.runtime, group.cell.exporter))
        first = [group for each in of_whom.values() for group in base_point(each)]
        at_point = grouped(first, lambda group: (group.cell.batch, group.cell.threads))
        for point, shown in sorted(at_point.items()):
            exporters = {group.cell.exporter for group in shown}
            yield shown + [
                group
                for group in members
                if group.cell.runtime == REFERENCE
                and (group.cell.batch, group.cell.threads) == point
                and (group.cell.exporter in exporters or None in exporters)
                and group not in shown
            ]


def _rows(groups: Sequence[InferGroup], right: frozenset[int]) -> Iterator[_Row]:
    """Yield a row per exporter; what takes no export stands in each of them."""
    without_export = {group.cell.runtime: group for group in groups if not takes_onnx(group)}
    exported = grouped(filter(takes_onnx, groups), lambda group: group.cell.exporter or "")
    for exporter, members in sorted(exported.items()) or [("", [])]:
        runs = {group.cell.runtime: group for group in members} | without_export
        yield _Row(exporter=exporter, runs=runs, right=right)


def _columns(context: Context, rows: Sequence[_Row]) -> list[Column[_Row]]:
    names = sorted({name for row in rows for name in row.runs}, key=lambda name: (name != REFERENCE, name))
    columns: list[Column[_Row]] = [
        words("Model", lambda row: row.any.cell.workload),
        words("From", lambda row: word("exporter", row.exporter) if row.exporter else "–"),
    ]
    told = [words("Precision", lambda row: row.any.cell.precision), words("At", _point)]
    columns += [column for column in told if len(set(map(column.value, rows))) > 1]
    return columns + [words(_language(name), partial(_verdict, context, name=name), missing="–") for name in names]


def _language(runtime: str) -> str:
    """Name a runtime where there is little room, ONNX Runtime by the language that calls it."""
    return word("runtime", runtime).removeprefix("ONNX Runtime (").removesuffix(")")


def _point(row: _Row) -> str:
    return place_of(row.any)


def _verdict(context: Context, row: _Row, name: str) -> Chip | None:
    """Return pass with the ratio to C++, or in a word why there is none."""
    group, reference, measure = row.runs.get(name), row.reference, row.measure
    if group is None:
        return None
    if id(group) not in row.right:
        return _outcome(group)
    passed, tone = _passed(group)
    time = quantity(median(group, measure), "s") + (" end to end" if measure == WHOLE else "")
    mark = _COARSE if any(is_coarse(side) for side in (group, reference) if side is not None) else ""
    pair = None
    if reference is not None and group is not reference:
        pair = contrast(group, reference, context.floors, measure, varies="runtime")
    if pair is None:
        return Chip(f"{passed} {time}{mark}", tone, title="" if group is reference else "C++ has no time")
    sign = "" if pair.answer is Answer.DIFFERENT else "≈ "
    return Chip(f"{passed} {sign}{factor(pair.ratio.value)}{mark}", tone, title=time)


def _passed(group: InferGroup) -> tuple[str, str]:
    """Return the words before a number, and their tone: a pass is one of outputs compared."""
    ended, every = len(group.ok), len(group.records)
    partly = partly_compared(group)
    sign = "✓" if was_compared(group) else "not compared"
    parts = [sign, f"{ended} of {every}" if ended < every else "", f"({partly})" if partly else ""]
    text = " ".join(filter(None, parts))
    return (text, "good") if text == "✓" else (f"{text}:", "warn")


def _outcome(group: InferGroup) -> Chip:
    """Say why a run has no time, with its reason behind it."""
    record = next((record for record in group.records if record.message), group.records[0])
    reason = clipped(record.message, _REASON) or "no reason given"
    if gives_wrong_output(group):
        return Chip("wrong output", "bad", title=reason)
    if group.ok:
        unfaithful = "the export itself does not compute what the framework computes"
        return Chip("export differs", "bad", title=reason if record.message else unfaithful)
    first = group.records[0]
    tone = "warn" if first.status is Status.SKIPPED else "bad"
    return Chip(first.cause.value if first.cause else "failed", tone, title=reason)
