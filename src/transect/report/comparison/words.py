"""What comparisons are said in, whatever they are written to."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from types import SimpleNamespace

from transect.analysis.groups import grouped
from transect.analysis.history import Change
from transect.analysis.labels import group_labels
from transect.analysis.result_sets import Lone, Refused, ResultSet
from transect.analysis.set_lines import Beside, Line, Outcome, Shift, wholly_worse
from transect.analysis.surroundings import Difference
from transect.domain.cell import Cell
from transect.domain.metrics import Direction
from transect.report.engine.finding import names
from transect.report.engine.text import clean, clipped, count, quantity
from transect.stats.comparisons import Confidence
from transect.stats.verdicts import Decision

# What a reader has to know comes first.
ORDER = (Outcome.WORSE, Outcome.BETTER, Outcome.NOT_COMPARABLE, Outcome.OPEN, Outcome.SAME)
# What a whole comparison came to.
OUTCOME_TEXTS = {
    Outcome.WORSE: "worse than the base",
    Outcome.BETTER: "better than the base, nothing confirmed worse",
    Outcome.SAME: "nothing confirmed worse than the base",
    Outcome.OPEN: "open: nothing that was measured is confirmed",
    Outcome.NOT_COMPARABLE: "not comparable: no pair of cells",
}
# Facts of machine and software beside one run or change.
MAX_FACTS = 8
_CONFIDENCES = list(Confidence)


def doubts(lines: Iterable[Line], besides: Sequence[Beside]) -> str:
    """Write what speaks against a comparison that is not worse, after a comma; empty without any."""
    loose = sum(line.outcome is Outcome.WORSE and line.confidence is not Confidence.CONFIRMED for line in lines)
    stages = wholly_worse(besides)
    parts = [f"{loose} provisionally worse"] if loose else []
    parts += [f"{count(stages, 'whole stage')} worse"] if stages else []
    return "".join(f", {part}" for part in parts)


def outcome_text(outcome: Outcome, besides: Sequence[Beside]) -> str:
    """Write what a whole comparison came to, and what speaks against it."""
    lines = [line for beside in besides for line in beside.lines]
    return OUTCOME_TEXTS[outcome] + ("" if outcome is Outcome.WORSE else doubts(lines, besides))


def ordered(lines: Iterable[Line]) -> list[Line]:
    """Return lines with the worse first, confirmed before provisional; else in their order."""
    return sorted(lines, key=lambda line: (ORDER.index(line.outcome), _CONFIDENCES.index(line.confidence)))


def cell_names(cells: Iterable[Cell]) -> dict[Cell, str]:
    """Name cells as the report does, each with its stage and workload."""
    names: dict[Cell, str] = {}
    for stage, members in grouped(dict.fromkeys(cells), lambda cell: cell.stage).items():
        labels = group_labels((SimpleNamespace(cell=cell) for cell in members), always=("workload",))
        # Two cells that one label fits are told apart by their ids.
        twice = {label for label, amount in Counter(labels.values()).items() if amount > 1}
        names |= {cell: clean(f"{stage}: {cell.id if label in twice else label}") for cell, label in labels.items()}
    return names


def metric_name(metric: str, what: str = "") -> str:
    """Write a metric with what tells several of one name apart."""
    return clean(f"{metric.replace('_', ' ')} {what}".strip())


def ends_of(decision: Decision | None) -> tuple[float, float] | None:
    """Return the interval that decided, where both ends can be written."""
    if decision is None or not 0 < decision.low <= decision.high < float("inf"):
        return None
    return decision.low, decision.high


def change_text(changed: Line | Change) -> str:
    """Write how a line or series changed: `+3.2 % (+1.1 to +5.4)`."""
    return moved(changed.ratio, changed.comparison.decision if changed.comparison is not None else None)


def moved(ratio: float | None, decision: Decision | None = None) -> str:
    """Write a ratio as a change, or as a factor from twice on."""
    if ratio is None:
        return "–"
    change, interval = _share_text(ratio), ends_of(decision)
    if interval is None:
        return change
    unit = " %" if change.endswith(" %") else ""
    return f"{change} ({' to '.join(_share_text(end).removesuffix(unit) for end in interval)})"


def _share_text(ratio: float) -> str:
    if not 0.5 < ratio < 2:
        return f"× {ratio:.3g}"
    share = 100 * (ratio - 1)
    return f"{share:+.1f} %".replace("-", "−")


def summary_text(line: Line, *, base: bool) -> str:
    """Write the middle of one side with its unit and how many runs it is of."""
    if line.comparison is None:
        return "–"
    summary = line.comparison.b if base else line.comparison.a
    return f"{quantity(summary.median, '' if line.unit == '1' else line.unit)} ({summary.count})"


def when(moment: str) -> str:
    """Write a record's time to the minute."""
    return clean(moment[:16].replace("T", " "))


def why_text(judged: Line | Change) -> str:
    """Write what a verdict rests on, without what stands beside it in a table: values and interval."""
    return clipped(re.sub(r"ratio [^;]*? of (?=[0-9])", "", judged.reason), 400)


def counted(judged: Sequence[Line | Change], same: str = "same") -> str:
    """Write what lines or changes say, confirmed and not: `2 worse (1 provisional), 30 same`."""
    counts = []
    for outcome in ORDER:
        matching = [line for line in judged if line.outcome is outcome]
        if matching:
            loose = sum(line.confidence is Confidence.PROVISIONAL for line in matching)
            extra = f" ({loose} provisional)" if loose else ""
            counts.append(f"{len(matching)} {same if outcome is Outcome.SAME else outcome}{extra}")
    return ", ".join(counts) or "nothing to compare"


def lone_text(lone: Lone) -> str:
    """Say how a cell of one side stands on the other."""
    if lone.near is None:
        return lone.state
    changed = ", ".join(f"{axis} {clean(here)} → {clean(there)}" for axis, here, there in lone.renamed)
    return f"not there; nearest: {clean(lone.near.id)}, which differs in {changed}"


def refused_text(refused: Refused, other: str) -> str:
    """Say in which settings the two cells of a pair differ."""
    return "unlike settings: " + "; ".join(clean(f"{u.name}: A {u.base}, {other} {u.other}") for u in refused.unlike)


def differences_text(differences: Iterable[Difference]) -> str:
    """Write in which facts two sides differ, variables last; of many the first ones."""
    facts = [
        clean(f"{each.fact}: {' / '.join(each.before)} → {' / '.join(each.after)}")
        for each in sorted(differences, key=lambda each: each.kind == "variable")
    ]
    more = [f"and {len(facts) - MAX_FACTS} more"] if len(facts) > MAX_FACTS else []
    return "; ".join([*facts[:MAX_FACTS], *more])


def shift_text(shift: Shift, other: str) -> str:
    """Say by how much all cells of a stage moved together."""
    decision = shift.decision
    to = "worse" if shift.worse else "better"
    more = "more" if shift.direction is Direction.HIGHER else "less"
    return (
        f"{shift.stage}, {metric_name(shift.metric)} ({more} is better): all {shift.cells} cells of {other} "
        f"together {moved(decision.ratio, decision)}, "
        + {
            "different": f"{to} as a whole: look at the machine and at what all share first",
            "the same within the margin": "as a whole the same within the margin",
            "open": "which of these is open",
        }[decision.answer.value]
    )


def margin_text(margin: float, sets: Iterable[ResultSet]) -> str:
    """Write within what two are the same, and which studies say something else."""
    unlike = grouped((one for one in sets if one.margin not in (margin, None)), lambda one: 100 * (one.margin or 0))
    said = [f"{own:g} % by the study of {names([one.name for one in ones], 2)}" for own, ones in unlike.items()]
    return clean(f"{100 * margin:g} %" + (f" ({'; '.join(said)})" if said else ""))


def state_text(results: ResultSet) -> str:
    """Say what of a folder does not count, and what is odd about it."""
    loaded, parts = results.loaded, []
    for amount, words in (
        (len(loaded.running), "running"),
        (len(loaded.waiting), "without a record of the study as planned"),
        (len(loaded.unreadable), "damaged or unreadable"),
        (len(loaded.earlier), "of an earlier plan, left out"),
    ):
        if amount:
            parts.append(f"{count(amount, 'cell')} {words}")
    if results.backwards:
        parts.append(f"{count(results.backwards, 'record')} ended before they started")
    return "; ".join(parts)
