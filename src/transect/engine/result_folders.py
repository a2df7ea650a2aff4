"""Results as a person names them: the folder of a study, folders of many runs, or a file of samples."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from string import ascii_uppercase

from transect.analysis.load import Problem, load_records
from transect.analysis.log_runs import with_log_runs
from transect.analysis.result_sets import ResultSet
from transect.analysis.sample_runs import load_samples
from transect.domain.errors import BadInput
from transect.domain.paths import StudyPaths
from transect.engine.make_report import cell_keys
from transect.engine.plan_files import planned_cells, planned_margin

# Runs lie this deep below a folder that is given at most: archive/DATE/results/STUDY.
_DEEPEST = 3


def letter_of(place: int) -> str:
    """Return what tables call a folder: A, B and so on, then A2.

    >>> [letter_of(place) for place in (0, 1, 26)]
    ['A', 'B', 'A2']
    """
    turn, letter = divmod(place, len(ascii_uppercase))
    return f"{ascii_uppercase[letter]}{turn + 1 if turn else ''}"


def read_sets(folders: Sequence[Path], *, over_time: bool = False) -> list[ResultSet]:
    """Read the folders of one study each, or files of samples, in their order.

    Records count as they do in the report: those of cells that the study no longer has, or has planned anew
    since, do not. Runs that logs tell are records of their own, of a system where a folder has logs of several,
    or those of several are not to be one history (`over_time`).
    Raises BadInput for a folder that is none, that holds no records, or that was given before, and for a file without samples.
    """
    seen: dict[Path, Path] = {}
    for folder in folders:
        is_file = folder.is_file()
        real = folder.resolve() if is_file else _checked(folder)
        if real in seen:
            raise BadInput(
                f"{folder}: is the same {'file' if is_file else 'folder'} as {seen[real]}: expected another one"
            )
        seen[real] = folder
    sets = [_read(folder, letter_of(place)) for place, folder in enumerate(folders)]
    expanded = with_log_runs([result_set.loaded.records for result_set in sets], over_time=over_time)
    for result_set, records in zip(sets, expanded, strict=True):
        result_set.loaded.records = records
    return sets


def study_of(results: ResultSet) -> str:
    """Return the name of the study that a folder's records are of; logs are of none, whichever read them."""
    if results.only_logs:
        return "logs"
    names = sorted({record.study for record in results.loaded.records})
    return " and ".join(names) if names else results.loaded.study


def find_runs(folders: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Return the result folders that are given or lie below what is given, and those met a second time.

    Raises BadInput for what is no folder, and for one without any result folder below it.
    """
    found: dict[Path, Path] = {}
    again: list[Path] = []
    for folder in folders:
        _folder(folder)
        runs = [folder] if _is_run(folder) else list(_below(folder, _DEEPEST))
        if not runs:
            raise BadInput(
                f"{folder}: no result folder there or up to {_DEEPEST} folders below: expected one such as "
                "results/quick, with STAGE/CELL/record.json in it"
            )
        for run in runs:
            real = run.resolve()
            if real in found:
                again.append(run)
            else:
                found[real] = run
    return list(found.values()), again


def _folder(folder: Path) -> Path:
    try:
        # What cannot be listed is not empty.
        next(folder.iterdir(), None)
    except OSError as error:
        raise BadInput(f"{folder}: cannot be read: {error.strerror}: expected one such as results/quick") from None
    return folder.resolve()


def _checked(folder: Path) -> Path:
    real = _folder(folder)
    if not _is_run(folder):
        below = ", ".join(sorted(path.name for path in _below(folder, 1))[:5]) or "such as results/quick"
        raise BadInput(f"{folder}: no records there, expected a folder with some: {below}")
    return real


def _is_run(folder: Path) -> bool:
    if (folder / "plan.json").is_file():
        return True
    return any("~" in cell.name for stage in _folders(folder) for cell in _folders(stage))


def _below(folder: Path, deep: int) -> Iterator[Path]:
    for inner in _folders(folder):
        if _is_run(inner):
            yield inner
        elif deep > 1:
            yield from _below(inner, deep - 1)


def _folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return sorted(Path(entry.path) for entry in entries if not entry.name.startswith(".") and entry.is_dir())
    except OSError:
        return []


def _read(folder: Path, letter: str) -> ResultSet:
    if folder.is_file():
        return ResultSet(letter=letter, name=str(folder), loaded=load_samples(folder))
    real = folder.resolve()
    paths = StudyPaths(results=real.parent, study=real.name)
    planned = planned_cells(paths)
    loaded = load_records(real, None if planned is None else cell_keys(planned))
    if planned is None and paths.plan.exists():
        what = "cannot be read: every record counts, those of cells that the study no longer has too"
        loaded.problems.append(Problem(where=paths.plan.name, what=what))
    return ResultSet(letter=letter, name=str(folder), loaded=loaded, margin=planned_margin(paths))
