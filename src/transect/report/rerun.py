"""The command that runs the cells of a finding again."""

from __future__ import annotations

import fnmatch
import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Sequence

from transect.analysis.entries import AnyRecord
from transect.report.findings.finding import Finding

_RUN = ("transect", "run")


class Cells:
    """Knows the cells of a study by stage and workload, and the words that begin a command on it."""

    def __init__(self, records: Iterable[AnyRecord], study: Sequence[str]) -> None:
        """`study`: what follows `transect run`: the study's name or file, and options."""
        self._study = tuple(study)
        self._patterns: dict[tuple[str, str], list[str]] = {}
        self._of: dict[str, dict[str | None, list[str]]] = defaultdict(lambda: defaultdict(list))
        for record in records:
            self._of[record.stage][record.cell.workload].append(record.cell_id)

    def of(self, finding: Finding) -> list[str]:
        """Return its cells as `transect run` and `transect why` take them: `STAGE/ID`, or a pattern.

        They are exactly those of its groups, where it names some, or else all cells of its subject in the
        stages of its rule, or all of these stages where none has any of its subject. Nothing without any cell.
        """
        if finding.groups:
            return sorted({f"{r.stage}/{r.cell_id}" for g in finding.groups for r in g.records})
        stages = [stage for stage in finding.stages if stage in self._of]
        if any(finding.subject in self._of[stage] for stage in stages):
            # What other stages do with other workloads is none of its business.
            stages = [stage for stage in stages if finding.subject in self._of[stage]]
        return [cell for stage in stages for cell in self._named(stage, finding.subject)]

    def _named(self, stage: str, workload: str) -> list[str]:
        """Return a pattern for a workload's cells of a stage, or their ids; the stage where it has none of its own."""
        if (stage, workload) not in self._patterns:
            self._patterns[stage, workload] = self._find(stage, workload)
        return self._patterns[stage, workload]

    def _find(self, stage: str, workload: str) -> list[str]:
        own = self._of[stage].get(workload)
        pattern = f"{stage}/{workload}.*"
        if not own:
            return [stage]
        matches = re.compile(fnmatch.translate(pattern)).match
        matched = sum(matches(f"{stage}/{cell}") is not None for every in self._of[stage].values() for cell in every)
        # A workload may be called so that a pattern says something else.
        exact = matched == len(own) and all(matches(f"{stage}/{cell}") for cell in own)
        return [pattern] if exact else sorted(f"{stage}/{cell}" for cell in own)

    def command(self, cells: Sequence[str]) -> str:
        """Return the command that runs them again, quoted for a shell; empty without cells."""
        if not cells:
            return ""
        return shlex.join([*_RUN, *self._study, *cells, "--force"])
