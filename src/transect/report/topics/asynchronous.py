"""Updates that wait for nobody beside synchronous training: time to quality, quality, and how stale gradients were."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import median
from typing import Any

from transect.analysis.contrast import Contrast
from transect.analysis.contrasts import contrast
from transect.analysis.labels import word
from transect.analysis.quality import TIME, quality_target, reaches_target
from transect.analysis.scaling import TrainGroup
from transect.report.engine.blocks import Column, Explained, Heading, Lead, Part, digits, note, table, words
from transect.report.engine.columns import MARKS, labelled, medians, score_column
from transect.report.engine.context import Context
from transect.report.engine.contrast_words import contrast_columns, doubt_words, ratio_words
from transect.report.engine.finding import Finding, joined, limited_confidence
from transect.report.engine.finding import median as median_of
from transect.report.engine.parts import FindingMaker, Section, StageReport
from transect.report.engine.text import Writer, clean, count, number, quantity, scale_for
from transect.report.topics.parallel.words import scope_of, strategy_words
from transect.stats.comparisons import Confidence

_SYNCHRONOUS = "mpi-allreduce"
_RULE, _COMING = "asynchronous", "asynchronous.workers"


@dataclass(frozen=True, kw_only=True, slots=True)
class Twin:
    """A training of equal work: `words` says on what, such as on as many ranks; `rule` which question it answers.

    It is synchronous or, beside workers that come and go, one whose workers all stay. `time` compares the times to quality; None where a side did not reach it in every run.
    """

    group: TrainGroup
    words: str
    time: Contrast | None
    rule: str = _RULE


@dataclass(frozen=True, kw_only=True, slots=True)
class Asynchronous:
    """A group whose gradients are applied as they arrive, or whose workers come and go, and what it is compared with."""

    group: TrainGroup
    twins: tuple[Twin, ...]

    @property
    def workers(self) -> int:
        """How many ranks compute gradients."""
        return int(_reported(self.group, "workers") or self.group.cell.ranks)

    @property
    def bound(self) -> str:
        """The staleness that is allowed, in steps."""
        bound = _reported(self.group, "staleness_bound")
        return "unbounded" if bound is None else str(bound)

    @property
    def name(self) -> str:
        """What it is and does, for a sentence."""
        coming = _option(self.group, "workers")
        return clean(
            f"{word('strategy', self.group.cell.strategy)} (staleness {self.bound}{f', workers {coming}' if coming else ''})"
        )

    @property
    def spans(self) -> str:
        """Where workers come and go: the median step while so many were there, `1: 4 ms, 3: 2 ms`."""
        told = [record.details["updates"].get("spans") or [] for record in self.group.ok]
        of_span = [[span["step_time_s"] for span in same] for same in zip(*told, strict=True)]
        # A line breaks between spans alone.
        return ", ".join(
            f"{span['workers']}: {quantity(median(times), 's')}".replace(" ", "\N{NO-BREAK SPACE}")
            for span, times in zip(told[0], of_span, strict=True)
        )

    @property
    def then(self) -> str:
        """Where workers come and go: in which step of how many the target was reached, and how many were there."""
        steps = median_of(self.group, "steps_to_quality")
        spans = self.group.ok[0].details["updates"].get("spans")
        if steps is None or not spans:
            return ""
        ends = list(accumulate(span["steps"] for span in spans))
        there = next(span["workers"] for span, end in zip(spans, ends, strict=True) if steps <= end)
        return f"the target is reached in step {number(steps)} of {ends[-1]}, with {count(there, 'worker')} there"

    @property
    def most(self) -> int | None:
        """The largest staleness of any gradient of any repeat, in updates."""
        reported = (record.details["updates"].get("largest_staleness") for record in self.group.ok)
        return max((int(staleness) for staleness in reported if staleness is not None), default=None)


def asynchronous_groups(context: Context, workload: str) -> list[Asynchronous]:
    """Return a workload's groups with asynchronous updates, each with its synchronous twins."""
    groups: Sequence[TrainGroup] = context.of("train", workload)
    return [
        Asynchronous(group=group, twins=tuple(_twins(group, groups, context)))
        for group in groups
        if (group.kind.unchecked or group.kind.coming) and _reported(group, "workers") is not None and not group.wrong
    ]


def _reported(group: TrainGroup, name: str) -> int | None:
    for record in group.ok:
        updates = record.details.get("updates")
        if isinstance(updates, dict):
            return updates.get(name)
    return None


def _option(group: TrainGroup, name: str) -> object:
    return dict(group.cell.options).get(name)


def _stays(candidate: TrainGroup, group: TrainGroup) -> bool:
    """Whether it differs in nothing but that all of its workers stay, while the group's come and go."""
    less = tuple(option for option in group.cell.options if option[0] != "workers")
    return less != group.cell.options and candidate.cell == group.cell.model_copy(update={"options": less})


def _twins(group: TrainGroup, groups: Iterable[TrainGroup], context: Context) -> list[Twin]:
    """All-reduce on as many ranks, and on as many as work; the server's synchronous path.

    Beside workers that come and go only those that stay: what waiting for nobody changes, is theirs to tell.
    """
    cell, workers = group.cell, _reported(group, "workers")
    planned = {
        (c.group.cell, c.base.cell): c for rule in (_RULE, _COMING) for c in context.contrasts.of(rule, cell.workload)
    }

    def work(trained: TrainGroup) -> object:
        return trained.cell.apart_from("strategy", "options", "ranks_per_node")

    found = []
    for candidate in groups:
        stays = _stays(candidate, group)
        if candidate.wrong or not candidate.ok or candidate.kind.coming or work(candidate) != work(group):
            continue
        if group.kind.coming != stays or (candidate.kind.unchecked and not stays):
            continue
        ranks, strategy = candidate.cell.ranks, candidate.cell.strategy
        if stays:
            words = "with all workers from first to last"
        elif strategy == cell.strategy and ranks == cell.ranks:
            words = "on as many ranks"
        elif strategy == _SYNCHRONOUS and ranks in (cell.ranks, workers):
            words = "on as many ranks" if ranks == cell.ranks else "on as many ranks as it has workers"
        else:
            continue
        time = planned.get((cell, candidate.cell)) or contrast(
            group, candidate, context.floors, TIME, varies="strategy"
        )
        time = time if reaches_target(group) and reaches_target(candidate) else None
        found.append(Twin(group=candidate, words=words, time=time, rule=_COMING if stays else _RULE))
    # On as many ranks is the price of the machine: it comes first.
    return sorted(
        found,
        key=lambda twin: (
            twin.group.cell.strategy != _SYNCHRONOUS,
            twin.group.cell.ranks != cell.ranks,
            twin.group.cell.id,
        ),
    )


def asynchronous_findings(context: Context) -> list[Finding]:
    """Per asynchronous group and synchronous twin: the time to quality, how stale, and the quality at the end."""
    return [
        _finding(training, twin)
        for workload in context.workloads("train")
        for training in asynchronous_groups(context, workload)
        for twin in training.twins[:2]
    ]


def staleness_words(training: Asynchronous) -> str:
    """Say how stale gradients were: `median 1, 95th percentile 3, most 5 updates`."""
    middle, late = median_of(training.group, "staleness"), median_of(training.group, "staleness_p95")
    parts = [
        f"median {number(middle)}" if middle is not None else "",
        f"95th percentile {number(late)}" if late is not None else "",
        f"most {training.most}" if training.most is not None else "",
    ]
    return ", ".join(filter(None, parts)) + " updates"


def _finding(training: Asynchronous, twin: Twin) -> Finding:
    group, synchronous = training.group, twin.group
    target, rival = quality_target([group]), strategy_words(synchronous)
    name = training.name
    if twin.time is None:
        late = [words for words, side in ((name, group), (rival, synchronous)) if not reaches_target(side)]
        claim = f"{' and '.join(late)} {'do' if len(late) > 1 else 'does'} not reach {target} in every run"
        claim += f", {rival} {twin.words} does" if late == [name] else ""
        claim += f", {name} does" if late == [rival] else ""
        confidence, reason = Confidence.PROVISIONAL, ""
    else:
        claim = f"{name} reaches {target} in {ratio_words(twin.time)} the time of {rival} {twin.words}{doubt_words(twin.time)}"
        confidence, reason = limited_confidence(twin.time.confidence, group, synchronous), twin.time.reason
        if twin.time.shown:
            later = ": later" + (", so waiting for nobody does not pay here" if twin.rule == _RULE else "")
            claim += ": sooner" if twin.time.better is group else later
    if any(side.over_subscribed for side in (group, synchronous)):
        confidence = Confidence.INCONCLUSIVE
    return Finding(
        subject=str(group.cell.workload),
        scope=scope_of(group),
        kind=twin.rule,
        named=True,
        short=claim,
        groups=(group, synchronous),
        claim=f"{claim}; its gradients are stale by {staleness_words(training)}{_quality(training, twin)}.",
        confidence=confidence,
        contrasts=(twin.time,) if twin.time is not None else (),
        evidence=joined(
            f"{quantity(median_of(group, TIME), 's')} and {quantity(median_of(synchronous, TIME), 's')}"
            if twin.time is not None
            else "",
            f"{count(training.workers, 'worker')} and a server; {count(synchronous.cell.ranks, 'rank')} beside",
            training.then,
            "its steps are not checkable against the reference: asynchronous" if group.kind.unchecked else "",
            reason,
        ),
    )


def _quality(training: Asynchronous, twin: Twin) -> str:
    told = (record.details.get("quality") for record in training.group.ok)
    metric = next((str(quality.get("metric")) for quality in told if isinstance(quality, dict)), "")
    own, other = median_of(training.group, metric), median_of(twin.group, metric)
    return "" if own is None or other is None else f"; it ends at {metric} {number(own)}, the other at {number(other)}"


def asynchronous_body(context: Context) -> Iterator[Part]:
    """List each group beside its twins; nothing without one."""
    found = {name: rows for name in context.workloads("train") if (rows := asynchronous_groups(context, name))}
    if not found:
        return
    yield Lead(
        "A server applies each worker's gradient when it arrives, so with a staleness no step can be held to the reference: these cells are "
        "judged by their time to quality and the quality at the end, beside training in step."
    )
    for workload, rows in found.items():
        yield Heading(workload)
        yield _table(rows)
        pairs = [(row, twin) for row in rows for twin in row.twins]
        if pairs:
            yield _beside(pairs)
        else:
            yield note("Nothing ran with equal work, so nothing stands beside it.")
    yield Explained(
        "Staleness: the updates between the fetch of the weights that a gradient was computed at and its application."
    )


def _to_target(title: str, of: Callable[[Any], TrainGroup], name: str, write: Writer) -> Column[Any]:
    """Return the column of what it took to get to the target, where every run got there."""

    def value(row: Any) -> float | None:
        return median_of(of(row), name) if reaches_target(of(row)) else None

    return digits(title, value, write, "not reached")


def _table(rows: list[Asynchronous]) -> Part:
    time = scale_for([median_of(row.group, TIME) for row in rows], "s")
    columns = [
        labelled(rows, always=("ranks",)),
        words("Bound", lambda row: row.bound),
        words("Workers", lambda row: _option(row.group, "workers") or str(row.workers)),
        digits("Runs", lambda row: len(row.group.ok)),
        medians("Staleness, median", "staleness"),
        medians("95th percentile", "staleness_p95", number, "too few"),
        digits("Most", lambda row: row.most),
        _to_target("Steps to quality", lambda row: row.group, "steps_to_quality", number),
        _to_target(f"Time to quality ({time.unit})", lambda row: row.group, TIME, time),
        score_column(rows),
        MARKS,
    ]
    if any(_option(row.group, "workers") for row in rows):
        columns.insert(-1, words("Step by workers there", lambda row: row.spans))
    return table(rows, columns, caption="Asynchronous updates")


def _beside(pairs: list[tuple[Asynchronous, Twin]]) -> Part:
    labels = labelled([pair[0] for pair in pairs], always=("ranks",))
    time = scale_for([median_of(twin.group, TIME) for _, twin in pairs], "s")
    beside = score_column([twin.group for _, twin in pairs])
    columns: list[Column[Any]] = [
        words("Cell", lambda pair: labels.entry(pair[0])),
        words("Beside", lambda pair: f"{strategy_words(pair[1].group)} {pair[1].words}"),
        _to_target(f"Its time to quality ({time.unit})", lambda pair: pair[1].group, TIME, time),
        *contrast_columns("Of its time", lambda pair: pair[1].time, less="sooner", more="later"),
        words("Score beside", lambda pair: beside.entry(pair[1].group)),
    ]
    return table(pairs, columns, caption="Beside trainings of equal work")


REPORT = StageReport(
    stage="train",
    sections=(Section(key="asynchronous", title="Asynchronous updates", order=335, make=asynchronous_body),),
    findings=(FindingMaker(name="asynchronous", order=435, make=asynchronous_findings, section="asynchronous"),),
)
