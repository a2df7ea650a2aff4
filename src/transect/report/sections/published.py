"""Section: what was published beside what was measured here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from transect.analysis.groups import Group
from transect.domain.metrics import METRICS
from transect.report.blocks import Lead, Part, digits, table, words
from transect.report.context import Context
from transect.report.text import clean

__all__ = ["is_meant", "published_body", "published_of"]

# Keys of `measured` that are no axes.
_NO_AXES = ("stage", "metric")


def published_body(context: Context) -> Iterator[Part]:
    """Set published numbers beside measured ones, or explain why there are none."""
    yield Lead(
        "Another machine gives other numbers: compare shapes and ratios, not absolute speed.",
        empty="This study names no published numbers. A study file lists them with their source; "
        "they then stand here beside what this machine measured.",
    )
    figures = [_measured(figure, context) for figure in context.published]
    columns = [
        words("Study", lambda figure: _said(figure, "study")),
        words("What", lambda figure: _said(figure, "what")),
        digits("Published", lambda figure: _said(figure, "published")),
        digits("Measured here", lambda figure: _said(figure, "measured")),
        digits("Measured / published", _ratio),
        words("Note", lambda figure: _said(figure, "note")),
    ]
    yield table(figures, columns) if figures else None


def published_of(context: Context, group: Group[Any], knob: str) -> float | None:
    """Return the published figure of a knob that the study sets beside a group, or None."""
    for figure in context.published:
        wanted = figure.get("measured")
        if figure.get("knob") == knob and isinstance(wanted, dict) and is_meant(group, wanted):
            return _number(figure, "published")
    return None


def is_meant(group: Group[Any], wanted: Mapping[str, Any]) -> bool:
    """Whether a group is of the stage, and has the values on the axes, that a study asks for."""
    axes = {name: value for name, value in wanted.items() if name not in _NO_AXES}
    return group.cell.stage == wanted.get("stage") and all(
        group.cell.get(name) == value for name, value in axes.items()
    )


def _measured(figure: dict[str, Any], context: Context) -> dict[str, Any]:
    """Put the median of the one group that is asked for in the place of `measured`; or say why not."""
    wanted = figure.get("measured")
    if not isinstance(wanted, dict):
        return figure
    found = [group for group in context.of(str(wanted.get("stage"))) if is_meant(group, wanted)]
    metric = str(wanted.get("metric"))
    summary = found[0].summary(metric) if len(found) == 1 else None
    said = [str(figure["note"])] if figure.get("note") else []
    if not found:
        said.append("no record of such a cell")
    elif len(found) > 1:
        said.append(f"{len(found)} cells of {wanted.get('stage')} are meant: one would be right")
    elif metric not in METRICS:
        said.append(f"no metric is called {metric}")
    elif summary is None:
        said.append(f"no result: {found[0].records[0].message or 'none yet'}")
    elif summary.count > 1:
        said.append(
            f"median of {summary.count} runs, {summary.word} {summary.low:.3g} to {summary.high:.3g}"
        )
    return {**figure, "measured": summary.median if summary else None, "note": "; ".join(said)}


def _number(figure: Mapping[str, Any], key: str) -> float | None:
    value = figure.get(key)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number else None


def _said(figure: Mapping[str, Any], key: str) -> float | str:
    value = _number(figure, key)
    return clean(str(figure.get(key) or "–")) if value is None else value


def _ratio(figure: Mapping[str, Any]) -> float | None:
    published, measured = _number(figure, "published"), _number(figure, "measured")
    return measured / published if published and measured is not None else None
