"""What a stage, or the report itself, adds: sections and findings."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from transect.analysis.load import Problem
from transect.domain.cell import Cell
from transect.domain.errors import FAULTS, BadInput
from transect.planning.code_hash import PACKAGE, file_of
from transect.planning.sources import report_files
from transect.report import stages as report_stages
from transect.report.blocks import Part
from transect.report.context import Context
from transect.report.findings.finding import Finding


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the report. `order` places it: 100 to 600 for stages, more for what joins them.

    `make` yields its parts; no part, or None: there is nothing to say.
    """

    key: str
    title: str
    order: int
    make: Callable[[Context], Iterable[Part] | None]


@dataclass(frozen=True, kw_only=True)
class FindingMaker:
    """What makes the findings of one kind; `order` is that in which a reader needs them.

    `section` is the key of the section that shows more of them, `sections` that of single kinds of findings. `stages`
    are those whose cells are compared; by default the stage whose folder brings the maker.
    """

    order: int
    make: Callable[[Context], list[Finding]]
    section: str = ""
    sections: Mapping[str, str] = field(default_factory=dict)
    stages: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The function's name without `_findings`; that of its stage where nothing else is left."""
        name = str(getattr(self.make, "__name__", "findings")).strip("_").removesuffix("findings")
        return name.strip("_") or next(iter(self.stages), "findings")

    def rule(self, kind: str) -> str:
        """Name the rule that makes its findings of one kind: `training.fastest`.

        What a kind repeats of the maker's name is left out: `equality`, `retraining.path`.
        """
        kind = re.sub(r"[^a-z0-9]+", "-", kind.lower()).strip("-")
        return self.name if kind == self.name else f"{self.name}.{kind.removeprefix(f'{self.name}-')}"

    def signed(self, finding: Finding) -> Finding:
        """Return a finding with the rule that made it, and where more of it stands."""
        return replace(
            finding,
            rule=".".join(filter(None, (self.rule(finding.kind), finding.topic))),
            section=finding.section or self.sections.get(finding.kind, self.section),
            stages=finding.stages or self.stages,
        )


@dataclass(frozen=True, kw_only=True)
class DecisionColumn:
    """A column of the decision table: a question that is decided for every workload.

    Findings bring its entries: their `decision` names its `key`. `stage` is the one whose cells it is about, `asks`
    says which of them, by default all: a workload that has such cells and no entry is listed with the reason. `always`:
    a study that does not ask this is told that it does not.
    """

    key: str
    title: str
    order: int
    stage: str
    always: bool = False
    asks: Callable[[Cell], bool] = lambda cell: True


@dataclass(frozen=True, kw_only=True)
class StageReport:
    """What a stage brings to the report, as `REPORT` of its module."""

    sections: Sequence[Section]
    findings: Sequence[FindingMaker] = ()
    decisions: Sequence[DecisionColumn] = ()


@dataclass(kw_only=True)
class Parts:
    """All sections, findings and columns of a report, in order, and the stages that brought them.

    `problems` names stages whose part cannot be imported.
    """

    sections: list[Section] = field(default_factory=list)
    findings: list[FindingMaker] = field(default_factory=list)
    columns: list[DecisionColumn] = field(default_factory=list)
    stages: set[str] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)


def collect(sections: Sequence[Section], findings: Sequence[FindingMaker]) -> Parts:
    """Join what every stage brings with what is given.

    It stands in `transect.report.stages`; of a stage from a plug-in folder in its own `report.py`.
    """
    importlib.import_module("transect.stages").add_plugin_folders()
    parts = Parts(sections=list(sections), findings=list(findings))
    # What is not said of these stages on their own stands in a section that joins several.
    parts.stages = {module.name for module in pkgutil.iter_modules([str(PACKAGE / "stages")])}
    modules = {m.name: f"{report_stages.__name__}.{m.name}" for m in pkgutil.iter_modules(report_stages.__path__)}
    for path in report_files():
        modules[path.parent.name] = f"transect.stages.{path.parent.name}.report"
    for name, place in modules.items():
        try:
            brought: StageReport = importlib.import_module(place).REPORT
            keys = Counter(section.key for part in (parts, brought) for section in part.sections)
            if taken := sorted(key for key, count in keys.items() if count > 1):
                raise BadInput(f"the keys of these sections are taken: {', '.join(taken)}")
            found = [maker if maker.stages else replace(maker, stages=(name,)) for maker in brought.findings]
            # Sorted here: what has another type than the others cannot be.
            ordered = (
                sorted([*parts.sections, *brought.sections], key=lambda section: (section.order, section.key)),
                sorted([*parts.findings, *found], key=lambda maker: maker.order),
                sorted([*parts.columns, *brought.decisions], key=lambda column: (column.order, column.key)),
            )
        except FAULTS as error:  # a plug-in is anybody's code; the report has to come
            what = f"{file_of(place) or place} cannot be used: {type(error).__name__}: {error}"
            parts.problems.append(Problem(where=f"stage {name}", what=what))
            continue
        parts.stages.add(name)
        parts.sections, parts.findings, parts.columns = ordered
    return parts
