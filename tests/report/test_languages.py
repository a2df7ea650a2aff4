"""What a report says of Go beside Python, and of what each has to have installed, from made-up records."""

from __future__ import annotations

import pytest
from rank_records import repeated
from said_of_records import Made, Sets, context, findings, prose, ratios

from transect.analysis.comparisons import Confidence
from transect.analysis.languages import GOAL, installed, is_other, languages
from transect.domain.record import Cause, Status

SIZES = {"go": (9e6, 1), "numpy": (4e8, 7574), "torch": (5.2e9, 21479)}


def cells(framework: str, step_s: float = 1e-3, times: int = 6, **axes):
    """Make the same cell in one framework, on one rank."""
    size, files = SIZES[framework.partition("-")[0]]
    changes = {"environment_bytes": size, "environment_files": files}
    given = {"strategy": "single", "ranks": 1, "workload": "digits-cnn", "batch": 64} | axes
    return repeated(times, framework=framework, computing=step_s, changes=changes, **given)


def crowd(framework: str, **axes):
    return cells(framework, ranks=8, strategy="mpi-allreduce", **axes)


def few(**how):
    """Make two runs a side, of which Go's take 1.5 times as long."""
    return [*cells("go", 1.5e-3, times=2, **how), *cells("numpy", times=2, **how)]


SETS = Sets(
    faster=lambda: [*cells("go-openblas", 0.8e-3), *cells("numpy")],
    within=lambda: [*cells("go-openblas", 1.08e-3), *cells("numpy")],
    beyond=lambda: [*cells("go-openblas", 1.3e-3), *cells("numpy")],
    at_the_goal=lambda: [*cells("go-openblas", 1.1e-3), *cells("numpy")],
    one_run=lambda: [*cells("go", 2e-3, times=1), *cells("numpy", times=1)],
    two_runs=few,
    # Repeats of torch are four times apart: the noise of this workload is too large for two runs.
    two_runs_in_noise=lambda: [*few(), *cells("torch", times=2, spread=3.0)],
    # Each side's own repeats are 30 % apart: what is 1.5 times as long may be noise.
    two_loud_runs=lambda: few(spread=0.3),
    crowded=lambda: [*cells("go", cores=0), *cells("numpy", cores=0)],
    three=lambda: [*cells("go"), *cells("numpy"), *cells("torch")],
)


def test_prose(snapshot):
    section = Made("languages", *SETS["three"]).prose
    assert prose(SETS, "language", "installed") | {"section": section} == snapshot


@pytest.mark.parametrize("name", ["go", "go-openblas", "go-gorgonia"])
def test_frameworks_of_another_language_are_known_by_name(name):
    assert is_other(name) and not is_other("gopher") and not is_other("numpy")


def test_python_alone_has_no_such_section():
    records = [*cells("numpy"), *cells("torch")]
    assert not {"language", "installed"} & findings(*records).keys()
    with pytest.raises(AssertionError):
        Made("languages", *records)


def only_pair(name):
    made = context(*SETS[name])
    return next(one for one in languages(made.of("train"), made.floors) if one.other.cell.framework == "numpy")


@pytest.mark.parametrize(
    ("name", "ratio", "reached", "confidence"),
    [
        ("faster", 0.8, True, Confidence.CONFIRMED),
        ("within", 1.08, True, Confidence.CONFIRMED),
        ("beyond", 1.3, False, Confidence.CONFIRMED),
        ("at_the_goal", 1.1, None, Confidence.INCONCLUSIVE),
        # One run a side decides no goal, and neither does a miss within the noise.
        ("one_run", 2.0, None, Confidence.INCONCLUSIVE),
        ("two_runs", 1.5, False, None),
        ("two_runs_in_noise", 1.5, False, Confidence.PROVISIONAL),
        ("two_loud_runs", 1.5, None, Confidence.INCONCLUSIVE),
        ("crowded", 1.0, None, Confidence.INCONCLUSIVE),
    ],
)
def test_a_step_in_go_is_held_against_numpy_on_equal_work(name, ratio, reached, confidence):
    found, pair = SETS.only("language", name), only_pair(name)
    assert GOAL == 1.1 and pair.reached is reached and confidence in (None, found.confidence)
    assert pair.result.ratio.value == pytest.approx(ratio, rel=1e-3)
    assert [one.cell for one in found.groups] == [pair.group.cell, pair.other.cell]
    said = {True: "within the goal of 1.1", False: "beyond the goal of 1.1", None: "cannot be told"}
    assert [each for each, words in said.items() if words in found.text.replace("is within", "")] == [reached]
    # Without them two sentences on one workload would contradict each other.
    assert found.scope.startswith("batch ") and found.scope.endswith(", 1 thread")
    assert "CPU use 97 %" in found.evidence
    # Beside the others that a study's findings make, it may be chance.
    if not pair.result.over_subscribed:
        assert ratios(found) == pytest.approx([ratio], rel=1e-3)


def test_only_cells_that_differ_in_nothing_else_are_compared():
    records = [*cells("go"), *cells("numpy", threads=2), *cells("numpy", batch=32), *cells("numpy", precision="fp64")]
    made = context(*records)
    assert languages(made.of("train"), made.floors) == []
    assert "language" not in findings(*records)


def test_ranks_of_two_languages_are_no_rival_in_python():
    groups = [
        record.model_copy(update={"cell": record.cell.changed(framework=framework)})
        for framework in ("go", "go+numpy", "numpy")
        for record in cells("go", ranks=2, strategy="mpi-allreduce")
    ]
    made = context(*groups)
    (pair,) = languages(made.of("train"), made.floors)
    assert (pair.group.cell.framework, pair.other.cell.framework) == ("go", "numpy")


def test_a_wrong_trainer_is_compared_with_nobody():
    wrong = {"status": Status.FAILED, "cause": Cause.WRONG_RESULT, "message": "leaves at step 3"}
    bad = [one.model_copy(update=wrong) for one in cells("go", 1e-6)]
    assert not {"language", "installed"} & findings(*bad, *cells("numpy")).keys()


def test_cells_on_shared_cores_decide_no_goal_and_ranks_are_no_finding_of_their_own():
    shared = [*crowd("go"), *crowd("numpy")]
    [row] = Made("languages", *shared).table("digits-cnn: steps in Go")
    assert row["Goal 1.1"] == "shares cores" and (row["Go"], row["Beside"]) == ("go", "numpy")
    assert "language" not in findings(*shared)


def test_what_has_to_be_installed_stands_beside_it():
    found = SETS.only("installed", "three")
    assert found.confidence is Confidence.CONFIRMED and found.subject == "digits-cnn"
    told = installed(context(*SETS["three"]).of("train"), "digits-cnn")
    assert [(row.bytes, row.files) for row in told] == list(SIZES.values())
    assert [row.first_step_s for row in told] == pytest.approx([0.3022] * 3, rel=1e-3)
    # 4e8 / 9e6 bytes.
    for words in ("1 file of 8.58 MiB", "7574 files", "381 MiB", "44.4 times"):
        assert words in found.text
    assert "torch 302 ms" in found.evidence
    made = Made("languages", *SETS["three"])
    rows = made.table("digits-cnn: deployment")
    assert [row["Framework"] for row in rows] == ["go", "numpy", "torch"]
    assert rows[0]["Files"] == "1" and rows[2]["Size"] == "4.84 GiB"
    times = {head: value for head, value in rows[0].items() if head.startswith("Start to")}
    assert list(times.values()) == ["302 ms"] and rows[0]["Memory at rest"] == "47.7 MiB"
    assert made.chart("What has to be").table.rows


def test_a_framework_whose_size_nobody_knows_is_in_no_table_of_sizes():
    without = [
        one.model_copy(update={"metrics": [m for m in one.metrics if not m.name.startswith("env")]})
        for one in cells("torch")
    ]
    rows = Made("languages", *cells("go"), *cells("numpy"), *without).table("digits-cnn: deployment")
    assert [row["Framework"] for row in rows] == ["go", "numpy"]
