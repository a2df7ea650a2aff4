"""Section: what federations learn over the server's updates, and who computes them how fast."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from transect.analysis.quality import target_of
from transect.report.engine.blocks import Chip, Column, Heading, Lead, Part, Value, digits, table, words
from transect.report.engine.charts.chart import MAX_PANELS
from transect.report.engine.columns import ended, medians, score_column
from transect.report.engine.context import Context
from transect.report.engine.contrast_words import contrast_columns, verdict_chip
from transect.report.engine.finding import median
from transect.report.engine.text import in_unit, number, percent, tenths
from transect.report.topics.federated.courses import course_charts
from transect.report.topics.federated.facts import (
    HOW,
    ROUND,
    STAGE,
    TIME,
    WHO,
    FederateGroup,
    alike,
    apart,
    how_words,
    in_every_run,
    learned,
    planned,
    scope_of,
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


def _learned(context: Context, workload: str, groups: Sequence[FederateGroup]) -> Part:
    """List what each federation ends with, those that differ in their aggregation alone below each other."""
    rows = [group for members in alike(groups, *HOW).values() for group in members]
    beside = {id(pair.group): pair for pair in planned(context, "aggregation", rows)}
    target = next(filter(None, map(target_of, rows)), "the target")

    def reached(name: str) -> Column[FederateGroup]:
        title = "Simulated time to it" if name == TIME else f"Updates to {target}"
        return digits(
            title,
            lambda g: number(median(g, name) or 0.0) if in_every_run(g, name) else "not reached" if g.ok else None,
        )

    def stale(group: FederateGroup) -> str | None:
        told = [record.details.get("staleness") or {} for record in group.ok] if group.cell.buffer else []
        return (
            f"{max(t.get('median', 0) for t in told):g}, most {max(t.get('most', 0) for t in told)}" if told else None
        )

    def points(group: FederateGroup) -> float | None:
        return apart(group, pair.base, pair.metric) if (pair := beside.get(id(group))) else None

    columns = [
        words("Aggregation", lambda group: how_words(group.cell)),
        words("Federation", lambda group: scope_of(group, rows, "buffer", "rounds")),
        words("Waits for", lambda group: waits_for(group.cell)),
        digits("Updates", lambda group: group.cell.rounds),
        score_column(rows),
        digits("Points beside fedavg", points, signed),
        words("", lambda group: verdict_chip(beside.get(id(group)), "better", "worse")),
        medians("Worst tenth of clients", "worst_clients_score", tenths),
        reached("rounds_to_quality"),
        *([reached(TIME)] if any(group.cell.buffer or group.cell.slowness for group in rows) else []),
        words("Staleness", stale),
        medians("Sent per update", "sent_bytes", in_unit("B")),
        digits("Runs", lambda group: len(group.ok)),
        words("", _state),
    ]
    return table(rows, _having(rows, columns), caption=f"{workload}: what is learned")


def _computed(context: Context, workload: str) -> Part:
    """List every simulation, those of one federation below each other, the shortest update first."""
    every: Sequence[FederateGroup] = context.of(STAGE, workload)

    def place(group: FederateGroup) -> tuple[bool, float]:
        return not group.ok or group.wrong, median(group, ROUND) or 0.0

    rows = [group for members in alike(every, *WHO).values() for group in sorted(members, key=place)]
    engines, ranks = ({id(pair.group): pair for pair in planned(context, rule, rows)} for rule in ("engine", "ranks"))

    def path(group: FederateGroup) -> Value:
        known = [] if group.wrong else shares([group])
        blind = group.check_inconclusive_from
        said = "" if blind is None else f", cannot tell from update {blind}"
        return f"{percent(max(known), 1)} of the tolerance{said}" if known else None

    columns = [
        words("Engine", lambda group: who_words(group.cell)),
        words("Federation", lambda group: f"{how_words(group.cell)}, {scope_of(group, rows)}"),
        medians("Update", ROUND, in_unit("s")),
        *contrast_columns("Times the first engine's", lambda group: engines.get(id(group))),
        *contrast_columns("Times one rank's", lambda group: ranks.get(id(group))),
        medians("Turns/s", "turns_per_second"),
        medians("Server's share", "server_share", percent),
        medians("Start", "startup_time", in_unit("s")),
        medians("Peak memory", "peak_memory", in_unit("B")),
        words("Beside the reference", path),
        digits("Runs", lambda group: len(group.ok)),
        words("", _state),
    ]
    return table(rows, _having(rows, columns), caption=f"{workload}: who computes")
