"""A workload's own score in tables, charts and sentences: its name, and which way is better."""

from __future__ import annotations

import pytest
from said_of_records import context

from factories import make_record, train_cell
from transect.analysis.quality import misses_target, score_of
from transect.domain.record import MetricValue, Record, Samples
from transect.report.engine.blocks import Chart, Table
from transect.report.topics.distribution.frameworks import frameworks_body
from transect.report.topics.pictures.scores import curve, score_charts
from transect.report.topics.training.findings import training_findings
from transect.report.topics.training.speed import speed_body


def trained(framework: str, repeat: int, score: str, scores: list[float], *, target: float, reached: bool) -> Record:
    """A training of three epochs of a second each."""
    series = {"epoch_end": ("s", [1.0, 2.0, 3.0]), score: ("1", scores)}
    metrics = {"step_time": 1e-3, "samples_per_second": 1e4, score: scores[-1]}
    return make_record(
        train_cell(framework, repeat),
        metrics | ({"time_to_quality": 3.0, "steps_to_quality": 30} if reached else {}),
        details={"quality": {"metric": score, "target": target, "reached": reached}},
        samples={name: Samples(unit=unit, values=values, count=3) for name, (unit, values) in series.items()},
    )


def of_error(*, reached: bool) -> list[Record]:
    """Two frameworks by a mean squared error, which rises in the last epoch of the second."""
    target = 0.02 if reached else 0.001
    return [
        trained(framework, repeat, "mean_squared_error", scores, target=target, reached=reached)
        for framework, scores in (("numpy", [0.4, 0.05, 0.0101]), ("torch", [0.4, 0.0123, 0.015]))
        for repeat in range(3)
    ]


def column(table: Table, title: str) -> list[object]:
    place = [str(one.title) for one in table.columns].index(title)
    return [row[place] for row in table.rows]


HEAD = "Mean squared error (lower is better)"


def test_tables_and_charts_have_the_error_that_a_workload_is_scored_by() -> None:
    made = context(*of_error(reached=True))
    [table] = [part for part in frameworks_body(made) if isinstance(part, Table)]
    assert sorted(map(str, column(table, HEAD))) == ["0.0101", "0.015"]
    assert "Accuracy" not in [str(one.title) for one in table.columns]
    [rate, _] = [part for part in speed_body(made) if isinstance(part, Chart)]
    assert sorted(map(str, column(rate.table, HEAD))) == ["0.0101", "0.015"]
    assert f"At the right: {HEAD}." in rate.note
    [curves] = [part for part in score_charts(made) if isinstance(part, Chart)]
    assert sorted(map(str, column(curves.table, HEAD))) == ["0.0101", "0.015"]


def test_the_curve_of_an_error_is_the_least_so_far() -> None:
    made = context(*of_error(reached=True))
    [torch] = [group for group in made.of("train") if group.cell.framework == "torch"]
    assert curve(made, torch, score_of([torch])) == [(1.0, 0.4), (2.0, 0.0123), (3.0, 0.0123)]


def test_the_best_of_an_error_is_the_least() -> None:
    made = context(*of_error(reached=False))
    said = " ".join(finding.claim for finding in training_findings(made))
    assert "best 0.0101" in said
    group = made.of("train")[0]
    assert misses_target(group) and score_of([group]).lower


def test_an_accuracy_stands_as_before() -> None:
    made = context(*(trained("numpy", n, "accuracy", [0.5, 0.8, 0.973], target=0.95, reached=True) for n in range(3)))
    [table] = [part for part in frameworks_body(made) if isinstance(part, Table)]
    assert column(table, "Accuracy") == ["97.3 %"]
    assert misses_target(made.of("train")[0]) is False


@pytest.mark.parametrize(
    ("kept", "head", "lower"), [("own_error", "Val loss (lower is better)", True), ("own_score", "Val loss", False)]
)
def test_a_score_that_a_script_names_has_that_name(kept: str, head: str, lower: bool) -> None:
    records = [
        record.model_copy(update={"metrics": [*record.metrics, MetricValue.of(kept, 0.25, "val_loss")]})
        for record in (
            make_record(
                train_cell("numpy", n),
                {"step_time": 1e-3},
                details={"quality": {"metric": "val_loss", "target": 0.3, "reached": False}},
            )
            for n in range(3)
        )
    ]
    made = context(*records)
    [table] = [part for part in frameworks_body(made) if isinstance(part, Table)]
    assert column(table, head) == ["0.25"]
    assert score_of(made.of("train")).lower is lower


def test_a_score_s_own_name_comes_before_the_registrys():
    def told(value: float) -> Record:
        labelled = [MetricValue.of("own_score", value, "final_loss"), MetricValue.of("final_loss", 0.5)]
        quality = {"metric": "final_loss", "target": 0.8, "reached": True}
        return make_record(train_cell("numpy"), labelled, details={"quality": quality})

    (group,) = context(told(0.9)).of("train")
    score = score_of([group])
    assert not score.lower and score.at_end(group) == 0.9
