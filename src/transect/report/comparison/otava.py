"""The series of a history as Apache Otava, formerly Hunter, reads them: tables in CSV and the file that describes them.

Otava has a test for each CSV: a row for each run, with its time, attributes and metrics. It takes an empty place for an error,
and nan for a number after which it finds no change in that metric: a table holds only metrics that stand in the same runs.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from transect.analysis.groups import grouped
from transect.analysis.history import History, Series
from transect.analysis.timelines import Run
from transect.domain.metrics import Direction
from transect.domain.terminal import printable
from transect.report.engine.formats import Contents
from transect.report.engine.formats._walk import Names
from transect.report.engine.text import count

CONFIG = "otava.yaml"
_TIME = "time"
# Names that no metric's column has, as each of these says its unit.
_ATTRIBUTES: Mapping[str, tuple[str, str]] = {"commit": ("software", "git commit"), "host": ("machine", "host")}
_FOLDER = "folder"
# With one run there is nothing to compare.
_LEAST = 2


def otava_contents(history: History) -> Contents:
    """Return the files: a CSV for each cell and each stage as a whole, and `otava.yaml`."""
    names = Names()
    long = [series for series in history.series if len(series.places) >= _LEAST]
    tests: dict[str, dict[str, Any]] = {}
    files: dict[str, bytes] = {}
    for (stage, cell, places), members in grouped(
        long, lambda series: (series.stage, series.cell, tuple(series.places))
    ).items():
        test = printable(f"{stage}/{cell.id if cell else 'all cells'}")
        # Of one cell some metrics stand in other runs.
        number = 1 + sum(known == test or known.startswith(f"{test} (") for known in tests)
        test = test if number == 1 else f"{test} ({number})"
        file = f"{names.of(test)}.csv"
        tests[test] = _described(file, members)
        files[file] = _csv([history.runs[place] for place in places], places, members).encode()
    files[CONFIG] = _yaml(tests).encode()
    short = len(history.series) - len(long)
    return Contents(files=files, left_out=[f"{count(short, 'series', 'series')} of one run"] if short else [])


def _column(series: Series) -> str:
    return f"{_metric(series)} in {printable(series.chosen.unit)}"


def _metric(series: Series) -> str:
    label = series.chosen.label
    return printable(series.chosen.metric if label is None else f"{series.chosen.metric}: {label}")


def _described(file: str, members: Iterable[Series]) -> dict[str, Any]:
    return {
        "type": "csv",
        "file": file,
        "time_column": _TIME,
        "attributes": [*_ATTRIBUTES, _FOLDER],
        "metrics": {
            _metric(series): {
                "column": _column(series),
                "direction": 1 if series.chosen.direction is Direction.HIGHER else -1,
            }
            for series in members
        },
    }


def _csv(runs: Sequence[Run], places: Sequence[int], members: Sequence[Series]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([_TIME, *_ATTRIBUTES, _FOLDER, *map(_column, members)])
    for run, place in zip(runs, places, strict=True):
        facts = [printable(" ".join(run.results.facts.get(key, ()))) for key in _ATTRIBUTES.values()]
        numbers = [repr(series.values[place]) for series in members]
        writer.writerow([run.at.isoformat(), *facts, printable(run.results.name), *numbers])
    return stream.getvalue()


def _yaml(tests: Mapping[str, Any]) -> str:
    """Write the file by which Otava finds the tests; JSON is YAML, and names are quoted in it whatever they hold."""
    lines = [
        f"  {json.dumps(name, ensure_ascii=False)}: {json.dumps(test, ensure_ascii=False)}"
        for name, test in tests.items()
    ]
    group = json.dumps([*tests], ensure_ascii=False)
    return "\n".join(["tests:", *lines, f"test_groups: {{all: {group}}}", ""] if tests else ["tests: {}", ""])
