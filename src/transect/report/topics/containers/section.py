"""Section: what a container costs, the same cells with and without."""

from __future__ import annotations

from collections.abc import Iterator

from transect.analysis.groups import grouped
from transect.report.engine.blocks import Chip, Heading, Lead, Part, digits, note, table, words
from transect.report.engine.context import Context
from transect.report.engine.contrast_words import contrast_columns
from transect.report.engine.text import clean, in_unit, percent, scale_for
from transect.report.topics.containers.facts import LITTLE, QUESTIONS, ContainerCost
from transect.report.topics.containers.findings import PUBLISHED, all_costs, claim_answer, cost_words, place_of


def containers_body(context: Context) -> Iterator[Part]:
    """List every pair, a table for each question; nothing where no cell ran in a container and without."""
    costs = all_costs(context)
    absent = sorted(
        {
            f"{record.point.container}: {clean(record.message)}"
            for record in context.not_ok
            if record.point.container is not None
        }
    )
    if not costs and not absent:
        return
    yield Lead(
        "The same cells in a container and without one, on the same nodes, in one block in random order. Inside runs the same "
        "Python from the same lock. A pair is one repeat with and without, so that what its seed does drops out."
    )
    for metric, members in grouped(costs, lambda cost: cost.metric).items():
        title = QUESTIONS[metric]
        yield Heading(f"{title[:1].upper()}{title[1:]}")
        yield _table(members)
    answer = claim_answer(context, costs)
    if answer is not None:
        yield Heading("Published")
        yield table(
            [answer],
            [
                words("Study", lambda row: PUBLISHED),
                words("What", lambda row: "training with and without Singularity"),
                words("Published", lambda row: "no timings"),
                words(
                    "Here, the step that changes most",
                    lambda row: clean(f"{place_of(row.cost)} in {row.cost.container}: {cost_words(row.cost)}"),
                ),
                words("", lambda row: Chip(row.verdict, _TONES[row.verdict], clean(row.cost.contrast.reason))),
            ],
        )
        yield note(
            f"Little: the upper end of every step's interval is at most {percent(LITTLE)} above one; not little: the "
            "lower end of one is above that. Open otherwise, and with fewer than six pairs."
        )
    if absent:
        yield Heading("Not run")
        yield table(absent, [words("Container: why", lambda line: line)])


_TONES = {"little": "good", "not little": "warn", "open": "plain"}


def _table(costs: list[ContainerCost]) -> Part:
    scale = scale_for([cost.contrast.comparison.b.median for cost in costs], "s")
    return table(
        costs,
        [
            words("Container", lambda cost: clean(cost.container)),
            words("Of", lambda cost: clean(place_of(cost))),
            digits(f"With ({scale.unit})", lambda cost: cost.contrast.comparison.a.median, scale),
            digits(f"Without ({scale.unit})", lambda cost: cost.contrast.comparison.b.median, scale),
            *contrast_columns("Ratio", lambda cost: cost.contrast),
            digits("More", lambda cost: cost.more.value, in_unit("s")),
            digits("Pairs", lambda cost: cost.contrast.pairs),
        ],
    )
