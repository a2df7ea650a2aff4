"""How the accuracy on validation goes over the epochs: a panel for each hyper-parameter, a line for each of its values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from statistics import fmean, median

from transect.analysis.groups import grouped
from transect.analysis.labels import group_labels
from transect.report.engine.blocks import Part, digits, words
from transect.report.engine.charts.chart import drawn
from transect.report.engine.charts.inks import SERIES
from transect.report.engine.charts.lines import line_plot
from transect.report.engine.charts.marks import Line
from transect.report.engine.charts.theme import Style
from transect.report.engine.context import Context
from transect.report.engine.finding import names
from transect.report.engine.text import count, tenths
from transect.report.topics.claims.findings import published_at
from transect.report.topics.classifiers.effects import axis_noun, value_text
from transect.report.topics.classifiers.facts import VALID, VIEWS, ClassifyGroup

_AXES = ("learning_rate", "batch", "heads", "layers")
# Epochs of a curve that is worth drawing; points of a line.
_FEWEST, _POINTS = 5, 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Course:
    """The runs of one value: shares told right after each epoch, percentages. Some runs end earlier than others."""

    group: ClassifyGroup
    value: str
    runs: Sequence[Sequence[float]]

    @property
    def epochs(self) -> int:
        """How many epochs every run has."""
        return min(map(len, self.runs))

    @property
    def mean(self) -> list[float]:
        """The mean of the runs after each epoch that every one has."""
        return [fmean(after) for after in zip(*self.runs, strict=False)]

    @property
    def best(self) -> float:
        """The median over the runs of the largest share after any epoch."""
        return median(max(run) for run in self.runs)

    @property
    def best_epoch(self) -> float:
        """The median over the runs of the first epoch that has it."""
        return median(1 + list(run).index(max(run)) for run in self.runs)


def epoch_charts(context: Context, groups: Sequence[ClassifyGroup], name: str) -> Iterator[Part]:
    """Draw of each hyper-parameter the longest courses that differ in nothing else; nothing where no run has several."""
    for axis in _AXES:
        having = [group for group in groups if getattr(group.cell, axis) is not None]
        alike = [_courses(members, axis) for members in grouped(having, lambda g: g.cell.apart_from(axis)).values()]  # noqa: B023
        several = [courses for courses in alike if len(courses) > 1]
        if several:
            longest = max(several, key=lambda courses: (min(course.epochs for course in courses), len(courses)))
            labels = group_labels([courses[0].group for courses in several], never=(axis, "corpus", "model"))
            of = (
                f"Of {len(several)} such series the longest: {labels[longest[0].group.cell]}."
                if len(several) > 1
                else ""
            )
            yield _panel(context, longest, axis, f"{name}-{axis}", of)


def _courses(groups: Sequence[ClassifyGroup], axis: str) -> list[Course]:
    """Return the courses of some groups by their values of an axis, the least first."""
    found = []
    for group in sorted(groups, key=lambda group: float(getattr(group.cell, axis))):
        known = [[entry.get(VALID) for entry in record.details.get("history") or ()] for record in group.ok]
        shortest = min(map(len, known), default=0)
        if shortest >= _FEWEST and all(isinstance(share, int | float) for run in known for share in run):
            runs = [[100 * share for share in run] for run in known]
            found.append(Course(group=group, value=value_text(getattr(group.cell, axis)), runs=runs))
    return found


def _panel(context: Context, courses: Sequence[Course], axis: str, name: str, of: str) -> Part:
    noun, epochs = axis_noun(axis), max(course.epochs for course in courses)
    best = max(course.best for course in courses)
    first = names([course.value for course in courses if course.best == best])
    published = {course.value: published_at(context, course.group, axis) for course in courses}
    told = ", ".join(f"{value}: {tenths(figure)}" for value, figure in published.items() if figure is not None)
    lines = []
    for course, color in zip(courses, cycle(SERIES.values()), strict=False):
        for run, width in ((course.mean, 2.4), *((run, 0.6) for run in course.runs if len(course.runs) > 1)):
            points = [(float(epoch), share) for epoch, share in enumerate(run, 1)]
            stride = -(-len(points) // _POINTS)
            lines.append(
                Line(
                    points=[*points[:-1:stride], points[-1]],
                    style=Style(color),
                    symbols=False,
                    width=width,
                    name=f"{noun} {course.value}",
                    about=course.group,
                )
            )
    return drawn(
        line_plot(lines, x_title="epoch", y_title="validation tickets told right, per cent", height=250),
        courses,
        [
            words(noun.capitalize(), lambda course: course.value),
            digits("Best after any epoch", lambda course: tenths(course.best / 100)),
            digits("Median epoch of that", lambda course: f"{course.best_epoch:.0f}"),
            digits("After the last", lambda course: tenths(course.mean[-1] / 100)),
            digits("Published best", lambda c: None if (told := published[c.value]) is None else tenths(told)),
            digits("Epochs", lambda course: course.epochs),
            digits("Runs", lambda course: len(course.runs)),
        ],
        title=f"{noun.capitalize()} over {count(epochs, 'epoch')}: most at best with {first}, {tenths(best / 100)}",
        name=name,
        notes=[
            f"On {VIEWS[courses[0].group.cell.view]}s.",
            of,
            "Wide: the mean of the runs, thin: each run." if any(len(course.runs) > 1 for course in courses) else "",
            f"Published best, of other tickets, at the values that these stand for: {told}." if told else "",
        ],
    )
