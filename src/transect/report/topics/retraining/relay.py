"""Runtimes in turn: the loss, coloured by who computed it, and how far it is from one that never changed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from transect.analysis.entries import AnyRecord
from transect.report.engine.blocks import Chart, Chip, Heading, Part, Value, digits, table, words
from transect.report.engine.charts.chart import drawn
from transect.report.engine.charts.marks import Line
from transect.report.engine.charts.plots import line_plot
from transect.report.engine.charts.theme import Style, legend, palette
from transect.report.engine.columns import ended
from transect.report.engine.context import Context
from transect.report.engine.text import number, one_decimal
from transect.report.topics.retraining.facts import RetrainGroup, is_relay, point

# Of one line; a relay of a thousand steps is thinned.
_POINTS = 400


@dataclass(frozen=True, kw_only=True, slots=True)
class Leg:
    """One turn: its runtime, first step and the one behind its last."""

    runtime: str
    begin: int
    end: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Relay:
    """One relay's losses beside PyTorch's float64 path and a run that never changed its runtime."""

    record: AnyRecord
    legs: tuple[Leg, ...]
    loss: list[float]
    reference: list[float]
    tolerance: list[float]
    unbroken: AnyRecord | None
    unbroken_loss: list[float]

    @property
    def apart(self) -> float | None:
        """The largest difference to the unbroken run, or None without one."""
        pairs = zip(self.loss, self.unbroken_loss, strict=False)
        known = [abs(a - b) for a, b in pairs if math.isfinite(a) and math.isfinite(b)]
        return max(known, default=None)

    def share(self, leg: Leg) -> float | None:
        """The largest deviation from the float64 path in a turn, as a share of its tolerance."""
        shares = [
            abs(self.loss[n] - self.reference[n]) / self.tolerance[n]
            for n in range(leg.begin, min(leg.end, len(self.loss)))
            if self.tolerance[n] > 0 and math.isfinite(self.loss[n])
        ]
        return max(shares, default=None)


def relay_of(context: Context, group: RetrainGroup) -> Relay | None:
    """Return the first right run of a group, or None; an unbroken run has the same repeat."""
    if not group.ok:
        return None
    record = group.ok[0]
    loss, reference, tolerance = (
        context.originals.samples(record, name) for name in ("loss", "reference_loss", "loss_tolerance")
    )
    if not loss or not len(loss) == len(reference) == len(tolerance):
        return None
    unbroken = next(
        (
            run
            for name in group.cell.runtimes
            for candidate in context.of("retrain", group.cell.workload)
            if not is_relay(candidate) and point(candidate) == point(group) and candidate.cell.runtime == name
            for run in candidate.ok
            if run.repeat == record.repeat
        ),
        None,
    )
    whole = [] if unbroken is None else context.originals.samples(unbroken, "loss")
    legs = tuple(Leg(runtime=turn["runtime"], begin=turn["begin"], end=turn["end"]) for turn in record.details["turns"])
    return Relay(
        record=record,
        legs=legs,
        loss=loss,
        reference=reference,
        tolerance=tolerance,
        unbroken=unbroken,
        unbroken_loss=whole,
    )


def relay_parts(context: Context, workload: str, groups: Sequence[RetrainGroup]) -> Iterator[Part]:
    """Draw each relay; list how each ended."""
    if not groups:
        return
    yield Heading(f"{workload}: in turn, each from the state that the one before left")
    relays = [relay for group in groups if (relay := relay_of(context, group)) is not None]
    for number_, relay in enumerate(relays):
        yield deviation_chart(context, relay, f"relay-off-{workload}-{number_}")
    apart = {relay.record.point: relay for relay in relays}

    def difference(group: RetrainGroup) -> float | None:
        relay = apart.get(group.cell)
        return None if relay is None else relay.apart

    def beside(group: RetrainGroup) -> str | None:
        relay = apart.get(group.cell)
        unbroken = None if relay is None else relay.unbroken
        return None if unbroken is None else f"{unbroken.cell.get('runtime')} alone"

    yield table(
        groups,
        [
            words("In turn", lambda group: " → ".join(group.cell.runtimes)),
            digits("Steps", lambda group: group.cell.steps),
            words("", _ended),
            digits("Of the tolerance", lambda group: max(group.values("equality_ratio"), default=None), one_decimal),
            digits("Largest difference", difference, number),
            words("to", beside),
        ],
        caption="Relays beside PyTorch's float64 path, and beside one runtime without a change",
    )


def _ended(group: RetrainGroup) -> Value:
    if group.ok and not group.wrong:
        return Chip("the same path", "good")
    record = next(record for record in group.records if record not in group.ok)
    return ended(record, "bad")


def _colours(context: Context, relay: Relay) -> dict[str, Style]:
    """Return a style for each runtime, with a shape of its own: colours alone are not enough."""
    names = list(dict.fromkeys(leg.runtime for leg in relay.legs))
    shapes = palette(len(names))
    return {name: Style(context.styles.get(name).color, shape.shape) for name, shape in zip(names, shapes, strict=True)}


def _pieces(relay: Relay, values: Sequence[float], styles: dict[str, Style]) -> list[Line]:
    """Return a line for each turn."""
    stride = max(1, -(-len(values) // _POINTS))
    lines = []
    for leg in relay.legs:
        places = range(leg.begin, min(leg.end, len(values)))
        kept = [n for n in places if (n - leg.begin) % stride == 0 or n == places[-1]]
        points = [(float(n), values[n]) for n in kept if math.isfinite(values[n])]
        lines.append(Line(points=points, style=styles[leg.runtime], symbols=False, joined=True, width=2.4))
    return lines


def deviation_chart(context: Context, relay: Relay, name: str) -> Chart:
    """Draw the deviation as a share of the tolerance: a hand-over that loses something would show."""
    shares = [
        abs(a - b) / t if t > 0 else math.nan
        for a, b, t in zip(relay.loss, relay.reference, relay.tolerance, strict=True)
    ]
    styles = _colours(context, relay)
    return drawn(
        line_plot(
            _pieces(relay, shares, styles), x_title="step", y_title="deviation / tolerance", y_log=True, rule=1.0
        ),
        relay.legs,
        [
            words("Runtime", lambda leg: leg.runtime),
            digits("From step", lambda leg: leg.begin),
            digits("To step", lambda leg: leg.end - 1),
            digits("Last loss", lambda leg: relay.loss[leg.end - 1]),
            digits("PyTorch, float64", lambda leg: relay.reference[leg.end - 1]),
            digits("Largest share", relay.share),
        ],
        title=f"How far {' → '.join(leg.runtime for leg in relay.legs)} is from PyTorch's float64 path",
        name=name,
        legend=legend(styles.items(), symbol=False),
        alt="Deviation of the loss as a share of its tolerance over steps, coloured by runtime; "
        "below the dashed line at 1 is within tolerance.",
        notes=["Colour: who computed the step. Below the dashed line is within tolerance."],
    )
