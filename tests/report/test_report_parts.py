"""What sections are put together from: columns, parts, series."""

from __future__ import annotations

import pytest
from markupsafe import Markup

from transect.report.blocks import Body, Chart, Charts, Chip, Heading, Lead, Prose, Table, digits, note, words
from transect.report.charts.chart import Point, Series
from transect.report.charts.theme import Style
from transect.report.text import in_unit, percent


def chart(title: str) -> Chart:
    return Chart(title=title, drawing=Markup(""), table=Table(columns=[], rows=[]))


@pytest.mark.parametrize(
    ("column", "item", "entry"),
    [
        (digits("Runs", len), "abc", "3"),
        (digits("Bytes", lambda item: item), 12345, "12345"),
        (digits("Rate", lambda item: item), 12345.6, "12\u202f346"),
        (digits("Share", lambda item: item, percent), 0.25, "25 %"),
        (digits("Time", lambda item: item, in_unit("s")), 0.002, "2 ms"),
        (digits("Share", lambda item: item, percent), None, "–"),
        (digits("Share", lambda item: item, percent, "not told"), None, "not told"),
        (digits("Ratio", lambda item: item, percent), "none", "none"),
        (words("", lambda item: item), None, None),
        (words("", lambda item: item), Chip("disturbed", "warn"), Chip("disturbed", "warn")),
    ],
)
def test_a_column_writes_numbers_and_leaves_words(column, item, entry) -> None:
    assert column.entry(item) == entry


def test_a_body_gathers_neighbouring_charts_and_drops_nothing_else() -> None:
    a, b, c = chart("a"), chart("b"), chart("c")
    body = Body.of([Lead("Why."), Heading("x"), a, None, b, note("between"), c])
    assert body == Body(
        lead="Why.", blocks=[Heading("x"), Charts(items=[a, b]), Prose("between", quiet=True), Charts(items=[c])]
    )


def test_a_body_says_when_it_has_nothing_to_show() -> None:
    # A folded section shows how it begins: why it would be of use is no news where it holds nothing.
    assert Body.of([Lead("Why.", empty="No cell."), None]) == Body(lead="No cell.", blocks=[])
    assert Body.of([Lead("Why.", empty="No cell."), Prose("It.")]) == Body(lead="Why.", blocks=[Prose("It.")])
    assert Body.of([Lead("Why.")]) == Body(lead="Why.", blocks=[])
    assert Body.of([]) is None


def test_points_without_a_claim_are_drawn_apart_and_not_joined() -> None:
    series = Series(
        name="a",
        style=Style("#000000"),
        points=[
            Point(x=4, repeats=[1.0, 3.0], hollow=True),
            Point(x=2, repeats=[5.0]),
            Point(x=1, repeats=[1.0, 2.0, 9.0]),
        ],
    )
    solid, hollow = series.lines()
    assert solid.joined and not solid.hollow
    assert solid.points == [(1, 2.0), (2, 5.0)]
    assert list(solid.scatter) == [(1, 1.0), (1, 2.0), (1, 9.0), (2, 5.0)]
    assert not hollow.joined and hollow.hollow
    assert hollow.points == [(4, 2.0)]
