"""What the phases of the probe of files are called, what each moves, and which are rates of storage."""

from __future__ import annotations

from collections.abc import Mapping

from transect.hpc.values import number

# As `transect.hpc.probes.files` names them: what is done, whose files, which records, and how.
_METADATA = ("create", "stat", "read", "remove")


def _parts(label: str) -> tuple[str, str, str, str]:
    does, whose, what, how = [*label.split("-", 3), "", "", ""][:4]
    return does, whose, what, how


def work(fields: Mapping[str, str], label: str) -> float | None:
    """Return the bytes or files of a phase on all ranks, or None where the log does not say."""
    _, _, what, how = _parts(label)
    name = f"{what}_bytes"
    if what == "files":
        name = "synced_files" if how == "synced" else "files"
    return number(fields.get(name, ""))


def checked(label: str) -> str:
    """Return the name under which the log says that what a phase moved was right."""
    _, whose, what, _ = _parts(label)
    return f"{whose}-{what}"


def registered(fields: Mapping[str, str], label: str, unit: str) -> str | None:
    """Return the metric that a phase is of; None for one that memory may have answered.

    Bytes that were read from the page cache, or written into it and no further, are no rate of storage.
    """
    does, _, what, how = _parts(label)
    storage = fields.get("storage")
    if storage not in ("all", "writes") or (storage == "writes" and does == "read"):
        return None
    if what == "files":
        return "metadata_rate" if does in _METADATA and unit == "1/s" else None
    past = (
        how in ("direct", "dropped")
        if does == "read"
        else how in ("direct-synced", "direct-unsynced", "buffered-synced")
    )
    return "storage_bandwidth" if past and unit == "B/s" else None
