"""How scores go over the server's updates, and over simulated time: a picture for each federation, a line for each aggregation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from transect.analysis.quality import Score, score_of
from transect.domain.axes.federate import FederateCell
from transect.report.engine.blocks import Part, digits, words
from transect.report.engine.charts.chart import drawn
from transect.report.engine.charts.lines import line_plot
from transect.report.engine.charts.marks import Line
from transect.report.engine.charts.theme import Style
from transect.report.engine.context import Context
from transect.report.engine.text import number
from transect.report.topics.federated.facts import (
    HOW,
    METHOD,
    WAITING,
    FederateGroup,
    alike,
    how_words,
    method_words,
    rule_words,
    scopes,
    waits_for,
)

# Points of a line, and dashes of servers that do not wait for all.
_POINTS, _DASHES = 100, ((6, 3), (2, 2), (8, 2, 2, 2))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Course:
    """Scores after each update of every run, and where these lie; `by` makes a score what is drawn."""

    group: FederateGroup
    name: str
    score: Score
    style: Style
    at: Sequence[Sequence[float]]
    runs: Sequence[Sequence[float]]

    @property
    def end(self) -> float:
        """The median of the runs after the last update."""
        return median(run[-1] for run in self.runs)

    @property
    def best(self) -> float:
        """The median of the best that each run has after any update."""
        return median((min if self.score.lower else max)(run) for run in self.runs)

    def lines(self) -> Iterator[Line]:
        """Draw the median of the runs, and thin each of them."""
        whole = [*zip(*self.at, strict=True)], [*zip(*self.runs, strict=True)]
        middle = [(median(at), median(scores)) for at, scores in zip(*whole, strict=True)]
        each = [[*zip(*one, strict=True)] for one in zip(self.at, self.runs, strict=True)]
        for points, width in ((middle, 2.4), *((run, 0.6) for run in each if len(each) > 1)):
            few = [*points[: -1 : -(-len(points) // _POINTS)], points[-1]]
            yield Line(points=few, style=self.style, symbols=False, width=width, name=self.name, about=self.group)


def course_charts(context: Context, workload: str, groups: Sequence[FederateGroup]) -> Iterator[Part]:
    """Draw scores over updates, and over simulated time where servers do not wait for all, or clients are slow."""
    charts: list[tuple[list[FederateGroup], str, bool]] = []
    scope_of = scopes(groups, *WAITING, *METHOD)
    for members in alike(groups, *HOW, *METHOD, *WAITING).values():
        scope = scope_of(members[0])
        whole = [group for group in members if group.cell.buffer is None]
        # How slow clients are tells no model where the server waits for all.
        once = [same[0] for same in alike(whole, "slowness").values()]
        charts.append(([*once, *(group for group in members if group.cell.buffer is not None)], scope, False))
        for same in alike(members, *HOW, *METHOD, "buffer", "rounds").values():
            slow = same[0].cell.slowness
            if slow or any(group.cell.buffer is not None for group in same):
                charts.append((same, f"{scope}, slowness {slow:g}", True))
    for place, (drawing, scope, timed) in enumerate(charts):
        courses = _courses(context, drawing, timed=timed)
        if courses:
            yield _drawn(courses, f"{workload}, {scope}", f"federated-{workload}-{place}", timed=timed)


def _courses(context: Context, groups: Sequence[FederateGroup], *, timed: bool) -> list[_Course]:
    score, found = score_of(groups), []
    by = 100.0 if score.is_share else 1.0
    buffers = sorted({group.cell.buffer for group in groups if group.cell.buffer is not None})
    for group in groups:
        cell, read = group.cell, context.originals.samples
        runs, times = ([read(record, name) for record in group.ok] for name in (score.name, "simulated_time"))
        at = times if timed else [[*map(float, range(1, len(run) + 1))] for run in runs]
        # What cannot be read is a problem that the report tells.
        if any(not len(run) == len(one) == cell.rounds for run, one in zip(runs, at, strict=True)):
            continue
        dash = () if cell.buffer is None else _DASHES[buffers.index(cell.buffer) % len(_DASHES)]
        found.append(
            _Course(
                group=group,
                name=_name(cell, [other.cell for other in groups]),
                score=score,
                style=replace(context.styles.get(rule_words(cell)), dash=dash),
                at=at,
                runs=[[by * value for value in run] for run in runs],
            )
        )
    return found


def _name(cell: FederateCell, cells: Sequence[FederateCell]) -> str:
    """Name a line by its aggregation, and by what tells it from others of that."""
    alike = [other for other in cells if other.aggregation == cell.aggregation]
    parts = [how_words(cell) if len({other.options for other in alike}) > 1 else cell.aggregation]
    parts += [method_words(cell)] if len({(other.method, other.method_options) for other in cells}) > 1 else []
    parts += [f"waits for {waits_for(cell)}"] if len({other.buffer for other in alike}) > 1 else []
    parts += [f"{cell.rounds} updates"] if len({other.apart_from("rounds") for other in alike}) < len(alike) else []
    return " · ".join(parts)


def _drawn(courses: Sequence[_Course], about: str, name: str, *, timed: bool) -> Part:
    score = courses[0].score
    best = (min if score.lower else max)(courses, key=lambda course: course.end)
    told = (record.details.get("quality", {}).get("target") for course in courses for record in course.group.ok)
    target = next((float(one) for one in told if one is not None), None)
    unit, by = (" %", 100.0) if score.is_share else ("", 1.0)
    at = "simulated time, in turns of the median client" if timed else "updates of the server"
    name_of, end = best.name.replace(" · waits", " that waits").replace(" · ", ", "), f"{number(best.end)}{unit}"
    reached = f"the best median at the end is {end}, of {name_of}" if len(courses) > 1 else f"{name_of} ends at {end}"
    return drawn(
        line_plot(
            [line for course in courses for line in course.lines()],
            x_title=at,
            y_title=f"{score.words}{', per cent' if unit else ''}",
            rule=None if target is None else by * target,
            rule_name="target",
            height=250,
        ),
        courses,
        [
            words("Aggregation", lambda course: course.name),
            digits("At the end", lambda course: course.end, number),
            digits("Best after any update", lambda course: course.best, number),
            digits("Simulated time", lambda course: median(at[-1] for at in course.at), number)
            if timed
            else digits("Updates", lambda course: course.group.cell.rounds),
            digits("Runs", lambda course: len(course.runs)),
        ],
        title=f"{about}: {reached}",
        name=name,
        notes=["Wide: the median of the runs, thin: each run."] if any(len(c.runs) > 1 for c in courses) else [],
    )
