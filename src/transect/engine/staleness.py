"""Which cells would run again, and why: from what the last run of each left."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from transect.domain.errors import FAULTS, BadInput
from transect.domain.paths import StudyPaths
from transect.domain.record import own_record
from transect.engine.job import load_job
from transect.engine.limits import outgrown
from transect.engine.repetition import until_of
from transect.engine.run_cell import fingerprint_of
from transect.engine.side_files import changed_file
from transect.engine.stage import RUNNERS
from transect.engine.stamps import ended_by, held_by, spared_by
from transect.planning.plan import Planned, StudyPlan

_PARTS = (
    "sources",
    "lock",
    "inputs",
    "environment",
    "fingerprint",
    "about",
    "cell_id",
    "cell_limits",
    "taken",
    "other_environments",
    "until",
    "optional",
    "named",
)
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason why a cell would run again.

    `kind` is one of missing, damaged, parameter, source, environment, input, limit, until.
    """

    kind: str
    text: str


class Staleness:
    """Answers for the cells of one plan; each is looked at once."""

    def __init__(self, plan: StudyPlan) -> None:
        self._plan = plan
        self._paths = StudyPaths(results=plan.paths.results.resolve(), study=plan.study.name)
        self._known: dict[tuple[str, str], list[Reason]] = {}

    def __iter__(self) -> Iterator[tuple[Planned, list[Reason]]]:
        """Yield every cell that would run again, with its reasons."""
        for planned in self._plan:
            if reasons := self.of(planned):
                yield planned, reasons

    def of(self, planned: Planned) -> list[Reason]:
        """Return why a cell would run again; empty when its record holds."""
        if planned.key not in self._known:
            self._known[planned.key] = self._look(planned)
        return self._known[planned.key]

    def _look(self, planned: Planned) -> list[Reason]:
        path = self._paths.record(*planned.key)
        if not path.exists():
            return self._unneeded(planned) if planned.optional else [Reason("missing", "it has no record")]
        try:
            # Not validated: that takes longer for fifty thousand records than to plan them.
            record = own_record(path, *planned.key)
            made_from = (str(record["fingerprint"]), list(record.get("inputs", ())))
            own = self._damage(planned, record)
        except BadInput as error:
            told = str(error).removeprefix(f"{path}: ")
            return [Reason("missing", f"its record cannot be read: {told}")]
        except (AttributeError, KeyError, TypeError) as error:
            return [Reason("missing", f"its record cannot be read: {type(error).__name__}: {error}")]
        if own:
            return own
        upstream = self._upstream(planned)
        try:
            job = load_job(planned.spec, self._paths)
            fingerprint, inputs = fingerprint_of(job, RUNNERS.get(planned.cell.stage))
        except FAULTS as error:  # unreadable inputs, or a plug-in's fault: its turn tells
            unknown = Reason("input", f"{type(error).__name__}: {error}")
            return [*upstream, *self._own(planned)] or [unknown]
        if made_from[0] == fingerprint:
            # What stands beside a record may be older than it, or not there; its runner keeps it.
            return upstream
        reasons = [*upstream, *self._own(planned)]
        return reasons or _inputs(inputs, made_from[1])

    def _unneeded(self, planned: Planned) -> list[Reason]:
        """Return why a repeat without a record may be needed now.

        It had one, or began, and nobody said that it is not needed; or it was not needed, or not there, for
        another `until`.
        """
        before, now = self._spared.get(planned.key), until_of(planned.spec)
        changed = Reason("until", "the study's `until` is another one: its comparison may be open")
        if before is not None:
            return [changed] if before != now else []
        # Its spec is written when it begins. A block that lost a record has no stamp any more.
        if planned.key in self._held or self._paths.spec(*planned.key).exists():
            return [Reason("missing", "its record has gone: it runs where its comparison is open")]
        # Its cell's repeats ended when there was no such repeat: below a lower cap.
        return [changed] if planned.cell.without_repeat().id in self._ended else []

    @cached_property
    def _spared(self) -> dict[tuple[str, str], str]:
        return {key: state for stamp in self._stamps for key, state in spared_by(stamp).items()}

    @cached_property
    def _held(self) -> dict[tuple[str, str], str]:
        return {key: state for stamp in self._stamps for key, state in held_by(stamp).items()}

    @cached_property
    def _ended(self) -> set[str]:
        return {name for stamp in self._stamps for name in ended_by(stamp)}

    @cached_property
    def _stamps(self) -> list[Path]:
        return sorted((self._paths.folder / "blocks").glob("*/*.json"))

    def _damage(self, planned: Planned, record: dict[str, Any]) -> list[Reason]:
        """Return why a record does not hold whatever its fingerprint says."""
        if planned.spec["taken"]:
            changed = changed_file(self._paths.cell(*planned.key), record.get("files", {}))
            if changed:
                return [Reason("damaged", changed)]
        wrong = outgrown(record, planned.spec["cell_limits"])
        return [Reason("limit", wrong)] if wrong else []

    def _upstream(self, planned: Planned) -> list[Reason]:
        return [
            Reason("input", f"its {role}, {cell_id}, would run again")
            for role, (stage, cell_id) in planned.inputs.items()
            if self.of(self._plan.cells[stage][cell_id])
        ]

    def _own(self, planned: Planned) -> list[Reason]:
        """Compare the spec with the one of the last run."""
        try:
            old = json.loads(self._paths.spec(*planned.key).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return []
        new = planned.spec
        if old.get("fingerprint") == new["fingerprint"]:
            return []
        reasons = list(_parameters(old, new))
        if old.get("sources") != new["sources"]:
            reasons += self._sources(old.get("sources"), new["sources"])
        if (old.get("environment"), old.get("lock")) != (new["environment"], new["lock"]):
            text = f"environment '{new['environment']}': its pins or what builds it changed"
            reasons.append(Reason("environment", text))
        others = [side.get("other_environments", {}) for side in (old, new)]
        for name in sorted(name for name in others[1] if others[0].get(name) != others[1][name]):
            text = f"environment '{name}': its pins or what builds it changed"
            reasons.append(Reason("environment", text))
        for role in sorted(new["inputs"].keys() | old.get("inputs", {}).keys()):
            if old.get("inputs", {}).get(role) != new["inputs"].get(role):
                reasons.append(Reason("input", f"it takes its {role} from another cell"))
        return reasons or [Reason("parameter", "what it is told changed")]

    def _sources(self, old: Any, new: str) -> list[Reason]:
        now = self._plan.sources[new].files
        try:
            before = json.loads(self._paths.sources(str(old)).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return [Reason("source", "its source files changed")]
        changed = sorted(name for name in now.keys() | before.keys() if now.get(name) != before.get(name))
        return [Reason("source", name) for name in changed]


def _inputs(now: list[str], before: list[str]) -> list[Reason]:
    """Compare the checksums of the inputs with those that the record was made from."""
    changed = sorted(set(now) ^ set(before))
    names = dict.fromkeys(one.rpartition(" ")[0] for one in changed)
    reasons = [Reason("input", name) for name in names]
    return reasons or [Reason("missing", "what it ran with is not known")]


def _flat(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inside in value.items():
            yield from _flat(inside, f"{place}.{key}" if place else str(key))
    else:
        yield place, value


def _parameters(old: dict[str, Any], new: dict[str, Any]) -> Iterator[Reason]:
    before = dict(_flat({k: v for k, v in old.items() if k not in _PARTS}))
    # As JSON gives it back: a tuple becomes a list.
    told = json.loads(json.dumps({k: v for k, v in new.items() if k not in _PARTS}))
    now = dict(_flat(told))
    for key in sorted(before.keys() | now.keys()):
        if before.get(key) != now.get(key):
            values = (str(side.get(key, "nothing"))[:_SHOWN] for side in (before, now))
            yield Reason("parameter", f"{key}: {' -> '.join(values)}")
