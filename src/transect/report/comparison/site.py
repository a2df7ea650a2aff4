"""A folder of static pages: the history of each study, and an index of what changed in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from transect.analysis.history import Change
from transect.analysis.timelines import LeftOut
from transect.report.comparison.compare_page import CHIPS, outcome_chips
from transect.report.comparison.history_page import Followed, history_page, run_name
from transect.report.comparison.page import made_sections, page_of
from transect.report.comparison.words import ORDER, change_text, counted, differences_text, metric_name
from transect.report.engine.blocks import Chip, Column, Lead, Part, Prose, digits, table, words
from transect.report.engine.formats import Contents
from transect.report.engine.formats._walk import Names
from transect.report.engine.text import clean, count

INDEX = "index.html"


@dataclass(frozen=True, kw_only=True)
class _Changed:
    """A row of the index: what changed in which study."""

    followed: Followed
    change: Change
    link: Markup


def site_contents(studies: Sequence[Followed], left_out: Sequence[LeftOut]) -> Contents:
    """Return the pages: `index.html`, and one for each study by its name. `left_out` is in no study."""
    names = Names()
    files = {followed.study: f"study-{names.of(followed.study)}.html" for followed in studies}
    pages = {files[followed.study]: history_page(followed, home=INDEX) for followed in studies}
    return Contents(files={INDEX: _index(studies, files, left_out), **pages})


def _index(studies: Sequence[Followed], files: dict[str, str], left_out: Sequence[LeftOut]) -> bytes:
    links = {name: Markup('<a href="{}">{}</a>').format(file, clean(name)) for name, file in files.items()}
    changed = [
        _Changed(followed=followed, change=change, link=links[followed.study])
        for followed in studies
        for change in followed.changes
        if not change.shared
    ]
    changed.sort(key=lambda row: ORDER.index(row.change.outcome))

    def changes() -> Iterator[Part]:
        yield Lead(
            "Metrics that are another one from a run on, by more than chance among all series of their study explains. Each "
            "study has a page, where its levels, its runs and what else changed are drawn and listed."
        )
        if not changed:
            yield Prose("Nothing changed by more than chance explains.")
            return
        yield table(
            changed,
            [
                words("Study", lambda row: row.link),
                words("Verdict", lambda row: Chip(row.change.outcome.value, CHIPS[row.change.outcome])),
                words("Confidence", lambda row: row.change.confidence.value),
                words("Metric", lambda row: metric_name(row.change.series.chosen.metric)),
                words("Series", lambda row: row.followed.name_of(row.change.series)),
                words("From run", lambda row: run_name(row.followed.history.runs[row.change.at])),
                digits("Change", lambda row: change_text(row.change)),
                words("What else changed there", lambda row: differences_text(row.change.surroundings)),
            ],
            caption=counted([row.change for row in changed], same="within the margin"),
        )

    def every() -> Iterator[Part]:
        yield Lead("The latest run first.")
        latest = sorted(studies, key=lambda followed: followed.history.runs[-1].at, reverse=True)
        yield table(
            latest,
            [
                words("Study", lambda followed: links[followed.study]),
                digits("Runs", lambda followed: len(followed.history.runs)),
                words("First", lambda followed: run_name(followed.history.runs[0])),
                words("Latest", lambda followed: run_name(followed.history.runs[-1])),
                digits("Series", lambda followed: len(followed.history.series)),
                words("What became of it", lambda followed: followed.said),
            ],
            caption="Studies",
            most=len(latest),
        )

    def others() -> Iterator[Part]:
        if left_out:
            columns: list[Column[LeftOut]] = [
                words("What", lambda one: clean(one.name)),
                words("Why", lambda one: clean(one.why)),
            ]
            yield table(left_out, columns, caption="Not followed")

    sections = [("changes", "Changes", changes), ("studies", "Studies", every), ("left-out", "Left out", others)]
    return page_of(
        made_sections(sections, drawn=True),
        kind="trends",
        title=f"Trends of {count(len(studies), 'study', 'studies')}",
        about=[],
        chips=outcome_chips(row.change for row in changed),
    )
