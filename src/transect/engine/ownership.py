"""What of a results folder is a study's own: the only things that commands may delete there.

A folder may hold anybody's files, and links to anywhere. What a name looks like tells nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Any

from transect.domain.paths import StudyPaths
from transect.engine.plan_files import planned_specs
from transect.engine.staleness import stamp_entry

# An id ends in the hash of its axes.
_ID = re.compile(r".*~[0-9a-f]{8}", re.DOTALL)


def why_not_own(paths: StudyPaths, stage: str, cell_id: str, planned: Collection[str] | None) -> str | None:
    """Return why the folder of a cell is not to be touched, or None where it is the study's.

    It is where the plan names the cell (`planned`, its cells as `STAGE/ID`), or the folder's own record or spec does.
    """
    folder = paths.cell(stage, cell_id)
    for path in (folder, folder.parent):
        if path.is_symlink():
            return f"{path} is a link"
    if planned is not None and f"{stage}/{cell_id}" in planned:
        return None
    study = _planned_name(paths)
    for facts in map(_facts, (folder / "record.json", folder / "spec.json") if _ID.fullmatch(cell_id) else ()):
        cell = facts.get("cell")
        named = isinstance(cell, dict) and (cell.get("stage"), facts.get("cell_id")) == (stage, cell_id)
        if named and study in (None, facts.get("study")):
            return None
    return f"neither the plan nor a record there says that it is a cell of {paths.study}"


@cache
def _planned_name(paths: StudyPaths) -> object:
    return (stamp_entry(paths.plan, "study") or {}).get("name")


def _facts(file: Path) -> dict[str, Any]:
    try:
        facts = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}


def failed_environments(paths: StudyPaths) -> list[Path]:
    """Return the stamps of environments that the study's plan names, by name and lock hash, and that failed.

    What stands for another lock hash, or cannot be read, the next run makes again by itself.
    """
    needed: set[tuple[str, str]] = set()
    for spec in planned_specs(paths):
        needed |= {(spec["environment"], spec["lock"]), *spec.get("other_environments", {}).items()}
    found = []
    for name, lock in sorted(needed):
        stamp = paths.environment(name)
        facts = _facts(stamp)
        same = (facts.get("name"), facts.get("lock_hash")) == (name, lock)
        linked = stamp.is_symlink() or stamp.parent.is_symlink()
        if name and same and not linked and facts.get("status") != "ok":
            found.append(stamp)
    return found
