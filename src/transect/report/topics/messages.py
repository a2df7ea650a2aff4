"""Which library moves messages between ranks soonest: message sweeps, compared at one size."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from statistics import median
from typing import Any

from transect.analysis.best import best
from transect.analysis.contrasts import all_joined
from transect.analysis.entries import Entry
from transect.analysis.groups import Group, grouped
from transect.analysis.labels import people_name, settings_of
from transect.domain.record import Record
from transect.report.engine.best_words import beside, confidence_of, with_open
from transect.report.engine.context import Context
from transect.report.engine.decision import Decision
from transect.report.engine.finding import Finding, joined
from transect.report.engine.parts import DecisionColumn, FindingMaker, StageReport
from transect.report.engine.text import clean, count, quantity

# IMB's tests of the same.
_IMB = {
    "Allreduce Latency": "Allreduce",
    "Broadcast Latency": "Bcast",
    "Reduce Latency": "Reduce",
    "Allgather Latency": "Allgather",
    "Latency": "PingPong",
}
# The options that say which library a sweep is of.
_LIBRARY = ("library", "mpi")
# In what cells may differ whose messages are compared.
_APART = ("benchmark", "options")
_IMB_METRICS = ("collective_time", "message_time")
_METRIC, _RULE = "operation_time", "messages.library"
# What OSU calls a test, in words.
_OPERATIONS = {
    "Allreduce Latency": "all-reduce",
    "Broadcast Latency": "broadcast",
    "Reduce Latency": "reduction to one rank",
    "Allgather Latency": "all-gather",
    "Non-blocking Allreduce Latency": "non-blocking all-reduce",
    "Latency": "half a round trip",
    "Bandwidth": "a message of a stream",
}


def _test(record: Record | Entry) -> str:
    runs = record.details.get("runs") or [{}]
    return str((runs[0].get("parameters") or {}).get("test", ""))


def _compared(group: Group[Any]) -> tuple[str, int | None]:
    """Return OSU's name of what is compared, and the bytes of its message."""
    record, number = next((r, known) for r in group.ok for known in r.metrics if known.name == _METRIC)
    return _test(record), number.log.size if number.log is not None else None


def _operation(group: Group[Any]) -> str:
    """Name what is compared: `all-reduce of 1 MiB`."""
    test, size = _compared(group)
    return clean(f"{_OPERATIONS.get(test, test)} of {quantity(size, 'B') if size else 'a message'}")


def _by_imb(context: Context, group: Group[Any]) -> str:
    """Say what IMB tells of the same operation on the same ranks and network, by MPI library; empty where it did not run."""
    test, size = _compared(group)
    times: dict[str, list[float]] = {}
    for other in context.of("bench"):
        cell = other.cell
        if cell.benchmark != "imb" or cell.apart_from(*_APART) != group.cell.apart_from(*_APART):
            continue
        mpi = str(settings_of(cell).get("mpi", "intel"))
        for record in other.ok if not other.wrong else ():
            for number in record.metrics if _test(record) == _IMB.get(test) else ():
                if number.name in _IMB_METRICS and number.log is not None and number.log.size == size:
                    times.setdefault(mpi, []).append(number.value)
    told = [f"{quantity(median(values), 's')} with {clean(mpi)}" for mpi, values in sorted(times.items())]
    return f"IMB has {', '.join(told)}" if told else ""


def messages_findings(context: Context) -> list[Finding]:
    """Say for each operation on equal ranks, under equal options, which library takes least; nothing where one ran."""
    able = [group for group in context.of("bench") if group.ok and not group.wrong and group.values(_METRIC)]

    def place(group: Group[Any]) -> Hashable:
        options = {name: value for name, value in settings_of(group.cell).items() if name not in _LIBRARY}
        return _operation(group), tuple(sorted(options.items())), group.cell.apart_from(*_APART)

    races = grouped(able, place)
    return [found for raced in races.values() if len(raced) > 1 for found in _fastest(context, raced)]


def _fastest(context: Context, raced: list[Group[Any]]) -> Iterator[Finding]:
    seconds = {id(group): median(group.counted(_METRIC)) for group in raced}
    raced = sorted(raced, key=lambda group: (seconds[id(group)], group.cell.id))
    planned = (pair for pair in context.contrasts.of(_RULE) if {id(pair.group), id(pair.base)} <= seconds.keys())
    found = best(all_joined(planned, raced, context.floors, _METRIC, varies="library"), raced, metric=_METRIC)
    if found is None:
        return
    cells = [group.cell for group in raced]

    def name(group: Group[Any]) -> str:
        return people_name(group.cell, cells, never=("ranks", "nodes"))

    first, operation = found.first, _operation(found.first)
    takes, ranks = quantity(seconds[id(first)], "s"), count(first.cell.ranks, "rank")
    short = f"{name(first)} takes {takes}{beside(found, name)}"
    fastest = Finding(
        subject="study",
        kind="messages",
        topic="library",
        named=True,
        confidence=confidence_of(found),
        contrasts=found.contrasts,
        numbers=found.numbers(lambda group: seconds[id(group)]),
        tests=found.tests,
        scope=f"{operation}, {ranks}",
        groups=(first, *(group for group in raced if group is not first)),
        claim=f"{short}.",
        short=short,
        decision=Decision(
            column="messages",
            row=operation,
            scope=ranks,
            winner=name(first),
            value=takes,
            tied=tuple(map(name, found.tied)),
            unknown=tuple(map(name, found.unknown)),
            margin=context.analysis_plan.margin,
        ),
        evidence=joined(*(made.reason for made in found.contrasts), _by_imb(context, first)),
    )
    yield from with_open(name, (fastest, found))


REPORT = StageReport(
    stage="bench",
    sections=(),
    findings=(FindingMaker(name="messages", order=660, make=messages_findings, section="hardware"),),
    decisions=(DecisionColumn(key="messages", title="Move messages with", order=610, stage="bench", metric=_METRIC),),
)
