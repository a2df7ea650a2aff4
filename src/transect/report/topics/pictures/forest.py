"""All comparisons that the study asks for on one axis each stage, beside the margin within which two are the same."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from transect.analysis.contrasts import Contrast
from transect.analysis.groups import Group, grouped
from transect.analysis.labels import people_name
from transect.domain.metrics import Direction, metric
from transect.report.engine.blocks import Part, digits, words
from transect.report.engine.charts.chart import dot_chart
from transect.report.engine.charts.inks import GOOD, MUTED, WARN
from transect.report.engine.charts.marks import Dot
from transect.report.engine.charts.theme import Style, legend
from transect.report.engine.context import Context
from transect.report.engine.text import clean, count, number, percent, with_ends
from transect.stats.comparisons import Confidence
from transect.stats.verdicts import Answer

_MAX_ROWS, _MAX_PANELS = 30, 6
_SHAPES = {Answer.DIFFERENT: "diamond", Answer.SAME: "square", Answer.OPEN: "circle"}
_INKS = {Confidence.CONFIRMED: GOOD, Confidence.PROVISIONAL: WARN, Confidence.INCONCLUSIVE: MUTED}
_SURE = {Confidence.CONFIRMED: "sure", Confidence.PROVISIONAL: "likely", Confidence.INCONCLUSIVE: "not known"}
_TITLES = {
    "train": "Training",
    "infer": "Serving",
    "bench": "Kernels",
    "retrain": "Training on",
    "federate": "Learning together",
}
# How many times as far as what is decided an open interval is drawn.
_BEYOND = 1.3
# How much of the other side's logarithm either side of 1 has at least.
_LEAST = 0.3


def forest_charts(context: Context) -> Iterator[Part]:
    """Draw the asked contrasts of each stage, or all where none is asked, by how many times as long they take."""
    every = [made for made in context.contrasts if not _is_score(made)]
    asked = [made for made in every if made.asked] or [made for made in every if made.decision is not None]
    of_stage = grouped(asked, lambda made: made.group.cell.stage)
    order = list(_TITLES)
    ordered = sorted(of_stage.items(), key=lambda item: (order.index(item[0]) if item[0] in order else 9, item[0]))
    for stage, members in ordered[:_MAX_PANELS]:
        lacking = {frozenset(pair.points) for pair in context.contrasts.lacking if pair.stage == stage}
        yield _forest(stage, members, len(lacking))


def _is_score(made: Contrast) -> bool:
    """Whether it compares shares, such as accuracies: they are no times, nor rates."""
    known = metric(made.metric)
    return known.direction is Direction.HIGHER and known.unit == "1"


def _forest(stage: str, contrasts: Sequence[Contrast], lacking: int) -> Part:
    of_base = grouped(contrasts, lambda made: (str(made.group.cell.workload or ""), id(made.base)))
    heads = {key: _head(members[0].base, contrasts) for key, members in of_base.items()}
    names = {
        id(made): clean(people_name(made.group.cell, [made.base.cell, *(other.group.cell for other in members)]))
        for members in of_base.values()
        for made in members
    }
    ordered = [
        made
        for key in sorted(of_base, key=lambda key: (key[0], heads[key]))
        for made in sorted(of_base[key], key=lambda made: made.cost.value)
    ]
    margin = contrasts[0].comparison.margin

    def head(made: Contrast) -> str:
        return heads[str(made.group.cell.workload or ""), id(made.base)]

    def dot(made: Contrast) -> Dot:
        # Where nothing tells the noise there is no interval to draw.
        cost, known = made.cost, math.isfinite(made.half_width)
        return Dot(
            label=names[id(made)],
            value=cost.value,
            low=cost.low if known else None,
            high=cost.high if known else None,
            ends=cost.word,
            count=made.pairs,
            style=Style(_INKS[made.confidence], _SHAPES[made.answer]),
            hollow=made.answer is Answer.OPEN,
            right=number(cost.value),
            about=(made.group, made.base),
            head=head(made),
        )

    ends = {answer: sum(made.answer is answer for made in contrasts) for answer in Answer}
    said = [f"{ends[answer]} {word}" for answer, word in _SEEN.items() if ends[answer]]
    seen = {(made.answer, made.confidence) for made in ordered[:_MAX_ROWS]}
    return dot_chart(
        ordered,
        dot,
        [
            words("What", lambda made: names[id(made)]),
            words("Beside", head),
            words("Differ in", lambda made: made.varies),
            digits("Times as long", lambda made: made.cost, with_ends),
            digits("Pairs of runs", lambda made: made.pairs),
            words("Answer", lambda made: str(made.answer)),
            words("", lambda made: _SURE[made.confidence]),
        ],
        title=f"{_TITLES.get(stage, stage)}, {len(contrasts)} comparisons: {', '.join(said)}",
        axis="times as long as what it stands beside",
        name=f"forest-{stage}",
        most=_MAX_ROWS,
        cut="slowest",
        rule=1.0,
        log=True,
        band=(1 / (1 + margin), 1 + margin),
        limits=_limits(ordered[:_MAX_ROWS], margin),
        notes=[
            f"Left of the dashed line it takes less time. Line: the interval that decided; "
            f"grey strip: within {percent(margin)} two are the same.",
            f"{count(lacking, 'more asked pair')} without a right result on a side." if lacking else "",
        ],
        legend=legend(
            [
                (
                    f"{_SEEN[answer]}, {_SURE[level]}" if answer is not Answer.OPEN else _SURE[level],
                    Style(_INKS[level], _SHAPES[answer]),
                )
                for answer in Answer
                for level in Confidence
                if (answer, level) in seen
            ],
            line=False,
        ),
    )


_SEEN = {Answer.DIFFERENT: "different", Answer.SAME: "the same", Answer.OPEN: "not known"}


def _head(base: Group[Any], contrasts: Sequence[Contrast]) -> str:
    """Name what others are set beside, and its workload."""
    bases = [made.base.cell for made in contrasts if made.base.cell.workload == base.cell.workload]
    # An engine stands here, whatever the federations are made of.
    beside = clean(people_name(base.cell, bases, always=("engine",)))
    return f"{base.cell.workload}, beside {beside}" if base.cell.workload else f"Beside {beside}"


def _limits(contrasts: Sequence[Contrast], margin: float) -> tuple[float, float]:
    """Return how far lines go: what is open may reach anywhere, and would leave no room for the others."""
    decided = [end for made in contrasts if made.answer is not Answer.OPEN for end in (made.cost.low, made.cost.high)]
    every = [*decided, *(made.cost.value for made in contrasts), 1 + margin, 1 / (1 + margin)]
    known = [value for value in every if value > 0 and math.isfinite(value)]
    low, high = min(known) / _BEYOND, max(known) * _BEYOND
    # 1 stands apart from either edge, where the labels are.
    return min(low, (1 / high) ** _LEAST), max(high, (1 / low) ** _LEAST)
