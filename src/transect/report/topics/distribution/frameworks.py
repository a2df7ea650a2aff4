"""Section: every framework with every way to distribute it, side by side, and what that costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from transect.analysis.groups import Group
from transect.analysis.kinds import Kind, compared, kinds_of
from transect.analysis.quality import TIME, may_be_ranked, quality_target, reaches_target
from transect.analysis.scaling import METRIC, TrainGroup
from transect.domain.record import Status
from transect.report.engine.blocks import MAX_OPEN, Chip, Column, Heading, Lead, Part, digits, note, table, words
from transect.report.engine.columns import ACCURACY, MARKS, NOT_TOLD, RANKS, labelled, medians, time_columns, undecided
from transect.report.engine.context import Context
from transect.report.engine.finding import median
from transect.report.engine.text import clean, clipped, count, in_unit, number, percent, scale_for, tenths
from transect.report.topics.distribution.section import cost_blocks, single_blocks
from transect.report.topics.distribution.twins import InputPenalty, input_penalties, rate_factor, rule_groups
from transect.report.topics.training.throughput import panels
from transect.stats.comparisons import Verdict

_REASON = 140
_READING = (
    "Waited: time of a step in which a rank does nothing but wait for messages. Overlap: share of "
    "the communication that hides behind computing. Cost: a step beside the ideal, which is the "
    "step of the same framework's single over the ranks (strong scaling) or that step itself "
    "(weak); it is split in waited communication, slower computing (cores and memory bandwidth "
    "that ranks share, less work per rank), input, and what the medians of the parts leave over. "
    "Cells with more ranks than cores are marked and carry no claim."
)


def frameworks_body(context: Context) -> Iterator[Part]:
    """Set each workload's training cells side by side: table, charts, costs, twins."""
    cells = [group.cell for name in context.workloads("train") for group in context.of("train", name)]
    ways = len({(cell.framework, cell.strategy) for cell in cells})
    workloads = len({cell.workload for cell in cells})
    lead = f"{count(ways, 'way')} to train {count(workloads, 'workload')}, side by side. " if cells else ""
    yield Lead(
        f"{lead}Which framework and which way of distributing trains this workload fastest to the same "
        "quality, and what does the distribution cost? Only cells of one kind of training stand in "
        "one table: same input, precision, reduction of gradients and rule of the learning rate. "
        "A value that a library does not tell is called so, and is no zero.",
        empty="This study has no training cells.",
    )
    if context.workloads("train"):
        yield note(_READING)
    for workload in context.workloads("train"):
        yield Heading(workload)
        yield from _workload(context, workload)


def _workload(context: Context, workload: str) -> Iterator[Part]:
    groups: list[TrainGroup] = context.of("train", workload)
    beside = compared([group for group in groups if group.ok and not group.wrong])
    if not beside:
        yield note("No training cell ended well.")
        yield from _not_compared(groups)
    for place, kind in enumerate(kinds_of(beside)):
        members = [group for group in beside if group.kind == kind]
        if place:
            yield from _tables(workload, members, kind, folded=f"With {kind.words}")
            yield from cost_blocks(context, workload, members, folded=True)
        else:
            yield from panels(context, workload, members)
            yield from _tables(workload, members, kind)
            yield from _not_compared(groups)
            yield from cost_blocks(context, workload, members)
            yield from single_blocks(context, workload, members)
    yield from input_blocks(context, workload, groups)
    yield from rule_blocks(workload, groups)


def _tables(workload: str, groups: list[TrainGroup], kind: Kind, folded: str = "") -> Iterator[Part]:
    """List one row per group, soonest at the target first, then by speed; the end may fold."""
    groups = sorted(groups, key=_place)
    columns = [_way(groups), *_columns(groups)]
    if kind.synthetic:
        caption = f"{workload} on synthetic input: a speed of the machinery, not of the workload"
    else:
        target = quality_target(groups)
        caption = f"{workload}: " + (
            f"time to {target}, soonest first"
            if any(map(may_be_ranked, groups))
            else f"no cell reached {target} in every run; fastest first"
        )
        caption += f", with {kind.words}" if kind.words else ""
    first = len(groups) if folded else MAX_OPEN
    yield table(groups[:first], columns, caption=caption, folded=folded)
    if groups[first:]:
        title = f"The other {len(groups) - first}, slower or late"
        yield table(groups[first:], columns, caption=caption, folded=title)


def _columns(groups: list[TrainGroup]) -> list[Column[Group]]:
    def has(name: str) -> bool:
        return any(group.values(name) for group in groups)

    def part(title: str, name: str) -> Column[Group]:
        return medians(f"{title} ({step.unit})", name, step, NOT_TOLD)

    step = scale_for([median(group, "step_time") for group in groups], "s")
    columns = [RANKS]
    if any(map(MARKS.entry, groups)):
        columns.append(MARKS)
    if has(TIME):
        time = scale_for([median(group, TIME) for group in groups], "s")
        columns += time_columns(time, "Time to quality")
    columns += [
        digits("Runs", _runs),
        medians("samples/s", METRIC, number, NOT_TOLD),
        part("Step", "step_time"),
        part("Compute", "compute_time"),
        part("Waited", "communication_time"),
        part("Input", "input_time"),
        digits("Overlap", _overlap),
        medians("Start-up", "startup_time", in_unit("s")),
        medians("First step", "first_step_time", in_unit("s")),
        medians("Peak memory per rank", "peak_memory", in_unit("B")),
    ]
    optional = {
        "cpu_utilisation": medians("CPU use", "cpu_utilisation", percent),
        "gpu_utilisation": medians("GPU use", "gpu_utilisation", percent),
        "gpu_memory": medians("GPU memory", "gpu_memory", in_unit("B")),
        "energy": digits("Energy", _energy),
    }
    return columns + [column for name, column in optional.items() if has(name)]


def _way(groups: Sequence[Group]) -> Column[Group]:
    return labelled(groups, "Framework and strategy", never=("ranks",))


def _place(group: Group) -> tuple[bool, float, str]:
    reached = may_be_ranked(group)
    value = median(group, TIME) if reached else -(median(group, METRIC) or 0.0)
    return not reached, value or 0.0, group.cell.id


def _runs(group: Group) -> str:
    ended, every = len(group.ok), len(group.records)
    return str(ended) if ended == every else f"{ended} of {every}"


def _overlap(group: Group) -> str:
    if group.cell.ranks == 1:
        return "–"
    value = median(group, "overlap")
    return NOT_TOLD if value is None else percent(value)


def _energy(group: Group) -> str:
    """Write the energy of each kind of counter: they may count the same joules twice."""
    kinds = sorted(
        {measured.label or "" for record in group.ok for measured in record.metrics if measured.name == "energy"}
    )
    summaries = [(kind, group.summary("energy", kind or None)) for kind in kinds]
    parts = [f"{number(s.median)} J {clean(kind)}".strip() for kind, s in summaries if s]
    return ", ".join(parts) or "–"


def _not_compared(groups: Sequence[Group]) -> Iterator[Part]:
    """List groups without a usable run, or with a wrong one: nothing drops out unseen."""
    bad = [group for group in groups if group.wrong or not group.ok]
    way = _way(groups)
    bad.sort(key=lambda group: (_outcome(group)[1], way.entry(group), group.cell.ranks))
    columns = [way, RANKS, words("Outcome", lambda group: _outcome(group)[0]), words("Reason", _reason)]
    if bad:
        yield table(bad, columns, caption="Not in the comparison: wrong, failed or skipped")


def _reason(group: Group) -> str:
    first = next((r for r in group.records if r.cause and r.message), group.records[0])
    cause = first.cause.value if first.cause else "loss or weights outside their tolerance"
    message = clean(first.message.split("\n")[0])
    return clipped(f"{cause}: {message}" if message else cause, _REASON)


def _outcome(group: Group) -> tuple[Chip, int]:
    """Return what became of a group, and its place among the others."""
    if group.wrong:
        return Chip("diverged" if group.diverged else "wrong result", "bad"), 0
    if any(record.status is Status.FAILED for record in group.records):
        return Chip("failed", "bad"), 1
    return Chip("skipped", "warn"), 2


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
