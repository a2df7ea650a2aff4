"""The pictures of a whole study: each shows what was decided, and nothing that was not."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import Any

import pytest
from said_of_records import context

from factories import bench_cell, infer_cell, make_record, train_cell
from transect.analysis.labels import people_name
from transect.analysis.load import Loaded
from transect.analysis.quality import score_of
from transect.domain.record import Cause, Record, Samples, Status
from transect.domain.study import Question
from transect.report.engine.blocks import Chart, Chip
from transect.report.engine.charts.inks import GOOD, MUTED, WARN
from transect.report.engine.charts.marks import Dot
from transect.report.engine.charts.plots import dot_plot
from transect.report.engine.charts.slide import HEIGHT, WIDTH, Column, draw
from transect.report.engine.charts.theme import Style
from transect.report.engine.collect import make_findings
from transect.report.engine.context import Context
from transect.report.engine.decisions import decision_table
from transect.report.engine.parts import all_parts
from transect.report.topics.pictures.course import course_charts
from transect.report.topics.pictures.forest import forest_charts
from transect.report.topics.pictures.front import front_body
from transect.report.topics.pictures.scores import curve, score_charts
from transect.stats.comparisons import Confidence
from transect.stats.verdicts import Answer

TARGET = {"quality": {"metric": "accuracy", "target": 0.9, "reached": True}}
NOISE = (1.0, 1.01, 0.99, 1.005, 0.995)


def trained(framework: str, step: float, *, repeats: int = 5, spread: float = 1.0, **axes: Any) -> list[Record]:
    """Runs of a framework whose step takes so long, and the target a hundred steps."""
    return [
        make_record(
            train_cell(framework, repeat, **axes),
            {"step_time": time, "time_to_quality": 100 * time, "steps_to_quality": 100, "accuracy": 0.95},
            details={**TARGET, "disturbed": False},
            started=f"2026-01-01T00:{repeat:02d}:00+00:00",
            ended=f"2026-01-01T00:{repeat:02d}:20+00:00",
        )
        for repeat, time in enumerate(step * NOISE[n] ** spread for n in range(repeats))
    ]


def charts(parts: Any) -> list[Chart]:
    return [part for part in parts if isinstance(part, Chart)]


def test_every_asked_comparison_is_drawn_with_the_interval_that_decided_it() -> None:
    made = context(*trained("numpy", 1e-3), *trained("torch", 2e-3), *trained("go", 2.02e-3))
    [chart] = charts(forest_charts(made))
    drawn = {(mark.low, mark.value, mark.high) for mark in chart.marks if mark.label}
    asked = [pair for pair in made.contrasts if pair.asked]
    assert asked and drawn == {(pair.cost.low, pair.cost.value, pair.cost.high) for pair in asked}
    ends = {answer: sum(pair.answer is answer for pair in asked) for answer in Answer}
    assert f"{len(asked)} comparisons" in chart.title and f"{ends[Answer.DIFFERENT]} different" in chart.title


def test_a_comparison_has_the_colour_of_how_sure_it_is() -> None:
    made = context(*trained("numpy", 1e-3), *trained("torch", 2e-3))
    [chart] = charts(forest_charts(made))
    [pair] = [pair for pair in made.contrasts if pair.asked]
    ink = {Confidence.CONFIRMED: "--good", Confidence.PROVISIONAL: "--warn", Confidence.INCONCLUSIVE: "--muted"}
    assert ink[pair.confidence] in str(chart.svg)
    assert {GOOD, WARN, MUTED}.isdisjoint(re.findall(r"#[0-9a-f]{6}", str(chart.svg)))


def test_an_open_interval_is_cut_and_says_so_in_its_numbers() -> None:
    wild = trained("go", 1e-3, spread=60)
    made = context(*trained("numpy", 1e-3), *trained("torch", 1.5e-3), *wild)
    [chart] = charts(forest_charts(made))
    pair = max((pair for pair in made.contrasts if pair.asked), key=lambda pair: pair.half_width)
    assert pair.answer is Answer.OPEN
    widest = max(mark.high or 0 for mark in chart.marks)
    # The page tells the true ends of a line that the drawing cuts.
    assert math.isclose(widest, max(p.cost.high for p in made.contrasts if p.asked))


def test_an_asked_comparison_without_an_interval_is_drawn_as_not_known() -> None:
    made = context(*trained("numpy", 1e-3, repeats=1), *trained("torch", 2e-3, repeats=1))
    [single] = [pair for pair in made.contrasts if pair.metric == "step_time"][:1]
    made.contrasts._made = [(pair, replace(single, asked=True)) for pair, _ in made.contrasts.by_pair()][:1]
    assert single.decision is None or math.isinf(single.half_width)
    [chart] = charts(forest_charts(made))
    assert "1 not known" in chart.title and [row[5] for row in chart.table.rows] == ["open"]


def test_a_long_heading_of_rows_is_whole() -> None:
    head = "digits-mlp, beside ONNX Runtime (Python) exported by torch.export (batch 32)"
    rows = [Dot(label=name, value=1.0, style=Style("#000000"), head=head) for name in ("C", "Go")]
    drawing = dot_plot(rows, title="times")
    texts = [row["left"] for made in drawing["layer"] for row in made["data"]["values"] if "left" in row]
    assert " ".join(text for text in texts if text not in ("C", "Go")) == head
    assert [mark.parts for mark in drawing.marks if not mark.label] == [range(2, 4)] * 2


def test_the_first_screen_shows_what_the_first_question_is_about() -> None:
    served = [
        make_record(infer_cell(runtime, repeat), {"latency": time, "end_to_end_time": time})
        for runtime, time in (("python", 1e-5), ("torch-eager", 7e-5))
        for repeat in range(3)
    ]
    records = [*trained("numpy", 1e-3), *trained("torch", 2e-3), *served]
    [training] = charts(front_body(context(*records, asks=["training.fastest"])))
    [serving] = charts(front_body(context(*records, asks=["serving.runtime"])))
    assert "time to accuracy 0.9" in training.axis and "time of a call" in serving.axis
    assert training.title == "iris-mlp: numpy leads; PyTorch takes 2 times as long per step"


def test_a_decision_its_finding_and_its_bars_name_one_winner_and_none_is_sure_beside_an_unknown_rival() -> None:
    # Run alone the first is faster, and by whole calls, which decide, the second.
    served = [
        make_record(
            infer_cell(runtime, repeat, batch=batch, exporter="dynamo"),
            {"latency": run * NOISE[repeat], "end_to_end_time": call * NOISE[repeat], "throughput": batch / run},
            details={"run_includes": ["bind"] if runtime == "c" else []},
        )
        for runtime, run, call in (("python", 1e-5, 4e-5), ("c", 2e-5, 2.1e-5), ("go", 2e-5, 2.1e-5))
        for batch in (1, 32)
        for repeat in range(5)
    ]
    wild = trained("jax", 1e-3, spread=60)
    made = context(*trained("numpy", 1e-3), *trained("torch", 2e-3), *wild, *served)
    parts = all_parts()
    table = decision_table(made, parts.columns, make_findings(made, parts.findings))
    cells = [one for row in table.rows for entry in row.entries for one in entry.decided if one.decision.winner]
    assert {one.decision.column for one in cells} >= {"train", "serve-one", "serve-many"}
    for one in cells:
        first = people_name(one.finding.groups[0].cell, never=("exporter",))
        assert one.decision.winner.startswith(first) and one.bars[0].name.startswith(first), one.finding.claim
        assert not one.decision.unknown or one.finding.confidence is not Confidence.CONFIRMED
        assert one.bars[0].value.split()[0] in f"{one.decision.value} {one.finding.claim}"
    assert any(one.decision.unknown for one in cells)


def test_what_stands_beside_each_other_differs_by_the_ratio_of_the_pairs() -> None:
    # More starts of one framework take twice as many steps.
    longer = [
        make_record(train_cell("numpy", n), {"step_time": 1e-3, "time_to_quality": 0.2, "steps_to_quality": 200})
        for n in range(5, 12)
    ]
    made = context(*trained("numpy", 1e-3), *longer, *trained("torch", 2e-3))
    [chart] = charts(front_body(made))
    # The medians of their own runs are the same, and stand in the table.
    assert [row[2] for row in chart.table.rows] == ["200", "200"], chart.table.rows
    assert [round(mark.value or 0.0, 3) for mark in chart.marks if mark.label] == [200.0, 400.0]


def test_a_time_to_the_target_is_no_multiple_by_a_ratio_of_steps() -> None:
    # Twice as fast a step, and four times as many of them.
    many = [
        make_record(
            train_cell("torch", n), {"step_time": 5e-4, "time_to_quality": 0.2 + n / 1e4, "steps_to_quality": 400 + n}
        )
        for n in range(5)
    ]
    made = context(*trained("numpy", 1e-3), *many)
    [chart] = charts(front_body(made))
    values = {mark.label: mark.value for mark in chart.marks if mark.label}
    assert values["numpy"] < 110 < 190 < values["PyTorch"] < 210 and "PyTorch leads" not in chart.title


def test_a_title_names_no_leader_that_the_runs_do_not_show() -> None:
    made = context(*trained("numpy", 1e-3, spread=30), *trained("torch", 1.02e-3, spread=30))
    [chart] = charts(front_body(made))
    assert "lead" not in chart.title and chart.title == "iris-mlp: time to accuracy 0.9"


def test_a_workload_whose_target_nobody_reached_says_so() -> None:
    missed = [
        make_record(train_cell(name, n), {"step_time": 1e-3, "accuracy": 0.5}, details=TARGET)
        for name in ("numpy", "torch")
        for n in range(3)
    ]
    [chart] = charts(front_body(context(*missed)))
    assert "no run reached accuracy 0.9" in chart.title and "step" in chart.axis


def test_kernels_go_by_their_programming_model_and_under_their_threads() -> None:
    records = [
        make_record(
            bench_cell("docking-probe", {"implementation": model, "deck": "medium"}, threads=threads, repeat=repeat),
            {"pose_time": time / threads},
        )
        for model, time in (("openmp", 1e-5), ("rust", 2e-5))
        for threads in (1, 2)
        for repeat in range(3)
    ]
    [chart] = charts(front_body(context(*records, asks=["docking.fastest"])))
    assert [row[0] for row in chart.table.rows] == ["OpenMP", "Rust"] * 2
    # A heading stands for its rows, not for itself.
    assert [mark.parts for mark in chart.marks if not mark.label] == [range(1, 3), range(4, 6)]


def trained_so(framework: str, repeat: int, ends: list[float], accuracy: list[float], **details: Any) -> Record:
    samples = {
        name: Samples(unit=unit, values=values, count=len(values))
        for name, unit, values in (("epoch_end", "s", ends), ("accuracy", "1", accuracy))
    }
    metrics = {
        "step_time": ends[-1] / 100,
        "time_to_quality": ends[-1],
        "steps_to_quality": 10,
        "accuracy": accuracy[-1],
    }
    return make_record(train_cell(framework, repeat), metrics, details={**TARGET, **details}, samples=samples)


def test_accuracy_is_that_of_the_middle_quiet_run_and_never_falls() -> None:
    runs = [
        trained_so("numpy", 0, [1, 2, 3], [0.5, 0.8, 0.92]),
        trained_so("numpy", 1, [1, 2, 4], [0.5, 0.4, 0.93]),
        trained_so("numpy", 2, [1, 2, 5], [0.5, 0.8, 0.94]),
        trained_so("numpy", 3, [1, 2, 900], [0.5, 0.8, 0.95], disturbed=True),
        trained_so("torch", 0, [2, 4, 8], [0.6, 0.7, 0.91]),
    ]
    [chart] = charts(score_charts(context(*runs)))
    numpy_line = next(mark for mark in chart.marks if mark.label.startswith("numpy"))
    assert numpy_line.about is not None
    assert chart.title == "iris-mlp: each way gets to accuracy 0.9 in every run"
    made = context(*runs)
    [group] = [group for group in made.of("train") if group.cell.framework == "numpy"]
    assert curve(made, group, score_of([group])) == [(1, 0.5), (2, 0.5), (4, 0.93)]


def test_the_course_counts_what_ran_and_marks_what_was_disturbed() -> None:
    ran = trained("numpy", 1e-3)
    loud = make_record(
        train_cell("torch"),
        {"step_time": 2e-3},
        details={"disturbed": True, "rank_usage": [{"wall_s": 5.0}], "waited_s": 10.0},
        started="2026-01-01T00:10:00+00:00",
        ended="2026-01-01T00:10:20+00:00",
        provenance={"guard_before": [{"foreign": [{"name": "make", "cores": 1.2}], "unseen_cores": 0.1}]},
    )
    skipped = make_record(
        train_cell("go"), status=Status.SKIPPED, cause=Cause.MISSING_DEPENDENCY, started="2026-01-02T00:00:00+00:00"
    )
    lanes, _ = charts(course_charts(context(*ran, loud, skipped)))
    assert lanes.title == "6 runs in 5 minutes, 1 disturbed"
    [row] = lanes.table.rows
    # Half of the ten seconds that the run did not wait for others was measured.
    assert row[3] == "50 %" and row[4] == "1"
    assert [mark.label for mark in lanes.marks] == ["train iris-mlp", "other programs"]
    assert "up to 1.3 cores" in str(lanes.svg)


def test_turns_tell_what_was_measured() -> None:
    from transect.report.topics.pictures.course import _measured

    turns = {"heat": "a", "seconds": [1e-3, 2e-3], "counts": [100, 50], "quiet": [True, True]}
    assert _measured(make_record(train_cell(), details={"turns": turns})) == pytest.approx(0.2)
    assert _measured(make_record(train_cell())) is None
    for broken in ({}, {"seconds": None, "counts": [1]}, {"seconds": [None], "counts": [1]}):
        odd = make_record(train_cell("go"), details={"turns": broken})
        lanes, *_ = charts(course_charts(context(*trained("numpy", 1e-3), odd)))
        assert "1 run left out of that: their turns cannot be read." in lanes.note


def test_repeats_stand_beside_the_middle_of_their_own_cell() -> None:
    made = context(*trained("numpy", 1e-3), *trained("torch", 5.0))
    _, repeats = charts(course_charts(made))
    values = [mark.value for mark in repeats.marks if mark.what == "value"]
    assert len(values) == 10 and max(value for value in values if value) == pytest.approx(1.01)
    assert repeats.title == "10 of 10 repeats within 5 % of the middle of their cell"


SAID = ("digits-cnn: PyTorch on one core, 0.35 s; numpy takes 1.9 times as long " * 9, Chip("sure", "good"))
BARS = (("PyTorch <b>&", 0.5, "350 ms"), ("numpy", 1.0, "670 ms"))


def test_the_page_for_a_slide_stays_on_its_page_whatever_it_says() -> None:
    columns = [Column(question="Which is faster? " * 20, said=[SAID] * 4, bars=BARS, about="digits-cnn")] * 3
    page = ET.fromstring(draw("A title " * 40, columns, caveat="But " * 90, source="s " * 200))
    space = "{http://www.w3.org/2000/svg}"
    assert all(
        0 < float(text.get("x", 0)) < WIDTH and 0 < float(text.get("y", 0)) < HEIGHT
        for text in page.iter(f"{space}text")
    )
    assert all(
        float(box.get("x", 0)) + float(box.get("width", "0").rstrip("%")) <= WIDTH for box in page.iter(f"{space}rect")
    )
    words = "".join(page.itertext())
    assert "PyTorch <b>&" in words and "more in the report" in words


def test_a_study_without_an_answer_has_no_page_for_a_slide() -> None:
    from transect.report.engine.decisions import DecisionTable
    from transect.report.engine.slide import slide_of

    made = Context(Loaded(study="empty"), title="empty")
    made.questions = [Question(ask="?", answered_by=["training.fastest"])]
    assert slide_of(made, [], DecisionTable(columns=(), rows=(), absent=()), "s") == ""
