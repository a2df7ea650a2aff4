"""The plan on disk: what the main process decided, for runners, jobs and the report."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from transect.domain.errors import BadInput
from transect.domain.files import write_atomic, write_if_changed
from transect.domain.paths import StudyPaths
from transect.domain.study import Study
from transect.planning.blocks import Block
from transect.planning.plan import StudyPlan

__all__ = ["planned_cells", "planned_study", "read_block", "write_plan"]


def planned_cells(paths: StudyPaths) -> dict[str, str] | None:
    """Return the fingerprint of every planned cell by `STAGE/ID`; None when there is no plan."""
    try:
        cells = json.loads(paths.plan.read_text(encoding="utf-8"))["cells"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return cells if isinstance(cells, dict) else None


def planned_study(paths: StudyPaths) -> Study:
    """Return the study as it was planned, without the sections of its stages.

    Raises BadInput when there is no readable plan.
    """
    try:
        return Study.model_validate(json.loads(paths.plan.read_text(encoding="utf-8"))["study"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{paths.plan}: no readable plan: {error}") from None


def write_plan(plan: StudyPlan, blocks: Collection[Block]) -> None:
    """Write the specs of every block that changed, and the list of all cells."""
    paths = plan.paths
    written: set[Path] = {paths.flow}
    for block in blocks:
        file = paths.block(block.rule, block.name)
        head = {"study": plan.study.name, "rule": block.rule, "name": block.name}
        head |= {"fingerprint": block.fingerprint, "about": block.cells[0].spec["about"]}
        written.add(file)
        if _head(file) != head:
            lines = [json.dumps(head), *(json.dumps(p.spec) for p in block.cells)]
            write_atomic(file, "\n".join(lines) + "\n")
    for sources in plan.sources.values():
        file = paths.sources(sources.hash)
        if not file.exists():
            write_atomic(file, json.dumps(sources.files, indent=0) + "\n")
    # What became of blocks that are gone stands nowhere else; sources of old specs stay.
    for path in paths.specs.glob("*/*.json"):
        if path not in written and path.parent != paths.specs / "sources":
            path.unlink()
    table = {f"{p.cell.stage}/{p.id}": p.fingerprint for p in plan}
    study = plan.study.model_dump(mode="json", include=set(Study.model_fields))
    facts = {"study": study, "cells": table}
    write_if_changed(paths.plan, json.dumps(facts, indent=0) + "\n")
    # A block that comes back is looked at again: its cells may have run in another one.
    stamps = {paths.stamp(block.rule, block.name) for block in blocks}
    for path in (paths.folder / "blocks").glob("*/*.json"):
        if path not in stamps:
            path.unlink()


def _head(file: Path) -> dict[str, Any] | None:
    try:
        with file.open(encoding="utf-8") as stream:
            head = json.loads(stream.readline())
    except (OSError, ValueError):
        return None
    return head if isinstance(head, dict) else None


def read_block(file: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the head of a block's file and the specs of its cells, in their order.

    Raises BadInput when it is not there or is damaged.
    """
    try:
        head, *specs = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    except (OSError, ValueError) as error:
        raise BadInput(f"{file}: no readable block of cells: {error}") from None
    return head, specs
