"""What a report says of ranks that share a model, of overlap, memory and published claims, from cells that ran."""

from __future__ import annotations

from functools import partial

import pytest
from co_design_records import changed, measured, write_measured
from said_of_records import Made, context, findings, only

from transect.analysis.claims import CLAIMS
from transect.analysis.comparisons import Sureness
from transect.analysis.out_of_core import sweeps
from transect.analysis.parallelism import division, ideal_bubble
from transect.domain.record import Cause, Status
from transect.report.build import build_report
from transect.report.making import all_parts, make_section

KEYS = ("pipelines", "exchange", "memory", "claims")
WRONG = {
    "status": Status.FAILED,
    "cause": Cause.WRONG_RESULT,
    "message": "the loss leaves at step 3",
}
NO_ROOM = {
    "status": Status.FAILED,
    "cause": Cause.OUT_OF_MEMORY,
    "message": "can't allocate memory",
}
BUDGET = 100 * 2**20


def quiet(record, step_s: float, repeats: int = 6, **more):
    """Repeat a record as on a quiet machine: six runs that differ by a thousandth each."""
    return [
        changed(record, {"step_time": step_s * (1 + n / 1000), "samples_per_second": 64 / step_s},
                axes={"repeat": n}, **more)
        for n in range(repeats)
    ]  # fmt: skip


def first(**axes):
    return measured("train", **axes)[0]


def swept(memory: str, batch: int, *, step_s: float = 0.01, budget: int | None = BUDGET, **more):
    """Make a sweep's cells of a pipeline-free training that ran."""
    record = first(strategy="mpi-allreduce", ranks_per_node=2)
    axes = {"memory": memory, "batch": batch, "memory_budget": budget}
    return [
        changed(one, axes=axes | {"repeat": n}, **more)
        for n, one in enumerate(quiet(record, step_s, details={"global_batch": batch}))
    ]


@pytest.mark.parametrize("key", KEYS)
def test_without_such_cells_there_is_no_section(key):
    [section] = [one for one in all_parts().sections if one.key == key]
    plain = measured("train", strategy="mpi-allreduce")
    assert make_section(section, context(*plain)) is None
    kinds = {"pipeline", "exchange", "memory", "claim"}
    assert not kinds & findings(*plain).keys()


def test_the_layout_of_a_record_is_read():
    hybrid = context(first(strategy="mpi-pipeline", ranks_per_node=4)).of("train")[0]
    found = division(hybrid)
    assert found is not None and found.hybrid
    assert (found.replicas, found.parts, found.micro_batches) == (2, 2, 4)
    assert len(found.stages) == 2 and found.stages[0][0][0] == 0
    assert found.stages[0][0][1] == found.stages[1][0][0]
    assert found.bubble == pytest.approx(0.2) == ideal_bubble(2, 4)


def test_a_schedule_of_several_parts_has_no_such_formula_and_all_its_layers():
    record = first(strategy="mpi-pipeline", ranks_per_node=2)
    ranks = [
        {"schedule": "zbv", "layers": [[0, 2], [5, 6]]},
        {"schedule": "zbv", "layers": [[2, 4], [4, 5]]},
    ]
    found = division(context(changed(record, details={"ranks": ranks})).of("train")[0])
    assert found is not None and found.bubble is None
    assert found.stages == (((0, 2), (5, 6)), ((2, 4), (4, 5)))


def test_a_pipeline_stands_beside_the_best_that_shares_the_data_alone():
    pipeline = first(strategy="mpi-pipeline", ranks_per_node=2, framework="numpy", options=())
    rival = first(strategy="mpi-allreduce", ranks_per_node=2)
    found = only("pipeline", *quiet(pipeline, 0.008), *quiet(rival, 0.01))
    assert found.text.startswith(
        "digits-mlp numpy, batch 64, 2 ranks: mpi-pipeline, one model in 2 parts, takes 0.8 times "
        "(95 % interval "
    )
    assert "the step of mpi-allreduce" in found.text and found.sureness is Sureness.FIRM
    assert "of equal stages 20 %" in found.evidence
    made = Made("pipelines", *quiet(pipeline, 0.008), *quiet(rival, 0.01))
    [row, other] = made.table("Shortest step first")
    assert (row["Strategy"], row["Replicas x parts"], row["Schedule"]) == (
        "mpi-pipeline",
        "1 x 2",
        "1f1b",
    )
    assert row["Verdict"] == "shorter" and row["Reference"] == "followed"
    assert row["of equal stages"] == "20 %" and other["Strategy"] == "mpi-allreduce"
    assert made.chart("Bubble").table.rows and made.chart("Step time").table.rows


def test_ranks_that_share_cores_decide_nothing():
    hybrid = first(strategy="mpi-pipeline", ranks_per_node=4)
    rival = first(strategy="mpi-allreduce", ranks_per_node=4)
    assert hybrid.details["over_subscribed"] and rival.details["over_subscribed"]
    found = only("pipeline", *quiet(hybrid, 0.005), *quiet(rival, 0.01))
    assert found.sureness is Sureness.OPEN
    assert found.text.endswith("; ranks share cores, so this decides nothing.")
    [row, _] = Made("pipelines", *quiet(hybrid, 0.005), *quiet(rival, 0.01)).table("Shortest")
    assert row["Verdict"] == "open: shared cores"


def test_a_wrong_pipeline_wins_nothing_and_is_shown_as_such():
    pipeline = first(strategy="mpi-pipeline", ranks_per_node=2, framework="numpy", options=())
    rival = first(strategy="mpi-allreduce", ranks_per_node=2)
    bad = quiet(pipeline, 1e-6, **WRONG)
    assert "pipeline" not in findings(*bad, *quiet(rival, 0.01))
    table = Made("pipelines", *bad, *quiet(rival, 0.01)).table("Shortest")
    assert [row["Strategy"] for row in table] == ["mpi-allreduce", "mpi-pipeline"]
    assert table[1]["Reference"] == "wrong result" and table[1]["Verdict"] == "None"


def test_without_a_rival_nothing_is_compared():
    pipeline = first(strategy="mpi-pipeline", ranks_per_node=2, framework="numpy", options=())
    assert "pipeline" not in findings(*quiet(pipeline, 0.008))
    [row] = Made("pipelines", *quiet(pipeline, 0.008)).table("Shortest step first; nothing shares")
    assert "Verdict" not in row


def test_an_exchange_that_overlaps_stands_beside_the_blocking_one():
    base = first(strategy="mpi-bcast-reduce")
    faster = first(strategy="mpi-overlap", options=(("progress", "thread"),))
    parts = {"compute_time": 0.004, "communication_total_time": 0.006}
    slow = [changed(one, parts) for one in quiet(base, 0.010)]
    found = only("exchange", *slow, *quiet(faster, 0.0066))
    assert "SC-OBR by mpi-overlap (progress thread) takes 0.66 times" in found.text
    # The longer part is 6 ms.
    assert "; 1.1" in found.text and "times the longer of its computing" in found.text
    assert found.sureness is Sureness.FIRM
    made = Made("exchange", *slow, *quiet(faster, 0.0066))
    table = made.table("Variants")
    assert [row["Variant"] for row in table] == ["SC-B", "SC-OBR"]
    assert [row["Verdict"] for row in table] == ["the base", "shorter"]
    assert made.chart("What a step is made of").table.rows


def test_an_exchange_on_a_busy_machine_is_open():
    """Steps of three runs, as far apart as they were beside nine other users of two cores."""

    def busy(record, *steps: float):
        return [
            changed(record, {"step_time": step_s}, axes={"repeat": n})
            for n, step_s in enumerate(steps)
        ]

    found = only("exchange", *busy(first(strategy="mpi-bcast-reduce"), 0.024, 0.046, 0.925),
                 *busy(first(strategy="mpi-overlap", options=()), 0.02, 0.04, 0.08))  # fmt: skip
    assert found.sureness is Sureness.OPEN and "cannot tell the two apart" in found.text


def test_variants_without_the_blocking_one_are_listed_and_compared_with_nothing():
    alone = quiet(first(strategy="mpi-overlap", options=()), 0.01)
    assert "exchange" not in findings(*alone)
    assert Made("exchange", *alone).table("Variants; mpi-bcast-reduce did not run here")


def test_a_batch_past_the_memory_stands_beside_the_one_that_fits():
    records = [
        *swept("plain", 64), *swept("plain", 128, **NO_ROOM),
        *swept("offload-file", 512, step_s=0.096), *swept("plain", 512, step_s=0.08, budget=None),
    ]  # fmt: skip
    found = only("memory", *records)
    assert found.text.startswith(
        "digits-mlp numpy, mpi-allreduce, 2 ranks, within 100 MiB: offload-file trains batch 512, 8 times what fits in plain "
        "memory, and each sample takes 1.2 times (95 % interval "
    )
    assert "plain memory runs out at batch 128" in found.evidence
    assert "what is bounded takes 1.2 times" in found.evidence
    assert found.sureness is Sureness.FIRM
    table = Made("memory", *records).table("The tightest budget first")
    row = next(row for row in table if row["Memory"] == "offload-file")
    assert row["Times what fits"] == "8" and row["Beside no limit"].startswith("1.2 (")
    assert row["Same digits"] == "yes"
    assert [row["Outcome"] for row in table] == ["trained", "out of memory", "trained", "trained"]


def test_trainings_of_other_options_are_no_sweep_of_one_another():
    records = [*swept("plain", 64), *swept("plain", 128, **NO_ROOM)]
    other = [
        changed(one, axes={"strategy": "mpi-hierarchical", "options": (("result", "all"),)})
        for one in swept("recompute", 512)
    ]
    usual = [changed(one, axes={"strategy": "mpi-hierarchical"}) for one in records]
    found = sweeps(context(*usual, *other).of("train"), context().floors)
    assert [[row.group.cell.batch for row in one.rows] for one in found] == [[64, 128], [512]]
    made = Made("memory", *usual, *other)
    heads = [part.text for part in made.headings]
    assert len(set(heads)) == 2 and any("result all" in head for head in heads)


def test_where_nobody_asked_plain_memory_for_more_it_may_fit():
    found = only("memory", *swept("plain", 64), *swept("recompute", 512, step_s=0.1))
    assert found.sureness is Sureness.OPEN and "so more may fit" in found.evidence


def test_other_digits_than_plain_memory_are_shown():
    off = swept("recompute", 64)
    off = [changed(one, {"final_loss": (one.value("final_loss") or 0) + 1e-12}) for one in off]
    table = Made("memory", *swept("plain", 64), *off).table("The tightest budget first")
    assert [row["Same digits"] for row in table] == ["None", "no"]


def test_every_published_claim_is_answered_or_says_what_it_needs():
    pipeline = first(strategy="mpi-pipeline", ranks_per_node=2, framework="numpy", options=())
    found = findings(pipeline)["claim"]
    assert len(found) == len(CLAIMS) == 6
    assert all(one.sureness is Sureness.OPEN and "it needs" in one.evidence for one in found)
    table = Made("claims", pipeline).table("Published and here")
    assert [row["Published"] for row in table] == ["133x", "5x", "1.9x", "1.6x", "110x", "481x"]
    assert {row[""] for row in table} == {"open"}


@pytest.mark.parametrize(
    ("step_s", "said", "sureness"),
    [
        (0.005, "as much as published, or more", Sureness.FIRM),
        (0.008, "a gain, but less than published", Sureness.FIRM),
        (0.012, "no gain at all", Sureness.FIRM),
        (0.01, "not decided", Sureness.OPEN),
    ],
)
def test_the_claim_on_hybrids_is_held_against_data_parallelism(step_s, said, sureness):
    hybrid = first(strategy="mpi-pipeline", ranks_per_node=4)
    rival = changed(
        first(strategy="mpi-allreduce", ranks_per_node=4), axes={"strategy": "ddp-gloo"}
    )
    alone = partial(quiet, details={"over_subscribed": False})
    found = findings(*alone(hybrid, step_s), *alone(rival, 0.01))["claim"]
    [claim] = [one for one in found if "HyPar-Flow, data and model" in one.text]
    assert claim.text.endswith(f"here, {said}.") and claim.sureness is sureness
    assert "mpi-pipeline (stages 2) beside ddp-gloo" in claim.evidence
    # On shared cores the same numbers decide nothing.
    found = findings(*quiet(hybrid, step_s), *quiet(rival, 0.01))["claim"]
    assert all(one.sureness is Sureness.OPEN for one in found)


def test_the_best_of_several_comparisons_says_so():
    own, flat = (
        first(strategy="mpi-hierarchical"),
        first(strategy="mpi-allreduce", ranks_per_node=2),
    )
    times = {"communication_total_time": 0.002}
    records = [*quiet(own, 0.01), *[changed(one, times) for one in quiet(flat, 0.01)]]
    other = [changed(one, axes={"batch": 128}) for one in records]
    found = findings(*records, *other)["claim"]
    assert "the most of 2 comparisons" in found[0].evidence


def test_a_whole_report_can_be_made_of_the_cells_that_ran(tmp_path):
    summary = build_report(
        write_measured(tmp_path / "co-design"), tmp_path / "report.html", title="T", questions=[]
    )
    assert summary["problems"] == []
    page = (tmp_path / "report.html").read_text()
    for key in ("pipelines", "exchange", "claims"):
        assert f'<section id="{key}">' in page
