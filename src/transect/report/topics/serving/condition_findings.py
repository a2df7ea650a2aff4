"""Findings on what runtimes ran with: equal conditions, one version, the framework's outputs."""

from __future__ import annotations

from transect.analysis.groups import Group, grouped
from transect.analysis.labels import group_labels
from transect.analysis.serving import InferGroup, partly_compared, takes_onnx, versions
from transect.domain.record import Cause
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, joined, names
from transect.report.engine.text import clipped, count, number
from transect.report.topics.serving.condition_facts import Conditions, conditions
from transect.stats.comparisons import Confidence

_SHOWN = 4
_CLIP = 160


def condition_findings(context: Context) -> list[Finding]:
    """Say whether conditions were equal, whether versions differ, and which outputs are wrong."""
    groups = context.of("infer")
    return [*_conditions(conditions(groups), groups), *_versions(groups), *_outputs(groups)]


def _conditions(conditions: Conditions, groups: list[InferGroup]) -> list[Finding]:
    if not conditions.seen and conditions.equal:
        return []
    not_set = _not_set(groups)
    confidence = Confidence.CONFIRMED
    if conditions.differences:
        of = count(conditions.points, "point")
        listed = [f"{d.runtime} {d.what} (at {d.points} of {of})" for d in conditions.differences]
        claim = f"conditions were not equal: {names(listed, _SHOWN)}"
    else:
        one = len(conditions.kernels) == 1
        kernels = count(conditions.kernels[0], "kernel") if one else "kernels"
        claim = (
            f"conditions were equal: ONNX Runtime itself names the same session options and {kernels} in all runtimes"
        )
        if conditions.silent:
            claim += f" that tell; {names(conditions.silent, 9)} tell nothing"
            confidence = Confidence.PROVISIONAL
    evidence = joined(
        "its log and its profile of a session with the options `equal`, at "
        f"{count(conditions.points, 'point')} with {count(len(conditions.runtimes), 'runtime')}",
        f"could not set: {names(not_set, 9)}" if not_set else "",
        f"silent: {names(conditions.silent, 9)}" if conditions.silent and conditions.differences else "",
    )
    return [Finding(subject="study", claim=claim + ".", evidence=evidence, confidence=confidence, kind="conditions")]


def _not_set(groups: list[InferGroup]) -> list[str]:
    """Name what languages could not set, as they say themselves."""
    not_set = {
        f"{group.cell.runtime} {option}"
        for group in groups
        if takes_onnx(group)
        for record in group.ok
        for option in record.details.get("options_not_set") or ()
    }
    return sorted(not_set)


def _versions(groups: list[InferGroup]) -> list[Finding]:
    able = [group for group in groups if group.ok and takes_onnx(group)]
    of_runtime = grouped(able, lambda group: group.cell.runtime)
    ran = {name: versions(members) for name, members in sorted(of_runtime.items())}
    if len({version for found in ran.values() for version in found}) < 2:
        return []
    by_version: dict[str, list[str]] = {}
    for name, found in ran.items():
        if found:
            by_version.setdefault(" and ".join(found), []).append(name)
    listed = [f"{names(runtimes, 9)} ran {version}" for version, runtimes in sorted(by_version.items())]
    claim = f"the comparison of runtimes crosses versions: {names(listed, 9)}."
    evidence = "a ratio between them is one of versions as much as of languages"
    return [Finding(subject="study", claim=claim, evidence=evidence, confidence=Confidence.CONFIRMED, kind="versions")]


def worst(group: Group, name: str) -> float | None:
    """Return the largest value of a metric over all records, wrong ones included."""
    values = [value for record in group.records if (value := record.value(name)) is not None]
    return max(values, default=None)


def gives_wrong_output(group: Group) -> bool:
    """Whether an output is known to differ: by its verdict, a class, or a number that is none."""
    agreement = min((v for r in group.records if (v := r.value("top1_agreement")) is not None), default=1.0)
    wrong = any(record.cause is Cause.WRONG_RESULT for record in group.records)
    turned = agreement < 1 and group.cell.precision == "fp32"
    return wrong or turned or (worst(group, "nonfinite_outputs") or 0) > 0


def _outputs(groups: list[InferGroup]) -> list[Finding]:
    """Name the cells whose output is wrong, or say how far all are from what was expected."""
    compared = [
        group for group in groups if worst(group, "max_abs_difference") is not None or gives_wrong_output(group)
    ]
    if not compared:
        return []
    bad = [group for group in compared if gives_wrong_output(group)]
    labels = group_labels(compared, always=("workload", "batch", "threads"))
    whole, converted = ([g for g in compared if (g.cell.precision == "fp32") is same] for same in (True, False))
    far = [
        f"largest absolute difference {number(max(worst(g, 'max_abs_difference') or 0.0 for g in members))}{where}"
        for members, where in ((whole, ""), (converted, " of converted files"))
        if members
    ]
    if bad:
        listed = names([labels[group.cell] for group in bad], _SHOWN)
        claim = f"{len(bad)} of {count(len(compared), 'cell')} of runtimes gave a wrong output, so its time is in no chart: {listed}"
        evidence = joined(*(_why(group) for group in bad[:_SHOWN]))
    else:
        parts = [f"{_all(whole)} in fp32 gave the framework's outputs"] if whole else []
        parts += (
            [f"{_all(converted)} in other precisions gave what ONNX Runtime itself computes of the file"]
            if converted
            else []
        )
        claim, evidence = "; ".join(parts), joined(*far, "each within its tolerance")
    partly = [f"{labels[group.cell]} {part}" for group in compared if (part := partly_compared(group))]
    if partly:
        claim += f"; what is no tensor was compared by nobody: {names(partly, _SHOWN)}"
    blind = sum(bool(group.ok) for group in groups if group not in compared)
    evidence = joined(evidence, f"{count(blind, 'cell')} not compared" if blind else "")
    return [
        Finding(
            subject="study",
            claim=claim + ".",
            evidence=evidence,
            confidence=Confidence.CONFIRMED,
            kind="outputs",
            alarm=bool(bad),
        )
    ]


def _all(groups: list[InferGroup]) -> str:
    return f"all {len(groups)} cells of runtimes" if len(groups) > 1 else "the 1 cell of runtimes"


def _why(group: Group) -> str:
    parts = []
    message = next((r.message for r in group.records if r.cause is Cause.WRONG_RESULT), "")
    difference = worst(group, "max_abs_difference")
    if message:
        parts.append(clipped(message, _CLIP))
    elif difference is not None:
        parts.append(f"differs by up to {number(difference)}")
    strange = worst(group, "nonfinite_outputs")
    if strange:
        parts.append(f"{number(strange)} NaN or infinite")
    return f"{group.cell.id}: {', '.join(parts) or 'another class'}"
