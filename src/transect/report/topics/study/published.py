"""Section: what was published beside what was measured here: computed from records, never typed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from transect.analysis.groups import Group
from transect.domain.metrics import METRICS
from transect.report.engine.blocks import Chip, Lead, Part, Value, digits, note, table, words
from transect.report.engine.context import Context
from transect.report.engine.text import clean, count, number, with_ends
from transect.stats.estimates import Estimate, ratio_of
from transect.stats.samples import summarise

# Keys of `measured` that are no axes.
_NO_AXES = ("stage", "metric", "over")


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """A published figure, and what this study's records give for the same.

    `measured` is the median of the one cell that is meant, with the ends of its repeats, or the ratio
    of two cells; None when there is none, and `why` says why. `beside` is measured over published.
    """

    given: Mapping[str, Any]
    measured: Estimate | None
    beside: Estimate | None
    runs: int
    why: str


def published_body(context: Context) -> Iterator[Part]:
    """Set published numbers beside measured ones, or explain why there are none."""
    figures = figures_of(context)
    compared = sum(figure.beside is not None for figure in figures)
    caption = f"{compared} of {count(len(figures), 'published figure')} stand beside a measured one"
    if not figures:
        yield Lead(
            "This study names no published numbers. A study file lists them with their source and the cell that "
            "each is held beside; they then stand here beside what this machine measured."
        )
        return
    yield Lead(
        f"{caption}. Another machine gives other numbers: compare shapes and ratios, not absolute speed. What stands under Measured "
        "here is computed from the records of the cells that the study names beside each figure."
    )
    columns = [
        words("Study", lambda figure: _text(figure, "study") or "–"),
        words("What", lambda figure: _text(figure, "what") or "–"),
        digits("Published", lambda figure: _number(figure.given) or _text(figure, "published") or "–"),
        digits("Measured here", _here),
        digits("Runs", lambda figure: figure.runs or None),
        digits("Measured / published", lambda figure: with_ends(figure.beside)),
        words("Note", lambda figure: "; ".join(filter(None, (_text(figure, "note"), figure.why))) or "–"),
    ]
    yield table(figures, columns, caption=caption, fold_title=caption)
    yield note(
        "In brackets: the 95 % interval from six runs a side on, with fewer the range. A ratio has that of the measured "
        "side alone: no published figure comes with its repeats."
    )


def _here(figure: Figure) -> Value:
    if figure.measured is None:
        return Chip("typed by hand", "warn", figure.why) if "typed" in figure.why else None
    return with_ends(figure.measured, number)


def figures_of(context: Context) -> list[Figure]:
    """Return every published figure of the study beside what its records give."""
    return [_figure(given, context) for given in context.published]


def published_of(context: Context, group: Group[Any], axis: str) -> float | None:
    """Return the published figure of a hyper-parameter that the study sets beside a group, or None."""
    for figure in context.published:
        wanted = figure.get("measured")
        if figure.get("hyperparameter") == axis and isinstance(wanted, dict) and is_meant(group, wanted):
            return _number(figure)
    return None


def is_meant(group: Group[Any], wanted: Mapping[str, Any]) -> bool:
    """Whether a group is of the stage, and has the values on the axes, that a study asks for."""
    axes = {name: value for name, value in wanted.items() if name not in _NO_AXES}
    return group.cell.stage == wanted.get("stage") and all(
        group.cell.get(name) == value for name, value in axes.items()
    )


def _figure(given: Mapping[str, Any], context: Context) -> Figure:
    values, below, why = _values(given.get("measured"), context)
    measured = ratio_of(values, below) if below else _estimate(values)
    if values and below and measured is None:
        why = "the ratio is of values that are not above 0"
    published, beside = _number(given), None
    if measured is not None and published:
        low, high = sorted((measured.low / published, measured.high / published))
        beside = replace(measured, value=measured.value / published, low=low, high=high)
    runs = len(values) if measured else 0
    return Figure(given=given, measured=measured, beside=beside, runs=runs, why=clean(why))


def _values(wanted: Any, context: Context) -> tuple[list[float], list[float], str]:
    """Return the values of the cell that is meant and of the one that it is divided by, or why there are none."""
    if not isinstance(wanted, Mapping):
        if wanted is None:
            return [], [], "the study names no cell to hold it beside"
        return [], [], f"{wanted} was typed by hand, not measured: name the cell instead"
    values, why = _of_cell(wanted, context)
    over = wanted.get("over")
    if over is None or not values:
        return values, [], why
    if not isinstance(over, Mapping):
        return [], [], f"over: {over} is no mapping of axes"
    below, why = _of_cell({**wanted, **over}, context)
    return (values, below, why) if below else ([], [], f"over: {why}")


def _of_cell(wanted: Mapping[str, Any], context: Context) -> tuple[list[float], str]:
    stage, metric = str(wanted.get("stage")), str(wanted.get("metric"))
    found = [group for group in context.of(stage) if is_meant(group, wanted)]
    if not found:
        return [], "no record of such a cell"
    if len(found) > 1:
        return [], f"{len(found)} cells of {stage} are meant: one would be right"
    if metric not in METRICS:
        return [], f"no metric is called {metric}"
    values = found[0].values(metric)
    return values, "" if values else f"no result: {found[0].records[0].message or 'none yet'}"


def _estimate(values: list[float]) -> Estimate | None:
    summary = summarise(values)
    if summary is None:
        return None
    return Estimate(value=summary.median, low=summary.low, high=summary.high, spread=summary.spread)


def _number(given: Mapping[str, Any]) -> float | None:
    """Return the published figure, where it is a number."""
    value = given.get("published")
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _text(figure: Figure, key: str) -> str:
    return clean(str(figure.given.get(key) or ""))
