"""Loss over steps beside the reference, and the deviation as a share of the tolerance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from transect.analysis.groups import Group
from transect.analysis.scaling import TrainGroup
from transect.report.engine.blocks import Chart, Column, Part, digits
from transect.report.engine.charts.chart import drawn
from transect.report.engine.charts.inks import INK
from transect.report.engine.charts.marks import Line
from transect.report.engine.charts.plots import line_plot, log_is_better
from transect.report.engine.charts.theme import Style, legend
from transect.report.engine.columns import labelled
from transect.report.engine.context import Context

_POINTS = 80
_CURVES = 12
_REFERENCE = Style(INK, "circle", (3, 4))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Curve:
    """Loss per step of a group's first repeat, with the reference's and the tolerance."""

    group: TrainGroup
    loss: list[float]
    reference: list[float]
    tolerance: list[float]

    @property
    def ratios(self) -> list[float]:
        """Deviation over tolerance at each checked step; empty when nothing was checked."""
        # The reference may check the first steps only.
        if not 0 < len(self.reference) == len(self.tolerance) <= len(self.loss):
            return []
        checked = self.loss[: len(self.reference)]
        return [
            abs(a - b) / t if t > 0 else 0.0 for a, b, t in zip(checked, self.reference, self.tolerance, strict=True)
        ]

    @property
    def worst(self) -> int:
        """The checked step with the largest share of its tolerance, from 0."""
        ratios = self.ratios
        return max(range(len(ratios)), key=ratios.__getitem__)


def _thin(values: Sequence[float]) -> list[tuple[float, float]]:
    """Keep every k-th value and the last, as (step from 1, value)."""
    stride = max(1, -(-len(values) // _POINTS))
    kept = [(float(i + 1), values[i]) for i in range(0, len(values), stride)]
    last = float(len(values))
    return kept if not kept or kept[-1][0] == last else [*kept, (last, values[-1])]


def _peaks(values: Sequence[float]) -> list[tuple[float, float]]:
    """Keep the largest value of each k steps, so that no excess is thinned away."""
    stride = max(1, -(-len(values) // _POINTS))
    return [(float(i + 1), max(values[i : i + stride])) for i in range(0, len(values), stride)]


def loss_charts(context: Context, workload: str, groups: list[TrainGroup]) -> Iterator[Part]:
    """Draw the first repeat of the groups that deviate most; nothing when none recorded its loss."""
    curves: list[_Curve] = []
    # All should coincide: those that deviate most say whether they do.
    for group in sorted(groups, key=_worst, reverse=True):
        loss, reference, tolerance = (
            context.originals.samples(group.ok[0], name) for name in ("loss", "reference_loss", "loss_tolerance")
        )
        if loss:
            curves.append(_Curve(group=group, loss=loss, reference=reference, tolerance=tolerance))
        if len(curves) == _CURVES:
            break
    few = len(curves) == _CURVES < len(groups)
    note = f" The {_CURVES} of {len(groups)} cells that deviate most." if few else ""
    label = labelled(groups, "Cell, first repeat", always=("ranks",))
    names = _names(context, curves)
    if curves:
        yield _loss(context, workload, curves, label, names, note)
    checked = [curve for curve in curves if curve.ratios]
    if checked:
        yield _deviation(context, workload, checked, label, names, note)


def _worst(group: Group) -> tuple[float, str]:
    ratios = [value for name in ("equality_ratio", "weights_equality_ratio") for value in group.values(name)]
    return max(ratios, default=0.0), group.cell.id


def _names(context: Context, curves: list[_Curve]) -> dict[str, Style]:
    """Return the styles of the lines by what tells them apart."""
    several = len({curve.group.cell.network for curve in curves}) > 1
    styles: dict[str, Style] = {}
    for curve in curves:
        cell = curve.group.cell
        network = f" · {cell.network}" if several and cell.network else ""
        style = context.style(curve.group)
        styles.setdefault(f"{cell.framework} · {cell.strategy}{network}", style)
    return styles


def _lines(
    context: Context, label: Column[_Curve], drawn_of: Iterable[tuple[_Curve, list[tuple[float, float]]]]
) -> list[Line]:
    return [
        Line(
            points=points,
            style=context.style(curve.group),
            symbols=False,
            width=1.4,
            name=str(label.entry(curve)),
            about=curve.group,
        )
        for curve, points in drawn_of
    ]


def _loss(
    context: Context, workload: str, curves: list[_Curve], label: Column[_Curve], names: dict[str, Style], note: str
) -> Chart:
    lines = _lines(context, label, ((curve, _thin(curve.loss)) for curve in curves))
    # One per batch, rule and start: cells of another kind have another path to follow.
    for reference in dict.fromkeys(tuple(curve.reference) for curve in curves if curve.reference):
        names = names | {"reference": _REFERENCE}
        lines.append(Line(points=_thin(reference), style=_REFERENCE, symbols=False, width=2.2, name="reference"))
    values = [y for line in lines for _, y in line.points]
    return drawn(
        line_plot(lines, x_title="step", y_title="training loss", y_log=log_is_better(values, 50)),
        curves,
        [
            label,
            digits("Steps", lambda curve: len(curve.loss)),
            digits("First loss", lambda curve: curve.loss[0]),
            digits("Middle", lambda curve: curve.loss[len(curve.loss) // 2]),
            digits("Last loss", lambda curve: curve.loss[-1]),
            digits("Reference, last", lambda curve: curve.reference[-1] if curve.reference else None),
        ],
        title=f"{workload}: loss beside the reference",
        name=f"loss-{workload}",
        legend=legend(names.items(), symbol=False),
        alt=f"{workload}: training loss over steps of {len(curves)} cells, with the reference as a dashed line.",
        notes=[
            f"First repeat of each cell, at most {_POINTS} points drawn per line. Lines that "
            f"coincide with a reference are the aim.{note}"
        ],
    )


def _deviation(
    context: Context, workload: str, curves: list[_Curve], label: Column[_Curve], names: dict[str, Style], note: str
) -> Chart:
    lines = _lines(context, label, ((curve, _peaks(curve.ratios)) for curve in curves))

    def deviation(curve: _Curve) -> float:
        return abs(curve.loss[curve.worst] - curve.reference[curve.worst])

    return drawn(
        line_plot(lines, x_title="step", y_title="deviation / tolerance", y_log=True, rule=1.0),
        curves,
        [
            label,
            digits("Largest share", lambda curve: curve.ratios[curve.worst]),
            digits("At step", lambda curve: curve.worst + 1),
            digits("Deviation", deviation),
            digits("Tolerance", lambda curve: curve.tolerance[curve.worst]),
        ],
        title=f"{workload}: deviation from the reference",
        name=f"deviation-{workload}",
        legend=legend(names.items(), symbol=False),
        alt=f"{workload}: deviation of the loss as a share of its tolerance over steps; below the "
        "dashed line at 1 is within tolerance.",
        notes=[f"Below the dashed line is within tolerance. Each point is the largest of its steps.{note}"],
    )
