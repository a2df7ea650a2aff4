"""What a report says of Go beside Python, and of what each has to have installed, from made-up records."""

from __future__ import annotations

from rank_records import repeated
from said_of_records import Made, Sets, context, findings, prose

from transect.analysis.languages import languages
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
    shared = [*crowd("go"), *crowd("numpy")]
    unknown = [
        one.model_copy(update={"metrics": [m for m in one.metrics if not m.name.startswith("env")]})
        for one in cells("torch")
    ]
    sections = {
        "section": Made("languages", *SETS["three"]).prose,
        "section of shared cores": Made("languages", *shared).prose,
        "section without a size": Made("languages", *cells("go"), *cells("numpy"), *unknown).prose,
    }
    assert prose(SETS, "language", "installed") | sections == snapshot


def test_only_cells_that_differ_in_nothing_else_are_compared():
    records = [*cells("go"), *cells("numpy", threads=2), *cells("numpy", batch=32), *cells("numpy", precision="fp64")]
    made = context(*records)
    assert languages(made.of("train"), made.floors) == []
    assert "language" not in findings(*records)


def test_a_wrong_trainer_is_compared_with_nobody():
    wrong = {"status": Status.FAILED, "cause": Cause.WRONG_RESULT, "message": "leaves at step 3"}
    bad = [one.model_copy(update=wrong) for one in cells("go", 1e-6)]
    assert not {"language", "installed"} & findings(*bad, *cells("numpy")).keys()
