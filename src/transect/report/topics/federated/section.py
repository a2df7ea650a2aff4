"""Section: what federations learn over the server's updates, and who computes them how fast."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

from transect.analysis.contrast import Contrast
from transect.analysis.quality import target_of
from transect.domain.axes.federate import FederateCell
from transect.domain.cell import axes_of
from transect.report.engine.blocks import Chip, Column, Explained, Heading, Lead, Part, Value, digits, table, words
from transect.report.engine.charts.chart import MAX_PANELS
from transect.report.engine.columns import ended, medians, score_column
from transect.report.engine.context import Context
from transect.report.engine.contrast_words import contrast_columns, verdict_chip
from transect.report.engine.finding import median
from transect.report.engine.text import in_unit, number, percent, tenths
from transect.report.topics.federated.courses import course_charts
from transect.report.topics.federated.facts import (
    FEDERATION,
    HOW,
    METHOD,
    ROUND,
    STAGE,
    TIME,
    WHO,
    FederateGroup,
    alike,
    apart,
    blind_from,
    how_words,
    in_every_run,
    learned,
    method_words,
    of_own_models,
    planned,
    rule_words,
    scopes,
    usable,
    waits_for,
    who_words,
)
from transect.report.topics.federated.findings import path_text
from transect.report.topics.retraining.factors import signed
from transect.report.topics.retraining.findings import shares


def federated_body(context: Context) -> Iterator[Part]:
    """Tell of each workload what its federations learn, and who computes them."""
    if not context.of(STAGE):
        return
    yield Lead(
        f"{path_text(context.of(STAGE))} What is learned is the same whoever computes it, so each federation is told once, "
        "by the runs of one engine. Simulated time passes in clients' turns alone: 1 is a turn of the median client."
    )
    for workload in context.workloads(STAGE):
        yield Heading(workload)
        groups = learned(context, workload)
        yield from islice(course_charts(context, workload, usable(groups)), MAX_PANELS)
        yield _learned(context, workload, groups)
        yield _computed(context, workload)
    yield Explained(
        "Partitions: iid deals all rows out in a drawn order; dirichlet-A draws each client's share of each class, the more alike "
        "the larger A; labels-K gives each client rows of K classes or so. A client's score is that of test rows in its mix of "
        "classes; where clients have models of their own, scores are of these. Staleness: how many models the server made since a client was given its own. Points are medians over runs with "
        "equal rows, cohorts and start, each beside itself."
    )


def _having(rows: Sequence[FederateGroup], columns: Sequence[Column[FederateGroup]]) -> list[Column[FederateGroup]]:
    """Leave out columns that no row has anything in."""
    return [column for column in columns if any(column.value(row) is not None for row in rows)]


def _state(group: FederateGroup) -> Value:
    """Return why a group has no number, or what is to be known of its runs."""
    if group.wrong:
        return Chip("diverged" if group.diverged else "wrong result", "bad")
    if not group.ok:
        return ended(group.records[0])
    return Chip("over-subscribed" if group.over_subscribed else "disturbed", "warn") if group.disturbed else None


def _what(rows: Sequence[FederateGroup], *never: str) -> tuple[str, list[Column[FederateGroup]]]:
    """Say in what federations are alike, and return the columns of what they differ in, but for the axes in `never`."""
    apart_in = {axis for axis in FEDERATION if len({row.cell.get(axis) for row in rows}) > 1}
    alike_in = [
        axes_of(FederateCell)[axis].label(rows[0].cell.get(axis)) for axis in FEDERATION if axis not in apart_in
    ]
    differ_in = scopes(rows, "partition", *never, always=())
    columns: list[Column[FederateGroup]] = [
        words("Partition", lambda group: group.cell.partition if "partition" in apart_in else None),
        words("Federation", lambda group: differ_in(group) or None),
    ]
    return ", ".join(alike_in), columns


def _learned(context: Context, workload: str, groups: Sequence[FederateGroup]) -> Part:
    """List what each federation ends with, those that differ in their aggregation alone below each other."""
    rows = [group for members in alike(groups, *HOW, *METHOD).values() for group in members]
    beside, plain = (
        {id(pair.group): pair for pair in planned(context, rule, rows)} for rule in ("aggregation", "method")
    )
    several = len({method_words(group.cell) for group in rows}) > 1
    target = next(filter(None, map(target_of, rows)), "the target")

    def reached(name: str) -> Column[FederateGroup]:
        title = "Simulated time to it" if name == TIME else f"Updates to {target}"
        return digits(
            title,
            lambda g: (
                number(median(g, name) or 0.0)
                if in_every_run(g, name)
                else "not reached"
                if g.ok and not of_own_models(g)
                else None
            ),
        )

    def stale(group: FederateGroup) -> str | None:
        told = [record.details.get("staleness") or {} for record in group.ok] if group.cell.buffer else []
        return (
            f"{max(t.get('median', 0) for t in told):g}, most {max(t.get('most', 0) for t in told)}" if told else None
        )

    def points(made: Mapping[int, Contrast]) -> Callable[[FederateGroup], float | None]:
        return lambda group: apart(group, pair.base, pair.metric) if (pair := made.get(id(group))) else None

    common, federation = _what(rows, "buffer", "rounds", *METHOD)
    columns = [
        words("Aggregation", lambda group: how_words(group.cell)),
        words("Method", lambda group: method_words(group.cell) if several else None),
        *federation,
        words("Waits for", lambda group: waits_for(group.cell)),
        digits("Updates", lambda group: group.cell.rounds),
        score_column(rows),
        digits("Points beside fedavg", points(beside), signed),
        words("Verdict", lambda group: verdict_chip(beside.get(id(group)), "better", "worse")),
        digits("Points beside plain", points(plain), signed),
        words("Verdict on the method", lambda group: verdict_chip(plain.get(id(group)), "better", "worse")),
        medians("Worst tenth of clients", "worst_clients_score", tenths),
        reached("rounds_to_quality"),
        *([reached(TIME)] if any(group.cell.buffer or group.cell.slowness for group in rows) else []),
        words("Staleness", stale),
        medians("Sent per update", "sent_bytes", in_unit("B")),
        digits("Runs", lambda group: len(group.ok)),
        words("", _state),
    ]
    return table(rows, _having(rows, columns), caption=f"{workload}: what is learned, {common}")


def _computed(context: Context, workload: str) -> Part:
    """List every simulation, those of one federation below each other, the shortest update first."""
    every: Sequence[FederateGroup] = context.of(STAGE, workload)

    def place(group: FederateGroup) -> tuple[bool, float]:
        return not group.ok or group.wrong, median(group, ROUND) or 0.0

    rows = [group for members in alike(every, *WHO).values() for group in sorted(members, key=place)]
    # Beside the first engine, or on several ranks beside one.
    beside = {id(pair.group): pair for rule in ("engine", "ranks") for pair in planned(context, rule, rows)}

    common, federation = _what(rows, *METHOD)
    several = len({rule_words(group.cell) for group in rows}) > 1
    columns = [
        words("Engine", lambda group: who_words(group.cell)),
        words("Aggregation", lambda group: rule_words(group.cell) if several else None),
        *federation,
        medians("Update", ROUND, in_unit("s")),
        words("Beside", lambda group: who_words(pair.base.cell) if (pair := beside.get(id(group))) else None),
        *contrast_columns("Times as long", lambda group: beside.get(id(group))),
        medians("Turns/s", "turns_per_second"),
        medians("Server's share", "server_share", percent),
        medians("Peak memory", "peak_memory", in_unit("B")),
        digits("Of the tolerance", lambda group: None if group.wrong else max(shares([group]), default=None), tenths),
        digits("Checkable until update", blind_from),
        digits("Runs", lambda group: len(group.ok)),
        words("", _state),
    ]
    return table(rows, _having(rows, columns), caption=f"{workload}: who computes, {common}")
