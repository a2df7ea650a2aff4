"""Section: does every trainer compute the same training?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Any

from transect.analysis.groups import Group, leaves_reference
from transect.report.engine.blocks import Chip, Column, Explained, Lead, Part, digits, table, words
from transect.report.engine.charts.chart import dot_chart
from transect.report.engine.charts.marks import Dot
from transect.report.engine.columns import labelled
from transect.report.engine.context import Context
from transect.report.engine.text import clean, count, number

LOSS, WEIGHTS, RESTART = "equality_ratio", "weights_equality_ratio", "restart_ratio"


def equality_body(context: Context) -> Iterator[Part]:
    """Draw the largest deviation of each training cell as a share of its tolerance."""
    checked = {workload: _worst_first(context.of("train", workload)) for workload in context.workloads("train")}
    every = [group for groups in checked.values() for group in groups]
    yield Lead(
        f"{_counted(every)}Loss and weights of each trainer beside a float64 run on the same start and batches, as a share of "
        "their tolerance: 1 or less passes.",
        empty="No training cell was compared with a reference.",
    )
    if every:
        yield _chart(context, every)
    rules = _rules(context)
    if rules:
        titles = ("Workload", "Precision", "Tolerance rule")
        columns: list[Column[Any]] = [words(title, itemgetter(i)) for i, title in enumerate(titles)]
        yield table(rules, columns, caption="Rules")
    apart = [group for group in context.of("train") if group.no_reference is not None]
    if apart:
        columns = [
            labelled(apart, always=("ranks",)),
            digits("Runs", lambda group: len(group.ok)),
            words("Equality", lambda group: Chip("not checkable: asynchronous", "warn", group.no_reference or "")),
        ]
        yield table(apart, columns, caption="Not held to the reference: judged by time to quality, never by a step")
    for workload, groups in checked.items():
        if groups:
            yield table(
                groups,
                _columns(groups),
                caption=f"{workload}: loss and weights beside the float64 reference, worst repeat. The "
                "loss deviates absolutely, the weights by their distance over the reference's norm.",
                fold_title=f"Loss and weights of {workload}",
            )
    if every:
        yield Explained(
            "Where roundings grow until the tolerance exceeds a tenth of the reference's loss, or of its change, a run is not "
            "checkable from there on. Then the trainer is handed weights, optimiser state and number of updates of the "
            "reference at a few steps, and has to follow the next ones within a tolerance that begins anew."
        )


def _counted(groups: list[Group]) -> str:
    """Say first how many stay within their tolerance, and of how many that cannot be told to the end."""
    if not groups:
        return ""
    right = sum(map(_passed, groups))
    blind = sum(group.unverified for group in groups if _passed(group))
    remark = f"; of {blind} that cannot be told to the end" if blind else ""
    return f"{right} of {count(len(groups), 'cell')} stay within the tolerance of their reference{remark}. "


def _all(group: Group, name: str) -> list[float]:
    """All values, those of wrong results too: they are the point of this section."""
    values = (record.value(name) for record in group.records)
    return [value for value in values if value is not None]


def _rules(context: Context) -> list[tuple[str, str, str]]:
    rules = set()
    for group in context.of("train"):
        for record in group.records:
            tolerance = record.details.get("tolerance")
            if isinstance(tolerance, dict) and tolerance.get("rule"):
                precision = str(tolerance.get("precision") or record.point.precision)
                rules.add((record.point.workload or "", precision, str(tolerance["rule"])))
    return sorted({(workload, precision, clean(rule)) for workload, precision, rule in rules})


def _restarts(group: Group) -> str:
    """Say from which steps it was restarted and how far it strayed, or why it was not."""
    restarts = [record.details.get("restarts") for record in group.records]
    reasons = [record.details.get("restarts_not_checkable") for record in group.records]
    if reason := next(filter(None, reasons), None):
        return clean(f"not checkable: {reason}")
    steps = sorted({point["step"] for points in restarts if points for point in points})
    ratios = _all(group, RESTART)
    if not steps or not ratios:
        return "–"
    return f"{number(max(ratios))} from {', '.join(map(str, steps))}"


def _verdict(group: Group) -> Chip:
    if not _passed(group):
        return Chip("wrong result", "bad")
    if group.unverified:
        return Chip(f"not checkable from step {group.check_inconclusive_from}", "warn")
    if group.check_inconclusive_from is not None:
        return Chip(f"from step {group.check_inconclusive_from} in restarts", "plain")
    rates = [record.details.get("effective_rate") for record in group.records]
    if summed := next(filter(None, rates), None):
        # It equals a reference that sums as well.
        return Chip(clean(f"equal; {summed['reason']}"), "warn")
    return Chip("equal", "good")


def _passed(group: Group) -> bool:
    return len(group.ok) == len(group.records) or not any(map(leaves_reference, group.records))


def _ratios(group: Group) -> list[float]:
    """Return for each run the larger of its two ratios."""
    return [
        max(known)
        for r in group.records
        if (known := [v for name in (LOSS, WEIGHTS) if (v := r.value(name)) is not None])
    ]


def _worst_first(groups: Iterable[Group]) -> list[Group]:
    return sorted(
        (group for group in groups if _ratios(group)),
        key=lambda group: (not group.wrong, -max(_ratios(group)), group.cell.id),
    )


def _chart(context: Context, groups: list[Group]) -> Part:
    worst, columns = _worst_first(groups), _columns(groups)

    def dot(group: Group) -> Dot:
        # An exact match has no place on a log axis; a millionth of the tolerance stands for it.
        ratios = [max(ratio, 1e-6) for ratio in _ratios(group)]
        return Dot(
            label=str(columns[0].entry(group)),
            value=max(ratios),
            low=min(ratios),
            high=max(ratios),
            points=ratios,
            style=context.style(group),
            right="" if _passed(group) and group.check_inconclusive_from is None else _verdict(group).text,
        )

    return dot_chart(
        worst,
        dot,
        columns[:1],
        title="Loss and weights beside the reference",
        axis="largest deviation / tolerance (log scale), less is better",
        name="equality",
        first="Largest ratio, where 1 or less passes",
        cut="most equal",
        rule=1.0,
        log=True,
        notes=["Left of the dashed line passes. Symbol: the worst repeat, of its loss or its weights."],
    )


def _columns(groups: list[Group]) -> list[Column[Group]]:
    def worst(title: str, name: str) -> Column[Group]:
        return digits(title, lambda group: max(_all(group, name), default=None))

    def steps(group: Group) -> str:
        details = [record.details for record in group.records]
        checked = {str(facts["reference_steps"]) for facts in details if "reference_steps" in facts}
        return ", ".join(sorted(checked)) or "–"

    def until(group: Group) -> float | None:
        return min(_all(group, "sharp_steps"), default=None)

    return [
        labelled(groups, always=("ranks",)),
        worst("Loss ratio", LOSS),
        worst("Loss deviation", "loss_deviation"),
        worst("Weights ratio", WEIGHTS),
        worst("Weights deviation", "weights_deviation"),
        digits("Steps checked", steps),
        digits("Runs", lambda group: len(_all(group, LOSS))),
        digits("Checkable until step", until),
        words("Restarts: largest ratio", _restarts),
        words("", _verdict),
    ]
