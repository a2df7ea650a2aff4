"""What storage allows: the least time in which the training data are read once and a checkpoint is written.

From benchmarks that ran in this study. A rate counts only where its bytes came from storage or went there: what a node's own
memory may have answered is no bound of storage.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from transect.analysis.entries import AnyMetric, AnyRecord
from transect.analysis.groups import Group
from transect.domain.record import Status


@dataclass(frozen=True, kw_only=True, slots=True)
class StorageRate:
    """The best rate of reading or writing that a benchmark showed, in B/s."""

    value: float
    benchmark: str
    phase: str
    cell_id: str


@dataclass(frozen=True, kw_only=True, slots=True)
class StorageBound:
    """One workload: least times in s of an epoch's reading and a checkpoint's writing, beside what was measured.

    `group` is its fastest usable training, `epoch_s` the time of its steps of one epoch, `input_s` what of that
    it spent on getting batches, `checkpoint_s` what the quickest retraining took to write its state. None where it is not known.
    """

    group: Group
    epoch_bytes: float | None
    state_bytes: float | None
    read_s: float | None
    write_s: float | None
    epoch_s: float
    input_s: float | None
    checkpoint_s: float | None


def storage_rates(records: Iterable[AnyRecord]) -> dict[str, StorageRate]:
    """Return the best rates of `read` and `write`, of those that were measured."""
    best: dict[str, StorageRate] = {}
    for record in records:
        if record.stage != "bench" or record.status is not Status.OK:
            continue
        for number in record.metrics:
            if number.name != "storage_bandwidth" or number.log is None or number.log.phase is None:
                continue
            benchmark = record.point.get("benchmark") or record.cell_id
            rate = StorageRate(value=number.value, benchmark=benchmark, phase=number.log.phase, cell_id=record.cell_id)
            way = _way(record, number)
            if way and (way not in best or rate.value > best[way].value):
                best[way] = rate
    return best


def _way(record: AnyRecord, number: AnyMetric) -> str:
    """Return `read` or `write`; empty for neither, and for what may have been read from a node's own memory."""
    phase = (number.log.phase if number.log else None) or ""
    words = set(phase.replace("_", "-").replace(" ", "-").split("-"))
    if "write" in words:
        return "write"
    if "read" not in words:
        return ""
    benchmark, runs = record.point.get("benchmark"), record.details.get("runs") or []
    if benchmark == "file-probe":
        return "read"  # its parser registers no other
    if benchmark == "fio":
        facts = runs[number.log.run].get("parameters", {}) if number.log and number.log.run < len(runs) else {}
        return "read" if facts.get("direct") == "1" or facts.get("invalidate") == "1" else ""
    # On one node IOR and IO500 read what the same node has just written.
    return "read" if record.point.nodes > 1 else ""


def storage_bounds(
    trainings: Iterable[Group], retrainings: Iterable[Group], rates: dict[str, StorageRate]
) -> list[StorageBound]:
    """Return one bound for each workload that has a usable training whose records tell its bytes, by its name."""
    fastest: dict[str, tuple[float, Group]] = {}
    for group in trainings:
        step, steps, workload = group.summary("step_time"), group.detail("steps_per_epoch"), group.cell.workload
        if group.wrong or group.over_subscribed or group.kind.synthetic or not (step and steps and workload):
            continue
        epoch_s = step.median * steps
        if group.detail("epoch_bytes") and (workload not in fastest or epoch_s < fastest[workload][0]):
            fastest[workload] = epoch_s, group
    # The quickest of those who retrain it: of one workload each of them writes the same.
    written: dict[str | None, float] = {}
    for group in retrainings:
        if (summary := group.summary("checkpoint_time")) is not None:
            workload = group.cell.workload
            written[workload] = min(written.get(workload, summary.median), summary.median)
    return [
        _bound(group, epoch_s, written.get(workload), rates) for workload, (epoch_s, group) in sorted(fastest.items())
    ]


def _bound(group: Group, epoch_s: float, checkpoint_s: float | None, rates: dict[str, StorageRate]) -> StorageBound:
    epoch, state = group.detail("epoch_bytes"), group.detail("state_bytes")
    read, write, waited = rates.get("read"), rates.get("write"), group.summary("input_time")
    return StorageBound(
        group=group,
        epoch_bytes=epoch,
        state_bytes=state,
        read_s=epoch / read.value if epoch and read else None,
        write_s=state / write.value if state and write else None,
        epoch_s=epoch_s,
        input_s=waited.median * (group.detail("steps_per_epoch") or 0) if waited else None,
        checkpoint_s=checkpoint_s,
    )
