"""A page of many cells: what it leaves out, it says, and what it draws together, too."""

from __future__ import annotations

from transect.report.blocks import Body, Charts, Table, digits, table, words
from transect.report.charts.chart import Point, Series, gather, line_chart
from transect.report.charts.theme import palette
from transect.report.fitting import LEAST_ROWS, fitted
from transect.report.making import MadeSection

COLUMNS = [words("Name", lambda n: f"row {n}"), digits("Value", lambda n: n / 7)]


def section(*lengths: int) -> MadeSection:
    blocks = [table(range(length), COLUMNS) for length in lengths]
    return MadeSection(key="k", title="T", body=Body(lead="", blocks=blocks))


def rows(made: MadeSection) -> list[int]:
    return [len(one.rows) for one in made.body.blocks if isinstance(one, Table)]


def test_the_longest_tables_lose_their_rows_first_and_say_how_many() -> None:
    given = [section(300, 5), section(40, 200)]
    assert fitted(given, 1000) == given
    first, second = fitted(given, 200)
    assert rows(first) == [77, 5] and rows(second) == [40, 77]
    assert sum(rows(first) + rows(second)) <= 200
    [cut, whole] = first.body.blocks
    assert isinstance(cut, Table) and isinstance(whole, Table)
    assert cut.note.startswith("223 more rows are not shown here") and whole.note == ""
    assert len(cut.about) == 77
    assert {len(text.split(",")) for text in cut.exact.values()} == {77}
    assert cut.rows[76] == given[0].body.blocks[0].rows[76]  # type: ignore[union-attr]


def test_every_table_keeps_some_rows_and_counts_those_it_had_left_out_before() -> None:
    [made] = fitted([section(*[400] * 9)], 10)
    assert rows(made) == [LEAST_ROWS] * 9
    # 300 of 400 stood in the table before.
    assert {one.note.split(" ")[0] for one in made.body.blocks if isinstance(one, Table)} == {
        str(400 - LEAST_ROWS)
    }


def test_a_chart_of_thousands_of_runs_draws_medians_and_quartiles() -> None:
    [style] = palette(1)
    points = [Point(x=x, repeats=[y, y + 1.0, y + 2.0]) for x in (1, 2, 4) for y in range(500)]
    [one], said = gather([Series(name="s", style=style, points=points)])
    assert said.startswith("4500 runs are too many")
    assert [(point.x, point.y) for point in one.points] == [(1, 251), (2, 251), (4, 251)]
    assert list(one.points[0].repeats) == [1, 126, 251, 375, 500]
    few = [Series(name="s", style=style, points=points[:9])]
    assert gather(few) == (few, "")
    many = [Point(x=x, repeats=[1.0]) for x in range(5000)]
    [spread], _ = gather([Series(name="s", style=style, points=many)])
    places = [point.x for point in spread.points]
    assert len(places) < 60 and places[0] == 0 and places[-1] == 4999

    chart = line_chart(
        [Series(name="s", style=style, points=points)], range(3), COLUMNS, title="t", x="x", y="y",
        name="n", alt="a", most=4,
    )  # fmt: skip
    assert said in chart.note and chart.svg.count("<path") < 60
    assert Charts(items=[chart]).items[0].table.rows
