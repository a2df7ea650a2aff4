"""Names at the ends of lines, places on their axes, and what is drawn in place of a line."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from transect.report.engine.blocks import Mark, digits
from transect.report.engine.charts.chart import Point, Series, line_chart
from transect.report.engine.charts.lines import MAX_NAMED, line_plot
from transect.report.engine.charts.marks import Line
from transect.report.engine.charts.theme import Styles

HEIGHT = 230
STYLES = Styles([], [])
STYLE = STYLES.get("one")


def names_of(drawing: dict) -> list[dict]:
    """The rows of the layer of names."""
    return [
        row
        for layer in drawing["layer"]
        if layer["mark"]["type"] == "text" and layer["mark"].get("dx") == 17
        for row in layer["data"]["values"]
    ]


@given(st.lists(st.floats(0, 100), min_size=2, max_size=MAX_NAMED))
def test_names_stand_apart_inside_of_the_drawing_in_the_order_of_their_ends(ends: list[float]) -> None:
    lines = [Line(points=[(1, 0), (2, end)], style=STYLE, name=f"line {n}") for n, end in enumerate(ends)]
    drawing = line_plot(lines, x_title="x", y_title="y", height=HEIGHT)
    low, high = drawing["layer"][0]["encoding"]["y"]["scale"]["domain"]
    tops = sorted((1 - (row["y"] - low) / (high - low)) * HEIGHT for row in names_of(drawing))
    assert len(tops) == len(ends) and tops[0] >= -1 and tops[-1] <= HEIGHT + 1
    assert all(b - a >= 12 for a, b in pairwise(tops))
    ordered = sorted(names_of(drawing), key=lambda row: -row["y"])
    assert [row["at"] for row in ordered] == sorted((row["at"] for row in ordered), reverse=True)


def test_a_name_belongs_to_the_mark_of_its_own_line() -> None:
    lines = [
        Line(points=[(1, 1), (2, n)], style=STYLE, name=name, marks=[Mark(label="a"), Mark(label="b")])
        for n, name in enumerate(("first", "second"), 1)
    ]
    drawing = line_plot(lines, x_title="x", y_title="y")
    labels = {row["t"]: drawing.marks[int(row["m"].removeprefix("~"))].label for row in names_of(drawing)}
    assert labels == {"first": "first", "second": "second"}


def test_series_beyond_the_eighth_are_grey_and_counted() -> None:
    lines = [Line(points=[(1, 1), (2, n)], style=STYLES.get(f"line {n}"), name=f"line {n}") for n in range(12)]
    drawing = line_plot(lines, x_title="x", y_title="y")
    assert len(names_of(drawing)) == MAX_NAMED and "4 more" in drawing.said
    strokes = {
        row["color"] for layer in drawing["layer"] if layer["mark"]["type"] == "line" for row in layer["data"]["values"]
    }
    assert len(strokes) == MAX_NAMED + 1


def test_what_has_no_place_on_a_log_axis_takes_its_dots_with_it_and_no_others() -> None:
    line = Line(
        points=[(1, 0.0), (2, 3.0)],
        scatter=[(1, 0.0), (2, 2.5), (2, 3.5)],
        of=[0, 1, 1],
        marks=[Mark(label="zero"), Mark(label="three")],
        style=STYLE,
        joined=False,
    )
    drawing = line_plot([line], x_title="x", y_title="y", y_log=True)
    assert [mark.label for mark in drawing.marks] == ["three", ""]
    rows = [row for layer in drawing["layer"] for row in layer["data"]["values"]]
    assert {(row["y"], row["m"]) for row in rows} == {(3.0, "@0"), (2.5, "@0"), (3.5, "@0")}


def test_two_places_are_bars_from_zero_with_their_bound() -> None:
    series = [Series(name="torch", style=STYLE, points=[Point(x=1, repeats=[10.0]), Point(x=2, repeats=[15.0, 17.0])])]
    chart = line_chart(
        series,
        [1],
        [digits("n", lambda n: n)],
        title="t",
        x="ranks",
        y="times",
        name="n",
        most=3,
        bound={1: 10.0, 2: 20.0},
        bound_name="ideal",
    )
    assert [(mark.label, mark.value) for mark in chart.marks] == [("torch · 1 ranks", 10.0), ("torch · 2 ranks", 16.0)]
    assert "Upright mark: ideal." in chart.note and not chart.legend


def test_each_name_of_a_report_has_a_hue_of_its_own_and_parts_have_others() -> None:
    names = ["numpy", "torch", "torch-eager", "python", "c", "rust", "go", "mine", "yours"]
    styles = Styles(names, [])
    hues = {name: styles.get(name).color for name in names}
    # One library under two names.
    assert hues["torch"] == hues["torch-eager"] and len(set(hues.values())) == len(names) - 1
    parts = {styles.get(part).color for part in ("compute", "communication", "input", "other")}
    assert len(parts) == 4 and parts.isdisjoint(hues.values())
    assert styles.get("never announced").color not in set(hues.values()) | parts
