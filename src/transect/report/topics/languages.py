"""What a report says of trainers in other languages: equal work beside those in Python, and what has to be installed."""

from __future__ import annotations

import math
from collections.abc import Iterator

from scipy.special import stdtr

from transect.analysis.contrast import Contrast
from transect.analysis.contrasts import contrast
from transect.analysis.groups import Group, grouped
from transect.analysis.labels import people_name, word
from transect.analysis.parallelism import STEP
from transect.analysis.scaling import TrainGroup
from transect.report.engine.blocks import Chip, Explained, Heading, Lead, Part, digits, table, words
from transect.report.engine.columns import MARKS, NOT_TOLD, labelled, medians, score_column
from transect.report.engine.context import Context
from transect.report.engine.contrast_words import ratio_words
from transect.report.engine.finding import Finding, joined, limited_confidence, median
from transect.report.engine.parts import FindingMaker, Section, StageReport
from transect.report.engine.text import clean, count, factor, in_unit, number, percent, quantity, scale_for, with_ends
from transect.stats.comparisons import Confidence
from transect.stats.samples import Spread
from transect.stats.verdicts import Chance

# Frameworks of other languages, by what their names begin with.
OTHER = ("go",)
# What joins the names of two languages in one training.
_BOTH = "+"
# With the same BLAS a step in Go is to take no more than so many times numpy's.
GOAL, _RIVAL = 1.1, "numpy"
_TONES = {"reached": "good", "missed": "warn"}


def is_other(group: Group) -> bool:
    """Whether its framework is one of another language: `go`, or `go-` with what it computes by."""
    return str(group.cell.get("framework")).partition("-")[0] in OTHER


def languages(context: Context) -> list[Contrast]:
    """Compare every pair of right cells, one in another language, that differ in nothing but who computes."""
    # In a training with two languages neither could be measured alone.
    able = [g for g in context.of("train") if g.ok and not g.wrong and _BOTH not in g.cell.framework]
    planned = {(found.group.cell, found.base.cell): found for found in context.contrasts.of("language")}
    found = []
    for members in grouped(able, lambda group: group.cell.apart_from("framework")).values():
        for foreign in filter(is_other, members):
            for ours in (group for group in members if not is_other(group)):
                found.append(
                    planned.get((foreign.cell, ours.cell))
                    or contrast(foreign, ours, context.floors, STEP, varies="framework")
                )
    known = [pair for pair in found if pair is not None]
    return sorted(known, key=lambda pair: (str(pair.group.cell.workload), pair.group.cell.id, pair.base.cell.id))


def _goal(pair: Contrast) -> str:
    """Say whether it takes at most `GOAL` times as long; not where its runs cannot tell, or share cores."""
    ratio = pair.ratio
    if pair.over_subscribed:
        return "shares cores"
    if ratio.spread is Spread.SINGLE or pair.barred or ratio.low <= GOAL < ratio.high:
        return "not known"
    # What may be noise is no miss.
    return "reached" if ratio.high <= GOAL else "missed" if pair.shown else "not known"


def installed(context: Context, workload: str) -> list[TrainGroup]:
    """Return a group for each framework that trained the workload alone, on one thread, the smallest environment first.

    None where no other language is among them, or nothing else is.
    """
    alone = [
        group
        for group in context.of("train", workload)
        if (group.cell.ranks, group.cell.threads) == (1, 1)
        and (group.cell.strategy, group.cell.input, group.cell.memory) == ("single", "stored", "plain")
        and group.values("environment_bytes")
    ]
    # The usual training, where there are several.
    usual = [
        min(members, key=lambda group: (group.kind.words, group.cell.id))
        for members in grouped(alone, lambda group: (group.cell.framework, group.cell.device)).values()
    ]
    if len(set(map(is_other, usual))) < 2:
        return []
    return sorted(usual, key=lambda group: (median(group, "environment_bytes") or 0.0, group.cell.id))


def _first_step(group: Group) -> float | None:
    """Return the time from the start of the process to the end of the first step, in s."""
    start, step = median(group, "startup_time"), median(group, "first_step_time")
    return None if start is None or step is None else start + step


def language_findings(context: Context) -> list[Finding]:
    """Per equal cell: another language alone beside numpy, the others stand in the section; per workload what to install."""
    steps = [
        _step(pair)
        for pair in languages(context)
        if pair.base.cell.get("framework") == _RIVAL and pair.group.cell.get("strategy") == "single"
    ]
    of_workload = {name: installed(context, name) for name in context.workloads("train")}
    return [*steps, *(_size(name, groups) for name, groups in of_workload.items() if groups)]


def _step(pair: Contrast) -> Finding:
    group, rival = pair.group, pair.base
    name, other = (people_name(one.cell, [two.cell]) for one, two in ((group, rival), (rival, group)))
    relation = {"reached": "within", "missed": "beyond"}.get(_goal(pair))
    goal = f"the goal of {factor(GOAL)} times"
    goal = f"{relation} {goal}" if relation else f"whether that is within {goal} is not known"
    used = [median(each, "cpu_utilisation") for each in (group, rival)]
    # The interval that decides is beside the goal, whether or not it is beside 1.
    confidence = Confidence.CONFIRMED if pair.sound else Confidence.PROVISIONAL
    return Finding(
        subject=str(group.cell.workload),
        kind="language",
        confidence=limited_confidence(confidence, group, rival) if relation else Confidence.INCONCLUSIVE,
        contrasts=(pair,),
        tests=_beside_goal(pair, claimed=bool(relation)),
        scope=f"batch {group.cell.get('batch')}, {count(group.cell.threads, 'thread')}",
        groups=(group, rival),
        claim=f"a step of {name} takes {ratio_words(pair)} as long as {other}'s on equal work, {goal}.",
        evidence=joined(
            f"steps {quantity(median(group, STEP), 's')} and {quantity(median(rival, STEP), 's')}",
            f"CPU use {percent(used[0])} and {percent(used[1])}" if None not in used else "",
            _blas(group, rival),
            pair.reason,
        ),
    )


def _beside_goal(pair: Contrast, *, claimed: bool) -> tuple[Chance, ...]:
    """Return the test beside the goal: the verdict on the two is beside 1."""
    decision = pair.decision
    if decision is None or math.isinf(decision.error):
        return ()
    apart = abs(math.log(decision.ratio / GOAL)) / decision.error
    return (Chance(p=min(1.0, 2 * float(stdtr(decision.freedom, -apart))), claimed=claimed),)


def _blas(*groups: Group) -> str:
    """Say what multiplies the matrices on both sides, where both tell."""
    libraries = [group.ok[0].provenance.get("libraries") or {} for group in groups]
    blas = [next((f"{name} {v}" for name, v in held.items() if "blas" in name.lower()), "") for held in libraries]
    return clean(f"BLAS {' and '.join(blas)}") if all(blas) else ""


def _size(workload: str, groups: list[TrainGroup]) -> Finding:
    least = next(filter(is_other, groups))
    others = [group for group in groups if not is_other(group)]
    near = others[0]

    def size(group: Group) -> str:
        files = count(int(median(group, "environment_files") or 0), "file")
        return f"{files} of {quantity(median(group, 'environment_bytes'), 'B')}"

    listed = [
        f"{_name(group)} {quantity(_first_step(group), 's')}, {quantity(median(group, 'memory_at_rest'), 'B')}"
        for group in (least, *others)
    ]
    ratio = (median(near, "environment_bytes") or 0.0) / (median(least, "environment_bytes") or 1.0)
    return Finding(
        subject=workload,
        kind="installed",
        named=True,
        confidence=Confidence.CONFIRMED,
        claim=f"{_name(least)} needs {size(least)} before it trains on one rank; of the others {_name(near)} needs the "
        f"least, {size(near)}, {number(ratio)} times as many bytes.",
        evidence=joined(
            f"to the end of the first step and resident before it: {'; '.join(listed)}",
            "environments hold what this project pins, interpreter included; sizes are facts, times and memory medians",
        ),
    )


def _name(group: Group) -> str:
    return clean(word("framework", group.cell.get("framework")))


def languages_body(context: Context) -> Iterator[Part]:
    """List every pair of equal cells, and each workload's sizes; nothing without another language."""
    pairs = grouped(languages(context), lambda pair: str(pair.group.cell.workload))
    sizes = {name: found for name in context.workloads("train") if (found := installed(context, name))}
    if pairs or sizes:
        yield Lead(
            "The same cells in Go and in Python: same start, batches, update rule and number of threads, each held to "
            "the same float64 reference. With the same BLAS a step in Go is to take at most "
            f"{factor(GOAL)} times numpy's."
        )
    for workload in sorted(pairs.keys() | sizes):
        yield Heading(workload)
        if workload in pairs:
            yield _steps(workload, pairs[workload])
        if workload in sizes:
            columns = [
                words("Framework", _name),
                medians("Files", "environment_files"),
                medians("Size", "environment_bytes", in_unit("B")),
                medians("Start", "startup_time", in_unit("s")),
                digits("Start to the first step's end", _first_step, in_unit("s")),
                medians("Memory at rest", "memory_at_rest", in_unit("B"), NOT_TOLD),
                medians("Most memory", "peak_memory", in_unit("B")),
            ]
            caption = f"{workload}: what has to be installed, on one rank and thread"
            yield table(sizes[workload], columns, caption=caption)
            yield Explained(
                "What this project pins for the framework, with the interpreter that it borrows; of a program of its own no "
                "more than it loads."
            )


def _steps(workload: str, pairs: list[Contrast]) -> Part:
    scale = scale_for([median(pair.group, STEP) for pair in pairs], "s")

    def goal(pair: Contrast) -> Chip | None:
        """The goal stands against numpy only."""
        reached = _goal(pair)
        alone = pair.base.cell.get("framework") == _RIVAL
        return Chip(reached, _TONES.get(reached, "plain"), pair.reason) if alone else None

    columns = [
        labelled(pairs, always=("ranks",), never=("framework", "workload")),
        words("Go", lambda pair: _name(pair.group)),
        words("Beside", lambda pair: _name(pair.base)),
        medians(f"Step ({scale.unit})", STEP, scale),
        digits(f"Other's ({scale.unit})", lambda pair: median(pair.base, STEP), scale),
        digits("Ratio", lambda pair: with_ends(pair.ratio)),
        words(f"Goal {factor(GOAL)}", goal),
        medians("CPU use", "cpu_utilisation", percent, NOT_TOLD),
        digits("Other's", lambda pair: median(pair.base, "cpu_utilisation"), percent, NOT_TOLD),
        score_column(pairs),
        MARKS,
    ]
    caption = f"{workload}: steps in Go over those in Python on equal cells"
    return table(pairs, columns, caption=caption, fold_title=f"Pairs of {workload}")


REPORT = StageReport(
    stage="train",
    sections=(Section(key="languages", title="Other languages beside Python", order=150, make=languages_body),),
    findings=(FindingMaker(name="language", order=440, make=language_findings, section="languages"),),
)
