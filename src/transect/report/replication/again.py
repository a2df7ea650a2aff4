"""What it takes to run a claim's cells again: command, time, hardware, environments, and where its results are described."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from transect.analysis.entries import AnyRecord, inside
from transect.domain.cell import GPU_PROVIDERS
from transect.domain.claims import Claim
from transect.report.engine.text import number
from transect.report.replication.held import Held, Replication, minutes_of

LAPTOP, ONE_GPU, CLUSTER = "laptop", "one GPU", "cluster"


@dataclass(frozen=True, kw_only=True, slots=True)
class Again:
    """How to run one claim again.

    `minutes` are those of its cells, one after another, None where none has run here, `study_minutes` those of all that the
    command runs; `said` is what the head of the study's file says of time, where the study has not run here. `environments`: lock hashes by name. `tier_of`: what the tier is read from.
    """

    command: str
    minutes: float | None
    study_minutes: float | None
    said: str
    tier: str
    tier_of: str
    environments: Mapping[str, Sequence[str]] = field(default_factory=dict)
    crate: str = ""
    doi: str = ""

    @property
    def time(self) -> str:
        """The time in words, with whose word it is.

        >>> Again(command="", minutes=123.4, study_minutes=1234.5, said="", tier="", tier_of="").time
        '123 minutes of its cells (of the whole study: 1\u202f234), one after another, by the records of this machine'
        """
        if self.minutes is not None:
            whole = "" if self.study_minutes is None else f" (of the whole study: {number(self.study_minutes)})"
            return (
                f"{number(self.minutes)} minutes of its cells{whole}, one after another, by the records of this machine"
            )
        if self.study_minutes is not None:
            return (
                f"no cell of it has run here; the study's took {number(self.study_minutes)} minutes, one after another"
            )
        if self.said:
            return f"not run here; the study's file says: {self.said}"
        return "not run here, and the study's file says nothing of it"


def again_of(made: Replication, held: Held) -> Again | None:
    """Return how to run a claim again; None for one that no study measures."""
    claim = held.claim
    if claim.rule is None or not claim.measured:
        return None
    study = held.ran.study if held.ran else claim.measured[0].study
    records = held.records
    cells = [group.cell for group in held.decided.groups]
    axes = ("device", "provider", "nodes", "ranks")
    if cells:
        hardware = tier([{axis: cell.get(axis) for axis in axes} for cell in cells]), "the cells that decide it"
    elif asked := _asked(claim, study):
        hardware = tier(asked), "the cells that its file names"
    else:
        hardware = made.work.hardware, "its work's file, of all claims"
    options = shlex.split(made.again)[1:]
    run, decide = ["transect", "run", study, *options], ["transect", "replicate", *shlex.split(made.again), "--no-run"]
    return Again(
        command=f"{shlex.join(run)} && {shlex.join(decide)}",
        minutes=minutes_of(records) if records else None,
        study_minutes=held.ran.minutes if held.ran else None,
        said=made.times.get(study, ""),
        tier=hardware[0],
        tier_of=hardware[1],
        environments=_locks(records),
        crate=str(held.ran.crate) if held.ran and held.ran.crate else "",
        doi=held.ran.doi if held.ran else "",
    )


def tier(asked: Sequence[Mapping[str, Any]]) -> str:
    """Return the least hardware that has had all cells of these axes; of an axis that is left open the usual value.

    >>> tier([{"device": "cuda"}]), tier([{"provider": ["cpu", "cuda"]}]), tier([{"nodes": [1, 2]}]), tier([{"ranks": 2}])
    ('one GPU', 'one GPU', 'cluster', 'laptop')
    """
    found = {_needs(axes) for axes in asked}
    return next(tier for tier in (CLUSTER, ONE_GPU, LAPTOP) if tier in found)


def _needs(axes: Mapping[str, Any]) -> str:
    gpu = "cuda" in _values(axes, "device") or any(one in GPU_PROVIDERS for one in _values(axes, "provider"))
    if _most(axes, "nodes") > 1 or (gpu and max(_most(axes, "ranks"), _most(axes, "ranks_per_node")) > 1):
        return CLUSTER
    return ONE_GPU if gpu else LAPTOP


def _asked(claim: Claim, study: str) -> list[Mapping[str, Any]]:
    """Return the axes that a claim's file names of its cells in a study, where they tell of hardware."""
    ours = [one for one in claim.measured if one.study == study]
    along = [{one.along.axis: one.along.values} for one in ours if one.along is not None]
    asked = [*(one.cells for one in ours), *({**one.cells, **one.over} for one in ours), *along]
    return [axes for axes in asked if axes.keys() & {"device", "provider"} or _needs(axes) == CLUSTER]


def _values(axes: Mapping[str, Any], axis: str) -> Sequence[Any]:
    value = axes.get(axis)
    return value if isinstance(value, list) else [value]


def _most(axes: Mapping[str, Any], axis: str) -> int:
    return max((value for value in _values(axes, axis) if isinstance(value, int)), default=1)


def _locks(records: Iterable[AnyRecord]) -> dict[str, list[str]]:
    """Return the lock hashes of the environments that cells ran in, by name."""
    found = defaultdict(set)
    for record in records:
        name, lock = (inside(record.provenance, f"environment.{key}") for key in ("name", "lock_hash"))
        if name and lock:
            found[str(name)].add(str(lock)[:16])
    return {name: sorted(locks) for name, locks in sorted(found.items())}
