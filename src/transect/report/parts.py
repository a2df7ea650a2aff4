"""What a stage, or the report itself, adds: sections and findings. Found in `NAME/report.py`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from transect import stages
from transect.analysis.load import Problem
from transect.domain.errors import FAULTS
from transect.report.blocks import Body, Part
from transect.report.context import Context
from transect.report.findings.finding import Finding

__all__ = ["FindingMaker", "Parts", "Section", "collect"]


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the report. `order` places it: 100 to 600 for stages, more for what joins them.

    `make` yields its parts or returns its body; no part, or None: there is nothing to say.
    """

    key: str
    title: str
    order: int
    make: Callable[[Context], Iterable[Part] | Body | None]


@dataclass(frozen=True, kw_only=True)
class FindingMaker:
    """What makes the findings of one kind; `order` is that in which a reader needs them."""

    order: int
    make: Callable[[Context], list[Finding]]


@dataclass(kw_only=True)
class Parts:
    """All sections and findings of a report, in order, and the stages that brought them.

    `problems` names stages whose `report.py` cannot be imported.
    """

    sections: list[Section] = field(default_factory=list)
    findings: list[FindingMaker] = field(default_factory=list)
    stages: set[str] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)


def collect(sections: Sequence[Section], findings: Sequence[FindingMaker]) -> Parts:
    """Join what every stage's `report.py` has under SECTIONS and FINDINGS with what is given.

    Stages of plug-in folders that are known by now belong to `transect.stages` as well.
    """
    stages.add_plugin_folders()
    parts = Parts(sections=list(sections), findings=list(findings))
    for path in sorted(
        path for folder in stages.__path__ for path in Path(folder).glob("*/report.py")
    ):
        name = path.parent.name
        if name.startswith("_"):
            continue
        try:
            module = importlib.import_module(f"{stages.__name__}.{name}.report")
        except FAULTS as error:  # a plug-in is anybody's code; the report has to come
            what = f"{path} cannot be imported: {type(error).__name__}: {error}"
            parts.problems.append(Problem(where=f"stage {name}", what=what))
            continue
        parts.stages.add(name)
        parts.sections += getattr(module, "SECTIONS", ())
        parts.findings += getattr(module, "FINDINGS", ())
    parts.sections.sort(key=lambda section: (section.order, section.key))
    parts.findings.sort(key=lambda maker: maker.order)
    return parts
