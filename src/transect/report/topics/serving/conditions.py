"""What is said of what runtimes ran with: equal conditions, one version, the framework's outputs."""

from __future__ import annotations

from collections.abc import Iterator

from transect.analysis.groups import Group, grouped
from transect.analysis.labels import group_labels, word
from transect.analysis.serving import InferGroup, details_of, partly_compared, takes_onnx, versions, was_compared
from transect.domain.record import Cause
from transect.report.engine.blocks import Chip, Column, Heading, Part, digits, note, table, words
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, joined, names
from transect.report.engine.text import clean, clipped, count, number
from transect.report.topics.serving.condition_facts import Conditions, conditions, gives_wrong_output, kernels_of, worst
from transect.runtimes.options import EQUAL
from transect.stats.comparisons import Confidence

_SHOWN = 4
_CLIP = 160
# Models named in one place of a table.
_MODELS = 3


def condition_findings(context: Context) -> list[Finding]:
    """Say whether conditions were equal, whether versions differ, and which outputs are wrong."""
    groups = context.of("infer")
    return [*_conditions(conditions(groups), groups), *_versions(groups), *_outputs(groups)]


def _conditions(found: Conditions, groups: list[InferGroup]) -> Iterator[Finding]:
    if not found.seen and not found.differences:
        return
    not_set = sorted(
        f"{name} {option}"
        for name, members in grouped(filter(takes_onnx, groups), lambda group: group.cell.runtime).items()
        for option in _of_lists(members, "options_not_set")
    )
    confidence = Confidence.CONFIRMED
    if found.differences:
        of = count(found.points, "point")
        listed = [f"{name} {what} (at {at} of {of})" for (name, what), at in found.differences.items()]
        claim = f"conditions were not equal: {names(listed, _SHOWN)}"
    else:
        kernels = count(found.kernels[0], "kernel") if len(found.kernels) == 1 else "kernels"
        claim = (
            f"conditions were equal: ONNX Runtime itself names the same session options and {kernels} in all runtimes"
        )
        if found.silent:
            claim += f" that tell; {names(found.silent, 9)} tell nothing"
            confidence = Confidence.PROVISIONAL
    evidence = joined(
        "its log and its profile of a session with the options `equal`, at "
        f"{count(found.points, 'point')} with {count(len(found.runtimes), 'runtime')}",
        f"could not set: {names(not_set, 9)}" if not_set else "",
        f"silent: {names(found.silent, 9)}" if found.silent and found.differences else "",
    )
    yield Finding(subject="study", claim=f"{claim}.", evidence=evidence, confidence=confidence, kind="conditions")


def _of_lists(groups: list[InferGroup], key: str) -> set[str]:
    """Return what stands in the lists that the details of some groups have under a key."""
    given = (value for group in groups for value in details_of(group, key) if isinstance(value, list))
    return {str(item) for items in given for item in items}


def _versions(groups: list[InferGroup]) -> Iterator[Finding]:
    of_runtime = grouped(
        (group for group in groups if group.ok and takes_onnx(group)), lambda group: group.cell.runtime
    )
    ran = {name: versions(members) for name, members in sorted(of_runtime.items())}
    if len({version for found in ran.values() for version in found}) < 2:
        return
    by_version = grouped((name for name, found in ran.items() if found), lambda name: " and ".join(ran[name]))
    listed = [f"{names(runtimes, 9)} ran {version}" for version, runtimes in sorted(by_version.items())]
    claim = f"the comparison of runtimes crosses versions: {names(listed, 9)}."
    evidence = "a ratio between them is one of versions as much as of languages"
    yield Finding(subject="study", claim=claim, evidence=evidence, confidence=Confidence.CONFIRMED, kind="versions")


def _outputs(groups: list[InferGroup]) -> Iterator[Finding]:
    """Name the cells whose output is wrong, or say how far all are from what was expected."""
    compared = [g for g in groups if worst(g, "max_abs_difference") is not None or gives_wrong_output(g)]
    if not compared:
        return
    bad = [group for group in compared if gives_wrong_output(group)]
    labels = group_labels(compared, always=("workload", "batch", "threads"))
    kinds = grouped(compared, lambda group: group.cell.precision == "fp32")
    if bad:
        listed = names([labels[group.cell] for group in bad], _SHOWN)
        claim = f"{len(bad)} of {count(len(compared), 'cell')} of runtimes gave a wrong output, so its time is in no chart: {listed}"
        evidence = joined(*map(_why, bad[:_SHOWN]))
    else:
        said, far = [], []
        for same, what, where in (
            (True, "in fp32 gave the framework's outputs", ""),
            (False, "in other precisions gave what ONNX Runtime itself computes of the file", " of converted files"),
        ):
            if members := kinds.get(same):
                every = f"all {len(members)} cells of runtimes" if len(members) > 1 else "the 1 cell of runtimes"
                said.append(f"{every} {what}")
                difference = max(worst(group, "max_abs_difference") or 0.0 for group in members)
                far.append(f"largest absolute difference {number(difference)}{where}")
        claim, evidence = "; ".join(said), joined(*far, "each within its tolerance")
    partly = [f"{labels[group.cell]} {part}" for group in compared if (part := partly_compared(group))]
    if partly:
        claim += f"; what is no tensor was compared by nobody: {names(partly, _SHOWN)}"
    blind = sum(bool(group.ok) for group in groups if group not in compared)
    yield Finding(
        subject="study",
        claim=f"{claim}.",
        evidence=joined(evidence, f"{count(blind, 'cell')} not compared" if blind else ""),
        confidence=Confidence.CONFIRMED,
        kind="outputs",
        alarm=bool(bad),
    )


def _why(group: Group) -> str:
    message = next((r.message for r in group.records if r.cause is Cause.WRONG_RESULT), "")
    difference, strange = worst(group, "max_abs_difference"), worst(group, "nonfinite_outputs")
    by = f"differs by up to {number(difference)}" if difference is not None else ""
    parts = [clipped(message, _CLIP) or by, f"{number(strange)} NaN or infinite" if strange else ""]
    return f"{group.cell.id}: {', '.join(filter(None, parts)) or 'another class'}"


def condition_blocks(context: Context) -> Iterator[Part]:
    """A table of what each runtime ran with, and how far its outputs are from what was expected."""
    found = conditions(context.of("infer"))
    of = {
        name: members
        for name, members in sorted(grouped(context.of("infer"), lambda group: group.cell.runtime).items())
        if any(group.ok or gives_wrong_output(group) for group in members)
    }
    if not of:
        return
    set_by = {name: _set(members) for name, members in of.items()}
    every = [options for name, options in set_by.items() if options and any(map(takes_onnx, of[name]))]
    by_all = set.intersection(*every) if every else set()

    def differences(name: str) -> set[str]:
        return {what for runtime, what in found.differences if runtime == name}

    def beside(name: str) -> Chip:
        if not any(map(takes_onnx, of[name])):
            return Chip("no ONNX Runtime")
        if differences(name):
            return Chip("differs", "bad")
        return Chip("not told", "warn") if name in found.silent else Chip("the same", "good")

    def largest(name: str, metric: str) -> float | None:
        return max((value for group in of[name] if (value := worst(group, metric))), default=None)

    columns: list[Column[str]] = [
        words("Differs", lambda name: _listed(differences(name)), "–"),
        words("Could not be set", lambda name: _listed(_of_lists(of[name], "options_not_set")), "–"),
        words("Set beside what all set", lambda name: _listed(set_by[name] - by_all), "–"),
        words("Kernels", lambda name: _kernels(of[name]), "–"),
        words("Version", lambda name: _listed(set(versions(of[name]))), "–"),
        words(
            "Provider used",
            lambda name: _listed({str(v) for g in of[name] for v in details_of(g, "provider_used")}),
            "–",
        ),
        digits("Largest difference", lambda name: largest(name, "max_abs_difference")),
        digits("NaN and Inf", lambda name: largest(name, "nonfinite_outputs")),
    ]
    yield Heading("Conditions and outputs")
    yield table(
        list(of),
        [
            words("Runtime", lambda name: word("runtime", name)),
            words("Output", lambda name: _output(of[name])),
            *([words("Beside the others", beside)] if found.seen else []),
            *(column for column in columns if any(column.value(name) is not None for name in of)),
        ],
        caption="What the runtimes ran with, threads aside, and their outputs",
        about=lambda name: of[name],
    )
    if by_all:
        yield note(f"All set: {_listed(by_all)}.")


def _listed(texts: set[str]) -> str | None:
    return clean(", ".join(sorted(texts))) or None


def _set(groups: list[InferGroup]) -> set[str]:
    """Write the options of cells with the set `equal`; other sets have a table of their own, and threads are an axis."""
    given = (
        o for g in groups if g.cell.options == EQUAL for o in details_of(g, "session_options") if isinstance(o, dict)
    )
    return {
        f"{key}={str(value).lower() if isinstance(value, bool) else value}"
        for options in given
        for key, value in options.items()
        if "num_threads" not in key and value not in ("", None)
    }


def _kernels(groups: list[InferGroup]) -> str | None:
    told = (kernels_of(group) for group in groups if group.cell.options == EQUAL)
    counts = sorted({ran["count"] for ran in told if ran is not None and isinstance(ran.get("count"), int)})
    return " to ".join(dict.fromkeys(map(str, counts[:1] + counts[-1:]))) or None


def _output(groups: list[InferGroup]) -> Chip:
    if amount := sum(map(gives_wrong_output, groups)):
        return Chip(f"wrong in {amount}", "bad")
    partly = {f"{part} of {group.cell.workload}" for group in groups if (part := partly_compared(group))}
    if partly:
        return Chip(names(sorted(partly), _MODELS), "warn", title="what is no tensor is compared by nobody")
    return Chip("right", "good") if any(map(was_compared, groups)) else Chip("not compared", "warn")
