"""An archive of logs in three tables: what is there, the best valid values, what was refused and why."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from transect.analysis.benchmark_table import Best, best_values, compared_by
from transect.analysis.entries import AnyRecord
from transect.analysis.groups import grouped
from transect.analysis.hardware import DOUBT, BenchmarkValue, benchmark_values

# How reasons begin of files that may hold logs and were not read; what is nobody's output is only counted.
_UNREAD = ("cannot be read", "the file is binary", "lines of more than")

# By benchmark, status and kind of reason: what was refused for it, each with its own words.
_Reasons = dict[tuple[str, str, str], list[tuple[BenchmarkValue, str]]]

STATUSES = ("ok", "suspicious", "invalid", "failed", "truncated", "no-result")


@dataclass(frozen=True, kw_only=True, slots=True)
class Counted:
    """How many runs of one benchmark, version and system ended how."""

    benchmark: str
    system: str
    version: str
    counts: dict[str, int]

    @property
    def runs(self) -> int:
        """All of them."""
        return sum(self.counts.values())


@dataclass(frozen=True, kw_only=True, slots=True)
class Refused:
    """Runs that were refused, or doubted, for one reason, numbers apart; `where` and `example` are the first one's."""

    benchmark: str
    status: str
    example: str
    where: str
    runs: int


@dataclass(frozen=True, kw_only=True, slots=True)
class LogSummary:
    """`best` has a row per benchmark, variant, metric and series: the best system's.

    `doubted` are reasons for which runs count as suspicious; their values compete.
    """

    counted: tuple[Counted, ...]
    best: tuple[Best, ...]
    refused: tuple[Refused, ...]
    doubted: tuple[Refused, ...]

    def plain(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return {
            "counted": [asdict(row) for row in self.counted],
            "best": [
                {
                    "benchmark": row.benchmark,
                    "variant": row.variant,
                    "system": row.system,
                    "metric": row.name,
                    "series": row.series,
                    "value": row.value.value,
                    "unit": row.value.unit,
                    "printed": row.value.printed,
                    "where": row.value.where,
                    "systems": row.rivals,
                    "status": row.value.status,
                    "warnings": list(row.value.warnings),
                }
                for row in self.best
                if row.value is not None
            ],
            "refused": [asdict(row) for row in self.refused],
            "doubted": [asdict(row) for row in self.doubted],
        }


def _kind(reason: str) -> str:
    """Return a reason without what differs from log to log."""
    plain = re.sub(r"[-+]?\d[\d.,]*(?:[eE][-+]?\d+)?", "#", reason)
    return re.sub(r"(?:with|with:|ends with:?) .*", "", plain)[:80]


def summarise_logs(records: Sequence[AnyRecord]) -> LogSummary:
    """Return the tables of the runs that ingest records hold."""
    values = benchmark_values(records)
    counts: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    refused: _Reasons = defaultdict(list)
    doubted: _Reasons = defaultdict(list)
    for value, *_ in grouped(values, lambda value: value.run).values():
        # A file of nothing known has no system.
        system = value.system if value.benchmark != "unknown" else ""
        counts[value.benchmark, system, value.version][value.status] += 1
        if not value.valid and (value.benchmark != "unknown" or value.reason.startswith(_UNREAD)):
            refused[value.benchmark, value.status, _kind(value.reason)].append((value, value.reason))
        if value.status == "suspicious":
            for doubt in (warning.removeprefix(DOUBT) for warning in value.warnings if warning.startswith(DOUBT)):
                doubted[value.benchmark, value.status, _kind(doubt)].append((value, doubt))
    # Each comparison's winner, which comes first; of what is refused, each side's.
    compared = grouped((row for row in best_values(values) if row.value is not None), compared_by)
    return LogSummary(
        counted=tuple(
            Counted(benchmark=key[0], system=key[1], version=key[2], counts=dict(found))
            for key, found in sorted(counts.items())
        ),
        best=tuple(rows[0] for rows in compared.values()),
        refused=_by_reason(refused),
        doubted=_by_reason(doubted),
    )


def _by_reason(found: _Reasons) -> tuple[Refused, ...]:
    """Return a row for each kind of reason, a benchmark's most frequent first."""
    return tuple(
        Refused(
            benchmark=name,
            status=status,
            example=doubts[0][1],
            where=doubts[0][0].where,
            runs=len({value.run for value, _ in doubts}),
        )
        for (name, status, _), doubts in sorted(found.items(), key=lambda item: (item[0][0], -len(item[1])))
    )
