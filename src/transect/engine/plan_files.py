"""The plan on disk: what the main process decided, for runners, jobs and the report."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from transect.domain.claims import Work, rule_id
from transect.domain.errors import BadInput
from transect.domain.files import canonical_json, digest, write_atomic, write_if_changed
from transect.domain.paths import ROOT, StudyPaths
from transect.domain.study import Study
from transect.domain.system import SystemPrice
from transect.domain.until import AnalysisPlan
from transect.engine.staleness import stamp_entry
from transect.measure.provenance import git_state
from transect.planning.blocks import Block
from transect.planning.plan import StudyPlan


def _facts(paths: StudyPaths) -> dict[str, Any]:
    try:
        facts = json.loads(paths.plan.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}


def planned_cells(paths: StudyPaths) -> dict[str, str] | None:
    """Return the fingerprint of every planned cell by `STAGE/ID`; None when there is no plan.

    A repeat that may not be needed counts from when it has a record.
    """
    facts = _facts(paths)
    if not isinstance(cells := facts.get("cells"), dict):
        return None
    optional = frozenset(facts.get("optional", ()))
    return {
        name: fingerprint
        for name, fingerprint in cells.items()
        if name not in optional or paths.record(*name.split("/", 1)).exists()
    }


def planned_study(paths: StudyPaths) -> Study:
    """Return the study as it was planned, without the sections of its stages. Raises BadInput without a plan."""
    try:
        # Results of before 2026-11-28 have published figures, which are claims now.
        return Study.model_validate({key: one for key, one in _facts(paths)["study"].items() if key != "published"})
    except (ValueError, KeyError, AttributeError) as error:
        raise BadInput(f"{paths.plan}: no readable plan: {error}") from None


def planned_analysis(paths: StudyPaths) -> AnalysisPlan:
    """Return what the study wanted to know when it was planned; the defaults without a plan."""
    facts = _facts(paths)
    # Results of before 2026-11-26 have it by another name: their margin is the same.
    return AnalysisPlan.of(facts.get("analysis_plan", facts.get("aims", {})))


def planned_margin(paths: StudyPaths) -> float | None:
    """Return within what the study calls two the same; None where no plan tells."""
    facts = _facts(paths)
    plan = facts.get("analysis_plan", facts.get("aims"))
    margin = plan.get("margin") if isinstance(plan, dict) else None
    return float(margin) if isinstance(margin, int | float) and 0 < margin < 1 else None


def planned_price(paths: StudyPaths) -> SystemPrice | None:
    """Return what a node cost when the study was planned; None where nobody said."""
    try:
        return SystemPrice.model_validate(_facts(paths).get("price"))
    except ValueError:
        return None


def _origin(file: Path) -> dict[str, str]:
    path = file.resolve()
    if path.is_relative_to(ROOT):
        return {"file": str(path.relative_to(ROOT)), "project": str(ROOT)}
    return {"file": str(path), "project": ""}


def study_file(paths: StudyPaths) -> Path | None:
    """Return the file from which a study was planned last, which may have gone; None if unknown."""
    origin = _facts(paths).get("origin")
    return Path(origin["project"], origin["file"]) if origin else None


def system_file(paths: StudyPaths) -> Path | None:
    """Return the file of the system for which a study was planned last; None if unknown."""
    file = _facts(paths).get("system")
    return Path(file) if file else None


def _content(file: Path) -> dict[str, Any]:
    # Not for jobs, which plan nothing.
    from transect.domain.strict_yaml import load_yaml

    return load_yaml(file)


def _parts(file: Path) -> dict[str, str]:
    """Return a digest of each key of a study's file; nothing of one that is just being written."""
    try:
        return {str(key): digest([canonical_json(value)])[:16] for key, value in _content(file).items()}
    except BadInput:
        return {}


def edits(paths: StudyPaths, file: Path) -> str:
    """Say in which keys a study's file is not what was planned from it; empty where it is, or nothing tells."""
    planned, now = _facts(paths).get("parts"), _parts(file)
    if not isinstance(planned, dict) or not planned or not now:
        return ""
    unlike = sorted(key for key in planned.keys() | now.keys() if planned.get(key) != now.get(key))
    if not unlike:
        return ""
    return (
        f"since these results were planned, {file.name} was edited in {', '.join(unlike)}: the report has the cells, pairs and "
        "margin of the plan, and the words of the file"
    )


def _name_in(file: Path) -> object:
    try:
        return _content(file).get("name")
    except BadInput:
        return None  # nobody can tell


def check_origin(paths: StudyPaths, file: Path) -> str | None:
    """Return a message about a study whose file was moved, or None. Changes nothing.

    Raises BadInput when the results are those of another study file of the same name: cells of two
    such studies have the same ids, and would overwrite each other.
    """
    before, now, earlier = _facts(paths).get("origin"), _origin(file), study_file(paths)
    if before is None or earlier is None:
        return None  # no plan, or one from before it was noted
    # Two clones on one results folder have the same study below different folders.
    same = before["file"] == now["file"] and bool(before["project"]) == bool(now["project"])
    if same or earlier.resolve() == file.resolve():
        return None
    if not earlier.exists():
        return f"study '{paths.study}' was planned from {before['file']}, which has gone: now from {now['file']}"
    if isinstance(name := _name_in(earlier), str) and name != paths.study:
        message = f"study '{paths.study}' was planned from {before['file']}, which is '{name}' today"
        return f"{message}: now from {now['file']}"
    raise BadInput(
        f"{now['file']}: the study is called '{paths.study}', and {paths.folder} holds results of {before['file']}, "
        f"another study file of that name: give one of them another name, or remove it or {paths.folder}"
    )


def write_plan(plan: StudyPlan, blocks: Collection[Block]) -> None:
    """Write the specs of every block that changed, and the list of all cells."""
    paths = plan.paths
    written: set[Path] = {paths.flow}
    limits = canonical_json(plan.study.limits.model_dump())
    for block in blocks:
        file = paths.block(block.rule, block.name)
        head: dict[str, Any] = {"study": plan.study.name, "rule": block.rule, "name": block.name}
        head |= {"fingerprint": block.fingerprint, "about": block.cells[0].spec["about"]}
        # Input of its cells that their fingerprints do not cover.
        named = sorted({name for p in block.cells for name in p.spec.get("named", ())})
        taken = (p.id for p in block.cells if p.spec["taken"])
        pairs = canonical_json([p.spec.get("pairs", ()) for p in block.cells])
        head["told"] = digest([limits, *named, *taken, pairs])[:16]
        if any(p.optional for p in block.cells):
            # Beyond this time of the job nothing more begins; None: it may take what it takes.
            head["minutes"] = block.minutes if plan.system.scheduler != "none" else None
        written.add(file)
        if _head(file) != head:
            specs = "".join(json.dumps(p.spec) + "\n" for p in block.cells)
            head["bytes"] = len(specs)
            write_atomic(file, json.dumps(head) + "\n" + specs)
    for sources in plan.sources.values():
        file = paths.sources(sources.hash)
        if not file.exists():
            write_atomic(file, json.dumps(sources.files, indent=0) + "\n")
    # What became of blocks that are gone stands nowhere else; sources of old specs stay.
    for path in paths.specs.glob("*/*.json"):
        old = None if path in written or _linked(path) else _head(path)
        if old is not None and (old.get("rule"), old.get("name")) == (path.parent.name, path.stem):
            path.unlink()
    table = {f"{p.cell.stage}/{p.id}": p.fingerprint for p in plan}
    study = plan.study.model_dump(mode="json", include=set(Study.model_fields))
    facts: dict[str, Any] = {
        "study": study,
        "origin": _origin(plan.file),
        "parts": _parts(plan.file),
        "system": str(plan.system_file),
        "cells": table,
    }
    optional = [f"{p.cell.stage}/{p.id}" for p in plan if p.optional]
    facts |= {"optional": optional} if optional else {}
    facts["analysis_plan"] = plan.analysis_plan.stored()
    # In no spec: what a node costs changes the report alone.
    facts |= {"price": plan.system.price.model_dump()} if plan.system.price else {}
    # The report needs them where no such file is.
    facts |= {"claims": {name: work.model_dump(mode="json") for name, work in plan.works.items()}} if plan.works else {}
    fix_rules(paths, plan.works.values())
    write_if_changed(paths.plan, json.dumps(facts, indent=0) + "\n")
    # A block that comes back is looked at again: its cells may have run in another one.
    stamps = {paths.stamp(block.rule, block.name) for block in blocks}
    for path in (paths.folder / "blocks").glob("*/*.json"):
        if path not in stamps and not _linked(path) and stamp_entry(path, "state") is not None:
            path.unlink()


def fix_rules(paths: StudyPaths, works: Iterable[Work]) -> None:
    """Note since when each rule that decides a claim has stood: before what it decides ran, or not.

    One that was edited stands until now; one that comes back stands from now on.
    """
    wanted = {rule_id(work, claim) for work in works for claim in work.claims if claim.rule}
    if not wanted:
        return
    paths.folder.mkdir(parents=True, exist_ok=True)
    with _alone(paths.folder):
        known, now = fixed_rules(paths) or {}, datetime.now(UTC).isoformat(timespec="seconds")
        claims = {rule.rpartition("/")[0] for rule in wanted}
        gone = [rule for rule in known if rule.rpartition("/")[0] in claims and rule not in wanted]
        ended = {rule: {"until": now} | known[rule] for rule in gone}
        new = {
            rule: {"since": now, **git_state()} for rule in sorted(wanted) if "until" in known.get(rule, {"until": 0})
        }
        if (made := known | ended | new) != known:
            write_atomic(paths.rules, json.dumps(made, indent=0) + "\n")


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait until no other process of this host is here: two that read and write would lose an entry."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def fixed_rules(paths: StudyPaths) -> dict[str, dict[str, Any]] | None:
    """Return since when each rule has stood, and at which commit; None where nothing tells.

    Raises BadInput for a file that is there and cannot be read: without it nothing shows that a rule was there first.
    """
    try:
        known = json.loads(paths.rules.read_text(encoding="utf-8"))
        if not isinstance(known, dict) or not all(isinstance(entry, dict) for entry in known.values()):
            raise ValueError("expected a mapping of rules")
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise BadInput(
            f"{paths.rules}: cannot be read, and says since when rules stand: {error}; without it they count from the next plan on"
        ) from None
    return known


def planned_works(paths: StudyPaths) -> list[Work]:
    """Return the published works of a study as they were planned; none where no plan tells of any."""
    try:
        return [Work.model_validate(given) for given in _facts(paths).get("claims", {}).values()]
    except (ValueError, AttributeError) as error:
        raise BadInput(f"{paths.plan}: no readable claims: {error}") from None


def _linked(path: Path) -> bool:
    """Whether a file is reached through a link: then it is not the study's own to delete."""
    return any(place.is_symlink() for place in (path, path.parent, path.parents[1]))


def _head(file: Path) -> dict[str, Any] | None:
    try:
        with file.open("rb") as stream:
            line = stream.readline()
        head: dict[str, Any] = json.loads(line)
        whole = head.pop("bytes") == file.stat().st_size - len(line)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return head if whole else None


def read_block(file: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the head of a block's file and the specs of its cells, in their order.

    Raises BadInput when it is not there or is damaged.
    """
    try:
        head, *specs = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    except (OSError, ValueError) as error:
        raise BadInput(f"{file}: no readable block of cells: {error}") from None
    return head, specs


def planned_specs(paths: StudyPaths) -> Iterator[dict[str, Any]]:
    """Yield the specs of all cells as planned last; not of a damaged file, which the next run writes anew."""
    for file in paths.specs.glob("*/*.json"):
        if file.parent.name != "sources":
            with contextlib.suppress(BadInput, KeyError, TypeError):
                head, specs = read_block(file)
                yield from [spec | {"about": head["about"]} for spec in specs]
