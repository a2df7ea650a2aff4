"""One job: a spec with its folders, and the result that its payload leaves."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from transect.domain.cell import GPU_PROVIDERS, Cell
from transect.domain.errors import BadInput, MissingDependency
from transect.domain.files import while_unchanged
from transect.domain.paths import PACKAGE, ROOT, StudyPaths
from transect.domain.record import Cause, MetricValue, Samples, Status
from transect.domain.registry import plugin_folders
from transect.launch.images import complaint, parts_of
from transect.launch.wrapping import USUAL, modules, wrapped
from transect.training.own_workload import define_from

C = TypeVar("C", bound=Cell)
M = TypeVar("M", bound=BaseModel)


@dataclass(kw_only=True)
class Result:
    """What a payload made, before provenance joins it in a record."""

    status: Status = Status.OK
    cause: Cause | None = None
    message: str = ""
    metrics: list[MetricValue] = field(default_factory=list)
    samples: dict[str, Samples] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    libraries: dict[str, str] = field(default_factory=dict)

    @classmethod
    def failed(cls, cause: Cause, message: str) -> Result:
        """Make a failed result."""
        return cls(status=Status.FAILED, cause=cause, message=message)

    @classmethod
    def skipped(cls, cause: Cause, message: str) -> Result:
        """Make a skipped result."""
        return cls(status=Status.SKIPPED, cause=cause, message=message)


@dataclass(frozen=True, kw_only=True)
class Job:
    """A cell that is to run."""

    spec: dict[str, Any]
    cell: Cell
    paths: StudyPaths
    python: str
    bin: Path | None
    environment: dict[str, Any]
    # Stamps of its other environments, by name.
    others: dict[str, dict[str, Any]] = field(default_factory=dict)
    # Of a payload that took turns with others, once it has ended: what `Seat.taken` tells.
    turns: dict[str, Any] | None = None

    @property
    def folder(self) -> Path:
        """Where the record and its side files go."""
        return self.paths.cell(self.cell.stage, self.cell.id)

    @property
    def spec_file(self) -> Path:
        """The payload's specification, written when it starts; with the record it says what ran."""
        return self.folder / "spec.json"

    @property
    def log(self) -> Path:
        """The payload's stdout and stderr."""
        return self.folder / "output.log"

    @property
    def result_file(self) -> Path:
        """Where a payload of our own writes its result."""
        return self.folder / "result.json"

    def input(self, role: str) -> Path:
        """Return the folder of the cell that plays `role`."""
        stage, cell_id = self.spec["inputs"][role]
        return self.paths.cell(stage, cell_id)

    def program(self, environment: str) -> dict[str, Any]:
        """Return `python`, the interpreter of one of the cell's environments, and what it needs.

        That is `wrap`, what goes before a command there, and `variables`.
        """
        facts = self.others.get(environment, self.environment)
        wrap, variables = self._wrapped(facts)
        return {"python": facts["python"], "wrap": wrap, "variables": variables}

    def wrap(self) -> tuple[list[str], dict[str, str]]:
        """Return what goes before a command of the cell's environment, and its variables."""
        return self._wrapped(self.environment)

    def _wrapped(self, environment: dict[str, Any]) -> tuple[list[str], dict[str, str]]:
        system = self.spec["system"]
        program = system.get("program") or {}
        of_environment = [*(environment.get("modules") or ()), *(program.get("modules") or ())]
        argv, variables = modules([*system.get("modules", ()), *of_environment])
        scratch = system.get("scratch")
        if scratch:
            # The variables are the job's: the same on each of its nodes.
            variables = variables | {"TMPDIR": os.path.expandvars(scratch)}
        image = self.image_of(environment)
        if image is not None:
            gpus = self.cell.device == "cuda" or self.cell.get("provider") in GPU_PROVIDERS
            inside, wrapper_variables = wrapped(
                image[0], wrapper=image[1], gpus=gpus, binds=self._binds(variables), workdir=str(self.folder)
            )
            argv, variables = [*argv, *inside], wrapper_variables | variables
        return argv, variables

    def image_of(self, environment: dict[str, Any]) -> tuple[str, str] | None:
        """Return image and wrapper of an environment, or of the cell's program; None: no container."""
        program = (self.spec.get("system") or {}).get("program") or {}
        for facts in (environment, program):
            if facts.get("image"):
                return facts["image"], facts.get("wrapper") or USUAL
        return None

    def _binds(self, variables: dict[str, str]) -> list[str]:
        outside = [ROOT, PACKAGE, self.paths.results, self.folder, *plugin_folders()]
        options = self.spec.get("parameters", {}).get("dataset_options") or {}
        # Below `path` a study's own script may import what no option names.
        named = [*self.spec.get("files", ()), *self.spec.get("named", ()), *filter(None, [self.spec.get("path")])]
        named += [value for value in options.values() if isinstance(value, str)]
        outside += [path for path in map(Path, named) if path.is_absolute() and path.exists()]
        return [*dict.fromkeys(str(path.absolute()) for path in outside), *filter(None, [variables.get("TMPDIR")])]


def cell_of(job: Job, kind: type[C]) -> C:
    """Return the job's cell, which is of that class."""
    if not isinstance(job.cell, kind):
        raise TypeError(f"{job.cell.id} is a {type(job.cell).__name__}: expected a {kind.__name__}")
    return job.cell


@while_unchanged
def _facts_of(stamp: Path) -> dict[str, Any]:
    try:
        facts: dict[str, Any] = json.loads(stamp.read_text(encoding="utf-8"))
        facts["python"]
    except (OSError, ValueError, KeyError) as error:
        raise BadInput(f"{stamp}: no readable stamp of an environment: {error}") from None
    return facts


def load_job(spec: dict[str, Any], paths: StudyPaths) -> Job:
    """Make the job of a spec. Raises BadInput when its environment's stamp cannot be read."""
    define_from(spec)
    python, facts = sys.executable, dict[str, Any]()
    bin_folder: Path | None = Path(python).parent
    if spec["environment"]:
        facts = _facts_of(paths.environment(spec["environment"]))
        python = facts["python"]
        # Modules and images bring their own programs: nothing of theirs lies beside python here.
        bin_folder = None if facts.get("wrap") else Path(python).parent
        if facts.get("bin"):
            # An image of ours was made of an environment that is here too, with its mpiexec.
            bin_folder = Path(facts["bin"])
    return Job(
        spec=spec,
        cell=Cell.of(**spec["cell"]),
        paths=paths,
        python=python,
        bin=bin_folder,
        environment=facts,
        others={
            # A stage asks for them by their own names, wherever they run.
            parts_of(name)[0]: _facts_of(paths.environment(name))
            for name in spec.get("other_environments", ())
        },
    )


def check_environment(job: Job) -> None:
    """Raise MissingDependency when an environment of the cell is not there."""
    for facts in (job.environment, *job.others.values()):
        if facts and facts["status"] != "ok":
            raise MissingDependency(f"environment '{facts['name']}': {facts['message']}")
        image = job.image_of(facts)
        if image is not None and (reason := complaint(image[0])) is not None:
            raise MissingDependency(f"environment '{facts.get('name', '')}': {reason}")
        python = facts.get("python", job.python)
        if not facts.get("wrap") and not Path(python).exists():
            raise MissingDependency(f"environment '{facts['name']}': {python} has gone")


def check_locks(job: Job) -> None:
    """Raise BadInput when an environment is not of the versions that the cell was planned with.

    Studies of one results folder share the stamps of environments: another clone may have put its own
    there since this run began.
    """
    planned = [(job.spec["environment"], job.spec["lock"], job.environment)] if job.spec["environment"] else []
    others = job.spec.get("other_environments", {})
    for name, lock, facts in [
        *planned,
        *((name, lock, job.others[parts_of(name)[0]]) for name, lock in others.items()),
    ]:
        if facts["lock_hash"] != lock:
            raise BadInput(
                f"{job.paths.environment(name)}: is of lock {facts['lock_hash']}, and the study was planned with {lock}: "
                "another clone uses this results folder: start again, or use another one with --config results=FOLDER"
            )


def read_result(path: Path) -> Result | None:
    """Read what a payload wrote; None when it wrote nothing readable."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return result_from(raw)


class _Metric(BaseModel, extra="forbid"):
    name: str
    value: float
    label: str | None = None


class _Left(BaseModel, extra="forbid"):
    """What a payload leaves, as JSON has it."""

    status: Status
    cause: Cause | None = None
    message: str = ""
    metrics: list[_Metric] = []
    samples: dict[str, dict[str, Any]] = {}
    details: dict[str, Any] = {}
    # A library may have no version to tell: torch.version.cuda on a CPU.
    libraries: dict[str, Any] = {}


def _checked(kind: type[M], raw: Any, what: str) -> M:
    try:
        return kind.model_validate(raw)
    except ValidationError as error:
        lines = (f"{'.'.join(map(str, (what, *fault['loc'])))}: {fault['msg']}" for fault in error.errors())
        raise BadInput(*lines, f"expected of {what}: {', '.join(kind.model_fields)}") from None


def result_from(raw: dict[str, Any]) -> Result:
    """Return the result of its JSON form. Raises BadInput for what is no result, naming the key."""
    left = _checked(_Left, raw, "result")
    metrics = [MetricValue.of(metric.name, metric.value, metric.label) for metric in left.metrics]
    samples = {
        name: _checked(Samples, {"count": len(series.get("values") or ()), **series}, f"result.samples.{name}")
        for name, series in left.samples.items()
    }
    return Result(**dict(left) | {"metrics": metrics, "samples": samples})
