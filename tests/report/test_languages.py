"""What a report says of Go beside Python, and of what each has to have installed, from made-up records."""

from __future__ import annotations

import pytest
from rank_records import repeated
from said_of_records import Made, context, findings, only

from transect.analysis.comparisons import Sureness
from transect.analysis.languages import GOAL, is_other, languages
from transect.domain.record import Cause, Status

SIZES = {"go": (9e6, 1), "numpy": (4e8, 7574), "torch": (5.2e9, 21479)}


def cells(framework: str, step_s: float = 1e-3, times: int = 6, **axes):
    """Make the same cell in one framework, on one rank."""
    size, files = SIZES[framework.partition("-")[0]]
    changes = {"environment_bytes": size, "environment_files": files}
    given = {"strategy": "single", "ranks": 1, "workload": "digits-cnn", "batch": 64} | axes
    return repeated(times, framework=framework, computing=step_s, changes=changes, **given)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("go", True),
        ("go-openblas", True),
        ("go-gorgonia", True),
        ("gopher", False),
        ("numpy", False),
    ],
)
def test_frameworks_of_another_language_are_known_by_name(name, other):
    assert is_other(name) is other


def test_python_alone_has_no_such_section():
    records = [*cells("numpy"), *cells("torch")]
    assert not {"language", "installed"} & findings(*records).keys()
    with pytest.raises(AssertionError):
        Made("languages", *records)


@pytest.mark.parametrize(
    ("step_s", "said", "sureness"),
    [
        (0.8e-3, "within the goal of 1.1", Sureness.FIRM),
        (1.08e-3, "within the goal of 1.1", Sureness.FIRM),
        (1.3e-3, "beyond the goal of 1.1", Sureness.FIRM),
        (1.1e-3, "whether that is within the goal of 1.1 cannot be told", Sureness.OPEN),
    ],
)
def test_a_step_in_go_is_held_against_numpy_on_equal_work(step_s, said, sureness):
    found = only("language", *cells("go-openblas", step_s), *cells("numpy"))
    assert GOAL == 1.1 and said in found.text and found.sureness is sureness
    # Without them two sentences on one workload would contradict each other.
    assert found.scope.startswith("batch ") and found.scope.endswith(", 1 thread")
    assert "on equal work" in found.text and "CPU use 97 % and 97 %" in found.evidence


def test_one_run_a_side_decides_no_goal_and_neither_does_a_miss_within_the_noise():
    alone = only("language", *cells("go", 2e-3, times=1), *cells("numpy", times=1))
    assert alone.sureness is Sureness.OPEN and "cannot be told" in alone.text
    few = [*cells("go", 1.5e-3, times=2), *cells("numpy", times=2)]
    assert "beyond the goal" in only("language", *few).text
    # Repeats of torch are four times apart: the noise of this workload is too large for two runs.
    found = only("language", *few, *cells("torch", times=2, spread=3.0))
    assert found.sureness is Sureness.TENTATIVE and "noise floor of 300" in found.evidence
    # Each side's own repeats are 30 % apart: what is 1.5 times as long may be noise.
    loud = [*cells("go", 1.5e-3, times=2, spread=0.3), *cells("numpy", times=2, spread=0.3)]
    found = only("language", *loud)
    assert found.sureness is Sureness.OPEN and "cannot be told" in found.text
    # Beside the others that a study's findings make, it may be chance.
    assert [len(one.comparisons) for one in (found, alone)] == [1, 1]


def test_only_cells_that_differ_in_nothing_else_are_compared():
    records = [*cells("go"), *cells("numpy", threads=2), *cells("numpy", batch=32),
               *cells("numpy", precision="fp64")]  # fmt: skip
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
    shared = [*cells("go", ranks=8, strategy="mpi-allreduce"),
              *cells("numpy", ranks=8, strategy="mpi-allreduce")]  # fmt: skip
    [row] = Made("languages", *shared).table("digits-cnn: steps in Go")
    assert row["Goal 1.1"] == "shares cores" and (row["Go"], row["Beside"]) == ("go", "numpy")
    assert "language" not in findings(*shared)
    crowded = [*cells("go", cores=0), *cells("numpy", cores=0)]
    found = only("language", *crowded)
    assert found.sureness is Sureness.OPEN and "cannot be told" in found.text


def test_what_has_to_be_installed_stands_beside_it():
    records = [*cells("go"), *cells("numpy"), *cells("torch")]
    found = only("installed", *records)
    assert found.sureness is Sureness.FIRM
    assert "go needs 1 file of 8.58 MiB before it trains" in found.text
    assert "numpy, 7574 files of 381 MiB, 44.4 times as many bytes" in found.text
    assert "torch 302 ms" in found.evidence
    made = Made("languages", *records)
    rows = made.table("digits-cnn: deployment in numbers")
    assert [row["Framework"] for row in rows] == ["go", "numpy", "torch"]
    assert rows[0]["Files"] == "1" and rows[2]["Size"] == "4.84 GiB"
    assert (
        rows[0]["Start to the first step's end"] == "302 ms"
        and rows[0]["Memory at rest"] == "47.7 MiB"
    )
    assert made.chart("What has to be installed").table.rows


def test_a_framework_whose_size_nobody_knows_is_in_no_table_of_sizes():
    without = [
        one.model_copy(update={"metrics": [m for m in one.metrics if not m.name.startswith("env")]})
        for one in cells("torch")
    ]
    rows = Made("languages", *cells("go"), *cells("numpy"), *without).table(
        "digits-cnn: deployment"
    )
    assert [row["Framework"] for row in rows] == ["go", "numpy"]
