"""Section: training past the memory, and what each way to treat activations costs."""

from __future__ import annotations

from collections.abc import Iterator

from transect.analysis.contrast import Contrast
from transect.analysis.groups import grouped
from transect.analysis.labels import group_labels
from transect.analysis.scaling import TrainGroup
from transect.report.engine.blocks import Chip, Column, Explained, Heading, Lead, Part, digits, table, words
from transect.report.engine.charts.chart import MAX_PANELS, Point, Series, line_chart
from transect.report.engine.charts.theme import palette
from transect.report.engine.context import Context
from transect.report.engine.contrast_words import verdict_chip
from transect.report.engine.text import clean, clipped, count, factor, in_unit, quantity, scale_for, spread, with_ends
from transect.report.topics.parallel.out_of_core import PLAIN, MemoryRow, Sweep, per_sample, ran_out, sweeps
from transect.stats.samples import summarise

# What tells a run's numbers from another's, to the last digit.
_DIGITS = ("final_loss", "loss_deviation", "weights_deviation")
_REASON = 160


def out_of_core_body(context: Context) -> Iterator[Part]:
    """Draw and list each sweep of batch, memory and budget; nothing without one."""
    found = [
        sweep for name in context.workloads("train") for sweep in sweeps(context.of("train", name), context.floors)
    ]
    if not found:
        return
    yield Lead(
        "What becomes of activations between the forward and the backward pass, under a limit that the operating system "
        "enforces: what does not fit ends as out-of-memory."
    )
    names = group_labels(found, always=("ranks",), never=("workload", "batch"))
    for number, sweep in enumerate(found):
        title = f"{sweep.cell.workload} · {names[sweep.cell]}"
        yield Heading(clean(title))
        if number < MAX_PANELS:
            yield _chart(sweep, title, number)
        yield _table(sweep)
    yield Explained(
        "Time per sample is the step over the batch, beside plain memory at the largest batch that fits into the same "
        "budget, and beside plain memory without a budget at the same batch. Same digits: final loss and distances to the "
        "reference are those of plain memory, bit by bit."
    )


def budget_words(budget: int | None) -> str:
    """Write a budget; none has none."""
    return "no limit" if budget is None else quantity(budget, "B")


def _chart(sweep: Sweep, title: str, number: int) -> Part:
    """Draw time per sample over the batch, a line for each memory and budget."""
    able = [row.group for row in sweep.rows if row.fits and per_sample(row.group)]
    series_of = grouped(able, lambda group: (group.cell.memory, group.cell.memory_budget))
    if not able or len({group.cell.batch for group in able}) < 2:
        return None
    scale = scale_for([value for group in able for value in per_sample(group)], "s")
    styles = palette(len(series_of))
    series = [
        Series(
            name=f"{memory}, {budget_words(budget)}",
            style=style,
            points=[
                Point(
                    x=group.cell.batch,
                    hollow=group.over_subscribed,
                    about=group,
                    repeats=[value / scale.factor for value in per_sample(group)],
                )
                for group in members
            ],
        )
        for ((memory, budget), members), style in zip(series_of.items(), styles, strict=True)
    ]
    return line_chart(
        series,
        able,
        [
            words("Memory", lambda group: group.cell.memory),
            words("Budget", lambda group: budget_words(group.cell.memory_budget)),
            digits("Batch", lambda group: group.cell.batch),
            digits("Per sample", _per_sample, in_unit("s")),
            digits("Runs", lambda group: len(per_sample(group))),
        ],
        title="Time per sample over the batch",
        x="batch",
        y=f"{scale.unit} per sample",
        name=f"memory-{number}",
        most=12,
        alt=f"{clean(title)}: time per sample over the batch, {count(len(series), 'series', 'series')}.",
        notes=["A line ends where the next larger batch did not fit, or was not asked for."],
    )


def _per_sample(group: TrainGroup) -> float | None:
    summary = summarise(per_sample(group))
    return summary.median if summary else None


def _table(sweep: Sweep) -> Part:
    scale = scale_for([_per_sample(row.group) for row in sweep.rows], "s")
    plain = {
        (row.group.cell.batch, row.group.cell.memory_budget): row.group
        for row in sweep.rows
        if row.group.cell.memory == PLAIN
    }

    def same_digits(row: MemoryRow) -> Chip | None:
        return _same_digits(row, plain)

    columns: list[Column[MemoryRow]] = [
        words("Budget", lambda row: budget_words(row.group.cell.memory_budget)),
        digits("Batch", lambda row: row.group.cell.batch),
        words("Memory", lambda row: row.group.cell.memory),
        words("Outcome", _outcome),
        digits("Held in a step", lambda row: _memory_bytes(row.group, "step_bytes"), in_unit("B")),
        digits("Offloaded", lambda row: _memory_bytes(row.group, "offloaded_bytes"), in_unit("B")),
        digits(f"Per sample ({scale.unit})", lambda row: _per_sample(row.group), scale),
        digits("Range or interval", lambda row: spread(summarise(per_sample(row.group)), scale)),
        digits("Runs", lambda row: len(per_sample(row.group))),
        digits("Times what fits", lambda row: row.times_what_fits, factor),
        digits("Beside what fits", lambda row: _beside(row.beside_fitting)),
        digits("Beside no limit", lambda row: _beside(row.beside_free)),
        words("Verdict", _mark),
        words("Same digits", same_digits),
    ]
    return table(
        sweep.rows,
        columns,
        caption="The tightest budget first, then by batch",
        fold_title="Every memory, budget and batch",
    )


def _memory_bytes(group: TrainGroup, name: str) -> float | None:
    """Return a number of the last step's memory, of the rank that has most, or None."""
    ranks = group.ok[0].details.get("memory") if group.ok else None
    values = [rank[name] for rank in ranks if isinstance(rank, dict) and name in rank] if ranks else []
    return float(max(values)) if values else None


def _beside(result: Contrast | None) -> str | None:
    return with_ends(result.ratio) if result is not None else None


def _outcome(row: MemoryRow) -> Chip:
    group = row.group
    if group.wrong:
        return Chip("wrong result", "bad")
    first = group.records[0]
    if ran_out(group):
        return Chip("out of memory", "warn", clipped(first.message, _REASON))
    if not group.ok:
        cause = first.cause.value if first.cause else "no result"
        return Chip(cause, "warn", clipped(first.message, _REASON))
    return Chip("trained", "good")


def _mark(row: MemoryRow) -> Chip | None:
    if row.group.over_subscribed:
        return Chip("not known: shared cores", "warn")
    result = row.beside_fitting or row.beside_free
    return Chip("disturbed", "warn") if row.group.disturbed and result is None else verdict_chip(result)


def _same_digits(row: MemoryRow, plain: dict[tuple[int, int | None], TrainGroup]) -> Chip | None:
    """Compare the numbers that identify a run with plain memory's, repeat by repeat."""
    cell = row.group.cell
    base = plain.get((cell.batch, None)) or plain.get((cell.batch, cell.memory_budget))
    if cell.memory == PLAIN or base is None or not row.group.ok or not base.ok:
        return None
    return Chip("yes", "good") if _digits_equal(row.group, base) else Chip("no", "warn")


def _digits_equal(group: TrainGroup, base: TrainGroup) -> bool:
    pairs: list[tuple[float | None, float | None]] = []
    for name in _DIGITS:
        values, base_values = group.by_repeat(name), base.by_repeat(name)
        pairs += [(values.get(repeat), base_values.get(repeat)) for repeat in values.keys() & base_values.keys()]
    return bool(pairs) and all(a == b for a, b in pairs)
