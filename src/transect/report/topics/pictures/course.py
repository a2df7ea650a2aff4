"""The course of a study: what ran when, what of it was measured, who else used the machine, and how repeats drift."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from transect.analysis.entries import AnyRecord
from transect.analysis.groups import Group, grouped
from transect.domain.record import Status
from transect.report.engine.banner import duration
from transect.report.engine.blocks import Mark, Part, digits, words
from transect.report.engine.charts.chart import drawn
from transect.report.engine.charts.inks import BAD, INK, MUTED, WIDTH
from transect.report.engine.charts.lines import line_plot
from transect.report.engine.charts.marks import Bar, Line
from transect.report.engine.charts.plots import bar_plot
from transect.report.engine.charts.theme import Style, legend
from transect.report.engine.context import Context
from transect.report.engine.text import clean, count, percent, quantity

# Lanes, dots, and disturbed runs whose records are read again for what disturbed them.
_MAX_LANES, _MAX_DOTS, _MAX_READ = 16, 300, 400
# A stage that takes this share of the time has a lane for each workload.
_LONG = 0.1
_QUIET, _LOUD, _OTHERS = Style(MUTED), Style(BAD, "triangle-up"), Style(INK)
# The metric whose repeats are set beside each other, by stage.
_METRICS = {
    "train": "step_time",
    "infer": "latency",
    "bench": "pose_time",
    "retrain": "step_time",
    "federate": "round_time",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Ran:
    """A run: when, in seconds since the study began, and for how long it did not wait for its turns."""

    record: AnyRecord
    start: float
    end: float
    took: float

    @property
    def style(self) -> Style:
        return _LOUD if self.record.details.get("disturbed") else _QUIET


@dataclass(frozen=True, slots=True)
class _Lane:
    name: str
    runs: Sequence[_Ran]


def course_charts(context: Context) -> Iterator[Part]:
    """Draw the lanes of all stages over time, and repeats in the order in which they ran."""
    runs = _runs(context.records)
    if len(runs) > 1:
        last = max(run.end for run in runs)
        unit, by = ("min", 60.0) if last > 180 else ("s", 1.0)
        yield _lanes(context, runs, unit, by)
        yield _repeats(context, runs, unit, by)


def _runs(records: Sequence[AnyRecord]) -> list[_Ran]:
    # Logs tell of other days, and what was skipped took no time.
    able = [record for record in records if record.status is not Status.SKIPPED and record.stage != "ingest"]
    dated = [
        (start, _moment(record.ended), record) for record in able if (start := _moment(record.started)) is not None
    ]
    begin = min((start for start, _, _ in dated), default=0.0)
    return [
        _Ran(
            record=record,
            start=start - begin,
            end=end - begin,
            took=max(0.0, end - start - (_number(record.details.get("waited_s")) or 0.0)),
        )
        for start, end, record in sorted(dated, key=lambda row: row[0])
        if end is not None and end >= start
    ]


def _moment(text: str) -> float | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None


def _measured(record: AnyRecord) -> float | None:
    """Return for how long a run was measured: its turns, its training, or its calls; None where nobody knows."""
    details = record.details
    # Of a message sweep they tell an operation, and not how many of them.
    if isinstance(turns := details.get("turns"), dict) and turns.get("metric") != "operation_time":
        try:
            return math.fsum(a * b for a, b in zip(turns["seconds"], turns["counts"], strict=False))
        except (KeyError, TypeError):
            return None
    ranks = [_number(rank.get("wall_s")) for rank in details.get("rank_usage") or () if isinstance(rank, dict)]
    calls, latency = _number(details.get("runs")), record.value("latency")
    return max(filter(None, ranks), default=None if calls is None or latency is None else calls * latency)


def _share(runs: Sequence[_Ran]) -> float | None:
    """Return which share of the time of those runs that tell it was measured."""
    known = [(measured, run.took) for run in runs if (measured := _measured(run.record)) is not None]
    whole = math.fsum(took for _, took in known)
    return min(1.0, math.fsum(measured for measured, _ in known) / whole) if whole > 0 else None


def _lanes(context: Context, runs: Sequence[_Ran], unit: str, by: float) -> Part:
    """Draw when the runs of each stage and workload ran; disturbed ones have another colour."""
    last = max(run.end for run in runs)
    of_stage = grouped(runs, lambda run: run.record.stage)
    took = {stage: math.fsum(run.took for run in members) for stage, members in of_stage.items()}
    long = {stage for stage in took if took[stage] > _LONG * sum(took.values())}

    def name(run: _Ran) -> str:
        workload = run.record.point.workload if run.record.stage in long else ""
        return clean(f"{run.record.stage} {workload or ''}".strip())

    of_lane = grouped(runs, name)
    lanes = [_Lane(*lane) for lane in (of_lane if len(of_lane) <= _MAX_LANES else of_stage).items()]
    bars = [_bar(lane, f"{count(len(lane.runs), 'run')}, {_took(lane)}", last, by) for lane in lanes]
    loud = [run for run in runs if run.style is _LOUD]
    if loud:
        cores = max(context.originals.foreign_cores(run.record) for run in loud[:_MAX_READ])
        right = f"up to {cores:.1f} cores" if cores else ""
        bars.append(_bar(_Lane("other programs", loud), right, last, by, _OTHERS))
    share = _share(runs)
    unread = sum(isinstance(run.record.details.get("turns"), dict) and _measured(run.record) is None for run in runs)
    return drawn(
        bar_plot(bars, title=f"{unit} since the study began"),
        lanes,
        [
            words("Stage", lambda lane: lane.name),
            digits("Runs", lambda lane: len(lane.runs)),
            digits("Took", lambda lane: quantity(math.fsum(run.took for run in lane.runs), "s")),
            digits("Measured", lambda lane: _share(lane.runs), percent),
            digits("Disturbed", lambda lane: sum(run.style is _LOUD for run in lane.runs)),
        ],
        title=f"{count(len(runs), 'run')} in {duration(run.record for run in runs) or quantity(last, 's')}, "
        f"{len(loud) or 'none'} disturbed",
        name="course",
        notes=[
            f"Of their time {percent(share)} was measured; the rest is starting and checking." if share else "",
            f"{count(unread, 'run')} left out of that: their turns cannot be read." if unread else "",
        ],
        legend=legend([("quiet", _QUIET), ("disturbed by other programs", Style(BAD))], line=False) if loud else (),
    )


def _took(lane: _Lane) -> str:
    share = _share(lane.runs)
    measured = "" if share is None else f", {percent(share)} measured"
    return quantity(math.fsum(run.took for run in lane.runs), "s") + measured


def _bar(lane: _Lane, right: str, last: float, by: float, style: Style | None = None) -> Bar:
    """Return a lane's spans, those of one colour as one between which no eye would see anything."""
    least = last / WIDTH / 2
    spans: list[tuple[float, float, Style]] = []
    for run in sorted(lane.runs, key=lambda run: (run.style is _LOUD, run.start)):
        look, end = style or run.style, max(run.end, run.start + least)
        if spans and spans[-1][2] is look and run.start - spans[-1][1] < least:
            spans[-1] = (spans[-1][0], max(spans[-1][1], end), look)
        else:
            spans.append((run.start, end, look))
    return Bar(
        label=lane.name,
        parts=[((end - start) / by, look) for start, end, look in spans],
        starts=[start / by for start, _, _ in spans],
        right=right,
        about=[run.record for run in lane.runs],
    )


def _repeats(context: Context, runs: Sequence[_Ran], unit: str, by: float) -> Part:
    """Draw each run's metric over the middle of its cell, in the order in which they ran."""
    groups = {id(record): group for members in context.groups.values() for group in members for record in group.ok}
    found = [(run, _beside_middle(run.record, groups.get(id(run.record)))) for run in runs]
    dots = [(run, ratio) for run, ratio in found if ratio is not None]
    if len(dots) < 2:
        return None
    margin = math.log1p(context.analysis_plan.margin)
    far = [dot for dot in dots if abs(math.log(dot[1])) > margin]
    stride = -(-len(dots) // _MAX_DOTS)
    shown = [dot for place, dot in enumerate(dots) if place % stride == 0 or dot[0].style is _LOUD]
    lines = []
    for style in (_QUIET, _LOUD):
        alike = [(run.start / by, ratio, run.record) for run, ratio in shown if run.style is style]
        marks = [
            Mark(label=clean(record.cell_id), about=record, at=at, what="value", value=ratio)
            for at, ratio, record in alike
        ]
        points = [(at, ratio) for at, ratio, _ in alike]
        lines.append(Line(points=points, style=style, joined=False, size=14 if style is _QUIET else 40, marks=marks))
    worst = max(max(ratio, 1 / ratio) for _, ratio in dots)
    return drawn(
        line_plot(
            lines,
            x_title=f"{unit} since the study began",
            y_title="times the middle of its cell",
            y_log=worst > 1.5,
            y_zero=False,
            band=(math.exp(-margin), math.exp(margin)),
            rule=1.0,
            height=250,
        ),
        far or dots[:1],
        [
            words("Farther from the middle of its cell than the margin", lambda dot: clean(dot[0].record.cell_id)),
            digits("Times the middle", lambda dot: dot[1]),
            words("", lambda dot: "disturbed" if dot[0].style is _LOUD else None),
        ],
        title=f"{len(dots) - len(far)} of {count(len(dots), 'repeat')} within "
        f"{percent(context.analysis_plan.margin)} of the middle of their cell",
        name="repeats",
        notes=["A dot is a run; grey strip: the margin. A slope would be a drift of the machine."],
        legend=legend([("quiet", _QUIET), ("disturbed", _LOUD)], line=False) if lines[1].points else (),
    )


def _beside_middle(record: AnyRecord, group: Group | None) -> float | None:
    """Return a run's metric over the median of its cell's three runs or more."""
    name = _METRICS.get(record.stage)
    value, summary = (record.value(name), group.summary(name)) if name and group else (None, None)
    return value / summary.median if value and summary and summary.count > 2 and summary.median > 0 else None
