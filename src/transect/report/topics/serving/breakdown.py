"""Where the time of serving goes: start, session, bind, Run, copy; and what it takes in memory."""

from __future__ import annotations

from collections.abc import Sequence

from transect.analysis.serving import RUN, WHOLE, InferGroup, base_point, run_includes
from transect.report.engine.blocks import Chip, Part, digits, table, words
from transect.report.engine.charts.chart import MAX_DRAWN, drawn, left_out
from transect.report.engine.charts.marks import Bar
from transect.report.engine.charts.plots import bar_plot
from transect.report.engine.charts.theme import legend
from transect.report.engine.columns import labelled, medians
from transect.report.engine.context import Context
from transect.report.engine.finding import median
from transect.report.engine.text import in_unit, scale_for
from transect.report.topics.serving.facts import place_of

_PARTS = {"bind": "bind_time", "Run": RUN, "copy": "copy_time"}
_COLORS = {"bind": "input", "Run": "compute", "copy": "communication"}


def breakdown(context: Context, name: str, groups: Sequence[InferGroup]) -> Part:
    """Draw bind, Run and copy of one inference side by side where any is told; list what serving takes from the start on."""
    rows = _ordered(groups)
    time, size = in_unit("s"), in_unit("B")
    columns = [
        medians("Start to first result", "first_result_time", time),
        medians("Session", "session_time", time),
        *(medians(part[:1].upper() + part[1:], name, time) for part, name in _PARTS.items()),
        digits("End to end", _whole, time),
        medians("Peak memory", "peak_memory", size),
        medians("Program and libraries", "program_bytes", size),
    ]
    told = [column for column in columns if any(column.value(group) is not None for group in rows)]
    inside = any(map(run_includes, rows))
    listed = [labelled(rows, "Runtime"), *told, *([words("Run includes", _inside)] if inside else [])]
    drawable = [group for group in rows if group.values("bind_time")]
    if not drawable:
        # Records of earlier versions have the time of Run alone.
        many = len(told) > 1
        return table(rows, listed, caption=f"What serving takes, at {place_of(rows[0])}") if rows and many else None
    scale = scale_for([median(group, RUN) for group in drawable], "s")
    styles = {part: context.styles.get(_COLORS[part]) for part in _PARTS}
    label = labelled(drawable, "Runtime")
    bars = [
        Bar(
            label=str(label.entry(group)),
            right=f"{scale.text(_whole(group))} {scale.unit}",
            about=group,
            parts=[((median(group, name) or 0.0) / scale.factor, styles[part]) for part, name in _PARTS.items()],
        )
        for group in drawable[:MAX_DRAWN]
    ]
    return drawn(
        bar_plot(bars, title=f"time of one inference ({scale.unit})"),
        rows,
        listed,
        title=f"What serving takes, at {place_of(rows[0])}",
        name=f"parts-{name}",
        alt=f"Time of bind, Run and copy at {place_of(rows[0])}, a bar per runtime. Least: "
        f"{bars[0].label}, {bars[0].right}.",
        legend=legend(((part, styles[part]) for part in _PARTS), line=False),
        notes=(
            left_out(len(drawable), MAX_DRAWN, "slowest"),
            "Medians of each part; at the right that of their sums.",
            "Where a language binds or copies inside of Run, its Run holds that time." if inside else "",
        ),
    )


def _ordered(groups: Sequence[InferGroup]) -> list[InferGroup]:
    """Return the groups of the smallest batch and fewest threads, least time end to end first."""
    first = [group for group in base_point(groups) if group.values(RUN)]
    return sorted(first, key=lambda group: (_whole(group) or 0.0, group.cell.id))


def _whole(group: InferGroup) -> float | None:
    """Return the time end to end; None for records of an earlier version, which have that of Run alone."""
    return median(group, WHOLE)


def _inside(group: InferGroup) -> Chip | str:
    held = run_includes(group)
    return Chip(", ".join(held), "warn") if held else ""
