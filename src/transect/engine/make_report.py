"""`python -m transect.engine.make_report --folder results/STUDY`: the report stage.

It takes the study's words from its plan: the study's file may be edited while the study runs.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transect.domain.claims import Work
from transect.domain.errors import FAULTS, BadInput, say_fault
from transect.domain.paths import StudyPaths
from transect.domain.strict_yaml import load_model
from transect.domain.study import Study
from transect.domain.system import System, SystemPrice
from transect.domain.terminal import say
from transect.engine.plan_files import (
    edits,
    fixed_rules,
    planned_analysis,
    planned_cells,
    planned_price,
    planned_study,
    planned_works,
    study_file,
    system_file,
)
from transect.planning.claims import works_of
from transect.planning.study import load_study, named_file

if TYPE_CHECKING:
    from transect.report.engine.export import Written
    from transect.report.engine.report import Made

PlannedCells = Callable[[StudyPaths], Iterable[str] | None]


def make_report(study_file: Path, results: Path, planned: PlannedCells = planned_cells) -> dict[str, object]:
    """Write report.html, records.parquet and summary.json; return the summary.

    `planned` gives the cells that the study has, by `STAGE/ID`: the report shows those, and lists
    earlier ones apart. Without a plan every record counts.
    """
    study = load_study(study_file)
    paths = StudyPaths(results=results, study=study.name)
    return _make(paths, study, planned(paths), [*works_of(study, study_file).values()]).summary


def write_report(
    study_file: Path | None, paths: StudyPaths, formats: Sequence[str]
) -> tuple[dict[str, Any], list[Written], list[str]]:
    """Write the report of a study in each of `formats`, beside one another.

    Without the study's file, as of results that somebody was given, its words are those of the plan.
    Return the summary, what was written, and the exports of an older state of the study that lie there.
    Raises BadInput for an unknown format, or a file of somebody else in the place of one.
    """
    from transect.report.engine.banner import Line
    from transect.report.engine.blocks import Chip
    from transect.report.engine.export import older_exports, write_formats

    study = planned_study(paths) if study_file is None else load_study(study_file)
    works = planned_works(paths) if study_file is None else [*works_of(study, study_file).values()]
    made = _made(paths, study, planned_cells(paths), _price_now(paths), works)
    if study_file is not None and (edited := edits(paths, study_file)):
        line = Line(word="Edited", text=edited, chip=Chip("study edited", "warn"))
        made.front = replace(made.front, banner=(*made.front.banner, line))
    written = write_formats(made, paths.folder, formats)
    return made.summary, written, older_exports(made, paths.folder)


def read_study(paths: StudyPaths, works: Sequence[Work]) -> Made:
    """Return a study's results as its report reads them, held beside these works: its findings, and no section.

    Raises BadInput without a plan that can be read.
    """
    return _made(paths, planned_study(paths), planned_cells(paths), planned_price(paths), works, only=())


def _make(paths: StudyPaths, study: Study, cells: Iterable[str] | None, works: Sequence[Work]) -> Made:
    from transect.report.engine.build import write_page

    made = _made(paths, study, cells, planned_price(paths), works)
    write_page(made, paths.report)
    return made


def _price_now(paths: StudyPaths) -> SystemPrice | None:
    """Return what the system's file says today; what it said when the study was planned where it cannot be read."""
    file = system_file(paths)
    try:
        return planned_price(paths) if file is None else load_model(file, System).price
    except BadInput:
        return planned_price(paths)


def _made(
    paths: StudyPaths,
    study: Study,
    cells: Iterable[str] | None,
    price: SystemPrice | None,
    works: Sequence[Work],
    only: Collection[str] | None = None,
) -> Made:
    from transect.report.engine.report import make_all

    # All that is read stays until the end: to look for circles in it again and again takes a fifth of the time.
    gc.set_threshold(100_000, 50, 50)
    return make_all(
        paths.folder,
        title=study.title or study.name,
        questions=list(study.questions),
        again=run_words(paths),
        works=works,
        since={rule: str(one.get("since")) for rule, one in (fixed_rules(paths) or {}).items() if "until" not in one},
        planned=None if cells is None else cell_keys(cells),
        analysis_plan=planned_analysis(paths),
        price=price,
        only=only,
    )


def run_words(paths: StudyPaths) -> list[str]:
    """Return what follows `transect run` in a command on this study, its name or file and options."""
    file = study_file(paths)
    words = [paths.study if file in (None, named_file("study", paths.study)) else str(file)]
    system = system_file(paths)
    if system not in (None, named_file("system", "laptop")):
        words += ["--system", system.stem if system == named_file("system", system.stem) else str(system)]
    if paths.results.resolve() != Path("results").resolve():
        words += ["--results", str(paths.results)]
    return words


def cell_keys(cells: Iterable[str]) -> dict[tuple[str, str], str]:
    """Part `STAGE/ID` into stage and id; with fingerprints, where the cells are mapped to them.

    >>> cell_keys(["train/iris-mlp~01234567"])
    {('train', 'iris-mlp~01234567'): ''}
    """
    fingerprints = cells if isinstance(cells, Mapping) else dict.fromkeys(cells, "")
    return {
        (stage, cell): fingerprint
        for (stage, _, cell), fingerprint in ((name.partition("/"), given) for name, given in fingerprints.items())
    }


def main() -> int:
    """Make the report and say where it is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    folder: Path = parser.parse_args().folder
    paths = StudyPaths(results=folder.parent, study=folder.name)
    try:
        from transect.report.engine.export import older_exports

        made = _make(paths, planned_study(paths), planned_cells(paths), planned_works(paths))
        older = older_exports(made, paths.folder)
    except FAULTS as error:
        return say_fault(error, folder)
    say(f"[transect] {made.summary['counts']} -> {paths.report}")
    say(*(f"[transect] {name} beside it is of older records" for name in older))
    return 0


if __name__ == "__main__":
    sys.exit(main())
