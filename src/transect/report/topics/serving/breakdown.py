"""Where the time of serving goes: start, session, bind, Run, copy; and what it takes in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from transect.analysis.serving import InferGroup, base_point, run_includes
from transect.report.engine.blocks import Chip, Part, digits, table, words
from transect.report.engine.charts.chart import MAX_DRAWN, drawn, left_out
from transect.report.engine.charts.marks import Bar
from transect.report.engine.charts.plots import bar_plot
from transect.report.engine.charts.theme import legend
from transect.report.engine.columns import labelled, medians
from transect.report.engine.context import Context
from transect.report.engine.finding import median
from transect.report.engine.text import count, in_unit, scale_for

_PARTS = {"bind": "bind_time", "Run": "latency", "copy": "copy_time"}
_COLORS = {"bind": "input", "Run": "compute", "copy": "communication"}


def breakdown_chart(context: Context, name: str, groups: Sequence[InferGroup]) -> Part:
    """Draw bind, Run and copy of one inference side by side, where any is told."""
    rows = _ordered([group for group in groups if group.values("bind_time")])
    if not rows:
        return None
    scale = scale_for([median(group, "latency") for group in rows], "s")
    label = labelled(rows, "Runtime")
    styles = {part: context.styles.get(_COLORS[part]) for part in _PARTS}
    bars = [
        Bar(
            label=str(label.entry(group)),
            right=f"{scale.text(_whole(group))} {scale.unit}",
            about=group,
            parts=[((median(group, name) or 0.0) / scale.factor, styles[part]) for part, name in _PARTS.items()],
        )
        for group in rows[:MAX_DRAWN]
    ]
    inside = any(map(run_includes, rows))
    return drawn(
        bar_plot(bars, title=f"time of one inference ({scale.unit})"),
        rows,
        [
            label,
            *(medians(f"{part} ({scale.unit})", name, scale) for part, name in _PARTS.items()),
            digits("End to end", _whole, in_unit("s")),
            words("Run includes", _inside),
        ],
        title=f"Parts of one inference at {_point(rows)}",
        name=f"parts-{name}",
        alt=f"Time of bind, Run and copy at {_point(rows)}, a bar per runtime. Least: "
        f"{bars[0].label}, {bars[0].right}.",
        legend=legend(((part, styles[part]) for part in _PARTS), line=False),
        notes=(
            left_out(len(rows), MAX_DRAWN, "slowest"),
            "Medians of each part; at the right that of their sums.",
            "Where a language binds or copies inside of Run, its Run holds that time." if inside else "",
        ),
    )


def breakdown_table(groups: Sequence[InferGroup]) -> Iterator[Part]:
    """List what serving takes from the start of the process on; nothing from older records."""
    rows = _ordered(groups)
    if not any(group.values(name) for group in rows for name in ("session_time", "peak_memory")):
        return
    time, size = in_unit("s"), in_unit("B")
    columns = [
        medians("Start to first result", "first_result_time", time),
        medians("Session", "session_time", time),
        medians("Bind", "bind_time", time),
        medians("Run", "latency", time),
        medians("Copy", "copy_time", time),
        digits("End to end", _whole, time),
        medians("Peak memory", "peak_memory", size),
        medians("Program and libraries", "program_bytes", size),
    ]
    filled = [column for column in columns if any(column.value(group) is not None for group in rows)]
    inside = [words("Run includes", _inside)] if any(map(run_includes, rows)) else []
    yield table(rows, [labelled(rows, "Runtime"), *filled, *inside], caption=f"What serving takes, at {_point(rows)}")


def _ordered(groups: Sequence[InferGroup]) -> list[InferGroup]:
    """Return the groups of the smallest batch and fewest threads, least time end to end first."""
    first = [group for group in base_point(groups) if group.values("latency")]
    return sorted(first, key=lambda group: (_whole(group) or 0.0, group.cell.id))


def _whole(group: InferGroup) -> float | None:
    """Return the time end to end; None for records of an earlier version, which have that of Run alone."""
    return median(group, "end_to_end_time")


def _inside(group: InferGroup) -> Chip | str:
    held = run_includes(group)
    return Chip(", ".join(held), "warn") if held else ""


def _point(rows: Sequence[InferGroup]) -> str:
    cell = rows[0].cell
    return f"batch {cell.batch}, {count(cell.threads, 'thread')}"
