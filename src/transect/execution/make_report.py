"""`python -m transect.execution.make_report --study FILE --results DIR`: the report stage."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from transect.domain.errors import TransectError
from transect.domain.paths import StudyPaths
from transect.execution.plan_files import planned_cells
from transect.planning.study import load_study

__all__ = ["PlannedCells", "cell_keys", "main", "make_report"]

PlannedCells = Callable[[StudyPaths], Iterable[str] | None]


def make_report(
    study_file: Path, results: Path, planned: PlannedCells = planned_cells
) -> dict[str, object]:
    """Write report.html, records.parquet and summary.json; return the summary.

    `planned` gives the cells that the study has, by `STAGE/ID`: the report shows those, and lists
    earlier ones apart. Without a plan every record counts.
    """
    from transect.report.build import build_report

    study = load_study(study_file)
    paths = StudyPaths(results=results, study=study.name)
    cells = planned(paths)
    return build_report(
        paths.folder,
        paths.report,
        title=study.title or study.name,
        questions=list(study.questions),
        published=list(study.published),
        planned=None if cells is None else cell_keys(cells),
    )


def cell_keys(names: Iterable[str]) -> set[tuple[str, str]]:
    """Part `STAGE/ID` into stage and id.

    >>> cell_keys(["train/iris-mlp~01234567"])
    {('train', 'iris-mlp~01234567')}
    """
    return {(stage, cell) for stage, _, cell in (name.partition("/") for name in names)}


def main() -> int:
    """Make the report and say where it is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study", type=Path, required=True)
    parser.add_argument("--results", type=Path, required=True)
    given = parser.parse_args()
    try:
        summary = make_report(given.study, given.results)
    except TransectError as error:
        print(f"transect: {error}", file=sys.stderr)
        return error.exit_code
    counts = summary["counts"]
    study = load_study(given.study)
    report = StudyPaths(results=given.results, study=study.name).report
    print(f"[transect] {counts} -> {report}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
