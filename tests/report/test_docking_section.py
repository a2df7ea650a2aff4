"""The sections and the findings on docking, conformance, and models that are made, converted and loaded."""

from __future__ import annotations

from typing import Any

import pytest
from make_records import make_record
from said_of_records import Made, context, prose, rows, written
from said_of_records import context as context_of

from factories import bench_cell, log_run
from transect.analysis.groups import group_records
from transect.domain.axes.export import ConvertCell, ModelCell, RoundtripCell
from transect.domain.axes.retrain import StepCell
from transect.domain.cell import Cell
from transect.domain.record import Cause, MetricValue, Record, Status
from transect.report.engine.finding import Finding
from transect.report.topics import conformance
from transect.report.topics.docking.facts import contests, docking_rows
from transect.report.topics.docking.findings import docking_findings

REPEATS = 6


def ran(
    model: str,
    threads: int,
    time: float,
    *,
    per_item: int = 64,
    pin: str = "none",
    device: str = "cpu",
    deck: str = "medium",
) -> list[Record]:
    records = []
    for repeat in range(REPEATS):
        options = {"implementation": model, "deck": deck}
        # Without it a model has its own: 256 is numba's.
        options |= {"ppwi": per_item} if per_item not in (64, 256) else {}
        options |= {"pin": pin} if pin != "none" else {}
        cell = bench_cell("docking-probe", options, threads=threads, repeat=repeat, device=device)
        seconds = time * (1 + 0.001 * repeat)
        parameters = {"implementation": model, "deck": deck, "poses": 4096, "poses_per_item": per_item}
        run = log_run("output.log", "docking-probe", parameters=parameters)
        numbers = [
            MetricValue.of("pose_time", seconds, "pose-time_median"),
            MetricValue.of("interaction_rate", 24388 / seconds, "interactions_median"),
            MetricValue.of("kernel_flops", 30 * 24388 / seconds, "kernel_median"),
            MetricValue.of("warm_up_time", 0.5 if model == "numba" else seconds, "warm-up_first"),
        ]
        records.append(make_record(cell, numbers, details={"runs": [run]}))
    return records


def skipped(model: str, words: str) -> Record:
    cell = bench_cell("docking-probe", device="cuda", options=(("implementation", model),))
    return make_record(cell, status=Status.SKIPPED, cause=Cause.MISSING_DEPENDENCY, message=words)


RECORDS = [
    *ran("openmp", 1, 4e-6),
    *ran("openmp", 2, 2.1e-6),
    *ran("openmp", 2, 2.0e-6, pin="close"),
    *ran("openmp", 1, 60e-6, per_item=1),
    *ran("rust", 2, 4e-6),
    *ran("numba", 1, 9e-6, per_item=256),
    *ran("numba", 2, 6e-6, per_item=256),
    *ran("rust", 2, 1e-6, deck="small"),
    skipped("openacc", "clang: error: unknown argument: '-fopenacc'"),
]


def test_models_are_compared_on_equal_decks_poses_and_threads() -> None:
    found = contests(docking_rows(group_records(RECORDS)))
    assert {(contest.deck, contest.threads): [row.model for row in contest.rows] for contest in found} == {
        ("medium", 2): ["openmp", "openmp", "rust", "numba"],
        ("medium", 1): ["openmp", "numba", "openmp"],
        ("small", 2): ["rust"],
    }
    two = next(contest for contest in found if contest.threads == 2 and contest.deck == "medium")
    assert two.rows[0].pinned and [row.model for row in two.best_of_models] == ["openmp", "rust", "numba"]


def test_a_kernel_is_set_beside_the_reference_at_its_own_threads() -> None:
    [found] = [f for f in findings_of(*RECORDS) if f.topic == "fastest" and f.scope.endswith("2 threads")]
    ratios = {
        c.group.cell.get("options"): c.ratio for c in found.contrasts if "rust" in str(c.group.cell.get("options"))
    }
    [ratio] = ratios.values()
    # Beside OpenMP that is not pinned either.
    assert ratio.value == pytest.approx(4 / 2.1, rel=0.01) and ratio.low < ratio.value < ratio.high
    assert "Rust takes 2 times as long" in found.claim and "OpenMP (threads pinned) takes 2 µs a pose" in found.claim


def findings_of(*records: Record) -> list[Finding]:
    return docking_findings(context_of(*records))


def uneven() -> list[Record]:
    """Runs of two threads of which some scale and some do not."""
    records = [*ran("openmp", 1, 4e-6), *ran("openmp", 2, 2e-6)]
    for number, record in enumerate(record for record in records if record.cell.threads == 2):
        time = record.metrics[0]
        record.metrics[0] = MetricValue.of(time.name, time.value * (1 + number % 2), time.label)
    return records


SCALING = [*ran("openmp", 1, 4e-6), *ran("openmp", 2, 2e-6)]
CROWDED = [
    record.model_copy(update={"details": record.details | {"over_subscribed": True}})
    for record in ran("openmp", 16, 2e-6)
]
OTHER_DECK = [*ran("julia", 1, 8e-6), *ran("openmp", 1, 1e-7, deck="small")]
EQUALS = [
    *ran("openmp", 1, 4e-6),
    *ran("rust", 1, 4.001e-6),
    *ran("numba", 1, 4.002e-6),
    *ran("go", 1, 9e-6),
    skipped("openacc", "no compiler"),
]


def test_threads_beside_others_say_nothing() -> None:
    alone = [f for f in findings_of(*SCALING) if f.topic == "threads"]
    assert [(f.confidence, "times as fast" in f.claim) for f in alone] == [("confirmed", True)]
    shared = [r.model_copy(update={"details": r.details | {"disturbed": True}}) for r in SCALING]
    [found] = [f for f in findings_of(*shared) if f.topic == "threads"]
    assert found.confidence == "inconclusive" and "not known" in found.claim


def test_poses_per_work_item_are_set_beside_the_model_s_own() -> None:
    [found] = [
        f for f in findings_of(*ran("openmp", 1, 4e-6), *ran("openmp", 1, 6e-5, per_item=1)) if f.topic == "poses"
    ]
    assert found.confidence == "confirmed" and "1 takes 15 times as long" in found.claim


def test_prose(snapshot: Any) -> None:
    sets = {
        "all models": RECORDS,
        "uneven scaling": uneven(),
        "threads that share cores": [*SCALING, *CROWDED],
        "Julia on another deck": OTHER_DECK,
        "Julia on one deck": [*OTHER_DECK, *ran("openmp", 1, 4e-6)],
        "equals": EQUALS,
    }
    texts = {name: written(findings_of(*runs)) for name, runs in sets.items()}
    assert texts | {"section": Made("docking", *RECORDS).prose} == snapshot


KERNEL = {"outcome": "failed", "reason": "no kernel", "tests": ["test_a", "test_b"]}
WRONG = {"outcome": "wrong", "reason": "output 'y' differs", "tests": ["test_c"]}


def of_runtime(runtime: str, *not_passed: dict[str, Any], provider: str = "cpu", tests: int = 10) -> Record:
    """A record with five tests of opset 9 and the others of opset 13; what fails is of opset 13."""
    cell = Cell.of(stage="conformance", runtime=runtime, provider=provider)
    left = sum(len(group["tests"]) for group in not_passed)
    opsets = {"13": {"pass": tests - 5 - left, "failed": left}, "9": {"pass": 5}}
    details = {"tests": tests, "opsets": opsets, "not_passed": list(not_passed)}
    return make_record(cell, {"conformance_pass_rate": 1 - left / tests}, details=details)


OTHER = {**KERNEL, "tests": ["test_a", "test_d"]}
NOT_RUN = make_record(
    Cell.of(stage="conformance", runtime="go", provider="cpu"),
    status=Status.FAILED,
    cause=Cause.CRASH,
    message="it fell over",
)
LONGER = {**KERNEL, "reason": "OrtException: no kernel"}
SETS = {
    "two providers": [of_runtime("python"), of_runtime("python", WRONG, provider="cuda")],
    "all the same": [of_runtime("python", KERNEL), of_runtime("rust", KERNEL)],
    "different": [of_runtime("python"), of_runtime("rust", KERNEL, WRONG)],
    "as many others": [of_runtime("python", KERNEL), of_runtime("rust", OTHER)],
    "a longer message": [of_runtime("java", LONGER), of_runtime("python", KERNEL), of_runtime("rust")],
    "one not run": [of_runtime("python"), of_runtime("rust"), NOT_RUN],
}


@pytest.mark.parametrize(
    ("name", "passed", "differ"),
    [
        ("all the same", [8, 8], []),
        ("different", [10, 7], ["test_a", "test_b", "test_c"]),
        ("as many others", [8, 8], ["test_b", "test_d"]),
    ],
)
def test_runtimes_differ_in_tests_and_not_in_counts(name: str, passed: list[int], differ: list[str]) -> None:
    runtimes = conformance.tested(context(*SETS[name]))
    assert [runtime.passed for runtime in runtimes] == passed
    assert conformance.differing_tests(runtimes) == differ


def test_prose_conformance(snapshot: Any) -> None:
    sections = {f"section of {name}": Made("conformance", *runs).prose for name, runs in SETS.items()}
    assert prose(SETS, "conformance") | sections == snapshot


def ported(*ends: dict[str, Any]) -> list[Record]:
    """Cells of every stage that makes, converts or loads a file, ended so."""
    details = {
        "tolerance": {"y": 1e-5, "z": 1e-4},
        "tolerance_rule": "16 eps",
        "converter": "onnxruntime",
        "model_bytes_before": 100,
        "rows_compared": 5,
        "problems": {"a": {"not_checkable_from": 3, "detects_rate_error": 0.1}, "b": {}},
    }
    return [
        make_record(cell, {} if end else {"model_bytes": 80, "max_abs_difference": 1e-6}, details=details, **end)
        for n, end in enumerate(ends)
        for cell in (
            ModelCell(workload=f"w{n}", framework="torch", exporter="dynamo"),
            ConvertCell(workload=f"w{n}", exporter="dynamo", precision="fp16"),
            RoundtripCell(workload=f"w{n}", exporter="dynamo", loader="tensorflow"),
            StepCell(workload=f"w{n}", optimiser="sgd"),
        )
    ]


def test_prose_of_ported_models(snapshot: Any) -> None:
    failed = {"status": Status.FAILED, "cause": Cause.WRONG_RESULT, "message": "0.1 off"}
    skipped = {"status": Status.SKIPPED, "cause": Cause.UNSUPPORTED, "message": "no such operator"}
    records = ported({}, failed, skipped)
    assert {key: Made(key, *records).prose for key in ("models", "conversions", "roundtrips", "steps")} == snapshot


def test_without_the_reference_kernel_nothing_is_told_in_times_of_it() -> None:
    records = [*ran("rust", 1, 4e-6), *ran("rust", 1, 8e-6, per_item=1), *ran("numba", 1, 6e-6, per_item=256)]
    records += ran("numba", 1, 3e-6, per_item=4)
    beside = [*records, *ran("openmp", 1, 5e-6)]
    of_reference = [
        {row["times the reference"] for chart in Made("docking", *some).charts for row in rows(chart.table)}
        for some in (records, beside)
    ]
    assert of_reference[0] == {"–"} and "reference" in of_reference[1] and len(of_reference[1]) == 5
