"""Section: where a study trains with other hyper-parameters than the workload's own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from transect.domain.errors import TransectError
from transect.report.engine.blocks import Column, Lead, Part, code, table, words
from transect.report.engine.context import Context
from transect.report.engine.text import clean
from transect.training.workloads import WORKLOADS


def hyperparameters_body(context: Context) -> Iterator[Part]:
    """List what differs, by workload; nothing when a study changes nothing. Ids of cells do not tell."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    # Records that say the same share one object.
    shared = {(record.point.workload, id(record.parameters)): record.parameters for record in context.records}
    for (workload, _), parameters in shared.items():
        if workload is not None:
            for key, value in parameters.items():
                found[workload, key].add(_text(value))
    defaults = {workload: _default_texts(workload) for workload, _ in found}
    rows = [
        (workload, key, default, sorted(values))
        for (workload, key), values in sorted(found.items())
        if (default := defaults[workload].get(key)) is not None and values != {default}
    ]
    if not rows:
        return
    yield Lead("The study replaces these; numbers compare only with those of equal hyper-parameters.")
    columns: list[Column[Any]] = [
        words("Workload", lambda row: clean(row[0])),
        code("Hyper-parameter", lambda row: row[1]),
        words("The workload's own", lambda row: clean(row[2])),
        words("In this study", lambda row: clean(" and ".join(row[3]))),
    ]
    yield table(rows, columns, caption="Hyper-parameters that differ")


def _default_texts(workload: str) -> dict[str, str]:
    """Return a workload's own values as text; nothing for one whose plug-in is not here."""
    try:
        defaults = WORKLOADS.get(workload).defaults.model_dump()
    except TransectError:
        return {}
    return {key: _text(value) for key, value in defaults.items()}


def _text(value: Any) -> str:
    # 1 and 1.0 are one number: a study may write either.
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(int(value)) if value == int(value) else repr(value)
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_text(inside)}" for key, inside in sorted(value.items())) or "–"
    return "null" if value is None else str(value)
