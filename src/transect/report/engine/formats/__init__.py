"""What a report can be written as: `transect report STUDY --format NAME`. One file each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from transect.domain.registry import Registry

if TYPE_CHECKING:
    # Not at run time: a plug-in's file is imported in environments without the report's libraries.
    from transect.report.engine.report import Made

__all__ = ["REPORT_FORMATS", "Contents", "ReportFormat"]


@dataclass(frozen=True, kw_only=True)
class Contents:
    """Files by their path below the format's folder, or one file under the empty name.

    `left_out` says in sentences what the format cannot hold, and why.
    """

    files: Mapping[str, bytes]
    left_out: Sequence[str] = field(default=())


class ReportFormat(ABC):
    """One way to write a report."""

    # Where it goes below the study's folder: a file, or a folder of its own.
    place: str
    # Formats that are written along with it, because it refers to them.
    needs: Sequence[str] = ()

    @abstractmethod
    def contents(self, made: Made) -> Contents:
        """Return the bytes of every file, from what was made. Equal records give equal bytes.

        Text in `made` is anybody's: it is escaped here for the format. Raises nothing for what a record
        may hold.
        """


REPORT_FORMATS: Registry[ReportFormat] = Registry("report format", "transect.report.engine.formats", ReportFormat)
