"""What a report says of shared models, overlap, memory, late gradients and published claims, from cells that ran."""

from __future__ import annotations

from functools import partial

import pytest
from co_design_records import changed, measured
from said_of_records import Made, context, findings, only, prose, shipped

from transect.analysis.claims import Decided, Verdict
from transect.analysis.parallelism import best_of, division, ideal_bubble, rivalries
from transect.domain.record import Cause, Status
from transect.report.engine.blocks import Chip
from transect.report.engine.finding import median
from transect.report.topics.asynchronous import asynchronous_groups
from transect.report.topics.claims.findings import decided_claims
from transect.report.topics.parallel.exchange import exchanges
from transect.report.topics.parallel.memory import sweeps
from transect.stats.comparisons import Confidence

WORKS = [shipped("s-caffe"), shipped("hypar-flow")]
FAILED = {"status": Status.FAILED, "message": "why"}
WRONG, NO_ROOM = (FAILED | {"cause": cause} for cause in (Cause.WRONG_RESULT, Cause.OUT_OF_MEMORY))
BUDGET = 100 * 2**20


def quiet(record, step_s: float, repeats: int = 6, **more):
    """Repeat a record as on a quiet machine: six runs that differ by a thousandth each."""
    return [
        changed(
            record,
            {"step_time": step_s * (1 + n / 1000), "samples_per_second": 64 / step_s},
            axes={"repeat": n},
            **more,
        )
        for n in range(repeats)
    ]


def first(**axes):
    return measured("train", **axes)[0]


def swept(memory: str, batch: int, *, step_s: float = 0.01, budget: int | None = BUDGET, **more):
    """Make a sweep's cells of a pipeline-free training that ran."""
    record = first(strategy="mpi-allreduce", ranks_per_node=2)
    axes = {"memory": memory, "batch": batch, "memory_budget": budget}
    return [
        changed(run, axes=axes | {"repeat": n}, **more)
        for n, run in enumerate(quiet(record, step_s, details={"global_batch": batch}))
    ]


def busy(record, *steps: float):
    return [changed(record, {"step_time": step_s}, axes={"repeat": n}) for n, step_s in enumerate(steps)]


RIVAL = first(strategy="mpi-allreduce", ranks_per_node=2)
PIPELINE = first(strategy="mpi-pipeline", ranks_per_node=2, framework="numpy", options=())
HYBRID = first(strategy="mpi-pipeline", ranks_per_node=4)
OVERLAP = first(strategy="mpi-overlap", options=(("progress", "thread"),))
BLOCKING = first(strategy="mpi-bcast-reduce")
BESIDE = [*quiet(PIPELINE, 0.008), *quiet(RIVAL, 0.01)]
CROWDED = [*quiet(HYBRID, 0.005), *quiet(first(strategy="mpi-allreduce", ranks_per_node=4), 0.01)]
PARTS = {"compute_time": 0.004, "communication_total_time": 0.006}
OVERLAPPED = [*[changed(run, PARTS) for run in quiet(BLOCKING, 0.010)], *quiet(OVERLAP, 0.0066)]
# Steps of three runs, as far apart as they were beside nine other users of two cores.
BUSY = [*busy(BLOCKING, 0.024, 0.046, 0.925), *busy(first(strategy="mpi-overlap", options=()), 0.02, 0.04, 0.08)]
PAST = [
    *swept("plain", 64),
    *swept("plain", 128, **NO_ROOM),
    *swept("offload-file", 512, step_s=0.096),
    *swept("plain", 512, step_s=0.08, budget=None),
]
NOT_ASKED = [*swept("plain", 64), *swept("recompute", 512, step_s=0.1)]


def against_ddp(step_s: float, *, over: bool):
    """A hybrid's steps beside those of DDP, which take 10 ms; `over`: their ranks share cores."""
    ddp = changed(first(strategy="mpi-allreduce", ranks_per_node=4), axes={"strategy": "ddp-gloo"})
    made = partial(quiet, details={"over_subscribed": over})
    return [*made(HYBRID, step_s), *made(ddp, 0.01)]


def other_digits():
    off = swept("recompute", 64)
    return [*swept("plain", 64), *[changed(run, {"final_loss": (run.value("final_loss") or 0) + 1e-12}) for run in off]]


def several():
    """Two comparisons of the hierarchical strategy with the flat one."""
    flat = [changed(run, {"communication_total_time": 0.002}) for run in quiet(RIVAL, 0.01)]
    records = [*quiet(first(strategy="mpi-hierarchical"), 0.01), *flat]
    return [*records, *[changed(run, axes={"batch": 128}) for run in records]]


def test_prose(snapshot):
    sets = {"pipeline": BESIDE, "shared cores": CROWDED}
    assert prose(sets, "pipeline") == snapshot(name="pipelines")
    assert prose({"overlap": OVERLAPPED, "busy": BUSY}, "exchange") == snapshot(name="exchanges")
    assert prose({"past": PAST, "not asked": NOT_ASKED}, "memory") == snapshot(name="memory")
    sets = {f"hybrid in {time} s": against_ddp(time, over=False) for time in GAINS}
    sets |= {"a pipeline alone": [PIPELINE], "several": several()}
    assert prose(sets, "claim", works=WORKS) == snapshot(name="claims")
    alone = quiet(first(strategy="mpi-overlap", options=()), 0.01)
    sections = {
        "pipelines": (BESIDE, CROWDED, quiet(PIPELINE, 0.008), [*quiet(PIPELINE, 1e-6, **WRONG), *quiet(RIVAL, 0.01)]),
        "exchange": (OVERLAPPED, alone),
        "memory": (PAST, NOT_ASKED, other_digits()),
        "claims": ([PIPELINE],),
    }
    texts = {key: [Made(key, *runs, works=WORKS).prose for runs in sets] for key, sets in sections.items()}
    assert texts == snapshot(name="sections")


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
    ranks = [{"schedule": "zbv", "layers": [[0, 2], [5, 6]]}, {"schedule": "zbv", "layers": [[2, 4], [4, 5]]}]
    found = division(context(changed(record, details={"ranks": ranks})).of("train")[0])
    assert found is not None and found.bubble is None
    assert found.stages == (((0, 2), (5, 6)), ((2, 4), (4, 5)))


def test_a_pipeline_stands_beside_the_best_that_shares_the_data_alone():
    made = context(*BESIDE)
    [rivalry] = rivalries(made.of("train"), made.floors, asked=True)
    assert (rivalry.group.cell.strategy, rivalry.base.cell.strategy) == ("mpi-pipeline", "mpi-allreduce")
    layout = division(rivalry.group)
    assert layout is not None and (layout.parts, layout.replicas) == (2, 1)
    assert rivalry.ratio.value == pytest.approx(0.8) and rivalry.shown
    assert rivalry.ratio.low < 0.8 < rivalry.ratio.high
    found = only("pipeline", *BESIDE)
    assert [c.ratio for c in found.contrasts] == [rivalry.ratio] and found.confidence is Confidence.CONFIRMED


def test_an_exchange_that_overlaps_stands_beside_the_blocking_one():
    context_of = context(*OVERLAPPED)
    [exchange] = exchanges(context_of.of("train"), context_of.floors)
    assert (exchange.compute_s, exchange.communication_s) == pytest.approx((0.004, 0.006))
    base, row = exchange.rows
    assert base.result is None and (base.variant, row.variant) == ("SC-B", "SC-OBR")
    assert row.over_least == pytest.approx(1.1, rel=0.01)
    assert row.result is not None and row.result.ratio.value == pytest.approx(0.66, rel=0.01)


def test_a_batch_past_the_memory_stands_beside_the_one_that_fits():
    made = context(*PAST)
    [sweep] = sweeps(made.of("train"), made.floors)
    [row] = [row for row in sweep if row.group.cell.memory == "offload-file"]
    assert row.times_what_fits == 8
    assert row.beside_fitting is not None and row.beside_free is not None
    for result in (row.beside_fitting, row.beside_free):
        assert result.ratio.value == pytest.approx(1.2) and result.ratio.low < 1.2 < result.ratio.high
    found = only("memory", *PAST)
    assert "plain memory runs out at batch 128" in found.evidence
    assert [c.ratio for c in found.contrasts] == [row.beside_fitting.ratio, row.beside_free.ratio]
    assert found.confidence is Confidence.CONFIRMED


def hybrid(*records) -> Decided:
    """Return what becomes of the claim on hybrids."""
    [found] = [each for each in decided_claims(context(*records, works=WORKS)) if each.claim.key == "hybrid"]
    return found


# Published is 1.6 times; anything that is shown to be faster has the direction.
GAINS = {
    0.005: (Verdict.HOLDS, Confidence.CONFIRMED),
    0.008: (Verdict.DIRECTION, Confidence.CONFIRMED),
    0.012: (Verdict.FAILS, Confidence.CONFIRMED),
    0.00625: (Verdict.OPEN, Confidence.INCONCLUSIVE),
}


@pytest.mark.parametrize("step_s", GAINS)
def test_the_claim_on_hybrids_is_held_against_data_parallelism(step_s):
    found = hybrid(*against_ddp(step_s, over=False))
    assert (found.verdict, found.confidence) == GAINS[step_s]
    [point] = found.points
    assert point.here is not None and point.here.value == pytest.approx(0.01 / step_s)
    # On shared cores the same numbers decide nothing.
    crowded = findings(*against_ddp(step_s, over=True), works=WORKS)["claim"]
    assert all(finding.confidence is Confidence.INCONCLUSIVE for finding in crowded)


TIMES = [1.0, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06]
# What a training record has that is held to the reference.
CHECKED = ("equality_ratio", "weights_equality_ratio", "restart_ratio", "loss_deviation", "weights_deviation")


def repeats(times, *, staleness=None, ranks=2, over=False, accuracy=0.97, workers=None):
    """Return runs of an asynchronous cell, with `workers` that come and go; or with no staleness of all-reduce."""
    [base, *_] = measured("train", strategy="mpi-allreduce", ranks_per_node=2)
    made = []
    for repeat, time in enumerate(times):
        details = {
            "over_subscribed": over,
            "quality": {"metric": "accuracy", "target": 0.95, "reached": time is not None},
        }
        axes = {"repeat": repeat, "ranks_per_node": ranks}
        values = {"accuracy": accuracy} | ({"time_to_quality": time} if time is not None else {})
        if staleness is not None:
            bound = None if staleness == "unbounded" else staleness
            axes |= {"strategy": "async", "options": (("staleness", staleness),)}
            details |= {
                "not_checkable": "asynchronous: who is faster decides",
                "updates": {"workers": ranks - 1, "staleness_bound": bound, "largest_staleness": 5},
            }
            if workers is not None:
                axes["options"] += (("workers", workers),)
                details["updates"]["spans"] = [
                    {"workers": int(there), "steps": 9, "step_time_s": time / 10 / int(there)}
                    for there in workers.split("-")
                ]
            values |= {"staleness": 1.0, "staleness_p95": 3.0, "steps_to_quality": 11}
        record = changed(base, values, details=details, axes=axes)
        drop = (CHECKED if staleness is not None else ()) + (("time_to_quality",) if time is None else ())
        record = record.model_copy(update={"metrics": [m for m in record.metrics if m.name not in drop]})
        made.append(record)
    return made


def times(factor):
    """Return an asynchronous cell that takes so many times as long as the synchronous one, and that one."""
    runs = repeats([factor * time for time in TIMES], staleness=4, ranks=3, accuracy=0.94)
    return [*runs, *repeats(TIMES)]


RANKS = [*repeats(TIMES, staleness="unbounded", ranks=3), *repeats(TIMES), *repeats(TIMES, ranks=3)]
LATE = [*repeats([None, *TIMES[1:]], staleness=4), *repeats(TIMES)]
ASYNCHRONOUS_CROWDED = [*repeats([time / 3 for time in TIMES], staleness=4, over=True), *repeats(TIMES)]


COMING = [
    *repeats([1.5 * time for time in TIMES], staleness=4, ranks=3, workers="1-2-1"),
    *repeats(TIMES, staleness=4, ranks=3),
    *repeats(TIMES, ranks=3),
]


def test_prose_asynchronous(snapshot):
    sets = {
        "sooner": times(0.5),
        "later": times(2.0),
        "equal ranks and equal workers": RANKS,
        "one misses the target": LATE,
        "shared cores": ASYNCHRONOUS_CROWDED,
    }
    equality = {"beside a checked one": ASYNCHRONOUS_CROWDED, "alone": repeats(TIMES, staleness=4)}
    texts = prose(sets, "asynchronous") | prose(equality, "equality")
    texts |= prose({"workers that come and go": COMING}, "asynchronous.workers")
    texts["sections"] = [Made(key, *times(0.5)).prose for key in ("asynchronous", "equality")]
    assert texts == snapshot


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_the_time_to_quality_stands_beside_the_synchronous_one(factor):
    made = context(*times(factor))
    [training] = asynchronous_groups(made, "digits-mlp")
    [twin] = training.twins
    assert (training.bound, training.workers, training.most) == ("4", 2, 5)
    assert twin.group.cell.strategy == "mpi-allreduce" and twin.group.cell.ranks == 2
    assert twin.time is not None and twin.time.shown
    assert twin.time.ratio.value == pytest.approx(factor)
    assert twin.time.ratio.low < factor < twin.time.ratio.high
    found = only("asynchronous", *times(factor))
    assert [c.ratio for c in found.contrasts] == [twin.time.ratio]
    # Seven runs a side would make any other claim confirmed.
    assert found.confidence is Confidence.PROVISIONAL


def test_workers_that_come_and_go_stand_beside_those_that_stay():
    made = context(*COMING)
    [coming, staying] = sorted(asynchronous_groups(made, "digits-mlp"), key=lambda row: not row.group.kind.coming)
    assert [twin.rule for twin in coming.twins] == ["asynchronous.workers"]
    # Of no other is it the twin.
    assert [twin.group.cell.strategy for twin in staying.twins] == ["mpi-allreduce"]
    first = coming.twins[0]
    assert first.group is staying.group and first.time is not None and first.time.shown
    assert coming.then == "the target is reached in step 11 of 27, with 2 workers there" and not staying.then
    assert coming.spans.replace("\N{NO-BREAK SPACE}", " ") == "1: 154 ms, 2: 77.2 ms, 1: 154 ms"
    assert "1: 154 ms, 2: 77.2 ms" in str(Made("asynchronous", *COMING).tables[0]).replace("\\xa0", " ")


def test_its_steps_are_compared_with_nobodys():
    fast = [changed(run, {"step_time": 1e-9, "samples_per_second": 1e12}) for run in repeats(TIMES, staleness=4)]
    by_kind = findings(*fast, *repeats(TIMES), *measured("train", strategy="single"))
    for kind, found in by_kind.items():
        for finding in found:
            assert finding.confidence is not Confidence.CONFIRMED or "async" not in finding.text, finding.text
            if kind not in ("asynchronous", "fastest", "equality"):
                assert "async" not in finding.text, finding.text


@pytest.mark.parametrize(
    ("slow", "verdict"),
    # Of one run a side nobody knows how far it may be off.
    [((), Verdict.FAILS), ((0.002, 0.011, 0.004, 0.03, 0.001, 0.02), Verdict.OPEN), ((0.0105,), Verdict.OPEN)],
)
def test_no_gain_is_not_said_where_another_comparison_may_reach_it(slow, verdict):
    records = against_ddp(0.012, over=False)
    other = against_ddp(0.012, over=False)
    if slow:
        other = [
            changed(run, {"step_time": slow[run.cell.repeat]}) if run.cell.strategy == HYBRID.cell.strategy else run
            for run in other
            if run.cell.repeat < len(slow)
        ]
    found = hybrid(*records, *(changed(run, axes={"batch": 128}) for run in other))
    assert found.verdict is verdict and len(found.points) == 2


def test_the_median_of_a_cell_is_that_of_the_runs_that_are_compared():
    loud = [
        changed(run, {"step_time": 0.09}, details={"disturbed": True}) if run.cell.repeat > 2 else run
        for run in quiet(PIPELINE, 0.008)
    ]
    [group] = context(*loud).of("train")
    assert median(group, "step_time") == pytest.approx(0.008, rel=0.01)
    [other] = [g for g in context(*loud, *quiet(RIVAL, 0.01)).of("train") if g.cell.strategy == RIVAL.cell.strategy]
    assert best_of([group, other]) is group


def test_a_section_knows_that_its_comparisons_are_asked_for():
    for key, records in (("exchange", OVERLAPPED), ("pipelines", BESIDE), ("memory", PAST)):
        chips = [v for table in Made(key, *records).tables for row in table.rows for v in row if isinstance(v, Chip)]
        assert any("p = " in chip.title for chip in chips)
        assert not [chip.title for chip in chips if "no question" in chip.title]
