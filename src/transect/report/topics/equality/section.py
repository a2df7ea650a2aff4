"""Section: does every trainer compute the same training?"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import Any

from transect.analysis.groups import Group, leaves_reference
from transect.analysis.kinds import compared, main_kind
from transect.report.engine.blocks import Chip, Column, Lead, Part, digits, table, words
from transect.report.engine.charts.chart import MAX_PANELS, dot_chart
from transect.report.engine.charts.marks import Dot
from transect.report.engine.columns import labelled
from transect.report.engine.context import Context
from transect.report.engine.text import clean, count, number
from transect.report.topics.training.loss import loss_charts

LOSS, WEIGHTS, RESTART = "equality_ratio", "weights_equality_ratio", "restart_ratio"
_WHAT = {LOSS: "loss", WEIGHTS: "weights"}


def equality_body(context: Context) -> Iterator[Part]:
    """Draw the largest deviation of each training cell as a share of its tolerance."""
    checked = {workload: _worst_first(context.of("train", workload), LOSS) for workload in context.workloads("train")}
    every = [group for groups in checked.values() for group in groups]
    yield Lead(
        f"{_counted(every)}Every trainer starts from the same weights and sees the same batches in the same order. "
        "Its loss has to follow a single-process numpy float64 run on the same global batch at "
        "every checked step, and after the last of them all its weights, running statistics "
        "included, have to be the reference's. A ratio is the largest deviation over its "
        "tolerance: 1 or less passes. Batch norm: each rank normalises by its own part of the "
        "batch, and the reference cuts its batch into the same parts; the running statistics are "
        "those of rank 0. Synthetic input has a reference on the same random numbers. Where roundings "
        "grow until the tolerance exceeds a tenth of the reference's loss, or of its change, the run "
        "is not checkable from there on: it passes nothing then, no finding on it is confirmed, and what "
        "goes blind before the target is ranked only if restarts take over. For these the trainer, "
        "after its run, is handed weights, optimiser state and number of updates of the reference at "
        "a few steps and has to follow the next ones within a tolerance that begins anew.",
        empty="No training cell was compared with a reference.",
    )
    rules = _rules(context)
    if rules:
        titles = ("Workload", "Precision", "Tolerance rule")
        columns: list[Column[Any]] = [words(title, itemgetter(i)) for i, title in enumerate(titles)]
        yield table(rules, columns, caption="Rules")
    of_workload = {workload: _columns(groups) for workload, groups in checked.items() if groups}
    for workload, columns in list(of_workload.items())[:MAX_PANELS]:
        for name in _WHAT:
            yield _chart(context, workload, _worst_first(checked[workload], name), name, columns)
        # One kind of training has one path to follow.
        right = compared([group for group in context.of("train", workload) if group.ok and not group.wrong])
        main = main_kind(right)
        yield from loss_charts(context, workload, [g for g in right if g.kind == main])
    apart = [group for group in context.of("train") if group.no_reference is not None]
    if apart:
        columns = [
            labelled(apart, always=("ranks",)),
            digits("Runs", lambda group: len(group.ok)),
            words("Equality", lambda group: Chip("not checkable: asynchronous", "warn", group.no_reference or "")),
        ]
        yield table(apart, columns, caption="Not held to the reference: judged by time to quality, never by a step")
    for workload, columns in of_workload.items():
        yield table(
            checked[workload],
            columns,
            caption=f"{workload}: loss and weights beside the float64 reference, worst repeat. The "
            "loss deviates absolutely, the weights by their distance over the reference's norm.",
            fold_title=f"Loss and weights of {workload}",
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


def _worst_first(groups: list[Group], name: str) -> list[Group]:
    return sorted(
        (group for group in groups if _all(group, name)),
        key=lambda group: (not group.wrong, -max(_all(group, name)), group.cell.id),
    )


def _chart(context: Context, workload: str, groups: list[Group], name: str, columns: list[Column[Group]]) -> Part:
    def dot(group: Group) -> Dot:
        # An exact match has no place on a log axis; a millionth of the tolerance stands for it.
        ratios = [max(ratio, 1e-6) for ratio in _all(group, name)]
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
        groups,
        dot,
        columns,
        title=f"{workload}: {_WHAT[name]} over tolerance",
        axis="largest deviation / tolerance (log scale)",
        name=f"{name}-{workload}",
        first="Largest ratio, where 1 or less passes",
        cut="most equal",
        rule=1.0,
        log=True,
        notes=["Left of the dashed line passes. Symbol: the worst repeat."],
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
