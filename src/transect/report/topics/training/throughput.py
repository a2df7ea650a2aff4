"""Charts of training cells beside each other: time to quality, throughput, parts of a step."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from transect.analysis.bounds import Bound, step_bound
from transect.analysis.groups import Group
from transect.analysis.quality import TIME, may_be_ranked, quality_target, reaches_target
from transect.analysis.scaling import METRIC
from transect.report.engine.blocks import Chip, Part, digits, table, words
from transect.report.engine.charts.chart import MAX_DRAWN, MAX_PANELS, drawn, left_out
from transect.report.engine.charts.inks import MUTED
from transect.report.engine.charts.marks import Bar
from transect.report.engine.charts.plots import bar_plot, log_is_better
from transect.report.engine.charts.theme import Style, legend
from transect.report.engine.columns import (
    ACCURACY,
    MARKS,
    NOT_TOLD,
    accuracy_text,
    labelled,
    medians,
    metric_chart,
    metric_columns,
    ranked,
    time_columns,
)
from transect.report.engine.context import Context
from transect.report.engine.finding import median
from transect.report.engine.text import count, percent, scale_for, tenths

# Rows of one panel: with more, names and marks are no longer found again.
MAX_COUNT = 12
_PARTS = {"compute": "compute", "communication": "waited communication", "input": "input"}


def panels(context: Context, workload: str, groups: Sequence[Group]) -> Iterator[Part]:
    """Draw time to quality per number of ranks; samples/s where no cell reached the target."""
    synthetic = any(group.kind.synthetic for group in groups)
    reached = [] if synthetic else list(filter(may_be_ranked, groups))
    name = TIME if reached else METRIC
    if reached:
        title, axis = f"time to {quality_target(groups)}", "time to quality ({}), less is better"
    else:
        title = "throughput on synthetic input" if synthetic else "throughput, as no target was reached"
        axis = "samples/s, more is better"
    shown = ranked(reached or groups, name)
    scale = scale_for([median(group, name) for group in shown], "s" if reached else "1")
    # Ends and repeats too, so that no panel needs an axis of its own.
    among = [value / scale.factor for group in shown for value in group.values(name)]
    for ranks in sorted({group.cell.ranks for group in shown})[:MAX_PANELS]:
        every = [group for group in groups if group.cell.ranks == ranks]
        at_ranks = [group for group in shown if group.cell.ranks == ranks]
        missed = len(every) - len(at_ranks) if reached else 0
        hollow = any(group.over_subscribed for group in at_ranks[:MAX_COUNT])
        yield metric_chart(
            context,
            at_ranks,
            name,
            labelled(every, "Framework and strategy", never=("ranks",)),
            metric_columns(name, scale),
            scale=scale,
            right=lambda group: f"{scale.text(median(group, name))} {scale.unit}".strip(),
            title=f"{count(ranks, 'rank')}: {title}",
            axis=axis.format(scale.unit),
            name=f"frameworks-{workload}-{ranks}",
            about=workload,
            unit=scale.unit,
            most=MAX_COUNT,
            among=among,
            log=log_is_better(among),
            notes=[
                f"{count(missed, 'cell')} missed the target in at least one run, or could not be checked until it."
                if missed
                else "",
                "Hollow: more ranks than cores, no claim." if hollow else "",
            ],
        )


def quality_chart(context: Context, workload: str, groups: Sequence[Group]) -> Part:
    """Draw the time to the quality target, soonest first; None when nothing reached it."""
    target = quality_target(groups)
    reached = ranked(filter(may_be_ranked, groups), TIME)
    others = [group for group in groups if not may_be_ranked(group)]
    unseen = sum(map(reaches_target, others))
    missed = len(others) - unseen
    scale = scale_for([median(group, TIME) for group in reached], "s")
    steps = medians("Steps", "steps_to_quality")
    return metric_chart(
        context,
        reached,
        TIME,
        labelled(groups, always=("ranks",)),
        [
            *time_columns(scale),
            digits("Runs", lambda group: len(group.ok)),
            digits("Steps", lambda group: steps.entry(group) if may_be_ranked(group) else None),
        ],
        scale=scale,
        right=accuracy_text,
        title=f"Time to {target}",
        axis=f"time to {target} ({scale.unit}), less is better",
        name=f"ttq-{_slug(workload, groups)}",
        about=workload,
        first="Soonest",
        unit=scale.unit,
        others=others,
        notes=[
            f"{missed} of {len(groups)} points missed the target in at least one run." if missed else "",
            f"{unseen} of {len(groups)} points could not be checked until the target." if unseen else "",
        ],
    )


def throughput_chart(context: Context, workload: str, groups: Sequence[Group]) -> Part:
    """Draw samples per second, fastest first, with the bound where one is known."""
    fastest = ranked(groups, METRIC)

    def bound(group: Group) -> Bound | None:
        return step_bound(group, context.rates)

    def limit(group: Group) -> float | None:
        known, batch = bound(group), group.global_batch
        return known.rate(batch) if known and batch else None

    def share(group: Group) -> float | Chip | None:
        most, rate = limit(group), median(group, METRIC)
        if not most or rate is None:
            return None
        return rate / most if rate <= most else Chip(f"{tenths(rate / most)}: the bound is wrong", "warn")

    scale = scale_for([], "1")
    synthetic = all(group.kind.synthetic for group in groups)
    return metric_chart(
        context,
        fastest,
        METRIC,
        labelled(groups, always=("ranks",)),
        [
            *metric_columns(METRIC, scale, unit="samples/s"),
            digits("Bound (samples/s)", limit),
            words("Set by", lambda group: known.kind if (known := bound(group)) else "–"),
            digits("Of the bound", share, tenths),
        ],
        scale=scale,
        right=accuracy_text,
        bound=limit,
        title="Throughput on synthetic input" if synthetic else "Throughput",
        axis="samples/s, more is better",
        name=f"rate-{_slug(workload, groups)}",
        about=workload,
        first="Fastest",
        unit="samples per second",
        notes=[
            "Upright grey mark: the roofline bound with as many threads as the ranks use."
            if any(map(limit, fastest))
            else "No bound: no benchmark ran with as many threads as these cells use."
        ],
    )


def both_table(workload: str, groups: Sequence[Group]) -> Part:
    """Set each cell's place by time to quality beside that by throughput; None where no two can be ranked.

    What trains fastest need not be there first: it may take more steps, or never arrive.
    """
    soonest, fastest = ranked(filter(may_be_ranked, groups), TIME), ranked(groups, METRIC)
    if len(soonest) < 2:
        return None
    place = {id(group): number for number, group in enumerate(soonest, 1)}
    speed = {id(group): number for number, group in enumerate(fastest, 1)}
    late = [group for group in fastest if id(group) not in place]
    # By throughput among those that have a place in time.
    ahead = {id(group): n for n, group in enumerate((faster for faster in fastest if id(faster) in place), 1)}
    scale = scale_for([median(group, TIME) for group in soonest], "s")

    def moved(group: Group) -> Chip | None:
        if id(group) not in place:
            return Chip("fast, and not there", "warn") if speed[id(group)] <= len(late) else None
        lost = place[id(group)] - ahead[id(group)]
        return Chip(f"{'loses' if lost > 0 else 'gains'} {count(abs(lost), 'place')}") if lost else None

    return table(
        [*soonest, *late],
        [
            labelled(groups, always=("ranks",)),
            digits("By time to quality", lambda group: place.get(id(group))),
            *time_columns(scale, "Time to quality"),
            medians("Steps", "steps_to_quality"),
            digits("By samples/s", lambda group: speed.get(id(group))),
            medians("samples/s", METRIC),
            ACCURACY,
            words("", moved),
        ],
        folded=f"{workload}: time to quality beside throughput, place by place",
        caption=f"{workload}: who is there first, and who is fastest; medians, so that neighbours may be the same",
    )


def _slug(workload: str, groups: Sequence[Group]) -> str:
    """Name a workload and a kind for ids: letters, digits and hyphens."""
    return re.sub(r"[^A-Za-z0-9]+", "-", f"{workload} {groups[0].kind.words}".strip())


def split_chart(context: Context, workload: str, groups: Sequence[Group], *, over_ranks: bool = False) -> Part:
    """Draw how a step's time divides into compute, waited communication and input; shortest first.

    `over_ranks`: in the order of the groups, which are lines over ranks.
    """
    shortest = [g for g in groups if g.values("step_time")] if over_ranks else ranked(groups, "step_time")
    if not shortest:
        return None
    label = labelled(groups, always=("ranks",))
    scale = scale_for([median(group, "step_time") for group in shortest], "s")
    styles: dict[str, Style] = {part: context.styles.get(part) for part in _PARTS}

    def waited(group: Group) -> float | None:
        step, value = median(group, "step_time"), median(group, "communication_time")
        return None if value is None else value / step if step else 0.0

    def bar(group: Group) -> Bar:
        values = {part: median(group, f"{part}_time") for part in _PARTS}
        parts = [((value or 0.0) / scale.factor, styles[part]) for part, value in values.items()]
        if None in values.values():
            # What is not told is drawn as such: an empty place would read as zero.
            remaining = (median(group, "step_time") or 0.0) - sum(filter(None, values.values()))
            parts.append((max(0.0, remaining) / scale.factor, Style(MUTED)))
        share = waited(group)
        right = f"waiting {NOT_TOLD}" if share is None else f"{percent(share)} waited"
        return Bar(label=str(label.entry(group)), parts=parts, right=right, about=group)

    bars = [bar(group) for group in shortest[:MAX_DRAWN]]
    names = [(word, styles[part]) for part, word in _PARTS.items()]
    if any(len(row.parts) > len(_PARTS) for row in bars):
        names.append((NOT_TOLD, Style(MUTED)))
    return drawn(
        bar_plot(bars, title=f"median time per step ({scale.unit})"),
        shortest,
        [
            label,
            medians(f"Step ({scale.unit})", "step_time", scale),
            *(
                medians(f"{word.capitalize()} ({scale.unit})", f"{part}_time", scale, NOT_TOLD)
                for part, word in _PARTS.items()
            ),
            digits("Waited share", waited, percent, NOT_TOLD),
            MARKS,
        ],
        title="What a step consists of, over ranks" if over_ranks else "Where a step's time goes",
        name=f"split-{'ranks-' if over_ranks else ''}{_slug(workload, groups)}",
        alt=f"{workload}: compute, waited communication and input time of a step per cell. "
        f"{'First' if over_ranks else 'Shortest step'}: {bars[0].label}.",
        legend=legend(names, line=False),
        notes=(
            left_out(len(shortest), MAX_DRAWN, "other" if over_ranks else "longest"),
            "Medians of the parts need not add up to the median step.",
        ),
    )
