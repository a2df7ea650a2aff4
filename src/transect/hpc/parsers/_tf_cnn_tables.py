"""What the workers of tf_cnn_benchmarks have printed so far, with or without labels in front of their lines."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from transect.domain.metrics import Direction
from transect.hpc.parsers._learning import LoggedOutput, Samples


@dataclass(slots=True)
class Table:
    """The steps of one worker, up to its total."""

    line: int
    columns: list[str] = field(default_factory=list)
    steps: int = 0
    last_step: int = 0
    rates: Samples = field(default_factory=lambda: Samples("images/sec", Direction.HIGHER, limit=1000))
    jitter: str = ""
    uncertainty: str = ""
    extra: dict[str, Samples] = field(default_factory=dict)
    accuracy: tuple[str, str] | None = None
    total: re.Match[str] | None = None


@dataclass(kw_only=True)
class Tables(LoggedOutput):
    """What stands behind one rank's label: workers without labels, as those of Horovod, print their tables at once."""

    tables: list[Table] = field(default_factory=list)

    def open(self) -> list[Table]:
        return [table for table in self.tables if table.total is None]

    def table(self, line: int) -> Table:
        """Return the table that a line without a step belongs to."""
        waiting = self.open()
        if not waiting:
            self.tables.append(Table(line=line if self.tables else self.line))
            return self.tables[-1]
        return next((table for table in waiting if table.steps), waiting[0])

    def table_of_step(self, step: int, line: int) -> Table | None:
        """Return the table that a step is the next of, a new one if it is another worker's; None if it is another run's."""
        waiting = self.open()
        found = next((table for table in waiting if table.last_step < step), None)
        if found is None and (not waiting or any(table.last_step == step for table in waiting)):
            found = Table(line=line if self.tables else self.line)
            self.tables.append(found)
        return found

    def rest(self) -> list[Table]:
        """Return the tables without a total; heads beside other workers' steps are none."""
        waiting = self.open()
        stepped = [table for table in waiting if table.steps or table.accuracy]
        if any(table.total for table in self.tables):
            return stepped
        return stepped or waiting[:1] or ([Table(line=self.line)] if self.facts else [])
