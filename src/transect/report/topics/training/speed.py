"""Section: training speed beside its bound, and what a step is made of, per workload."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from transect.analysis.bounds import Bound, step_bound
from transect.analysis.groups import Group
from transect.analysis.kinds import compared, kinds_of, main_kind
from transect.analysis.labels import people_name
from transect.analysis.scaling import METRIC
from transect.report.engine.blocks import Chip, Heading, Lead, Part, digits, note, words
from transect.report.engine.charts.chart import MAX_DRAWN, drawn, left_out
from transect.report.engine.charts.inks import MUTED
from transect.report.engine.charts.marks import Bar
from transect.report.engine.charts.plots import bar_plot
from transect.report.engine.charts.theme import Style, legend
from transect.report.engine.columns import (
    MARKS,
    NOT_TOLD,
    USUAL_SCORE,
    labelled,
    medians,
    metric_chart,
    metric_columns,
    ranked,
    score_column,
)
from transect.report.engine.context import Context
from transect.report.engine.finding import median
from transect.report.engine.text import number, percent, scale_for, tenths
from transect.report.topics.training.facts import PARTS, step_shares


def speed_body(context: Context) -> Iterator[Part]:
    """Draw each workload's training cells."""
    yield Lead(
        "Samples per second of each way to train, with the score that it reached on the test set at the right, and what "
        "its steps are made of."
    )
    for workload in context.workloads("train"):
        right = compared([g for g in context.of("train", workload) if g.ok and not g.wrong])
        for kind in kinds_of(right):
            groups, main = [group for group in right if group.kind == kind], kind == main_kind(right)
            if len(groups) < 2:
                # A cell alone has its table, under Frameworks side by side.
                continue
            yield Heading(workload if main else f"{workload}, with {kind.words}")
            if any(group.over_subscribed for group in groups):
                yield note("Hollow symbols: more ranks than the machine has cores, no claim.")
            if len({group.cell.nodes for group in groups}) > 1:
                yield note("2x4 ranks are 2 nodes with 4 ranks on each.")
            yield throughput_chart(context, workload, groups)
            yield split_chart(context, workload, groups) if main else None


def throughput_chart(context: Context, workload: str, groups: Sequence[Group]) -> Part:
    """Draw samples per second, fastest first, with the bound where one is known."""
    fastest = ranked(groups, METRIC)
    if not fastest:
        return None

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

    scale, reached = scale_for([], "1"), score_column(groups)
    best = next((group for group in fastest if not group.over_subscribed), fastest[0])
    synthetic = " on synthetic input" if best.kind.synthetic else ""
    within = " within the cores" if any(group.over_subscribed for group in fastest) else ""
    name = people_name(best.cell, [group.cell for group in groups], always=("ranks",), never=("workload",))
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
        right=lambda group: str(reached.entry(group)),
        bound=limit,
        title=f"{number(median(best, METRIC) or 0.0)} samples per second{synthetic}, by {name}, is the most{within}",
        axis="samples/s, more is better",
        name=f"rate-{_slug(workload, groups)}",
        notes=[
            "Upright grey mark: the roofline bound with as many threads as the ranks use."
            if any(map(limit, fastest))
            else "No bound: no benchmark ran with as many threads as these cells use.",
            *([] if reached.title == USUAL_SCORE else [f"At the right: {reached.title}."]),
        ],
    )


def _slug(workload: str, groups: Sequence[Group]) -> str:
    """Name a workload and a kind for ids: letters, digits and hyphens."""
    return re.sub(r"[^A-Za-z0-9]+", "-", f"{workload} {groups[0].kind.words}".strip())


def _share_of(part: str) -> Callable[[Group], float | None]:
    return lambda group: step_shares(group).get(part)


def split_chart(context: Context, workload: str, groups: Sequence[Group]) -> Part:
    """Draw how a step's time divides into compute, waited communication and input; shortest first."""
    shortest = ranked(groups, "step_time")
    if not shortest:
        return None
    label = labelled(groups, always=("ranks",))
    scale = scale_for([median(group, "step_time") for group in shortest], "s")
    styles: dict[str, Style] = {part: context.styles.get(part) for part in PARTS}

    def bar(group: Group) -> Bar:
        step, shares = median(group, "step_time") or 0.0, step_shares(group)
        parts = [(share * step / scale.factor, styles[part]) for part, share in shares.items()]
        # What no part explains is drawn as such: an empty place would read as zero.
        parts.append((max(0.0, 1 - sum(shares.values())) * step / scale.factor, Style(MUTED)))
        waited = shares.get("communication")
        right = f"waiting {NOT_TOLD}" if waited is None else f"{percent(waited)} waited"
        return Bar(label=str(label.entry(group)), parts=parts, right=right, about=group)

    bars = [bar(group) for group in shortest[:MAX_DRAWN]]
    waits = [step_shares(group).get("communication", 0.0) for group in shortest if group.cell.ranks > 1]
    span = " to ".join(dict.fromkeys(percent(end) for end in (min(waits, default=0.0), max(waits, default=0.0))))
    names = [(word, styles[part]) for part, word in PARTS.items()]
    names.append(("other or not told", Style(MUTED)))
    return drawn(
        bar_plot(bars, title=f"median time per step ({scale.unit})"),
        shortest,
        [
            label,
            medians(f"Step ({scale.unit})", "step_time", scale),
            *(digits(word.capitalize(), _share_of(part), percent, NOT_TOLD) for part, word in PARTS.items()),
            MARKS,
        ],
        title=f"Waiting for messages takes {span} of a step on several ranks"
        if any(waits)
        else "Where a step's time goes",
        name=f"split-{_slug(workload, groups)}",
        legend=legend(names, line=False),
        notes=(left_out(len(shortest), MAX_DRAWN, "longest"), "Waiting is that of all steps of a run together."),
    )
