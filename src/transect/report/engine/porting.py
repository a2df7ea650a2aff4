"""What the sections of made, converted and loaded models share: a matrix of verdicts, and reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from transect.analysis.entries import AnyRecord
from transect.domain.record import Cause, Status
from transect.report.engine.blocks import Chip, Column, Part, Table, Value, code, note, table, words
from transect.report.engine.context import Context
from transect.report.engine.text import clean

Name = Callable[[AnyRecord], str]


def split(context: Context, stage: str) -> tuple[list[AnyRecord], list[AnyRecord], list[AnyRecord]]:
    """Return a stage's records, those that ended well, and those that somebody offers to run."""
    records = [record for group in context.of(stage) for record in group.records]
    good = [record for record in records if record.status is Status.OK]
    return records, good, [record for record in records if record.status is not Status.SKIPPED]


def tolerance(record: AnyRecord) -> float | None:
    """Return the tolerance of the output that has the largest one."""
    given = record.details.get("tolerance")
    return max(given.values()) if isinstance(given, dict) and given else None


def rules(good: Sequence[AnyRecord], key: str = "tolerance_rule", word: str = "Tolerance") -> Iterator[Part]:
    """Say once what records have in common under a key of their details."""
    for text in sorted({str(record.details.get(key)) for record in good}):
        yield note(clean(f"{word}: {text}."))


def verdict(record: AnyRecord) -> Chip:
    """Return how a cell ended in a word or two.

    What nobody offers is no failure; what was not tried for want of an input is none of its own.
    """
    if record.status is Status.OK:
        return Chip("pass", "good")
    if record.status is Status.SKIPPED:
        offered = record.cause is not Cause.UNSUPPORTED
        return Chip("not tried" if offered else "not offered", "warn" if offered else "plain")
    return Chip("wrong result" if record.cause is Cause.WRONG_RESULT else "fail", "bad")


def matrix(records: Sequence[AnyRecord], title: str, row: Name, column: Name, caption: str) -> Table:
    """Return a verdict for each row and column; an empty place was not asked for.

    Rows that nobody offers are counted in the caption.
    """
    verdicts = {(row(record), column(record)): verdict(record) for record in records}
    offered = {at for (at, _), chip in verdicts.items() if chip.text != "not offered"}
    left_out = len({at for at, _ in verdicts} - offered)
    more = f"; {left_out} more rows are offered by nobody" if left_out else ""

    def of_column(name: str) -> Column[str]:
        def place(at: str) -> Value:
            return verdicts.get((at, name))

        return words(name, place)

    columns = [words(title, clean), *map(of_column, sorted({name for _, name in verdicts}))]
    return table(sorted(offered), columns, caption=f"{caption}{more}")


def reasons(records: Sequence[AnyRecord], name: Name) -> Table | None:
    """Return why what failed did, in the words of whoever refused; None when nothing failed."""
    failed = [record for record in records if record.status is Status.FAILED]
    columns = [words("Failed", name), words("", verdict), code("Reason", lambda record: clean(record.message))]
    return table(failed, columns, caption="Why it failed") if failed else None
