"""What a report says of ranks, sums, messages, batches, languages, and of published minutes, from made-up records."""

from __future__ import annotations

import pytest
from co_design_records import changed, measured
from rank_records import data_record, probe, rank_record, repeated, scaling
from said_of_records import Made, Sets, context, findings, prose, shipped

from transect.domain.record import Cause, Record, Status
from transect.report.engine.collect import make_findings, make_section
from transect.report.engine.context import Context
from transect.report.engine.parts import all_parts
from transect.report.topics.languages import languages
from transect.report.topics.ranks.batches import batch_sweeps
from transect.report.topics.ranks.published_series import GO_WITH_MPI, published_series
from transect.report.topics.ranks.series import problems
from transect.report.topics.ranks.sums import sum_paths
from transect.stats.comparisons import Confidence

WORKS = (shipped("go-mpi"),)
KINDS = ("near-linear", "rank-stop", "sum-rate", "point-to-point", "larger-batch")


def flat():
    """Make runs alike but for noise: the median of two ranks is less by a thousandth."""
    return [
        record
        for ranks, shift in ((1, 0.001), (2, 0.0))
        for record in repeated(
            strategy="single" if ranks == 1 else "mpi-allreduce",
            ranks=ranks,
            spread=0.004,
            computing=ranks * 1e-3 * (1 + shift),
            waited=0.0,
        )
    ]


SETS = Sets(
    works=WORKS,
    exact=lambda: [*scaling((1, 2, 4, 8)), probe()],
    unprobed=lambda: scaling((1, 2, 4, 8)),
    crowded=lambda: [*scaling((1, 8)), probe()],
    images=lambda: scaling((1, 7, 30), workload="images-mlp"),
    slower=lambda: [*repeated(strategy="single", ranks=1), *repeated(ranks=2, waited=9e-3)],
    flat=flat,
)


def test_prose(snapshot):
    images = [*scaling((1, 7, 16, 30), workload="images-mlp"), data_record(), probe()]
    sections = {
        "section of exact": Made("ranks", *SETS["exact"], works=WORKS).prose,
        "section of images": Made("ranks", *images, works=WORKS).prose,
    }
    assert prose(SETS, *KINDS) | sections == snapshot


def series(*records):
    made = context(*records)
    [problem] = problems(made.of("train"), made.network_fits, WORKS)
    return problem


def test_the_published_numbers_are_those_of_the_source():
    iris, iris_messages, images, image_messages = every = list(published_series(WORKS))
    assert [problem.first for problem in every] == [1, 2, 7, 7]
    assert not list(published_series(()))
    assert images.minutes[7] / images.minutes[30] == pytest.approx(2.05, abs=0.005)
    assert list(images.minutes) == list(image_messages.minutes) and len(iris.minutes) == 8
    assert image_messages.minutes[30] / images.minutes[30] == pytest.approx(140 / 44)
    assert iris_messages.idle == 1 == image_messages.idle


def test_a_series_begins_with_one_rank_and_stays_within_its_cores():
    problem = series(*SETS["exact"])
    [line] = problem.measured
    assert [point.ranks for point in line.points] == [1, 2, 4, 8]
    assert [point.hollow for point in line.points] == [False, False, False, True]
    # t(p) of a sample is 0.2 + 0.8 / p of one rank's: on 4 ranks 0.4, the last within the cores.
    assert (line.stop.base, line.stop.fastest) == (1, 4)
    assert line.stop.speed_up == pytest.approx(2.5, rel=0.01)
    assert line.stop.efficiency == pytest.approx(0.625, rel=0.01)
    assert line.serial.share == pytest.approx(0.2, abs=0.01)
    assert "share cores" in line.stop.reason and "bound" in line.stop.reason
    first, second = problem.published
    assert (first.stop.fastest, second.stop.base) == (6, 2)
    assert first.stop.speed_up == pytest.approx(1.4 / 0.79)


def test_a_series_does_not_begin_with_a_training_of_other_hyperparameters():
    adam = scaling((1,), hyperparameters=(("optimiser", "adam"),))
    for records in ([*adam, *SETS["exact"]], [*SETS["exact"], *adam]):
        [line] = series(*records).measured
        assert not line.points[0].group.cell.hyperparameters
    [line] = series(*adam, *scaling((2, 4))).measured
    assert [point.ranks for point in line.points] == [2, 4]


@pytest.mark.parametrize("name", ["slower", "flat"])
def test_a_speed_up_that_is_none_or_may_be_noise_is_none(name):
    [line] = series(*SETS[name]).measured
    assert not line.stop.faster and SETS.only("rank-stop", name).confidence is Confidence.INCONCLUSIVE


def triple(times: int, *, ends: tuple[float, float, float], ranks: int = 4, **axes):
    """Make a sum, the mean at the scaled rate, and the mean."""
    how = ({"reduce": "sum"} | axes, {"learning_rate_rule": "linear"}, {})
    return [
        rank_record(ranks=ranks, repeat=n, loss=loss, **axis)
        for n in range(times)
        for loss, axis in zip(ends, how, strict=True)
    ]


def idle():
    """Make a sum in which one of four ranks trains nothing, and both its twins."""
    means = [r for r in triple(6, ends=(0.2, 0.2, 0.4), ranks=3) if r.cell.reduce == "mean"]
    how = {"strategy": "published-sendrecv", "ranks": 4, "loss": 0.2}
    return [*means, *(rank_record(repeat=n, **how) for n in range(6))]


def networks():
    return [
        record
        for network in ("1gbit", "direct")
        for nodes in (2, 4)
        for strategy, waited in (("mpi-sendrecv", 1.2e-3), ("mpi-allreduce", 1e-4))
        for record in repeated(strategy=strategy, ranks=1, nodes=nodes, network=network, batch=8, waited=waited)
    ]


def sweep(*steps: float | None, cores: int = 4):
    return [
        record
        for batch, number in zip((8, 16, 32), steps, strict=False)
        for record in repeated(workload="iris-mlp-ce", batch=batch, steps_to_quality=number, cores=cores)
    ]


COSTS_SETS = Sets(
    works=WORKS,
    sum_is_rate=lambda: triple(6, ends=(0.2, 0.2 + 1e-9, 0.4)),
    sum_of_few_seeds=lambda: triple(3, ends=(0.2, 0.2 + 1e-9, 0.4)),
    sum_elsewhere=lambda: triple(6, ends=(0.4, 0.2, 0.4)),
    sum_between=lambda: triple(6, ends=(0.2, 0.21, 0.25)),
    sum_with_idle_rank=idle,
    messages=lambda: [*repeated(strategy="mpi-sendrecv", ranks=4, waited=1.2e-3), *repeated(ranks=4)],
    messages_crowded=lambda: [*repeated(strategy="mpi-sendrecv", ranks=8), *repeated(ranks=8)],
    messages_on_networks=networks,
    batches=lambda: sweep(400, 200, 160),
    batches_learn_slower=lambda: sweep(100, 200, 300),
    batches_alike=lambda: sweep(100, 100.1, 100.2),
    batches_that_miss=lambda: sweep(100, None, None),
    batches_crowded=lambda: sweep(400, 200, 160, cores=1),
)


def test_prose_costs(snapshot):
    sections = {
        f"section of {name}": Made("ranks", *COSTS_SETS[name], works=WORKS).prose
        for name in ("sum_is_rate", "messages", "batches")
    }
    assert prose(COSTS_SETS, *KINDS) | sections == snapshot


@pytest.mark.parametrize(
    ("name", "confidence", "same", "other"),
    [
        ("sum_is_rate", Confidence.CONFIRMED, True, False),
        ("sum_of_few_seeds", Confidence.PROVISIONAL, True, False),
        ("sum_elsewhere", Confidence.PROVISIONAL, False, True),
        ("sum_between", Confidence.INCONCLUSIVE, False, False),
        # Three of four ranks train, and are held against three that do.
        ("sum_with_idle_rank", Confidence.CONFIRMED, True, False),
    ],
)
def test_a_sum_is_the_mean_at_as_many_times_the_rate_or_not(name, confidence, same, other):
    [path] = sum_paths(context(*COSTS_SETS[name]).of("train"))
    assert COSTS_SETS.only("sum-rate", name).confidence is confidence
    assert (path.same, path.differs) == (same, other)
    assert path.factor == (3 if "idle" in name else 4)


def test_a_sum_is_held_against_means_of_its_own_hyperparameters():
    other = [r for r in triple(6, ends=(9.0, 9.0, 8.0), hyperparameters=(("momentum", 0.5),)) if r.cell.reduce == "sum"]
    means = [rank_record(ranks=4, repeat=n, loss=7.0, hyperparameters=(("momentum", 0.5),)) for n in range(6)]
    [path] = sum_paths(context(*COSTS_SETS["sum_is_rate"], *other, *means).of("train"))
    assert path.same and not path.mean.cell.hyperparameters


def test_a_larger_batch_saves_messages_only_where_it_learns_as_much_with_them():
    found = COSTS_SETS.only("larger-batch", "batches")
    [sweep] = batch_sweeps((made := context(*COSTS_SETS["batches"])).of("train"), made.floors, asked=True)
    assert found.confidence is Confidence.CONFIRMED
    assert [c.comparison for c in found.contrasts] == [sweep.result.comparison]
    assert sweep.best.batch == 32 and sweep.result.cost.value == pytest.approx(0.4, rel=1e-3)
    # An epoch of 14, 7 and 3 steps that wait as long each.
    waited = [row.waited_s for row in sweep.rows]
    assert waited == pytest.approx([14 * 1.0025e-4, 7 * 1.0025e-4, 3 * 1.0025e-4])


def loud(records: list[Record], **axes: int) -> list[Record]:
    """Return them, and of those on these axes three of six beside others at work, which makes them five times as slow."""
    times = ("step_time", "communication_time", "compute_time", "samples_per_second")

    def one(run: Record) -> Record:
        if run.repeat < 3 or any(run.cell.get(axis) != value for axis, value in axes.items()):
            return run
        slow = {
            name: value * (0.2 if name == "samples_per_second" else 5.0)
            for name in times
            if (value := run.value(name)) is not None
        }
        return changed(run, slow, details=run.details | {"disturbed": True})

    return [one(run) for run in records]


def test_disturbed_runs_decide_no_batch_and_no_number_of_ranks():
    given = loud(COSTS_SETS["batches"], batch=32)
    [sweep] = batch_sweeps((made := context(*given)).of("train"), made.floors, asked=True)
    assert sweep.best.batch == 32 and sweep.result.cost.value == pytest.approx(0.4, rel=1e-2)
    quiet, disturbed = (
        problems(context(*records).of("train"), [], WORKS)[0].measured
        for records in (SETS["exact"], loud(SETS["exact"], ranks_per_node=4))
    )
    assert [line.stop.fastest for line in disturbed] == [line.stop.fastest for line in quiet]
    assert [line.stop.speed_up for line in disturbed] == pytest.approx([line.stop.speed_up for line in quiet], rel=0.02)


MPI = [*scaling((1, 2, 4)), *repeated(strategy="mpi-sendrecv", ranks=4)]
OTHER = {"epochs": 5, "learning_rate": 0.5, "loss": "mse"}
SAME = {"epochs": 100, "learning_rate": 0.01, "loss": "mse"}


def with_parameters(records: list[Record], parameters: dict) -> list[Record]:
    return [run.model_copy(update={"parameters": parameters}) for run in records]


def section(made: Context, key: str) -> str:
    (chosen,) = (part for part in all_parts().sections if part.key == key)
    found = make_section(chosen, made)
    return "" if found is None else f"{found.title} {found.body.lead} {found.body.blocks!r}"


def test_of_a_work_that_nobody_asked_for_nothing_is_said():
    made = context(*MPI, *measured(), asks=())
    every = make_findings(made, all_parts().findings)
    assert not [finding.claim for finding in every if finding.subject == "claims" or GO_WITH_MPI in finding.claim]
    assert section(made, "claims") == ""
    shown = section(made, "ranks")
    assert shown and "ublished" not in shown and "Point-to-point" in shown


ASKS = {"a question's rule too": {"asks": ["rank.*"], "works": WORKS}, "the work's name": {"asks": (), "works": WORKS}}


@pytest.mark.parametrize("how", ASKS)
def test_a_study_asks_for_a_work_by(how):
    made = context(*MPI, **ASKS[how])
    claims = [finding.claim for finding in make_findings(made, all_parts().findings)]
    assert any(GO_WITH_MPI in claim for claim in claims) and "published" in section(made, "ranks")


def test_other_epochs_and_another_rate_are_not_the_same_work():
    changed, same = with_parameters(MPI, OTHER), with_parameters(MPI, SAME)
    (problem,) = problems(context(*changed).of("train"), [], WORKS)
    assert problem.differs == ("epochs 5 here, 100 published", "learning rate 0.5 here, 0.01 published")
    (problem,) = problems(context(*same).of("train"), [], WORKS)
    assert problem.differs == ()
    shown = Made("ranks", *changed, works=WORKS).prose
    assert "not the work that was published: epochs 5 here, 100 published" in shown
    assert "not the work that was published" not in Made("ranks", *same, works=WORKS).prose
    (linear,) = findings(*changed, works=WORKS)["near-linear"]
    assert "learning rate 0.5 here, 0.01 published" in linear.claim


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


LANGUAGES_SETS = Sets(
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


def test_prose_languages(snapshot):
    shared = [*crowd("go"), *crowd("numpy")]
    unknown = [
        run.model_copy(update={"metrics": [m for m in run.metrics if not m.name.startswith("env")]})
        for run in cells("torch")
    ]
    sections = {
        "section": Made("languages", *LANGUAGES_SETS["three"]).prose,
        "section of shared cores": Made("languages", *shared).prose,
        "section without a size": Made("languages", *cells("go"), *cells("numpy"), *unknown).prose,
    }
    assert prose(LANGUAGES_SETS, "language", "installed") | sections == snapshot


def test_only_cells_that_differ_in_nothing_else_are_compared():
    records = [*cells("go"), *cells("numpy", threads=2), *cells("numpy", batch=32), *cells("numpy", precision="fp64")]
    assert languages(context(*records)) == []
    assert "language" not in findings(*records)


def test_a_wrong_trainer_is_compared_with_nobody():
    wrong = {"status": Status.FAILED, "cause": Cause.WRONG_RESULT, "message": "leaves at step 3"}
    bad = [run.model_copy(update=wrong) for run in cells("go", 1e-6)]
    assert not {"language", "installed"} & findings(*bad, *cells("numpy")).keys()
