"""Writes a made report in several formats below one folder, and keeps order there from run to run.

`exports.json` notes what was written, and from which records. By it files of an earlier export that are no
longer made are removed, what somebody else wrote or changed is not touched, and an export that an older state
of the study left behind is named.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from transect.domain.errors import BadInput, unknown_name
from transect.domain.files import digest, sha256_file, write_atomic
from transect.report.build import write_page
from transect.report.formats import REPORT_FORMATS, Contents
from transect.report.made import Made

# The page itself: every study has it, so it is in no list of exports.
HTML = "html"
EXPORTS = "exports.json"
# Held while files are exchanged: two exports at once would each forget what the other one noted.
EXPORTS_LOCK = ".exports.lock"
_MOST_NAMED = 5


@dataclass(frozen=True, kw_only=True)
class Written:
    """What became of one format: where it lies, how many files, and what a person should know.

    `left_out` is what it cannot hold, `strange` files in its folder that no export wrote, or that were
    changed since.
    """

    format: str
    path: Path
    files: int
    left_out: Sequence[str] = ()
    strange: Sequence[str] = ()


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
        name for name, one in _read(folder).items() if one.files and one.state != state and name in REPORT_FORMATS
    )


def _with_needed(names: Iterable[str]) -> list[str]:
    wanted: dict[str, None] = {}

    def want(name: str) -> None:
        if name == HTML:
            wanted[name] = None
            return
        if name not in REPORT_FORMATS:
            raise unknown_name("report format", name, format_names(), "--format")
        for needed in REPORT_FORMATS.get(name).needs:
            if needed not in wanted:
                want(needed)
        wanted[name] = None

    for name in names:
        want(name)
    return list(wanted)


def _write(made: Made, folder: Path, name: str) -> Written:
    if name == HTML:
        write_page(made, folder / "report.html")
        return Written(format=name, path=folder / "report.html", files=1)
    one = REPORT_FORMATS.get(name)
    return put(folder, name, one.place, one.contents(made), state=_state(made))


def put(folder: Path, name: str, place: str, contents: Contents, *, state: str) -> Written:
    """Write an export's files below `folder / place`, remove those that an earlier one of that name left there.

    What else lies in a `place` that is a folder of its own, which ends in `/`, is named. Of two exports at once
    the second one waits.

    `state` stands for what it was made from. Raises BadInput and OSError as `write_formats` does.
    """
    with _alone(folder):
        return _put(folder, name, place, contents, state)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as held:
        # A file system without locks, as some clusters have, exports all the same; so does another user.
        with suppress(OSError):
            lock = held.enter_context((folder / EXPORTS_LOCK).open("a"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _put(folder: Path, name: str, place: str, contents: Contents, state: str) -> Written:
    noted = _read(folder)
    files = {_path(place, inside): data for inside, data in contents.files.items()}
    before = noted.get(name, _Noted())
    sums = {path: hashlib.sha256(data).hexdigest() for path, data in files.items()}
    _refuse_strange(folder, sums, before.files)
    # Noted first: a run that is ended half-way leaves files that the next one knows as ours.
    both = {path: list(before.files.get(path, ())) for path in {*before.files, *sums}}
    for path, checksum in sums.items():
        both[path].append(checksum)
    _keep(folder, noted | {name: _Noted(files=both)})
    for path, data in files.items():
        if not _holds(folder / path, [sums[path]]):
            write_atomic(folder / path, data)
    changed = _remove_old(folder, {p: s for p, s in before.files.items() if p not in files})
    now = _Noted(state=state, files={path: [s] for path, s in sorted(sums.items())})
    _keep(folder, noted | {name: now})
    others = _strangers(folder / place, folder, {*files, *changed}) if place.endswith("/") else []
    strange = [*changed, *others]
    return Written(
        format=name, path=folder / place, files=len(files), left_out=contents.left_out, strange=sorted(strange)
    )


def _path(place: str, inside: str) -> str:
    """Return where a file goes, relative to the folder. Raises BadInput for a format that leaves its place."""
    path = PurePosixPath(place, inside)
    if path.is_absolute() or ".." in path.parts:
        raise BadInput(f"report format writes '{inside}', which is outside its own folder '{place}'")
    return path.as_posix()


def _holds(path: Path, checksums: Sequence[str]) -> bool:
    return path.is_file() and not path.is_symlink() and sha256_file(path) in checksums


def _refuse_strange(folder: Path, new: Mapping[str, str], known: Mapping[str, Sequence[str]]) -> None:
    strange = [
        path
        for path, checksum in new.items()
        if (folder / path).is_symlink()
        or ((folder / path).exists() and not _holds(folder / path, [checksum, *known.get(path, ())]))
    ]
    if strange:
        more = f" and {len(strange) - _MOST_NAMED} more" if len(strange) > _MOST_NAMED else ""
        raise BadInput(
            f"{folder}: {', '.join(strange[:_MOST_NAMED])}{more} would be overwritten, and was not written by an "
            "export or was changed since: move it away first"
        )


def _remove_old(folder: Path, files: Mapping[str, Sequence[str]]) -> list[str]:
    """Remove what is no longer made, and folders that this leaves empty; return what was changed since."""
    kept = []
    for path, checksums in files.items():
        if _holds(folder / path, checksums):
            (folder / path).unlink()
            parent = (folder / path).parent
            while parent != folder and not any(parent.iterdir()):
                parent.rmdir()
                parent = parent.parent
        elif (folder / path).exists():
            kept.append(path)
    return kept


def _strangers(place: Path, folder: Path, ours: set[str]) -> list[str]:
    """Return files below a format's folder that are not ours."""
    if not place.is_dir():
        return []
    return [
        name
        for path in place.rglob("*")
        if not path.is_dir() and (name := path.relative_to(folder).as_posix()) not in ours
    ]


def _state(made: Made) -> str:
    """Return what stands for the records that a report was made from."""
    return digest(
        f"{one.stage}/{one.cell_id} {one.status} {one.fingerprint} {one.ended}" for one in made.context.records
    )[:16]


def noted_exports(folder: Path) -> list[str]:
    """Return what was ever written there beside the report, sorted."""
    return sorted(_read(folder))


def _read(folder: Path) -> dict[str, _Noted]:
    """Return what was exported before; nothing where the list is not there or is damaged."""
    try:
        noted: dict[str, Any] = json.loads((folder / EXPORTS).read_text(encoding="utf-8"))
        return {
            str(name): _Noted(
                state=str(one["state"]),
                files={
                    path: [str(s) for s in sums]
                    for path, sums in one["files"].items()
                    # Somebody may have edited the list: nothing outside is ever removed.
                    if not PurePosixPath(path).is_absolute() and ".." not in PurePosixPath(path).parts
                },
            )
            for name, one in noted.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _keep(folder: Path, noted: Mapping[str, _Noted]) -> None:
    content = {name: {"state": one.state, "files": one.files} for name, one in sorted(noted.items())}
    write_atomic(folder / EXPORTS, json.dumps(content, indent=0) + "\n")
