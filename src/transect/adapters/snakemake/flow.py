"""What the rules need: the plan as plain look-ups.

Snakemake parses the Snakefile once per call and once more in every cluster job; a job reads what
the main process planned, and plans nothing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from inspect import signature
from pathlib import Path
from typing import Any

from transect.domain.errors import BadInput
from transect.domain.files import canonical_json, digest, write_if_changed
from transect.domain.paths import StudyPaths
from transect.engine.stage_helpers import facts_of
from transect.planning.blocks import BLOCK_PATTERN, Block, resources
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
    words = plan.study.model_dump(include={"title", "questions"})
    price = plan.system.price
    # A price that nobody gave changes the state of no report.
    besides = [] if price is None else [canonical_json(price.model_dump())]
    cells = sorted(f"{p.cell.stage}/{p.id}" for p in plan)
    return FlowFacts(
        system_file=str(plan.system_file),
        folder=str(paths.folder),
        environments=locks,
        report_state=digest(
            [
                report_hash(plan.file.parent),
                canonical_json(words),
                canonical_json(plan.analysis_plan.stored()),
                *besides,
                *(canonical_json(work.model_dump(mode="json")) for work in plan.works.values()),
                *cells,
            ]
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
    blocks = tuple(BlockFacts(**entry | {k: tuple(entry[k]) for k in lists}) for entry in raw["blocks"])
    return FlowFacts(**raw | {"blocks": blocks})


class Flow:
    """A planned study, as the rules see it. Paths are strings, as Snakemake wants them."""

    block_pattern = BLOCK_PATTERN

    def __init__(self, facts: FlowFacts, results: str, strict: bool) -> None:
        self.results, self.strict = results, strict
        self.folder, self.system_file = facts.folder, facts.system_file
        self.python = sys.executable
        self._facts = facts
        self._blocks = {(block.rule, block.name): block for block in facts.blocks}
        self._rules: dict[str, BlockFacts] = {}
        for block in facts.blocks:
            self._rules.setdefault(block.rule, block)

    def rules(self) -> list[str]:
        """Return the names of the rules that run blocks."""
        return list(self._rules)

    def is_local(self, rule: str) -> bool:
        """Whether the rule's blocks need no node."""
        return self._rules[rule].local

    def log(self, rule: str) -> str:
        """Return the pattern of the files that keep what a rule's jobs say; what a cell says is beside its record."""
        return f"{self.folder}/logs/{rule}/{{block}}.log"

    def pattern(self, rule: str) -> str:
        """Return the output pattern of a rule: the stamp that says that all records are there.

        The records themselves are not declared: Snakemake would delete all of them when the
        block's job fails.
        """
        return f"{self.folder}/blocks/{rule}/{{block}}.json"

    def inputs(self, rule: str, block: str) -> list[str]:
        """Return the stamps of other blocks and of environments that the block's cells need."""
        self.look()
        return list(self._blocks[rule, block].inputs)

    def waits(self, rule: str, block: str) -> list[str]:
        """Return the stamps of blocks that run before it, and from which it takes nothing."""
        return list(self._blocks[rule, block].waits)

    def order(self, rule: str, block: str) -> int:
        """Return a priority: blocks run in the order of the plan."""
        return len(self._blocks) - self._blocks[rule, block].order

    def call(self, rule: str, block: str) -> list[str]:
        """Return what a block's runner is told: its state changes when any cell of the block is to run again."""
        state = self._blocks[rule, block].state
        return [f"--results={self.results}", f"--block={self.folder}/specs/{rule}/{block}.json", f"--state={state}"]

    def resources(self, rule: str) -> dict[str, Any]:
        """Return the resources of a rule's jobs by name: a value, or a function of a job's wildcards.

        Snakemake takes ten times as long for what it has to ask for as for a value, in each job.
        """
        every = [block.resources for block in self._facts.blocks if block.rule == rule]
        return {
            name: value if all(row[name] == value for row in every) else self._teller(rule, name)
            for name, value in every[0].items()
        }

    def _teller(self, rule: str, name: str) -> Callable[[Any], Any]:
        def tell(wildcards: Any) -> Any:
            return self._blocks[rule, wildcards.block].resources[name]

        return self.often(tell)

    @staticmethod
    def often(function: Callable[..., Any]) -> Callable[..., Any]:
        """Note a function's arguments on it: Snakemake would inspect it several times for each job."""
        vars(function)["__signature__"] = signature(function)
        return function

    def stamps(self) -> list[str]:
        """Return the stamps of all blocks."""
        return [f"{self.folder}/blocks/{rule}/{name}.json" for rule, name in self._blocks]

    def targets(self) -> list[str]:
        """Return the stamps of all blocks: a record that was deleted is made again although the report is there."""
        self.look()
        return self.stamps()

    def environment_stamp(self) -> str:
        """Return the output pattern of environments."""
        return f"{self.results}/environments/{{environment}}.json"

    def environment_inputs(self) -> list[str]:
        """Return none; what is stale is looked for where a call names an environment alone, too."""
        self.look()
        return []

    def environment_call(self, name: str) -> list[str]:
        """Return what makes an environment of its lock hash."""
        lock = self._facts.environments[name]
        return [f"--name={name}", f"--results={self.results}", f"--system={self.system_file}", f"--lock={lock}"]

    # Of the main process: a job's own Snakemake has nothing to find, to begin or to end.

    def look(self) -> None:
        """Find out once what is stale, before Snakemake looks at any stamp."""

    def start(self, jobs: Any) -> None:
        """Begin a run."""

    def finish(self) -> None:
        """End it."""

    def fail(self) -> None:
        """End it after a job failed."""
