"""Writes a made report in several formats below one folder, and keeps order there from run to run.

`exports.json` notes what was written, and from which records. By it files of an earlier export that are no
longer made are removed, what somebody else wrote or changed is refused, and an export that an older state of the
study left behind is named.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from transect.domain.errors import BadInput, unknown_name
from transect.domain.files import digest, sha256_file, write_atomic
from transect.report.engine.build import write_page
from transect.report.engine.formats import REPORT_FORMATS, Contents
from transect.report.engine.report import Made

# The page itself: every study has it, so it is in no list of exports.
HTML = "html"
EXPORTS = "exports.json"
_MAX_NAMED = 5


@dataclass(frozen=True, kw_only=True)
class Written:
    """What became of one format: where it lies, how many files, and what it cannot hold."""

    format: str
    path: Path
    files: int
    left_out: Sequence[str] = ()


@dataclass(kw_only=True)
class _Noted:
    """What `exports.json` says of one format: every checksum that a file of ours may have."""

    state: str = ""
    files: dict[str, list[str]] = field(default_factory=dict)


def format_names() -> list[str]:
    """Return the names of all formats, the page's first."""
    return [HTML, *REPORT_FORMATS]


def write_formats(made: Made, folder: Path, names: Iterable[str]) -> list[Written]:
    """Write a report below `folder` in each of these formats, and in those that they need.

    Raises BadInput, before anything of a format is written, for an unknown name, or where a file that no
    export wrote, or that was changed since, is in its place; OSError when nothing can be written.
    """
    return [_write(made, folder, name) for name in _with_needed(names)]


def older_exports(made: Made, folder: Path) -> list[str]:
    """Return the formats that lie in `folder` and were written from other records than those of `made`."""
    state = _state(made)
    return sorted(
        name for name, noted in _read(folder).items() if noted.files and noted.state != state and name in REPORT_FORMATS
    )


def _with_needed(names: Iterable[str]) -> list[str]:
    wanted: dict[str, None] = {}
    for name in names:
        if name != HTML and name not in REPORT_FORMATS:
            raise unknown_name("report format", name, format_names(), "--format")
        needed = () if name == HTML else _with_needed(REPORT_FORMATS.get(name).needs)
        wanted |= dict.fromkeys((*needed, name))
    return list(wanted)


def _write(made: Made, folder: Path, name: str) -> Written:
    if name == HTML:
        write_page(made, folder / "report.html")
        return Written(format=name, path=folder / "report.html", files=1)
    report_format = REPORT_FORMATS.get(name)
    return put(folder, name, report_format.place, report_format.contents(made), state=_state(made))


def put(folder: Path, name: str, place: str, contents: Contents, *, state: str) -> Written:
    """Write an export's files below `folder / place`, and remove those that an earlier one of that name left there.

    `state` stands for what it was made from. Raises BadInput and OSError as `write_formats` does.
    """
    files = {_path(place, inside): data for inside, data in contents.files.items()}
    before = _read(folder).get(name, _Noted()).files
    sums = {path: [hashlib.sha256(data).hexdigest()] for path, data in files.items()}
    # What a run that is ended half-way leaves behind is ours too.
    both = {path: [*before.get(path, ()), *sums.get(path, ())] for path in {*before, *sums}}
    strange = [path for path, known in sorted(both.items()) if not _is_ours(folder / path, known)]
    if strange:
        more = f" and {len(strange) - _MAX_NAMED} more" if len(strange) > _MAX_NAMED else ""
        raise BadInput(
            f"{folder}: {', '.join(strange[:_MAX_NAMED])}{more} would be overwritten or removed, and was not written by "
            "an export or was changed since: move it away first"
        )
    # Read anew each time: what another export notes meanwhile stays noted.
    _keep(folder, _read(folder) | {name: _Noted(files=both)})
    for path, data in files.items():
        if not (folder / path).exists() or sha256_file(folder / path) not in sums[path]:
            write_atomic(folder / path, data)
    for path in before.keys() - files.keys():
        _remove(folder / path, folder)
    _keep(folder, _read(folder) | {name: _Noted(state=state, files=dict(sorted(sums.items())))})
    return Written(format=name, path=folder / place, files=len(files), left_out=contents.left_out)


def _path(place: str, inside: str) -> str:
    """Return where a file goes, relative to the folder. Raises BadInput for a format that leaves its place."""
    path = PurePosixPath(place, inside)
    if path.is_absolute() or ".." in path.parts:
        raise BadInput(f"report format writes '{inside}', which is outside its own folder '{place}'")
    return path.as_posix()


def _is_ours(path: Path, checksums: Sequence[str]) -> bool:
    """Whether a file is as an export wrote it, or not there at all."""
    if path.is_symlink() or path.exists():
        return path.is_file() and not path.is_symlink() and sha256_file(path) in checksums
    return True


def _remove(path: Path, folder: Path) -> None:
    """Remove a file, and folders that this leaves empty."""
    path.unlink(missing_ok=True)
    parent = path.parent
    while parent != folder and parent.is_dir() and not any(parent.iterdir()):
        parent.rmdir()
        parent = parent.parent


def _state(made: Made) -> str:
    """Return what stands for the records that a report was made from."""
    return digest(f"{r.stage}/{r.cell_id} {r.status} {r.fingerprint} {r.ended}" for r in made.context.records)[:16]


def noted_exports(folder: Path) -> list[str]:
    """Return what was ever written there beside the report, sorted."""
    return sorted(_read(folder))


def _read(folder: Path) -> dict[str, _Noted]:
    """Return what was exported before; nothing where the list is not there or is damaged."""
    try:
        noted: dict[str, Any] = json.loads((folder / EXPORTS).read_text(encoding="utf-8"))
        return {
            str(name): _Noted(
                state=str(entry["state"]),
                files={
                    path: [str(s) for s in sums]
                    for path, sums in entry["files"].items()
                    # Somebody may have edited the list: nothing outside is ever removed.
                    if not PurePosixPath(path).is_absolute() and ".." not in PurePosixPath(path).parts
                },
            )
            for name, entry in noted.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _keep(folder: Path, noted: Mapping[str, _Noted]) -> None:
    content = {name: {"state": entry.state, "files": entry.files} for name, entry in sorted(noted.items())}
    write_atomic(folder / EXPORTS, json.dumps(content, indent=0) + "\n")
