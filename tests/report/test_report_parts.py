"""What sections are put together from, and what a page of many cells leaves out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from markupsafe import Markup

from transect.analysis.load import Loaded
from transect.report.engine.answers import Answer, Clause
from transect.report.engine.blocks import (
    Body,
    Chart,
    Charts,
    Chip,
    Explained,
    Heading,
    Lead,
    Prose,
    Table,
    digits,
    note,
    table,
    words,
)
from transect.report.engine.charts.chart import Point, Series, gather
from transect.report.engine.charts.theme import Style, Styles
from transect.report.engine.collect import MadeSection, make_section
from transect.report.engine.context import Context
from transect.report.engine.decision import Decision
from transect.report.engine.decisions import Decided, DecisionTable, Entry, Row
from transect.report.engine.finding import Finding
from transect.report.engine.page import Front, Shown, shortened
from transect.report.engine.paginate import fitted
from transect.report.engine.parts import DecisionColumn, Section
from transect.report.engine.shell import templates
from transect.report.engine.text import in_unit, percent, without_half_code
from transect.stats.comparisons import Confidence


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


def test_what_explains_folds_at_the_end_and_an_empty_section_is_not_there() -> None:
    shown = Prose("It.")
    body = Body.of([Lead("What. Why so. And how."), note("First."), shown, note("last"), Explained("More.")])
    assert body == Body(lead="What.", blocks=[shown, note("last"), Explained("Why so. And how.\n\nFirst.\n\nMore.")])
    assert Body.of([Lead("What."), note("That is all.")]) == Body(lead="What.", blocks=[note("That is all.")])
    assert Body.of([Lead("Why. So.", empty="No cell."), None]) == Body(lead="No cell.", blocks=[])
    assert Body.of([Lead("Why. So.")]) == Body(lead="Why. So.", blocks=[]) and Body.of([]) is None
    nothing = Section(key="x", title="X", order=1, make=lambda _: [Lead("Why.", empty="No cell.")])
    assert make_section(nothing, Context(Loaded(study="empty"), title="empty")) is None
    with pytest.raises(TypeError, match="a section yields a str"):
        Body.of(["Why."])


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


COLUMNS = [words("Name", lambda n: f"row {n}"), digits("Value", lambda n: n / 7)]


def section(*lengths: int) -> MadeSection:
    blocks = [table(range(length), COLUMNS) for length in lengths]
    return MadeSection(key="k", title="T", body=Body(lead="", blocks=blocks))


def rows(made: MadeSection) -> list[int]:
    return [len(block.rows) for block in made.body.blocks if isinstance(block, Table)]


def test_prose(snapshot: Any) -> None:
    """What is said of what a page leaves out."""
    [cut] = fitted([section(300)], 100)
    style = Styles([], []).get("one")
    points = [Point(x=x, repeats=[1.0]) for x in range(5000)]
    long = [block for n in range(40) for block in (Heading(f"workload {n}"), table(range(20), COLUMNS))]
    _, short = fitted([section(5), MadeSection(key="l", title="L", body=Body(lead="", blocks=long))], size=20_000)
    assert snapshot == {
        "rows": cut.body.blocks[0].note,  # type: ignore[union-attr]
        "runs": gather([Series(name="s", style=style, points=points)])[1],
        "the end of a section": short.body.blocks[-1].text,  # type: ignore[union-attr]
    }


def test_the_longest_tables_lose_their_rows_first_and_say_how_many() -> None:
    given = [section(300, 5), section(40, 200)]
    assert fitted(given, 1000) == given
    first, second = fitted(given, 200)
    assert rows(first) == [77, 5] and rows(second) == [40, 77]
    assert sum(rows(first) + rows(second)) <= 200
    [cut, whole] = first.body.blocks
    assert isinstance(cut, Table) and isinstance(whole, Table)
    assert cut.note.startswith("223 more rows") and whole.note == ""
    assert len(cut.about) == 77
    assert {len(held) for held in cut.numbers.values()} == {1 + 77}
    assert cut.rows[76] == given[0].body.blocks[0].rows[76]  # type: ignore[union-attr]


def test_long_texts_take_as_much_room_as_they_are_long() -> None:
    blocks = [table(range(200), [words("Name", lambda n: "x" * 400)]), Prose("y" * 9000)] * 5
    [cut] = fitted([MadeSection(key="k", title="T", body=Body(lead="", blocks=blocks))], size=200_000)
    page = templates().get_template("section.html.j2").render(body=cut.body)
    assert 50_000 < len(page) < 220_000


def test_a_chart_of_thousands_of_runs_draws_medians_and_quartiles() -> None:
    style = Styles([], []).get("one")
    points = [Point(x=x, repeats=[y, y + 1.0, y + 2.0]) for x in (1, 2, 4) for y in range(500)]
    [gathered], remark = gather([Series(name="s", style=style, points=points)])
    assert remark.startswith("4500 runs are")
    assert [(point.x, point.y) for point in gathered.points] == [(1, 251), (2, 251), (4, 251)]
    assert list(gathered.points[0].repeats) == [1, 126, 251, 375, 500]
    few = [Series(name="s", style=style, points=points[:9])]
    assert gather(few) == (few, "")


def test_the_end_of_a_section_that_is_too_long_is_left_out_and_counted() -> None:
    long = []
    for n in range(40):
        long += [Heading(f"workload {n}"), table(range(20), COLUMNS), Prose("x" * 100)]
    given = [MadeSection(key="long", title="L", body=Body(lead="", blocks=long)), section(5)]
    first, second = fitted(given, size=20_000)
    assert second == given[1]
    *before, remark = first.body.blocks
    assert before == long[: len(before)]
    page = templates().get_template("section.html.j2")
    written = page.render(body=Body(lead="", blocks=before))
    assert 8_000 < len(written) <= 20_000
    left = [block for block in long[len(before) :] if isinstance(block, Table)]
    assert isinstance(remark, Prose) and f"{len(left)} tables" in remark.text
    assert "Left out here" in remark.text and "records.parquet" in remark.text
    assert f"workload {-(-len(before) // 3)}, " in remark.text and "more. " in remark.text


def test_a_page_of_hundreds_of_workloads_names_what_it_leads_to_and_counts_the_rest() -> None:
    column = DecisionColumn(key="train", title="Train", order=1, stage="train")
    findings = [
        Finding(
            subject=f"w{n}",
            claim=f"claim {n}.",
            confidence=Confidence.CONFIRMED,
            evidence="e",
            kind="fastest",
            rule="r",
        )
        for n in range(400)
    ]
    shown = [Shown(finding=finding, anchor=f"finding-{n}", cells=(), command="") for n, finding in enumerate(findings)]
    decision = Decision(column="train", winner="a")
    rows = tuple(
        Row(subject=f.subject, entries=(Entry(column=column, decided=(Decided(decision=decision, finding=f),)),))
        for f in reversed(findings)
    )
    front = Front(
        banner=(),
        answers=(Answer(question="?", clauses=(Clause(about="", text="c", finding=findings[350]),)),),
        table=DecisionTable(columns=(column,), rows=rows, absent=()),
        first=tuple(shown[:7]),
        more=tuple((item.finding.subject, (item,)) for item in shown[7:]),
        tally="",
        all={id(item.finding): item for item in shown},
    )
    fit = shortened(front, most=30, rows=20)
    kept = {item.finding.subject for _, members in fit.more for item in members}
    assert kept == {f"w{n}" for n in (*range(380, 400), 350, 7, 8)}
    assert (fit.left_out, fit.rows_left_out, len(fit.table.rows)) == (370, 380, 20)
    assert fit.all == front.all
    assert shortened(replace(fit, left_out=0), most=400).left_out == 0


def test_half_of_a_code_makes_no_code_of_what_follows() -> None:
    assert without_half_code("not there: `make i…") == "not there: 'make i…"
    assert without_half_code("not there: `make` it…") == "not there: `make` it…"
