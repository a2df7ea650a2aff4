"""What the Snakefile needs: the plan as plain look-ups, and the handlers of a run.

Snakemake parses the Snakefile once per call on a laptop and once more in every cluster job, so
this imports nothing heavier than pydantic and makes the plan once.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from transect.domain.cell import CELL_PATTERN
from transect.domain.errors import BadInput, TransectError
from transect.domain.files import canonical_json, digest
from transect.domain.paths import ROOT
from transect.execution.locks import Owner, clear_stale_locks
from transect.execution.progress import start_progress
from transect.planning.environments import lock_hash
from transect.planning.plan import find_study, find_system, make_plan
from transect.planning.sources import report_hash

__all__ = ["Flow", "open_flow"]

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
        plan = make_plan(self.study_file, find_system(str(config["system"])), Path(self.results))
        self.folder = str(plan.paths.folder)
        self.python = sys.executable
        self._plan = plan
        self._cells = plan.cells
        self._owner = Owner(snakemake_folder)
        self.snakemake_folder = snakemake_folder
        self._stamps = {
            name: str(plan.paths.environment(name))
            for name in {p.environment for p in plan}
            if name
        }
        self._forget_lost_environments(plan)

    def _forget_lost_environments(self, plan: Any) -> None:
        """Drop the stamp of an environment that was removed from the cache."""
        import json

        for stamp in self._stamps.values():
            try:
                facts = json.loads(Path(stamp).read_text())
            except (OSError, ValueError):
                continue
            if facts["status"] == "ok" and not Path(facts["python"]).exists():
                Path(stamp).unlink()

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

    def logs(self, cell: str) -> list[str]:
        """Return the files that an ingest cell reads."""
        from transect.execution.stages.ingest import files_below

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
        return lock_hash(name)

    def report_state(self) -> str:
        """Return what makes the report stale besides its records."""
        study = self._plan.study
        words = study.model_dump(include={"title", "questions", "published"})
        return digest([report_hash(), canonical_json(words), *sorted(self.records())])[:16]

    # Handlers of the main process

    def before_run(self) -> None:
        """Write the specs that changed."""
        self._plan.write_specs()

    def start(self, jobs: Any) -> None:
        """Take ownership and begin the progress journal."""
        self._owner.begin()
        names = Counter(job.rule.name for job in jobs)
        stages = {
            rule.removesuffix("_cell"): count for rule, count in names.items() if "_cell" in rule
        }
        words = {
            "prepare_data": "data", "train_reference": "reference", "export_model": "export",
            "run_inference": "infer", "run_benchmark": "bench", "ingest_logs": "ingest",
        }  # fmt: skip
        stages |= {words[rule]: count for rule, count in names.items() if rule in words}
        start_progress(self._plan.paths, stages)

    def finish(self) -> None:
        """Give ownership back."""
        self._owner.end()


def open_flow(config: dict[str, Any]) -> Flow:
    """Make the plan, or end the process with one clear message and exit code 2."""
    folder = Path(".snakemake")
    # Children run modules of this checkout in environments that do not have it installed.
    os.environ["PYTHONPATH"] = str(ROOT / "src")
    try:
        flow = Flow(config, folder)
        flow.before_run()
    except TransectError as error:
        print(f"transect: {error}", file=sys.stderr)
        sys.stderr.flush()
        os._exit(error.exit_code)
    # A job's own Snakemake must not take the main one's place.
    if "TRANSECT_SNAKEMAKE" not in os.environ:
        os.environ["TRANSECT_SNAKEMAKE"] = f"{os.getpid()}:{os.uname().nodename}"
        told = clear_stale_locks(folder)
        if told:
            print(f"[transect] {told}", file=sys.stderr)
    return flow
