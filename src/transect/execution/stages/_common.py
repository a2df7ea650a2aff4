"""What most stages do: one plain process that leaves a result.json."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from transect.domain.errors import MissingDependency
from transect.domain.files import sha256_file
from transect.domain.record import Cause, Status, read_record
from transect.execution.job import Job, Result, read_result
from transect.launch import Request
from transect.launch.processes import Outcome

__all__ = ["OneProcess", "checksums", "need"]


def checksums(*files: Path) -> list[str]:
    """Return the checksum of each file; a missing one counts as `absent`."""
    return [sha256_file(file) if file.is_file() else "absent" for file in files]


def need(job: Job, role: str) -> Path:
    """Return the folder of an input cell. Raises MissingDependency when that cell is not ok."""
    folder = job.input(role)
    record = read_record(folder / "record.json")
    if record.status is not Status.OK:
        raise MissingDependency(
            f"it takes its {role} from {record.cell_id}, which is {record.status.value} "
            f"({record.cause.value if record.cause else ''}: {record.message})"
        )
    return folder


class OneProcess(ABC):
    """Subclasses give `command` and `inputs`."""

    @abstractmethod
    def command(self, job: Job) -> list[str]:
        """Return the argv of the payload."""

    def prepare(self, job: Job) -> tuple[str, Request]:
        """One process, held to the cell's threads."""
        request = Request(command=self.command(job), threads=job.cell.threads, bin=job.bin)
        return "plain", request

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
