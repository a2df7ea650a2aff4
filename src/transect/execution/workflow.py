"""What the Snakefile needs: the plan as plain look-ups, and the handlers of a run.

Snakemake parses the Snakefile once per call on a laptop and once more in every cluster job, so
this imports nothing heavier than pydantic and makes the plan once.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any, NoReturn

from transect.domain.cell import CELL_PATTERN
from transect.domain.errors import BadInput, TransectError
from transect.domain.files import canonical_json, digest, write_if_changed
from transect.domain.paths import ROOT
from transect.execution.claim import Claim
from transect.execution.follow import Follower
from transect.execution.locks import Owner, clear_stale_locks
from transect.execution.progress import start_progress
from transect.execution.settle import settle
from transect.execution.submissions import SUBMISSIONS
from transect.planning.blocks import Block, make_blocks, resources
from transect.planning.environments import lock_hash
from transect.planning.plan import Planned, find_study, find_system, make_plan
from transect.planning.sources import report_hash

__all__ = ["Flow", "open_flow"]

# Set for everything that one run of Snakemake starts.
SESSION = "TRANSECT_SNAKEMAKE"
_CONFIG_KEYS = {"study", "system", "results", "strict"}


class Flow:
    """The planned study, as the rules see it. Paths are strings, as Snakemake wants them."""

    cell_pattern = CELL_PATTERN

    def __init__(self, config: dict[str, Any], snakemake_folder: Path) -> None:
        for key in config.keys() - _CONFIG_KEYS:
            raise BadInput(f"config: unknown key '{key}'. Known: {', '.join(sorted(_CONFIG_KEYS))}")
        self.study_file = find_study(str(config["study"]))
        self.results = str(config["results"])
        if str(config["strict"]).lower() not in ("true", "false"):
            raise BadInput(
                f"config: key 'strict': expected true or false, found {config['strict']!r}"
            )
        self.strict = str(config["strict"]).lower() == "true"
        self.system_file = find_system(str(config["system"]))
        plan = make_plan(self.study_file, self.system_file, Path(self.results))
        self.folder = str(plan.paths.folder)
        self.python = sys.executable
        self._plan = plan
        self._cells = plan.cells
        # On a scheduler cells share jobs; on one machine each is a job of Snakemake's own.
        self.scheduled = plan.system.scheduler != "none"
        self._blocks = make_blocks(plan) if self.scheduled else []
        self._block_of = {(p.cell.stage, p.id): b for b in self._blocks for p in b.cells}
        self._owner = Owner(snakemake_folder)
        self._claim = Claim(Path(self.results), plan.study.name)
        self._follower = Follower(plan.paths)
        self.snakemake_folder = snakemake_folder
        self._stamps = {
            name: str(plan.paths.environment(name))
            for name in {p.environment for p in plan}
            if name
        }
        self._forget_lost_environments(plan)
        self._forget_broken_blocks()

    def _forget_lost_environments(self, plan: Any) -> None:
        """Drop the stamp of an environment that was removed from the cache."""
        for stamp in self._stamps.values():
            try:
                facts = json.loads(Path(stamp).read_text())
            except (OSError, ValueError):
                continue
            lost = Path(facts["python"]).is_absolute() and not Path(facts["python"]).exists()
            if facts["status"] == "ok" and lost and not facts.get("wrap"):
                Path(stamp).unlink()

    def _forget_broken_blocks(self) -> None:
        """Drop the stamp of a block that lacks a record: somebody deleted it to have it again."""
        if SESSION in os.environ:
            return  # a job's own Snakemake: other blocks are none of its business
        for block in self._blocks:
            stamp = Path(self.block_stamp(block))
            records = (self._plan.paths.record(p.cell.stage, p.id) for p in block.cells)
            if stamp.exists() and not all(record.exists() for record in records):
                stamp.unlink()

    def ids(self, stage: str) -> list[str]:
        """Return the ids of a stage's cells."""
        return list(self._cells.get(stage, ()))

    def records(self) -> list[str]:
        """Return the record of every cell."""
        return [f"{self.folder}/{p.cell.stage}/{p.id}/record.json" for p in self._plan]

    def pattern(self, stage: str) -> str:
        """Return the output pattern of a stage."""
        return f"{self.folder}/{stage}/{{cell}}/record.json"

    def inputs(self, stage: str, cell: str) -> list[str]:
        """Return the environment's stamp and the records that a cell depends on."""
        planned = self._cells[stage][cell]
        sources = planned.inputs
        if "reference" in sources:
            # The reference takes the data too: one edge less for every training cell.
            sources = {role: source for role, source in sources.items() if role != "data"}
        found = [f"{self.folder}/{s}/{i}/record.json" for s, i in sources.values()]
        if planned.environment:
            found.append(self._stamps[planned.environment])
        return found

    def blocks(self) -> list[Block]:
        """Return the allocation blocks; none without a scheduler."""
        return self._blocks

    def block_stamp(self, block: Block) -> str:
        """Return the file that says that all records of a block are there.

        The records themselves are not declared: Snakemake would delete all of them when the
        block's job fails.
        """
        return f"{self.folder}/blocks/{block.id}.json"

    def block_inputs(self, block: Block) -> list[str]:
        """Return the stamps of other blocks and of environments that the block's cells need."""
        found = []
        for planned in block.cells:
            for source in planned.inputs.values():
                found.append(self.block_stamp(self._block_of[source]))
            if planned.environment:
                found.append(self._stamps[planned.environment])
        return [path for path in dict.fromkeys(found) if path != self.block_stamp(block)]

    def targets(self) -> list[str]:
        """Return what has to be there before the report: records, or the blocks' stamps."""
        if not self.scheduled:
            return self.records()
        stamps = [self.block_stamp(block) for block in self._blocks]
        return [*stamps, *(f"{self.folder}/ingest/{i}/record.json" for i in self.ids("ingest"))]

    def block_resources(self, block: Block) -> dict[str, Any]:
        """Return what the block's job asks Slurm for."""
        return resources(block, self._plan.system, self._plan.study.limits)

    def block_command(self) -> str:
        """Return the shell line of the blocks' jobs; Snakemake fills in which and the attempt."""
        return (
            "{FLOW.python:q} -m transect.execution.run_block --results {FLOW.results:q} "
            "--block {FLOW.folder:q}/specs/blocks/{params.block}.json "
            "--attempt {resources.attempt} --stamp {output:q}"
        )

    def logs(self, cell: str) -> list[str]:
        """Return the files that an ingest cell reads."""
        from transect.execution.stages._common import files_below

        return [str(p) for p in files_below(Path(self._cells["ingest"][cell].spec["path"]))]

    def fingerprint(self, stage: str, cell: str) -> str:
        """Return what makes the cell stale when it changes: spec, sources, lock."""
        return self._cells[stage][cell].fingerprint

    def order(self, stage: str, cell: str) -> int:
        """Return the cell's place in the seeded random order, as a priority."""
        return self._cells[stage][cell].order

    def command(self, stage: str) -> str:
        """Return the shell line of a stage's cells; Snakemake fills in cell and attempt."""
        return (
            "{FLOW.python:q} -m transect.execution.run_cell --results {FLOW.results:q} "
            f"--spec {{FLOW.folder:q}}/specs/{stage}/{{wildcards.cell}}.json "
            "--attempt {resources.attempt}"
        )

    def environment_stamp(self) -> str:
        """Return the output pattern of environments."""
        return f"{self.results}/environments/{{environment}}.json"

    def lock_hash(self, name: str) -> str:
        """Return an environment's lock hash."""
        return lock_hash(name, self._plan.system.environments.get(name))

    def report_state(self) -> str:
        """Return what makes the report stale besides its records."""
        study = self._plan.study
        words = study.model_dump(include={"title", "questions", "published"})
        return digest([report_hash(), canonical_json(words), *sorted(self.records())])[:16]

    # Handlers of the main process

    def before_run(self) -> None:
        """Write the specs that changed, and what each block holds."""
        self._plan.write_specs()
        for block in self._blocks:
            facts = {"study": self._plan.study.name, "cells": block.key()}
            path = self._plan.paths.spec("blocks", block.id)
            write_if_changed(path, json.dumps(facts, indent=0) + "\n")

    def _target(self, planned: Planned) -> str:
        """Return the declared output that a cell stands behind."""
        block = self._block_of.get((planned.cell.stage, planned.id))
        if block is not None:
            return self.block_stamp(block)
        return f"{self.folder}/{planned.cell.stage}/{planned.id}/record.json"

    def start(self, jobs: Any) -> None:
        """Claim the results folder, take ownership and begin the progress journal."""
        try:
            self._claim.take()
        except BadInput as error:
            _leave(error)
        self._owner.begin()
        wanted = {str(path) for job in jobs for path in job.output}
        stages = Counter(p.cell.stage for p in self._plan if self._target(p) in wanted)
        start_progress(self._plan.paths, dict(stages))
        if self.scheduled:
            self._follower.begin()

    def finish(self) -> None:
        """Give everything back."""
        self._follower.end()
        self._claim.give_back()
        self._owner.end()

    def fail(self) -> None:
        """Settle what jobs left without a record, make the report all the same, and finish."""
        try:
            if self.scheduled and not SUBMISSIONS.interrupted:
                settle(self._plan, self._blocks)
        finally:
            self.finish()


def _leave(error: TransectError) -> NoReturn:
    print(f"transect: {error}", file=sys.stderr)
    sys.stderr.flush()
    os._exit(error.exit_code)


def open_flow(config: dict[str, Any]) -> Flow:
    """Make the plan, or end the process with one clear message and exit code 2."""
    folder = Path(".snakemake")
    # Children run modules of this checkout in environments that do not have it installed.
    os.environ["PYTHONPATH"] = str(ROOT / "src")
    try:
        flow = Flow(config, folder)
        # A job's own Snakemake runs what the main one planned, whatever was edited since.
        if SESSION not in os.environ:
            flow.before_run()
    except TransectError as error:
        _leave(error)
    # A job's own Snakemake must not take the main one's place.
    if SESSION not in os.environ:
        os.environ[SESSION] = f"{os.getpid()}:{os.uname().nodename}"
        told = clear_stale_locks(folder)
        if told:
            print(f"[transect] {told}", file=sys.stderr)
    return flow
