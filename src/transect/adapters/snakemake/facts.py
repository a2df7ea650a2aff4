"""What the rules have to know of a plan: made once, read again by every job's own Snakemake."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from transect.domain.errors import BadInput
from transect.domain.files import canonical_json, digest, write_if_changed
from transect.domain.paths import StudyPaths
from transect.engine.stage_helpers import facts_of
from transect.planning.blocks import Block, resources
from transect.planning.plan import StudyPlan
from transect.planning.sources import report_hash
from transect.planning.stage import STAGES


@dataclass(frozen=True, kw_only=True, slots=True)
class BlockFacts:
    """One block as its rule sees it. `state` changes when any of its cells is to run again."""

    rule: str
    name: str
    local: bool
    order: int
    cells: int
    inputs: tuple[str, ...]
    # Stamps that have to be there, however old: nothing is taken from those blocks.
    waits: tuple[str, ...]
    state: str
    resources: dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class FlowFacts:
    """All that the rules ask for. Paths are strings, as Snakemake wants them."""

    system_file: str
    folder: str
    environments: dict[str, str]
    report_state: str
    blocks: tuple[BlockFacts, ...]


def _outside(block: Block, paths: StudyPaths) -> list[str]:
    seen: dict[Path, None] = {}
    for planned in block.cells:
        files = STAGES.get(planned.cell.stage).files(planned.spec)
        for path in (*files, *map(Path, planned.spec.get("named", ()))):
            seen.setdefault(path)
    return [facts_of(path, paths) for path in seen]


def facts_of_plan(plan: StudyPlan, blocks: list[Block]) -> FlowFacts:
    """Return what the rules need of a plan."""
    paths = plan.paths
    stamps = [str(paths.stamp(block.rule, block.name)) for block in blocks]
    stamp_of = {planned.key: stamp for block, stamp in zip(blocks, stamps, strict=True) for planned in block.cells}
    facts = []
    locks: dict[str, str] = {}
    for order, block in enumerate(blocks):
        needed: dict[str, None] = {}
        for planned in block.cells:
            for source in planned.inputs.values():
                needed.setdefault(stamp_of[source])
            locks = planned.environments | locks
        waits = {stamp_of[key] for planned in block.cells for key in planned.waits}
        names = sorted({name for planned in block.cells for name in planned.environments})
        needed |= dict.fromkeys(str(paths.environment(name)) for name in names)
        needed.pop(stamps[order], None)
        facts.append(
            BlockFacts(
                rule=block.rule,
                name=block.name,
                local=block.shape.local,
                order=order,
                cells=len(block.cells),
                inputs=tuple(needed),
                waits=tuple(sorted(waits - {*needed, stamps[order]})),
                state=digest([block.fingerprint, *_outside(block, paths)])[:16],
                resources=resources(block, plan.system, plan.study.limits),
            )
        )
    words = plan.study.model_dump(include={"title", "questions", "published"})
    cells = sorted(f"{p.cell.stage}/{p.id}" for p in plan)
    return FlowFacts(
        system_file=str(plan.system_file),
        folder=str(paths.folder),
        environments=locks,
        report_state=digest(
            [report_hash(plan.file.parent), canonical_json(words), canonical_json(plan.analysis_plan.stored()), *cells]
        )[:16],
        blocks=tuple(facts),
    )


def write_facts(paths: StudyPaths, facts: FlowFacts) -> None:
    """Write what `read_facts` reads."""
    write_if_changed(paths.flow, json.dumps(asdict(facts), indent=0) + "\n")


def read_facts(paths: StudyPaths) -> FlowFacts:
    """Return what the main process wrote. Raises BadInput when it is not there."""
    try:
        raw = json.loads(paths.flow.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{paths.flow}: no readable plan of the main process: {error}") from None
    lists = ("inputs", "waits")
    blocks = tuple(BlockFacts(**one | {k: tuple(one[k]) for k in lists}) for one in raw["blocks"])
    return FlowFacts(**raw | {"blocks": blocks})
