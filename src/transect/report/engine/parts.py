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
from transect.domain.paths import PACKAGE
from transect.planning.code_hash import file_of
from transect.planning.sources import report_files
from transect.report import topics
from transect.report.engine.blocks import Part
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding

# Headings in the contents, and below which order sections stand under them.
_GROUPS = ((100, ""), (500, "Training"), (700, "Serving"), (850, "Hardware"))


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the report. `order` places it: 100 to 499 training, to 699 serving, to 849 hardware, then the study.

    `make` yields its parts; no part, or None: there is nothing to say. `front`: it stands on the first screen.
    """

    key: str
    title: str
    order: int
    make: Callable[[Context], Iterable[Part] | None]
    # On paper also where nobody opened it.
    printed: bool = False
    # Made after all others: it counts what they could not read.
    last: bool = False
    front: bool = False

    @property
    def group(self) -> str:
        """What stands above it in the contents; nothing above those that come first."""
        return next((name for below, name in _GROUPS if self.order < below), "The study")


@dataclass(frozen=True, kw_only=True)
class FindingMaker:
    """What makes the findings of one kind; `order` is that in which a reader needs them.

    `name` begins the ids of its rules: a finding of kind `fastest` by `training` is of rule `training.fastest`, one
    whose kind is the name itself of that alone. `section` is the key of the section that shows more of them, `sections` that
    of single kinds of findings. `stages` are those whose cells are compared; by default the stage of the topic.
    """

    name: str
    order: int
    make: Callable[[Context], list[Finding]]
    section: str = ""
    sections: Mapping[str, str] = field(default_factory=dict)
    stages: tuple[str, ...] = ()

    def rule(self, kind: str) -> str:
        """Name the rule that makes its findings of one kind; what a kind repeats of the name is left out."""
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
    says which of them, by default all: a workload that has such cells and no entry is listed with the reason. `metric`
    is the one that its bars show. `always`: a study that does not ask this is told that it does not.
    """

    key: str
    title: str
    order: int
    stage: str
    metric: str = ""
    always: bool = False
    asks: Callable[[Cell], bool] = lambda cell: True


@dataclass(frozen=True, kw_only=True)
class StageReport:
    """What a topic, or a plug-in's stage, brings to the report, as `REPORT` of its module.

    `stage` is the one whose cells it is about; nothing: it joins several. Of a plug-in it is the folder's name.
    """

    sections: Sequence[Section]
    findings: Sequence[FindingMaker] = ()
    decisions: Sequence[DecisionColumn] = ()
    stage: str = ""


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


def all_parts() -> Parts:
    """Join what every topic brings, and every stage of a plug-in folder in its own `report.py`."""
    importlib.import_module("transect.stages").add_plugin_folders()
    parts = Parts()
    # What is not said of these stages on their own stands in a section that joins several.
    parts.stages = {module.name.replace("_", "-") for module in pkgutil.iter_modules([str(PACKAGE / "stages")])}
    modules = [("", f"{topics.__name__}.{module.name}") for module in pkgutil.iter_modules(topics.__path__)]
    modules += [(path.parent.name, f"transect.stages.{path.parent.name}.report") for path in report_files()]
    for folder, place in modules:
        try:
            brought: StageReport = importlib.import_module(place).REPORT
            stage = folder or brought.stage
            keys = Counter(section.key for part in (parts, brought) for section in part.sections)
            if taken := sorted(key for key, count in keys.items() if count > 1):
                raise BadInput(f"the keys of these sections are taken: {', '.join(taken)}")
            found = [
                maker if maker.stages or not stage else replace(maker, stages=(stage,)) for maker in brought.findings
            ]
            # Sorted here: what has another type than the others cannot be.
            ordered = (
                sorted([*parts.sections, *brought.sections], key=lambda section: (section.order, section.key)),
                sorted([*parts.findings, *found], key=lambda maker: maker.order),
                sorted([*parts.columns, *brought.decisions], key=lambda column: (column.order, column.key)),
            )
        except FAULTS as error:  # a plug-in is anybody's code; the report has to come
            what = f"{file_of(place) or place} cannot be used: {type(error).__name__}: {error}"
            parts.problems.append(Problem(where=f"stage {folder or place.rpartition('.')[2]}", what=what))
            continue
        if stage:
            parts.stages.add(stage)
        parts.sections, parts.findings, parts.columns = ordered
    return parts
