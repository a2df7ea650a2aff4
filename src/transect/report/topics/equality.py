"""Does every trainer compute the same training? Loss and weights beside the float64 reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from operator import itemgetter

from transect.analysis.entries import AnyRecord
from transect.analysis.groups import Group, blind_step, leaves_reference
from transect.analysis.labels import people_name
from transect.domain.record import Cause, Status
from transect.report.engine.blocks import Chip, Column, Explained, Lead, Part, digits, table, words
from transect.report.engine.columns import labelled
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, joined, names
from transect.report.engine.parts import FindingMaker, Section, StageReport
from transect.report.engine.text import clean, count, number
from transect.stats.comparisons import Confidence


def equality_findings(context: Context) -> list[Finding]:
    """Say whether every trainer's loss and weights follow the reference within tolerance."""
    trained = [record for record in context.records if record.stage == "train"]
    leaving = {id(record) for record in trained if leaves_reference(record)}
    checked = [r for r in trained if id(r) in leaving or r.value("equality_ratio") is not None]
    apart = [record for record in trained if record.status is Status.OK and "not_checkable" in record.details]
    why_apart = "; ".join(_why_apart(apart))
    if not checked:
        alone = Finding(
            subject="equality",
            kind="equality",
            confidence=Confidence.INCONCLUSIVE,
            evidence=why_apart,
            claim="no training run can be held to the reference step by step; time to quality judges them.",
        )
        return [alone] if apart else []
    wrong = [record for record in checked if id(record) in leaving]
    bad = _called(wrong)
    good = len(checked) - len(wrong)
    if bad:
        claim = (
            f"{good} of {count(len(checked), 'training run')} compute what the reference computes; "
            f"{names(bad)} {'does' if len(wrong) == 1 else 'do'} not."
        )
    elif len(checked) == 1:
        claim = "the one training run computes what the reference computes."
    else:
        claim = f"all {count(len(checked), 'training run')} compute what the reference computes."
    evidence = [
        f"largest deviation of {what} {number(max(ratios))} times its tolerance{when}"
        for what, name, when in (
            ("the loss", "equality_ratio", ", at any checked step"),
            ("the weights", "weights_equality_ratio", ", after the last checked step"),
            ("the loss", "restart_ratio", ", after any restart"),
        )
        if (ratios := [r for record in checked if (r := record.value(name)) is not None])
    ]
    diverged = sum(record.cause is Cause.DIVERGED and id(record) not in leaving for record in checked)
    if diverged:
        evidence.append(f"{count(diverged, 'run')} that follow{'s' if diverged == 1 else ''} it diverged, as it does")
    synthetic = {id(r) for group in context.of("train") if group.kind.synthetic for r in group.records}
    random = sum(id(record) in synthetic for record in checked)
    if random:
        evidence.append(f"{count(random, 'run')} on synthetic input, which has no quality")
    unverified = any(group.unverified for group in context.of("train"))
    blind = [record for record in checked if id(record) not in leaving and blind_step(record) is not None]
    if blind:
        how = "only up to a step of their own" if unverified else "from a step of their own on in restarts"
        claim = f"{claim.removesuffix('.')}; {len(blind)} of them {how}."
        evidence.append("from that step on the tolerance exceeds what a run could tell")
    if unrestarted := sum(bool(record.details.get("restarts_not_checkable")) for record in checked):
        evidence.append(f"{count(unrestarted, 'run')} could not be checked by restarts")
    if apart:
        evidence.append(f"{why_apart}, and time to quality judges them")
    return [
        Finding(
            subject="equality",
            claim=claim,
            kind="equality",
            alarm=bool(bad),
            confidence=Confidence.PROVISIONAL if unverified else Confidence.CONFIRMED,
            evidence=joined(*evidence) or "by the status of the records",
        )
    ]


def _why_apart(apart: Sequence[AnyRecord]) -> Iterator[str]:
    """Say which runs have no step to be held to the reference's: asynchronous updates, and what has no reference."""
    asynchronous = [record for record in apart if "updates" in record.details]
    if asynchronous:
        named = names(_called(asynchronous))
        yield f"{count(len(asynchronous), 'run')} not checkable: asynchronous ({named}); all their gradients were applied"
    others = [record for record in apart if "updates" not in record.details]
    for reason in sorted({str(record.details["not_checkable"]) for record in others}):
        members = [record for record in others if record.details["not_checkable"] == reason]
        yield f"{count(len(members), 'run')} not checkable: {reason} ({names(_called(members))})"


def _called(records: Sequence[AnyRecord]) -> list[str]:
    """Name the cells of records, those of several with their number."""
    cells = [record.point for record in records]
    amounts = Counter(people_name(cell, cells, always=("ranks",)) + f" on {cell.workload}" for cell in cells)
    return [f"{name} ({count(amount, 'run')})" if amount > 1 else name for name, amount in amounts.items()]


LOSS, WEIGHTS, RESTART = "equality_ratio", "weights_equality_ratio", "restart_ratio"


def equality_body(context: Context) -> Iterator[Part]:
    """List the largest deviation of each training cell as a share of its tolerance, the worst first."""
    groups = [group for group in context.of("train") if _worst(group) is not None]
    if not groups:
        return
    groups.sort(key=lambda group: (not group.wrong, -(_worst(group) or 0.0), group.cell.id))
    yield Lead(
        f"{_counted(groups)}Loss and weights of each trainer beside a float64 run on the same start and batches, as a share of "
        "their tolerance: 1 or less passes."
    )
    yield table(
        groups,
        _columns(groups),
        caption="Loss and weights beside the float64 reference, worst repeat. The loss deviates absolutely, the weights by "
        "their distance over the reference's norm.",
        fold_title="Loss and weights of every cell",
    )
    rules = _rules(context)
    if rules:
        titles = ("Workload", "Precision", "Tolerance rule")
        yield table(rules, [words(title, itemgetter(i)) for i, title in enumerate(titles)], caption="Rules")
    yield Explained(
        "Where roundings grow until the tolerance exceeds a tenth of the reference's loss, or of its change, a run is not "
        "checkable from there on. Then the trainer is handed weights, optimiser state and number of updates of the "
        "reference at a few steps, and has to follow the next ones within a tolerance that begins anew."
    )


def _counted(groups: list[Group]) -> str:
    """Say first how many stay within their tolerance, and of how many that cannot be told to the end."""
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


def _worst(group: Group) -> float | None:
    return max([*_all(group, LOSS), *_all(group, WEIGHTS)], default=None)


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


REPORT = StageReport(
    stage="train",
    sections=(Section(key="equality", title="Equality of the trainers", order=349, make=equality_body),),
    findings=(FindingMaker(name="equality", order=500, make=equality_findings, section="equality"),),
)
