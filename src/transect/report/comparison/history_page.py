"""What a study's history says, section by section: what changed and when, each stage over time, what was lost."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from transect.analysis.history import Change, History, Series
from transect.analysis.set_lines import Outcome
from transect.analysis.timelines import LeftOut, Run
from transect.report.comparison.compare_page import CHIPS, STYLES, outcome_chips, problem_columns
from transect.report.comparison.page import Unmade, made_sections, page_of
from transect.report.comparison.words import (
    ORDER,
    cell_names,
    change_text,
    counted,
    differences_text,
    margin_text,
    metric_name,
    why_text,
)
from transect.report.engine.blocks import Chart, Chip, Lead, Part, Prose, code, digits, note, table, words
from transect.report.engine.charts.chart import MAX_PANELS, drawn
from transect.report.engine.charts.marks import Line
from transect.report.engine.charts.plots import line_plot
from transect.report.engine.charts.theme import Style, legend
from transect.report.engine.text import clean, clipped, count, number, scale_for
from transect.stats.change_points import MIN_RUNS

_SERIES = Style("#0072b2", "circle")
_MOVED = Style("#5c6670", "triangle-up")


@dataclass(frozen=True, kw_only=True)
class Followed:
    """A study's history, and what its sections are made from."""

    study: str
    history: History
    left_out: Sequence[LeftOut]
    margin: float

    @property
    def title(self) -> str:
        """What became of the study, in one line, with its name."""
        return f"History of {self.study}, {count(len(self.history.runs), 'run')}: {self.said}"

    @property
    def said(self) -> str:
        """What became of the study."""
        changes, lost = self.history.changes, self.history.lost
        said = (
            f"{count(len(changes), 'change')}: {counted(changes, same='within the margin')}"
            if changes
            else "no changes"
            if self._longest >= MIN_RUNS
            else "too few to tell a change from chance"
        )
        without = f"; {count(len(lost), 'cell')} without a result in the latest run" if lost else ""
        return f"{said}{without}"

    def sections(self) -> list[Unmade]:
        """Return what there is to say."""
        # A line through two runs would tell of what lies between.
        of_stages = [series for series in self.history.series if series.cell is None and len(series.places) > 2]
        alone = [change.series for change in self.changes if change.series.cell and not change.shared]
        return [
            ("changes", "Changes", self._changed),
            ("charts", "Stages over time", partial(self._charts, of_stages)),
            ("charts-of-cells", "Cells that changed", partial(self._charts, list(dict.fromkeys(alone)))),
            ("lost", "No longer measured", self._lost),
            ("runs", "Runs", self._runs),
            ("methods", "Methods", self._methods),
        ]

    @cached_property
    def _longest(self) -> int:
        return max((len(series.places) for series in self.history.series), default=0)

    @cached_property
    def _names(self) -> dict[Series, str]:
        cells = cell_names(series.cell for series in self.history.series if series.cell is not None)
        return {
            series: f"{cells[series.cell] if series.cell else clean(series.stage) + ': all cells'}, "
            f"{metric_name(series.chosen.metric, series.chosen.label or '')}"
            for series in self.history.series
        }

    def name_of(self, series: Series) -> str:
        """Name a series for people."""
        return self._names[series]

    @property
    def changes(self) -> list[Change]:
        """Changes, those of stages before those of cells, the worse and the latest first."""
        return sorted(self.history.changes, key=lambda c: (c.series.cell is not None, ORDER.index(c.outcome), -c.at))

    def _changed(self) -> Iterator[Part]:
        margin = margin_text(self.margin, (run.results for run in self.history.runs))
        yield Lead(
            "Where a series is another one from a run on, by more than chance among all series explains. Two levels are the "
            f"same within {margin}."
        )
        if self._longest < MIN_RUNS:
            yield Prose(
                f"The longest series has {count(self._longest, 'run')}: {MIN_RUNS} are the fewest in which a change can be told "
                "from chance. Two of them can be compared (transect compare)."
            )
        elif not self.history.changes:
            yield Prose("No series changed by more than chance explains.")
        for shared in (False, True):
            changes = [change for change in self.changes if change.shared is shared]
            if changes:
                yield table(
                    changes,
                    [
                        words("Verdict", lambda change: Chip(change.outcome.value, CHIPS[change.outcome])),
                        words("Confidence", lambda change: change.confidence.value),
                        words("Series", lambda change: self._names[change.series]),
                        words("From run", lambda change: run_name(self.history.runs[change.at])),
                        digits("Change", lambda change: change_text(change)),
                        words(
                            "What else changed there",
                            lambda change: differences_text(change.surroundings) or "nothing that records tell",
                        ),
                        words("Why", lambda change: why_text(change)),
                    ],
                    caption="" if shared else counted(changes, same="within the margin"),
                    folded=f"{count(len(changes), 'cell')} changed with the whole stage" if shared else "",
                )

    def _charts(self, shown: Sequence[Series]) -> Iterator[Part]:
        yield Lead("The median of each run; of a whole stage, of what its cells are beside their own middles.")
        for place, series in enumerate(shown[:MAX_PANELS]):
            yield self._chart(series, f"{'cell' if series.cell else 'stage'}-{place}")
        if len(shown) > MAX_PANELS:
            yield note(f"{len(shown) - MAX_PANELS} more stand in the table above only.")

    def _lost(self) -> Iterator[Part]:
        if self.history.lost:
            yield Lead("Cells that had a usable result once and have none in the latest run.")
            yield table(
                self.history.lost,
                [
                    words("Stage", lambda lost: clean(lost.cell.stage)),
                    code("Cell", lambda lost: lost.cell.id),
                    words("Last result", lambda lost: run_name(self.history.runs[lost.last])),
                    words("Since then", lambda lost: clean(lost.why)),
                ],
                caption="No longer measured",
            )
        refused = [series for series in self.history.series if series.refused]
        if refused:
            yield table(
                refused,
                [
                    words("Series", lambda series: self._names[series]),
                    digits("Runs left out", lambda series: len(series.refused)),
                    words("Settings that differ", lambda series: clipped(next(iter(series.refused.values())), 300)),
                ],
                folded="Runs with other settings under the same name",
            )

    def _runs(self) -> Iterator[Part]:
        yield Lead("By the date of their records.")
        # Words and no records: what a run holds is about every cell, and of no use to a filter.
        rows = [
            (
                run_name(run),
                clean(run.results.name),
                len(run.results.loaded.records),
                differences_text(run.differences),
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
            caption="Runs",
        )
        if self.left_out:
            yield table(
                self.left_out,
                [code("Folder", lambda row: clean(row.name)), words("Left out", lambda row: clean(row.why))],
                caption="Left out",
            )
        problems = [(run.results.name, problem) for run in self.history.runs for problem in run.results.loaded.problems]
        if problems:
            yield table(problems, problem_columns(), folded="Problems")

    def _methods(self) -> Iterator[Part]:
        yield Prose(
            "A series is cut where the ranks before and after differ most (Pettitt 1979), and its parts again. Chance is told by "
            "permuting whole runs, and corrected for all series by the smallest probability of each permutation (Westfall and Young "
            "1993): half of 5 % for whole stages, half for single cells. How far apart the sides are, and whether that is "
            "within the margin, is said by the same tests as in a comparison. Runs of a machine that drifts, or that resemble the "
            "run before them, are not exchangeable: changes are then found too often."
        )

    def _chart(self, series: Series, name: str) -> Chart:
        changes = [change for change in self.history.changes if change.series is series]
        each, runs = series.chosen, self.history.runs
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
            (float(place + 1), low)
            for place in series.places
            if any(difference.kind != "variable" for difference in runs[place].differences)
        ]
        if moves:
            lines.append(Line(points=moves, style=_MOVED, joined=False))
            names.append(("machine or software changed", _MOVED))
        unit = f" ({scale.unit})" if scale.unit and series.cell is not None else ""
        found = "; ".join(f"{change.outcome} from run {change.at + 1}, {change_text(change)}" for change in changes)
        title = f"{self._names[series]}: {found or 'no change is told from chance'}"
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
        )


def run_name(run: Run) -> str:
    """Name a run by its time, to the minute."""
    return run.at.strftime("%Y-%m-%d %H:%M")


def history_page(followed: Followed, home: str = "") -> bytes:
    """Return the page of a study's history. `home`: the page of all studies, where there is one."""
    return page_of(
        made_sections(followed.sections(), drawn=True),
        kind="history",
        title=followed.title,
        about=[f"{count(len(followed.history.series), 'series', 'series')}"],
        chips=outcome_chips(followed.history.changes),
        home=home,
    )
