"""What most stages do: one plain process that leaves a result.json."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cache
from pathlib import Path

from transect.domain.checksums import Checksums
from transect.domain.errors import BadInput, MissingDependency
from transect.domain.files import canonical_json, digest, sha256_file, while_unchanged
from transect.domain.paths import StudyPaths
from transect.domain.record import Cause, Status, read_record
from transect.engine.job import Job, Result, read_result
from transect.hpc.sources import log_facts
from transect.launch import Request
from transect.launch.processes import Outcome
from transect.launch.rendezvous import RENDEZVOUS
from transect.measure.provenance import available_cores


def ranks(job: Job, command: list[str], rendezvous: str) -> tuple[str, Request]:
    """Return the launcher's name and the request that start `command` on all ranks of the cell."""
    cell, system = job.cell, job.spec["system"]
    wrap, variables = job.wrap()
    physical = system.get("physical_cores")
    if physical is not None:
        # Pinning virtual nodes would put the first rank of each on the same core.
        variables = variables | {"TRANSECT_BIND": "none"}
    if physical is not None and cell.ranks * cell.threads > physical:
        # Nodes that are one machine: Slurm believes in more cores than there are.
        variables = variables | {"OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_MCA_hwloc_base_binding_policy": "none"}
    network = system.get("network") or {}
    return system["mpi_launcher" if RENDEZVOUS.get(rendezvous).mpi else "launcher"], Request(
        command=command,
        nodes=cell.nodes,
        ranks_per_node=cell.ranks_per_node,
        threads=cell.threads,
        cores=cores(job),
        bin=job.bin,
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
    if physical is not None and cell.ranks * cell.threads > physical:
        return True
    return cell.ranks_per_node * cell.threads > cores(job)


@cache
def _kept_checksums(file: Path) -> Checksums:
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
    return [f"{Path(one).name} {facts_of(Path(one), job.paths)}" for one in job.spec.get("named", ())]


# srun gives up a step that has not begun by then; the payload's runner asks again.
STEP_PATIENCE_S = 5


# Asked for by every cell of a block.
record_of = while_unchanged(read_record)


def checksums(*files: Path) -> list[str]:
    """Return name and checksum of each file that lies in another cell's folder.

    As that cell's record has it, whatever became of the file since: that is not for the cell that takes
    it to suffer. A file that no record names is read; a missing one counts as `absent`.
    """
    return [f"{file.name} {_checksum(file)}" for file in files]


def checksums_below(folder: Path, *names: str) -> list[str]:
    """Return name and checksum of all files in another cell's folder that `names` names, or a folder of theirs.

    As that cell's record has them. One of `names` that it has nothing of counts as `absent`.
    """
    try:
        files = record_of(folder / "record.json").files
    except (OSError, BadInput):
        files = {}
    found = []
    for name in names:
        own = [path for path in files if path == name or path.startswith(f"{name}/")]
        found += [f"{Path(path).name} {files[path]}" for path in own] or [f"{name} absent"]
    return found


def all_checksums(folder: Path, *details: str) -> list[str]:
    """Return name and checksum of every file in another cell's folder, as that cell's record has them.

    Behind them one checksum of those `details` of the record that are taken too.
    """
    try:
        record = record_of(folder / "record.json")
    except (OSError, BadInput):
        return [f"{folder.name} absent"]
    found = [f"{Path(path).name} {sha}" for path, sha in record.files.items()]
    if details:
        taken = canonical_json({key: record.details.get(key) for key in details})
        found.append(f"details {digest([taken])}")
    return found


def _checksum(file: Path) -> str:
    try:
        told = record_of(file.parent / "record.json").files.get(file.name)
    except (OSError, BadInput):
        told = None
    return told or (sha256_file(file) if file.is_file() else "absent")


def data_checksums(job: Job, *repeats: int) -> list[str]:
    """Return the checksums that the data stage wrote down: its arrays, and starts of `repeats`."""
    path = job.input("data") / "record.json"
    if not path.is_file():
        return ["data absent"]
    files = record_of(path).details.get("files", {})
    starts = [f"start-{repeat}.npz" for repeat in repeats]
    wanted = [name for name in sorted(files) if not name.startswith("start-") or name in starts]
    return [f"{name} {files[name]}" for name in wanted] or ["data absent"]


def not_ok(job: Job) -> list[str]:
    """Return role and status of each input cell whose record says that it did not end well."""
    told = []
    for role in job.spec["inputs"]:
        try:
            status = record_of(job.input(role) / "record.json").status
        except (OSError, BadInput):
            continue  # what needs it says so
        if status is not Status.OK:
            told.append(f"{role} {status}")
    return told


def need(job: Job, role: str) -> Path:
    """Return the folder of an input cell. Raises MissingDependency unless that cell is ok."""
    folder = job.input(role)
    try:
        record = record_of(folder / "record.json")
    except FileNotFoundError:
        raise MissingDependency(f"it takes its {role} from {folder.name}, which has no record") from None
    except BadInput as error:
        raise MissingDependency(f"the record of its {role} cannot be read: {error}") from None
    if record.status is not Status.OK:
        raise MissingDependency(
            f"it takes its {role} from {record.cell_id}, which is {record.status.value} "
            f"({record.cause.value if record.cause else ''}: {record.message})"
        )
    return folder


class OneProcess(ABC):
    """Subclasses give `command` and `inputs`."""

    measures = False
    # Whether `command` runs in the cell's environment; else it is one of the driver's, which
    # starts what does.
    in_environment = True

    @abstractmethod
    def command(self, job: Job) -> list[str]:
        """Return the argv of the payload."""

    def prepare(self, job: Job) -> tuple[str, Request]:
        """One process, held to the cell's threads."""
        wrap, variables = job.wrap()
        return "plain", Request(
            command=self.command(job),
            threads=job.cell.threads,
            bin=job.bin,
            wrap=wrap if self.in_environment else [],
            variables=variables,
        )

    def inputs(self, job: Job) -> list[str]:
        """Nothing, unless a subclass says otherwise."""
        return []

    def collect(self, job: Job, outcome: Outcome) -> Result:
        """Read result.json; a payload that left none has crashed."""
        result = read_result(job.result_file)
        if result is None:
            return Result.failed(Cause.CRASH, f"exit code {outcome.code} without a result")
        if outcome.code and result.status is Status.OK:
            return Result.failed(Cause.CRASH, f"exit code {outcome.code} after its result")
        return result
