"""How cells are run: what starts a payload, and what its outcome depends on."""

from __future__ import annotations

import json
import sys
from abc import ABC, abstractmethod
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transect.domain.errors import BadInput, MissingDependency, Unsupported
from transect.domain.files import digest
from transect.domain.mpi_libraries import OWN, other_environments
from transect.domain.mpi_libraries import variables as mpi_variables
from transect.domain.paths import StudyPaths
from transect.domain.record import Cause, Status
from transect.domain.takes import record_of
from transect.engine.job import Job, Result, read_result
from transect.engine.turns import Turns
from transect.hpc.sources import log_facts
from transect.launch import Request
from transect.launch.processes import Outcome
from transect.launch.rendezvous import RENDEZVOUS
from transect.measure.provenance import available_cores

if TYPE_CHECKING:
    from transect.domain.checksums import Checksums

# srun gives up a step that has not begun by then; the payload's runner asks again.
STEP_PATIENCE_S = 5


def ranks(job: Job, command: list[str], rendezvous: str, mpi: str = OWN) -> tuple[str, Request]:
    """Return the launcher's name and the request that start `command` on all ranks of the cell, with an MPI library.

    Raises Unsupported where that library, or the command, is one of modules or of an image.
    """
    cell, system = job.cell, job.spec["system"]
    wrap, variables = job.wrap()
    launcher, bin_folder = system["mpi_launcher" if RENDEZVOUS.get(rendezvous).mpi else "launcher"], job.bin
    for name in other_environments(mpi):
        if wrap or job.others[name].get("wrap"):
            raise Unsupported(
                f"mpi {mpi} is the wheel of environment '{name}': it needs one without modules and images"
            )
        bin_folder = Path(job.others[name]["python"]).parent
        # Its own: one of another library would start each rank as a world of one.
        launcher, variables = "mpiexec", variables | mpi_variables(mpi, bin_folder.parent)
    physical = system.get("physical_cores")
    if physical is not None:
        # Pinning virtual nodes would put the first rank of each on the same core.
        variables = variables | {"TRANSECT_BIND": "none"}
        if cell.ranks * cell.threads > physical:  # Slurm believes in more cores than there are
            variables |= {"OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_MCA_hwloc_base_binding_policy": "none"}
    network = system.get("network") or {}
    return launcher, Request(
        command=command,
        nodes=cell.nodes,
        ranks_per_node=cell.ranks_per_node,
        threads=cell.threads,
        cores=cores(job),
        bin=bin_folder,
        variables=variables,
        rendezvous=rendezvous,
        interface=network.get("interface"),
        network_variables=network.get("variables", {}),
        mpi_type=system.get("mpi_type", "pmix"),
        gpus_per_rank=1 if cell.device == "cuda" else 0,
        wrap=wrap,
        memory_mb_per_node=job.spec["cell_limits"]["memory_mb"],
        patience_s=STEP_PATIENCE_S,
        bind=system.get("scheduler") == "slurm" and physical is None,
    )


def cores(job: Job) -> int:
    """Return the cores of one node, as the system file or the machine says."""
    return int(job.spec["system"]["cores_per_node"] or available_cores())


def over_subscribed(job: Job) -> bool:
    """Whether ranks or threads share cores, on a node or on the one machine that all nodes are."""
    cell, physical = job.cell, job.spec["system"].get("physical_cores")
    shared = physical is not None and cell.ranks * cell.threads > physical
    return shared or cell.ranks_per_node * cell.threads > cores(job)


@cache
def _kept_checksums(file: Path) -> Checksums:
    # Most processes need none, and SQLite takes milliseconds to import.
    from transect.domain.checksums import Checksums

    return Checksums(file)


def facts_of(path: Path, paths: StudyPaths) -> str:
    """Hash the names and contents of all files below a path from outside; see `log_facts`.

    What was read is kept with the study's results, so that each file is read once while it stays.
    """
    known = _kept_checksums(paths.checksums.absolute())
    facts = digest(log_facts(path, known.of))
    known.save()
    return facts


def named_facts(job: Job) -> list[str]:
    """Return name and checksum of each file or folder that the cell's options name (`planning.named_paths`)."""
    return [f"{Path(path).name} {facts_of(Path(path), job.paths)}" for path in job.spec.get("named", ())]


def not_ok(job: Job) -> list[str]:
    """Return role and status of each input cell whose record says that it did not end well."""
    lines = []
    for role in job.spec["inputs"]:
        try:
            status = record_of(job.input(role) / "record.json").status
        except (OSError, BadInput):
            continue  # what needs it says so
        if status is not Status.OK:
            lines.append(f"{role} {status}")
    return lines


_TAKES = "it takes its"


def need(job: Job, role: str) -> Path:
    """Return the folder of an input cell. Raises MissingDependency unless that cell is ok."""
    folder = job.input(role)
    takes = f"{_TAKES} {role} from {folder.name}, which"
    try:
        record = record_of(folder / "record.json")
    except FileNotFoundError:
        raise MissingDependency(f"{takes} has no record") from None
    except BadInput as error:
        raise MissingDependency(f"{takes} has a record that cannot be read: {error}") from None
    if record.status is not Status.OK:
        cause = record.cause.value if record.cause else ""
        if _TAKES in record.message:
            # Of a chain only where it begins.
            raise MissingDependency(
                f"{takes} is {record.status.value}: {record.message[record.message.rindex(_TAKES) :]}"
            )
        raise MissingDependency(f"{takes} is {record.status.value} ({cause}: {record.message})")
    return folder


class StageRunner(ABC):
    """Starts the payloads of one stage's cells and reads what they leave. Required: `prepare` and `collect`."""

    # Whether what its cells draw counts, where the system can tell.
    energy = False

    def __init__(self, stage: Any) -> None:
        # A `planning.stage.Stage`, which is not imported: what plans is no part of what a cell's outcome depends on.
        self.stage = stage
        self.measures = stage.measures
        self.keeps = stage.keeps

    @abstractmethod
    def prepare(self, job: Job) -> tuple[str, Request]:
        """Return the launcher's name and what it is to start. May raise TransectError."""

    @abstractmethod
    def collect(self, job: Job, outcome: Outcome) -> Result:
        """Read what the payload left; called when it ended by itself, whatever its code."""

    def turns(self, job: Job) -> Turns | None:
        """Return how the payload takes turns with others that it is compared with (`measure/turns.py`); None: it does not."""
        return None

    def who(self, job: Job, outcome: Outcome) -> str:
        """Return what process died by a signal; empty where nobody knows."""
        return ""

    def inputs(self, job: Job) -> list[str]:
        """Return what of its inputs the outcome depends on: `NAME CHECKSUM` for each."""
        roles = job.spec["inputs"]
        taken = [line for role in roles for line in self.stage.taken(role).checksums(role, job.input(role), job.spec)]
        files = self.stage.files(job.spec)
        return taken + [f"{file.name} {facts_of(file, job.paths) if file.exists() else 'absent'}" for file in files]

    def folders(self, job: Job) -> dict[str, Path]:
        """Return the folders of the cells that the payload reads. Raises MissingDependency for one that is not ok."""
        return {role: need(job, role) for role in job.spec["inputs"]}

    def run_values(self, job: Job) -> dict[str, Any]:
        """Return the values of `spec["run"]`, which are known only when the payload starts."""
        programs = self.stage.programs(job.cell)
        return {"programs": {name: job.program(env) for name, env in programs.items()}} if programs else {}

    def command(self, job: Job) -> list[str]:
        """Return the argv of the payload."""
        arguments = [self.stage.payload, "--spec", str(job.spec_file), "--out", str(job.folder)]
        for role, folder in self.folders(job).items():
            arguments += ["--take", f"{role}={folder}"]
        if values := self.run_values(job):
            arguments += ["--run", json.dumps(values)]
        # What starts programs is a process of the driver.
        python = sys.executable if self.stage.programs(job.cell) else job.python
        return [python, "-m", "transect.payloads", *arguments]


class OneProcess(StageRunner):
    """One process that leaves `result.json`."""

    def prepare(self, job: Job) -> tuple[str, Request]:
        """One process, limited to the cell's threads."""
        wrap, variables = job.wrap()
        return "plain", Request(
            command=self.command(job),
            threads=job.cell.threads,
            bin=job.bin,
            wrap=[] if self.stage.programs(job.cell) else wrap,
            variables=variables,
        )

    def collect(self, job: Job, outcome: Outcome) -> Result:
        """Read result.json; a payload that left none has crashed."""
        result = read_result(job.result_file)
        if result is None:
            return Result.failed(Cause.CRASH, f"exit code {outcome.code} without a result")
        if outcome.code and result.status is Status.OK:
            return Result.failed(Cause.CRASH, f"exit code {outcome.code} after its result")
        return result
