"""`python -m transect.execution.make_report --study FILE --results DIR`: the report stage."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from transect.domain.errors import TransectError
from transect.domain.paths import StudyPaths
from transect.planning.study import load_study

__all__ = ["main", "make_report"]


def make_report(study_file: Path, results: Path) -> dict[str, object]:
    """Write report.html, records.parquet and summary.json; return the summary."""
    from transect.report.build import build_report

    study = load_study(study_file)
    paths = StudyPaths(results=results, study=study.name)
    return build_report(
        paths.folder,
        paths.report,
        title=study.title or study.name,
        questions=list(study.questions),
        published=list(study.published),
    )


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
