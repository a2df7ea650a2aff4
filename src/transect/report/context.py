"""What every finding and section is made from: one study, read once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from transect.analysis.bounds import Rates
from transect.analysis.groups import Floors, Group, group_records
from transect.analysis.load import Loaded, SampleReader
from transect.domain.cell import Cell
from transect.domain.record import Record, Status
from transect.report.charts.theme import Style, Styles

__all__ = ["Context"]


class Context:
    """One study's records, grouped, with its noise floors, bounds and series styles."""

    def __init__(
        self,
        loaded: Loaded,
        *,
        title: str,
        questions: Sequence[str] = (),
        published: Sequence[dict[str, Any]] = (),
    ) -> None:
        self.title = title
        self.questions = list(questions)
        self.published = list(published)
        self.study = loaded.study
        self.records: list[Record] = loaded.records
        self.problems = loaded.problems
        self.samples = SampleReader(loaded.folders, loaded.problems)
        self.groups = {
            stage: group_records(loaded.records, stage)
            for stage in sorted({record.stage for record in loaded.records})
        }
        self.floors = Floors([group for groups in self.groups.values() for group in groups])
        self.rates = Rates(loaded.records)
        cells = [record.cell for record in loaded.records]
        self.styles = Styles(
            [name for c in cells for name in (c.framework, c.runtime, c.benchmark) if name],
            [_variant(c) for c in cells if c.strategy],
        )

    @classmethod
    def empty(cls, study: str = "empty") -> Context:
        """Return a context without any record."""
        return cls(Loaded(study=study), title=study)

    def of(self, stage: str, workload: str | None = None) -> list[Group]:
        """Return a stage's groups, of one workload when given."""
        groups = self.groups.get(stage, [])
        return [g for g in groups if workload is None or g.cell.workload == workload]

    def workloads(self, stage: str) -> list[str]:
        """Return the workloads that a stage has cells for, sorted."""
        return sorted({g.cell.workload for g in self.of(stage) if g.cell.workload})

    def style(self, group: Group) -> Style:
        """Return the style of a group's series."""
        cell = group.cell
        return self.styles.get(cell.runtime or cell.framework or cell.benchmark, _variant(cell))

    def not_ok(self) -> list[Record]:
        """Return failed records, then skipped ones, each in order of stage and cell."""
        bad = [record for record in self.records if record.status is not Status.OK]
        return sorted(bad, key=lambda r: (r.status is Status.SKIPPED, r.stage, r.cell_id))


def _variant(cell: Cell) -> str:
    """What tells series of one framework apart: the strategy, and a network that was named."""
    return " ".join(part for part in (cell.strategy, cell.network) if part)
