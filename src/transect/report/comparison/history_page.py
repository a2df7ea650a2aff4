"""The page of many runs: what changed and when, each stage over time, what was lost."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path

from transect.analysis.history import Change, History, Series
from transect.analysis.set_lines import Outcome
from transect.analysis.timelines import Run, Timeline
from transect.report.comparison.compare_page import CHIPS, STYLES
from transect.report.comparison.history_words import (
    change_text,
    changes_first,
    run_name,
    series_names,
    too_few,
    where_text,
)
from transect.report.comparison.page import made_sections, write_sections
from transect.report.comparison.words import difference_text, metric_name
from transect.report.engine.blocks import Chart, Chip, Lead, Part, code, digits, note, table, words
from transect.report.engine.charts.chart import MAX_PANELS, drawn
from transect.report.engine.charts.marks import Line
from transect.report.engine.charts.plots import line_plot
from transect.report.engine.charts.theme import Style, legend
from transect.report.engine.text import clean, clipped, count, number, scale_for

_SERIES = Style("#0072b2", "circle")
# What one run changes at most on the page; the rest is counted.
_MAX_FACTS = 8


def write_history(output: Path, history: History, line: Timeline, *, study: str, margin: float) -> None:
    """Write the page of a study's history to `output`, atomically; raises OSError."""
    page = _Page(history, line, margin)
    sections = made_sections(
        [
            ("changes", "Changes", page.changes),
            ("stages", "Stages over time", page.stages),
            ("cells", "Cells that changed", page.cells),
            ("lost", "No longer measured", page.lost),
            ("runs", "Runs", page.runs),
            ("methods", "Methods", page.methods),
        ]
    )
    outcomes = [change.outcome for change in history.changes]
    chips = [
        Chip(f"{amount} {outcome}", CHIPS[outcome])
        for outcome in (Outcome.WORSE, Outcome.BETTER, Outcome.SAME, Outcome.NOT_COMPARABLE)
        if (amount := outcomes.count(outcome))
    ]
    about = [f"{count(len(history.runs), 'run')}, {count(len(history.series), 'series', 'series')}"]
    write_sections(output, sections, kind="history", title=f"History of {study}", about=about, chips=chips)


class _Page:
    """What every section is made from."""

    def __init__(self, history: History, line: Timeline, margin: float) -> None:
        self.history = history
        self.line = line
        self.margin = margin
        self.names = series_names(history.series)

    def changes(self) -> Iterator[Part]:
        """List every change, those of whole stages first."""
        few = too_few(self.history)
        yield Lead(
            few or "Where a series is another one from a run on, by more than chance among all series explains.",
            empty="No series changed by more than chance explains.",
        )
        changes = changes_first(self.history)
        alone = [change for change in changes if not change.shared]
        if alone:
            yield self._table(alone, "")
        shared = [change for change in changes if change.shared]
        if shared:
            title = f"{count(len(shared), 'cell')} changed with the whole stage"
            yield self._table(shared, title)

    def _table(self, changes: list[Change], folded: str) -> Part:
        runs = self.history.runs
        return table(
            changes,
            [
                words("Verdict", lambda change: Chip(change.outcome.value, CHIPS[change.outcome])),
                words("Confidence", lambda change: change.confidence.value),
                words("Series", lambda change: self.names[change.series]),
                words("From run", lambda change: run_name(runs[change.at])),
                digits("Change", change_text),
                words("What else changed there", lambda change: where_text(change, _MAX_FACTS)),
                words("Why", lambda change: clipped(change.reason, 300)),
            ],
            folded=folded,
        )

    def stages(self) -> Iterator[Part]:
        """Draw what the cells of each stage did together."""
        yield Lead(
            "Per stage and metric: the median over its cells of what each is beside its own middle.",
            empty="No stage has three cells that run through.",
        )
        whole = [series for series in self.history.series if series.cell is None]
        for place, series in enumerate(whole[:MAX_PANELS]):
            yield self._chart(series, f"stage-{place}")

    def cells(self) -> Iterator[Part]:
        """Draw the cells that changed by themselves, the largest change first."""
        yield Lead("Cells that changed apart from their stage.", empty="No cell did.")
        changes = [change for change in changes_first(self.history) if change.series.cell and not change.shared]
        series = list(dict.fromkeys(change.series for change in changes))
        for place, shown in enumerate(series[:MAX_PANELS]):
            yield self._chart(shown, f"cell-{place}")
        if len(series) > MAX_PANELS:
            yield note(f"{len(series) - MAX_PANELS} more stand in the table above only.")

    def lost(self) -> Iterator[Part]:
        """List cells without a usable result in the latest run."""
        yield Lead(
            "Cells that had a usable result once and have none in the latest run.",
            empty="Every cell that ever had a result has one in the latest run.",
        )
        if self.history.lost:
            yield table(
                self.history.lost,
                [
                    words("Stage", lambda lost: clean(lost.cell.stage)),
                    code("Cell", lambda lost: lost.cell.id),
                    words("Last result", lambda lost: run_name(self.history.runs[lost.last])),
                    words("Since then", lambda lost: clean(lost.why)),
                ],
                fold_title="Cells",
            )
        refused = [series for series in self.history.series if series.refused]
        if refused:
            yield table(
                refused,
                [
                    words("Series", lambda series: self.names[series]),
                    digits("Runs left out", lambda series: len(series.refused)),
                    words("Settings that differ", lambda series: clipped(next(iter(series.refused.values())), 300)),
                ],
                folded="Runs with other settings under the same name",
            )

    def runs(self) -> Iterator[Part]:
        """List the runs in their order, and what was left out."""
        yield Lead("By the date of their records.")

        def differences(run: Run) -> str:
            shown = [difference_text(each) for each in run.differences[:_MAX_FACTS]]
            remaining = len(run.differences) - len(shown)
            return "; ".join([*shown, *([f"and {remaining} more"] if remaining else [])])

        # Words and no records: what a run holds is about every cell, and of no use to a filter.
        rows = [
            (
                run_name(run),
                clean(run.results.name),
                len(run.results.loaded.records),
                differences(run),
                "; ".join(run.notes),
            )
            for run in self.history.runs
        ]
        yield table(
            rows,
            [
                words("Run", lambda row: row[0]),
                code("Folder", lambda row: row[1]),
                digits("Records", lambda row: row[2]),
                words("Machine and software since the run before", lambda row: row[3]),
                words("Odd", lambda row: row[4]),
            ],
            fold_title="Runs",
        )
        if self.line.left_out:
            yield table(
                self.line.left_out,
                [code("Folder", lambda row: clean(row.name)), words("Left out", lambda row: clean(row.why))],
                caption="Left out",
            )
        problems = [(run.results.name, problem) for run in self.history.runs for problem in run.results.loaded.problems]
        if problems:
            yield table(
                problems,
                [
                    code("Folder", lambda row: clean(row[0])),
                    code("Where", lambda row: clean(row[1].where)),
                    words("What", lambda row: clipped(row[1].what, 300)),
                ],
                folded="Problems",
            )

    def methods(self) -> Iterator[Part]:
        """Say how a change is told from chance."""
        yield note(
            "A series is cut where the ranks before and after differ most (Pettitt 1979), and its parts again. Chance is told by "
            "permuting whole runs, and corrected for all series by the smallest probability of each permutation (Westfall and Young "
            "1993): half of 5 % for whole stages, half for single cells. How far apart the sides are, and whether that is "
            f"within the margin of {100 * self.margin:g} %, is said by the same tests as in a comparison. Runs of a machine that "
            "drifts, or that resemble the run before them, are not exchangeable: changes are then found too often."
        )

    def _chart(self, series: Series, name: str) -> Chart:
        changes = [change for change in self.history.changes if change.series is series]
        each = series.chosen
        scale = scale_for(series.values, "" if series.cell is None else each.unit)
        points = [(float(place + 1), series.values[place] / scale.factor) for place in series.places]
        lines = [Line(points=points, style=_SERIES, width=1.2)]
        names = [("median of a run", _SERIES)]
        for change in changes:
            # What was before the first change is neither better nor worse.
            sides = [(change.after, STYLES[change.outcome])]
            sides += [] if change is not changes[0] else [(change.before, STYLES[Outcome.SAME])]
            for side, style in sides:
                level = statistics.median(series.values[place] / scale.factor for place in side)
                ends = [(float(side[0] + 1), level), (float(side[-1] + 1), level)]
                lines.append(Line(points=ends, style=style, symbols=False, width=3))
            names.append((f"{change.outcome} from run {change.at + 1}", STYLES[change.outcome]))
        # A machine or a version that changed is marked where it did.
        low = min(y for _, y in points)
        moves = [
            place
            for place, run in enumerate(self.history.runs)
            if place in series.places and any(d.kind != "variable" for d in run.differences)
        ]
        mark = Style("#5c6670", "triangle-up")
        if moves:
            at = [(float(place + 1), low) for place in moves]
            lines.append(Line(points=at, style=mark, joined=False))
            names.append(("machine or software changed", mark))
        unit = f" ({scale.unit})" if scale.unit and series.cell is not None else ""
        title = self.names[series]
        summary = "; ".join(f"{change.outcome} from run {change.at + 1}, {change_text(change)}" for change in changes)
        runs = self.history.runs
        return drawn(
            line_plot(
                lines,
                x_title="run",
                y_title=f"{metric_name(each.metric, each.label or '')}{unit}",
                # From nothing on, a change of a tenth could not be seen.
                y_log=low > 0,
            ),
            series.places,
            [
                words("Run", lambda place: run_name(runs[place])),
                digits("Value", lambda place: number(series.values[place] / scale.factor)),
                words("Changed there", lambda place: "; ".join(str(c.outcome) for c in changes if c.at == place)),
            ],
            title=title,
            name=f"history-{name}",
            legend=legend(list(dict.fromkeys(names))),
            alt=f"{title} over {len(series.places)} runs. {summary or 'No change is told from chance'}.",
            notes=(summary and f"{summary}.",),
        )
