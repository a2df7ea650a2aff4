"""The section and the findings on docking, of made-up records."""

from __future__ import annotations

import pytest
from make_records import make_record

from transect.analysis.comparisons import Sureness
from transect.analysis.docking import contests, curves, docking_rows, without_result
from transect.analysis.groups import group_records
from transect.analysis.load import Loaded
from transect.domain.cell import Cell
from transect.domain.record import Cause, MetricValue, Record, Status
from transect.report.blocks import Body
from transect.report.context import Context
from transect.report.findings.docking import docking_findings
from transect.report.sections.docking import docking_body

REPEATS = 6


def ran(model: str, threads: int, time: float, *, per_item: int = 64, pin: str = "none", device: str = "cpu",
        deck: str = "medium") -> list[Record]:  # fmt: skip
    records = []
    for repeat in range(REPEATS):
        options = {"implementation": model, "ppwi": per_item, "deck": deck}
        options |= {"pin": pin} if pin != "none" else {}
        cell = Cell.of(stage="bench", benchmark="docking-probe", threads=threads, repeat=repeat, device=device,
                       options=tuple(sorted(options.items())))  # fmt: skip
        seconds = time * (1 + 0.001 * repeat)
        parameters = {
            "implementation": model,
            "deck": deck,
            "poses": 4096,
            "poses_per_item": per_item,
        }
        run = {"file": "output.log", "line": 1, "benchmark": "docking-probe", "status": "ok",
               "parameters": parameters, "metrics": []}  # fmt: skip
        numbers = [
            MetricValue.of("pose_time", seconds, "pose-time_median"),
            MetricValue.of("interaction_rate", 24388 / seconds, "interactions_median"),
            MetricValue.of("kernel_flops", 30 * 24388 / seconds, "kernel_median"),
            MetricValue.of("warm_up_time", 0.5 if model == "numba" else seconds, "warm-up_first"),
        ]
        records.append(make_record(cell, numbers, details={"runs": [run]}))
    return records


def skipped(model: str, words: str) -> Record:
    cell = Cell.of(stage="bench", benchmark="docking-probe", device="cuda",
                   options=(("implementation", model),))  # fmt: skip
    return make_record(cell, status=Status.SKIPPED, cause=Cause.MISSING_DEPENDENCY, message=words)


RECORDS = [
    *ran("openmp", 1, 4e-6), *ran("openmp", 2, 2.1e-6), *ran("openmp", 2, 2.0e-6, pin="close"),
    *ran("openmp", 1, 60e-6, per_item=1), *ran("rust", 2, 4e-6), *ran("numba", 1, 9e-6, per_item=256),
    *ran("numba", 2, 6e-6, per_item=256), *ran("rust", 2, 1e-6, deck="small"),
    skipped("openacc", "clang: error: unknown argument: '-fopenacc'"),
]  # fmt: skip


@pytest.fixture(scope="module")
def context() -> Context:
    return Context(Loaded(study="docking", records=RECORDS), title="Docking")


def test_models_are_compared_on_equal_decks_poses_and_threads() -> None:
    found = contests(docking_rows(group_records(RECORDS)))
    assert {(one.deck, one.threads): [row.model for row in one.rows] for one in found} == {
        ("medium", 2): ["openmp", "openmp", "rust", "numba"],
        ("medium", 1): ["openmp", "numba", "openmp"],
        ("small", 2): ["rust"],
    }
    two = next(one for one in found if one.threads == 2 and one.deck == "medium")
    assert two.rows[0].pinned and two.rival() is two.rows[2]
    ratio = two.times_the_fastest(two.rows[2])
    assert ratio is not None and ratio.value == pytest.approx(2.0, rel=0.01)
    assert ratio.low < 2 < ratio.high


def test_a_curve_needs_several_numbers_of_threads() -> None:
    found = curves(docking_rows(group_records(RECORDS)))
    assert sorted(curve.rows[0].model for curve in found) == ["numba", "openmp"]
    openmp = next(curve for curve in found if curve.rows[0].model == "openmp")
    speed_up = openmp.speed_up(openmp.rows[-1])
    assert speed_up is not None and speed_up.value == pytest.approx(4 / 2.1, rel=0.01)


def test_what_has_no_result_is_listed_with_its_words(context: Context) -> None:
    assert len(without_result(group_records(RECORDS))) == 1
    body = Body.of(docking_body(context))
    text = str(body)
    for part in (
        "Time per pose: medium, 4096 poses, 2 threads", "Scaling with threads, pinned and not",
        "unknown argument", "openmp close PPWI 64",
    ):  # fmt: skip
        assert part in text


def test_findings_say_who_is_fastest_and_what_claims_need(context: Context) -> None:
    said = [f"{one.scope}: {one.claim} {one.evidence}" for one in docking_findings(context)]
    fastest = next(one for one in said if one.startswith("medium, 4096 poses, 2 threads"))
    assert (
        "openmp close PPWI 64 is the fastest docking kernel: rust PPWI 64, the next model, takes 2"
        in fastest
    )
    assert "numba PPWI 256's, 500 ms" in fastest
    assert any(
        "is near-linear from 1 to 2 threads" in one and "95 % of linear" in one for one in said
    )
    claims = [one for one in said if "HPC assessment" in one]
    assert len(claims) == 3
    assert "measured here to 2 threads" in claims[0]
    assert "Julia did not run here; OpenMP itself takes 15 times" in claims[1]
    assert "no GPU took part here" in claims[2]


def test_scaling_that_cannot_be_told_is_not_decided() -> None:
    records = [*ran("openmp", 1, 4e-6), *ran("openmp", 2, 2e-6)]
    for number, record in enumerate(record for record in records if record.cell.threads == 2):
        time = record.metrics[0]
        # Some runs scale, some do not.
        record.metrics[0] = MetricValue.of(time.name, time.value * (1 + number % 2), time.label)
    (told,) = [
        one for one in docking_findings(Context(Loaded(study="d", records=records), title="D"))
        if "linear" in one.claim and one.kind == "docking"
    ]  # fmt: skip
    assert "may or may not be linear" in told.claim
    assert told.sureness is Sureness.OPEN


def test_threads_that_share_cores_claim_no_scaling() -> None:
    crowded = [
        record.model_copy(update={"details": record.details | {"over_subscribed": True}})
        for record in ran("openmp", 16, 2e-6)
    ]
    records = [*ran("openmp", 1, 4e-6), *ran("openmp", 2, 2e-6), *crowded]
    said = docking_findings(Context(Loaded(study="d", records=records), title="D"))
    (told,) = [one for one in said if "linear from" in one.claim]
    assert "from 1 to 2 threads" in told.claim
    assert any("measured here to 2 threads" in one.claim for one in said)
    alone = docking_findings(
        Context(Loaded(study="d", records=[*records[:6], *crowded]), title="D")
    )
    assert not [one for one in alone if "linear from" in one.claim]


def test_julia_stands_beside_openmp_on_its_own_deck_only() -> None:
    small = [*ran("julia", 1, 8e-6), *ran("openmp", 1, 1e-7, deck="small")]
    said = docking_findings(Context(Loaded(study="d", records=small), title="D"))
    (told,) = [one for one in said if "HPC assessment (GWDG SCC): Julia" in one.claim]
    assert "did not run on one thread and the deck of Julia here" in told.claim
    assert told.sureness is Sureness.OPEN
    both = [*small, *ran("openmp", 1, 4e-6)]
    said = docking_findings(Context(Loaded(study="d", records=both), title="D"))
    (told,) = [one for one in said if "HPC assessment (GWDG SCC): Julia" in one.claim]
    assert "Julia takes 2 times the time per pose" in told.claim


def test_a_study_without_docking_has_no_such_section() -> None:
    assert Body.of(docking_body(Context.empty())) is None
    assert docking_findings(Context.empty()) == []


def test_no_model_is_called_fastest_beside_equals_and_what_did_not_run_is_named() -> None:
    records = [
        *ran("openmp", 1, 4e-6), *ran("rust", 1, 4.001e-6), *ran("numba", 1, 4.002e-6),
        *ran("go", 1, 9e-6), skipped("openacc", "no compiler"),
    ]  # fmt: skip
    (told,) = [
        one for one in docking_findings(Context(Loaded(study="d", records=records), title="D"))
        if one.topic == "fastest"
    ]  # fmt: skip
    assert told.claim.startswith(
        "openmp PPWI 64, rust PPWI 64 and numba PPWI 64 are the fastest docking kernels and are the same within 5 %"
    )
    assert len(told.comparisons) == 3 and told.decision is not None
    assert told.decision.tied == ("rust PPWI 64", "numba PPWI 64") and told.decision.equal
    assert told.decision.second == "go PPWI 64"
    assert ["openacc" in one.what for one in told.decision.left_out] == [True]
    assert told.decision.left_out[0].why == "skipped: missing-dependency"
