"""What a stage reads of the cells that it takes something from: its outcome depends on their checksums."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from transect.domain.errors import BadInput
from transect.domain.files import canonical_json, digest, sha256_file, while_unchanged
from transect.domain.record import Record, read_record

Spec = dict[str, Any]

# Asked for by every cell of a block.
record_of = while_unchanged(read_record)


def _record_in(folder: Path) -> Record | None:
    try:
        return record_of(folder / "record.json")
    except (OSError, BadInput):
        return None


class Takes:
    """Files of another cell by name, or all in a folder of it.

    `more` gives names that depend on the plan of the cell that takes them; `details` are keys of the other's record
    that are read too.
    """

    def __init__(
        self,
        *names: str,
        more: Callable[[Spec], Iterable[str]] | None = None,
        details: Iterable[str] | Callable[[Spec], Iterable[str]] = (),
    ) -> None:
        self.names = names
        self.more = more
        self.details = details if callable(details) else tuple(details)

    def checksums(self, role: str, folder: Path, spec: Spec) -> list[str]:
        """Return `NAME CHECKSUM` for all that is read of the cell in `folder`, which plays `role`.

        As that cell's record has it, whatever became of a file since: that is not for the cell that takes it to
        suffer. A file that no record names is read; one that is missing counts as `absent`.
        """
        record = _record_in(folder)
        found = self._files(role, folder, record, spec)
        keys = tuple(self.details(spec) if callable(self.details) else self.details)
        if record is not None and keys:
            taken = canonical_json({key: record.details.get(key) for key in keys})
            found.append(f"details {digest([taken])}")
        return found

    def _files(self, role: str, folder: Path, record: Record | None, spec: Spec) -> list[str]:
        files = {} if record is None else record.files
        found = []
        for name in (*self.names, *(self.more(spec) if self.more is not None else ())):
            wanted = [path for path in files if path == name or path.startswith(f"{name}/")]
            if wanted:
                found += [f"{Path(path).name} {files[path]}" for path in wanted]
            else:
                path = folder / name
                found.append(f"{path.name} {sha256_file(path) if path.is_file() else 'absent'}")
        return found


class AllFiles(Takes):
    """Every file of another cell."""

    def _files(self, role: str, folder: Path, record: Record | None, spec: Spec) -> list[str]:
        if record is None:
            return [f"{folder.name} absent"]
        return [f"{Path(path).name} {sha}" for path, sha in record.files.items()]


class DataArrays(Takes):
    """The arrays of a data cell, and its starts of those repeats that `repeats` gives."""

    def __init__(self, repeats: Callable[[Spec], Iterable[int]] = lambda spec: ()) -> None:
        super().__init__()
        self.repeats = repeats

    def _files(self, role: str, folder: Path, record: Record | None, spec: Spec) -> list[str]:
        files = {} if record is None else record.details.get("files", {})
        starts = [f"start-{repeat}.npz" for repeat in self.repeats(spec)]
        wanted = [name for name in sorted(files) if not name.startswith("start-") or name in starts]
        return [f"{name} {files[name]}" for name in wanted] or ["data absent"]


class Metrics(Takes):
    """The numbers of a measured cell, and nothing else of its record."""

    def _files(self, role: str, folder: Path, record: Record | None, spec: Spec) -> list[str]:
        if record is None:
            return [f"{role} absent"]
        return [f"{role} {digest([canonical_json([metric.model_dump(mode='json') for metric in record.metrics])])}"]


def own_repeat(spec: Spec) -> list[int]:
    """Return the repeat of the cell itself."""
    return [spec["cell"].get("repeat", 0)]
