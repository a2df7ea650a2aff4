"""Which cells of a plan would run again, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from transect.domain.paths import StudyPaths
from transect.engine.differences import Reason
from transect.engine.repetition import repeat_until_of
from transect.engine.stamps import stamp_entry
from transect.engine.store import state
from transect.planning.plan import Planned, StudyPlan


class Staleness:
    """Answers for the cells of one plan; each is looked at once."""

    def __init__(self, plan: StudyPlan) -> None:
        self._plan = plan
        self._paths = StudyPaths(results=plan.paths.results.resolve(), study=plan.study.name)
        self._known: dict[tuple[str, str], Sequence[Reason]] = {}

    def __iter__(self) -> Iterator[tuple[Planned, Sequence[Reason]]]:
        """Yield every cell that would run again, with its reasons."""
        for planned in self._plan:
            if reasons := self.of(planned):
                yield planned, reasons

    def of(self, planned: Planned) -> Sequence[Reason]:
        """Return why a cell would run again; empty when its record holds."""
        if planned.key not in self._known:
            self._known[planned.key] = self._look(planned)
        return self._known[planned.key]

    def _look(self, planned: Planned) -> Sequence[Reason]:
        if planned.optional and not self._paths.record(*planned.key).exists():
            return self._unneeded(planned)
        upstream = [
            Reason("input", f"its {role}, {cell_id}, would run again")
            for role, (stage, cell_id) in planned.inputs.items()
            if self.of(self._plan.cells[stage][cell_id])
        ]
        sources = self._plan.sources
        return state(self._paths, planned.spec, upstream=upstream, sources=lambda name: sources[name].files).reasons

    def _unneeded(self, planned: Planned) -> list[Reason]:
        """Return why a repeat without a record may be needed now.

        It had one, or began, and nobody said that it is not needed; or it was not needed, or not there, for
        another `repeat_until`.
        """
        name = "/".join(planned.key)
        before, now = self._stamped["skipped_optional"].get(name), repeat_until_of(planned.spec)
        changed = Reason("repeat_until", "the study's `repeat_until` is another one: its comparison may be open")
        if before is not None:
            return [changed] if before != now else []
        # Its spec is written when it begins. A block that lost a record has no stamp any more.
        if name in self._stamped["completed_optional"] or self._paths.spec(*planned.key).exists():
            return [Reason("missing", "its record has gone: it runs where its comparison is open")]
        # Its cell's repeats ended when there was no such repeat: below a lower maximum.
        return [changed] if planned.cell.without_repeat().id in self._stamped["stop_reasons"] else []

    @cached_property
    def _stamped(self) -> dict[str, dict[str, str]]:
        """Return what the stamps of all blocks say of repeats, by STAGE/ID, or by the cell without its repeat."""
        stamps = sorted((self._paths.folder / "blocks").glob("*/*.json"))
        keys = ("skipped_optional", "completed_optional", "stop_reasons")
        return {key: {k: v for stamp in stamps for k, v in (stamp_entry(stamp, key) or {}).items()} for key in keys}
