"""Section: what a container costs, the same cells with and without."""

from __future__ import annotations

from collections.abc import Iterator

from transect.analysis.groups import grouped
from transect.report.engine.blocks import Chip, Heading, Lead, Part, digits, note, table, words
from transect.report.engine.context import Context
from transect.report.engine.deciding import same_within
from transect.report.engine.text import clean, percent, quantity, scale_for, with_ends
from transect.report.topics.containers.facts import LITTLE, QUESTIONS, ContainerCost
from transect.report.topics.containers.findings import PUBLISHED, all_costs, claim_answer, cost_words, place_of
from transect.stats.comparisons import Confidence, Verdict
from transect.stats.verdicts import LEVEL


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
        "The same cells in a container and without one, on the same nodes, in one block in random order. Inside "
        "runs the same Python from the same lock, and with base host the same C library: what differs is the "
        "container. A pair is one repeat with and without, so that what its seed does drops out.",
        empty="Cells were to run in containers, and none could be set beside the same cell without.",
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
                words("", lambda row: Chip(row.verdict, _TONES[row.verdict], clean(row.cost.reason))),
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
    scale = scale_for([cost.comparison.a.median for cost in costs], "s")
    return table(
        costs,
        [
            words("Container", lambda cost: clean(cost.container)),
            words("Of", lambda cost: clean(place_of(cost))),
            digits(f"With ({scale.unit})", lambda cost: cost.comparison.b.median, scale),
            digits(f"Without ({scale.unit})", lambda cost: cost.comparison.a.median, scale),
            digits("Ratio", lambda cost: cost.ratio, with_ends),
            digits("More", lambda cost: _signed(cost.more.value)),
            digits("Pairs", lambda cost: cost.pairs),
            words("", lambda cost: _verdict(cost, len(costs))),
        ],
    )


def _signed(seconds: float) -> str:
    return ("−" if seconds < 0 else "") + quantity(abs(seconds), "s")


def _verdict(cost: ContainerCost, rows: int) -> Chip:
    """Say what a row shows; "provisional" where it may be one row of so many by chance."""
    reason, decision = clean(cost.reason), cost.comparison.decision
    if cost.over_subscribed:
        return Chip("open: shared cores", "warn", reason)
    if not cost.same and not cost.shown:
        return Chip("open: within noise", "plain", reason)
    chance = 0.0 if decision is None else decision.p * rows
    confirmed = cost.confidence is Confidence.CONFIRMED and chance <= LEVEL
    longer = cost.comparison.verdict is Verdict.BETTER
    word = same_within(cost.comparison) if cost.same else "longer" if longer else "shorter"
    tone = "plain" if not confirmed else "warn" if longer and not cost.same else "good"
    return Chip(word if confirmed else f"{word} ({Confidence.PROVISIONAL})", tone, reason)
