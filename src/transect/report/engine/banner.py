"""What the page says before anything else: the machine, the date, how long it took, how quiet it was, what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from transect.analysis.entries import AnyRecord
from transect.analysis.load import by_status
from transect.domain.record import Status
from transect.report.engine.blocks import Chip
from transect.report.engine.context import Context
from transect.report.engine.deciding import Tally
from transect.report.engine.text import clipped, count, percent, quantity, without_half_code

# What the next block of cells takes to start.
_PAUSE = timedelta(minutes=1)
# Machines, and reasons for what was not measured, that the banner names.
_MAX_NAMED = 2
_MAX_REASON = 90


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One fact of the banner: its word, what it says, and a chip where that is to be seen at a glance."""

    word: str
    text: str
    chip: Chip | None = None


def banner(context: Context, tally: Tally) -> list[Line]:
    """Return the lines of the banner; without any record, that there is none."""
    records = [record for record in context.records if record.status is not Status.SKIPPED]
    lines = [
        Line(word="Machine", text=machines(records)),
        Line(word="Ran", text=" · ".join(filter(None, (date(records), duration(records))))),
        _quiet(records),
        _counts(context),
        _compared(tally),
    ]
    return [line for line in lines if line is not None and line.text]


def machines(records: Iterable[AnyRecord], most: int = _MAX_NAMED) -> str:
    """Name the machines that records come from, those of most records first: `2 cores of AMD EPYC, 24 GiB, no GPU`."""
    named = Counter(_machine(record.provenance) for record in records)
    del named[""]
    found = [name for name, _ in named.most_common(most)]
    more = [f"{len(named) - most} other machines"] if len(named) > most else []
    return " and ".join([*found, *more])


def _machine(provenance: Mapping[str, Any]) -> str:
    model, cores, memory = (provenance.get(key) for key in ("cpu_model", "cores", "memory_bytes"))
    if not model or not isinstance(cores, int):
        return ""
    gpus = Counter(str(gpu.get("name")) for gpu in provenance.get("gpus") or () if isinstance(gpu, dict))
    named = [name if amount == 1 else f"{amount} x {name}" for name, amount in gpus.items()]
    room = quantity(float(memory), "B") if isinstance(memory, (int, float)) else ""
    parts = [f"{count(cores, 'core')} of {model}", room, *(named or ["no GPU"])]
    return clipped(", ".join(filter(None, parts)), 160)


def date(records: Iterable[AnyRecord]) -> str:
    """Return the day on which records were made, or the first and the last of several: `26 November 2026`."""
    days = sorted({start.date() for start, _ in _spans(records)})
    written = [f"{day.day} {day:%B %Y}" for day in (days[:1] + days[-1:] if len(days) > 1 else days)]
    return " to ".join(written)


def duration(records: Iterable[AnyRecord]) -> str:
    """Return for how long a study ran: `10 minutes`; pauses of more than a minute between its cells do not count."""
    took, until = timedelta(), datetime.min.replace(tzinfo=UTC)
    for start, end in sorted(_spans(record for record in records if record.stage != "ingest")):
        begin = start if start - until > _PAUSE else until
        took += max(timedelta(), end - begin)
        until = max(until, end)
    seconds = took.total_seconds()
    if seconds < 1:
        return ""
    for size, noun in ((3600, "hour"), (60, "minute")):
        if seconds >= 2 * size:
            return count(round(seconds / size), noun)
    return count(round(seconds), "second")


def _spans(records: Iterable[AnyRecord]) -> Iterator[tuple[datetime, datetime]]:
    for record in records:
        try:
            start, end = (datetime.fromisoformat(time) for time in (record.started, record.ended))
        except ValueError:
            continue
        if start.tzinfo and end.tzinfo:
            yield start, end


def _quiet(records: Sequence[AnyRecord]) -> Line | None:
    """Say on how many runs nobody else used the machine: what was not watched is in no count."""
    watched = [record for record in records if "disturbed" in record.details]
    if not watched:
        return None
    quiet = sum(not record.details["disturbed"] for record in watched)
    if not quiet:
        text = "this machine was never quiet: every time is too high, and verdicts are at most likely"
        return Line(word="Quiet", text=text, chip=Chip("never quiet", "bad"))
    text = f"{quiet} of {count(len(watched), 'run')}"
    if quiet >= 0.95 * len(watched):
        return Line(word="Quiet", text=text, chip=Chip("quiet", "good"))
    others = f"{text}; other programs ran beside the rest, which enter comparisons only where there are too few others"
    mostly = quiet >= 0.8 * len(watched)
    return Line(
        word="Quiet", text=others, chip=Chip(f"{percent(quiet / len(watched))} quiet", "plain" if mostly else "warn")
    )


def _compared(tally: Tally) -> Line | None:
    """Say how many comparisons are decided, and what was counted: those that the questions ask for, where any does."""
    counted = tally.asked or tally
    if not counted.comparisons:
        return None
    kinds = [
        count(counted.pairs, "planned pair")
        + (f", of which {counted.lacking} lack a result on a side" if counted.lacking else ""),
        f"{count(counted.rivals, 'rival')} of a winner that no single pair sets beside it" if counted.rivals else "",
        f"{count(counted.tests, 'test')} of another kind, such as for a shift over seeds" if counted.tests else "",
    ]
    sure, left = counted.different + counted.same, counted.inconclusive
    text = f"{counted.comparisons - left} of {count(counted.comparisons, 'comparison')} decided, {sure} of them sure"
    chip = Chip(f"{left} not known", "plain") if left else Chip("all decided", "good")
    return Line(word="Compared", text=f"{text} ({', '.join(filter(None, kinds))})", chip=chip)


def _counts(context: Context) -> Line:
    counts = by_status(context.records)
    running, waiting = len(context.loaded.running), len(context.loaded.waiting)
    parts = [count(counts["ok"], "measurement")]
    parts += [f"{counts['failed']} failed: {_reasons(context, Status.FAILED)}"] if counts["failed"] else []
    parts += [f"{counts['skipped']} skipped: {_reasons(context, Status.SKIPPED)}"] if counts["skipped"] else []
    parts += [f"{running} running"] if running else []
    parts += [f"{waiting} not there yet"] if waiting else []
    unread, problems = len(context.loaded.unreadable), len(context.problems)
    parts += [f"{unread} cannot be read"] if unread else []
    parts += [f"{count(problems - unread, 'other problem')}"] if problems > unread else []
    tone = (
        "bad" if counts["failed"] or context.problems else "warn" if running + waiting or not counts["ok"] else "good"
    )
    said = "some failed" if tone == "bad" else "not done" if tone == "warn" else "complete"
    return Line(word="Cells", text=" · ".join(parts), chip=Chip(said, tone))


def _reasons(context: Context, status: Status) -> str:
    """Say why, in the words of whoever refused, the most frequent first."""
    said = Counter(
        without_half_code(
            clipped(record.message.splitlines()[0] if record.message.strip() else str(record.cause), _MAX_REASON)
        )
        for record in context.records
        if record.status is status
    )
    named = [text for text, _ in said.most_common(_MAX_NAMED)]
    more = [f"{len(said) - _MAX_NAMED} other reasons"] if len(said) > _MAX_NAMED else []
    return "; ".join([*named, *more])
