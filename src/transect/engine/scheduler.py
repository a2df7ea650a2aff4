"""What the engine asks of a scheduler. Each is one adapter: `transect/adapters/NAME/scheduler.py`."""

from __future__ import annotations

import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import NamedTuple

from transect.domain.record import Cause
from transect.domain.registry import Registry


class Fate(NamedTuple):
    """How a job ended, in the words of a record."""

    cause: Cause
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """A step that did not begin on all its nodes.

    `passes`: the same step may be taken later. `step` is its id where some ranks may have begun.
    """

    line: str
    passes: bool
    step: str = ""


class Scheduler(ABC):
    """One scheduler. Methods that are not abstract answer as where there is no scheduler."""

    @abstractmethod
    def is_here(self) -> bool:
        """Tell whether its programs are on this machine, or this process is in a job of it."""

    @abstractmethod
    def job(self) -> str | None:
        """Return the job that this process runs in."""

    @abstractmethod
    def fate(self, job: str) -> Fate:
        """Return why a job ended whose runner left no record of it."""

    def runs(self, job: str) -> bool | None:
        """Tell whether a job may still run something, queued ones included; None: unknown."""
        return None

    def final_state(self, job: str) -> str | None:
        """Return the state of a job that is over or forgotten; None: it is not, or the scheduler does not answer."""
        return None

    def queued(self, names: Sequence[str], patience_s: float = 0) -> list[str] | None:
        """Return the ids of the jobs of these names that are queued or running; None: unknown."""
        return None

    def cancel(self, jobs: Sequence[str], patience_s: float) -> bool:
        """Ask for the end of jobs; return whether the scheduler accepted it."""
        return False

    def how_to_cancel(self, *jobs: str) -> str:
        """Return the command by which a person ends jobs."""
        return f"end job {' '.join(jobs)}"

    def hosts(self) -> list[str]:
        """Return the hosts of this process's job, which it makes known to provenance; none outside of one."""
        return []

    def on_hosts(self, count: int) -> list[str]:
        """Return what starts a command once on each of the job's `count` hosts, beside its ranks."""
        return []

    def newest_step(self) -> str | None:
        """Return the step that this process's job began last, where steps have daemons that may die."""
        return None

    def refusal(self, log: str) -> Refusal | None:
        """Return why a step did not begin, from what was printed; None when it began."""
        return None

    def step_cause(self, log: str) -> tuple[Cause | None, str] | None:
        """Return the cause that the first line with one names, and that line; None where no line does.

        The cause is None when a rank ended by itself first: its own files say more.
        """
        return None

    def end_step(self, step: str, within_s: float) -> bool:
        """End a step that began on some nodes only; return whether it is known to be over.

        A node that was late may still start its rank: nothing may run beside the next attempt.
        """
        return False

    def step_energy(self, name: str) -> float | str:
        """Return the energy in J of the job's last step of that name, or why it is not known."""
        return "this scheduler counts no energy"


class NoScheduler(Scheduler):
    """A machine of one's own."""

    def is_here(self) -> bool:
        """It is where no other is."""
        return True

    def job(self) -> str | None:
        """Nothing is one."""
        return None

    def fate(self, job: str) -> Fate:
        """Its runner was killed, and no more is known."""
        return Fate(cause=Cause.KILLED, message=f"its runner in job {job} was killed; there is no scheduler to ask")


class _Schedulers(Registry[Scheduler]):
    """Found as `scheduler.py` in the folders of adapters: their other files are not the engine's."""

    def _discover(self) -> None:
        if self._discovered:
            return
        self._discovered = True
        package = importlib.import_module(self.package)
        for found in pkgutil.iter_modules(package.__path__):
            name = f"{self.package}.{found.name}.scheduler"
            if found.ispkg and find_spec(name):
                importlib.import_module(name)


SCHEDULERS: Registry[Scheduler] = _Schedulers("scheduler", "transect.adapters", Scheduler)


def scheduler() -> Scheduler:
    """Return the scheduler of this machine."""
    found = map(SCHEDULERS.get, SCHEDULERS)
    return next((candidate for candidate in found if candidate.is_here()), NoScheduler())
