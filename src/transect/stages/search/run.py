"""The search stage: each place of a rung goes on with a point of the rung before."""

from __future__ import annotations

from pathlib import Path

from transect.domain.axes.text import SearchCell
from transect.domain.errors import BadInput, MissingDependency, Unsupported
from transect.domain.record import Record, Status
from transect.domain.takes import Takes, record_of
from transect.engine.job import Job, cell_of
from transect.engine.stage_helpers import OneProcess, need
from transect.text.classifiers import STATE


class SearchRunner(OneProcess):
    """One process, which goes on with one of the cells of the rung before."""

    def folders(self, job: Job) -> dict[str, Path]:
        """The tickets, and the chosen point's cell."""
        role = _chosen(job)
        found = {name: need(job, name) for name in job.spec["inputs"] if not name.startswith("place-")}
        return found | ({"shorter": need(job, role)} if role else {})

    def inputs(self, job: Job) -> list[str]:
        """The tickets; of the rung before the chosen point's state, and no other's."""
        found = super().inputs(job)
        try:
            role = _chosen(job)
        except (MissingDependency, Unsupported):
            return [*found, "place absent"]
        if role:
            folder = job.input(role)
            found += [f"from {folder.name}", *Takes(STATE).checksums(role, folder, job.spec)]
        return found


def _chosen(job: Job) -> str:
    """Return the role of the cell with which this one goes on; empty in rung 0.

    Raises MissingDependency for a rung that is not there yet, Unsupported when fewer of its cells ended
    well than this one's place needs.
    """
    records: dict[str, Record] = {}
    for role in job.spec["inputs"]:
        if role.startswith("place-"):
            try:
                records[role] = record_of(job.input(role) / "record.json")
            except (OSError, BadInput):
                raise MissingDependency(
                    f"it takes a point from {job.input(role).name}, which has no readable record"
                ) from None
    if not records:
        return ""
    good = ranked(records)
    place = cell_of(job, SearchCell).place
    if place >= len(good):
        raise Unsupported(
            f"only {len(good)} of the {len(records)} cells of the rung before ended well with an "
            f"accuracy on `validation`, and this one would go on with number {place + 1} of them"
        )
    return good[place]


def ranked(records: dict[str, Record]) -> list[str]:
    """Return the roles of the cells that ended well and were validated, the best first.

    By accuracy on `validation`; of equal ones, the smaller loss there, and then the smaller place. A share
    `validation` of few tickets may be none: then nothing was validated.
    """
    keys: dict[str, tuple[float, float, int]] = {}
    for role, record in records.items():
        accuracy, loss = record.value("validation_accuracy"), record.value("validation_log_loss")
        if record.status is Status.OK and accuracy is not None and loss is not None:
            keys[role] = (-accuracy, loss, int(role.removeprefix("place-")))
    return sorted(keys, key=keys.__getitem__)
