"""The section on federated learning and its findings: right paths, aggregations, waiting, unlike rows, engines and ranks."""

from __future__ import annotations

from functools import partial

import pytest
from make_federate_records import DIVERGED, MOMENTUM, SKIPPED, SLOW, WRONG, aggregations, methods, run, runs, waits
from said_of_records import Made as Section
from said_of_records import Sets, context, only, prose

from transect.analysis.labels import people_name
from transect.domain.record import MetricValue, Record
from transect.report.engine.decision import Decision
from transect.report.topics.federated.facts import learned
from transect.stats.comparisons import Confidence

Made = partial(Section, "federated")


def blind_late() -> list[Record]:
    """Simulations that can be told from the reference's as long as the target is not reached."""
    unlike = runs(turn=2.0, accuracy=0.7, partition="labels-2", blind=10, **SLOW)
    whole = runs(turn=2.0, blind=10, **SLOW)
    return [*whole, *runs(turn=0.4, buffer=2, rounds=50, blind=10, **SLOW), *unlike]


SETS = Sets(
    apart=aggregations,
    near=lambda: aggregations(median=0.905, momentum=0.899),
    one_run=lambda: [run(), run(accuracy=0.8, aggregation="median")],
    one_wrong=lambda: [*runs(), run(aggregation="median", ratio=70.0, fields=WRONG)],
    # The best number, and nobody knows of what.
    wrong_and_best=lambda: [*aggregations(), run(6, accuracy=0.999, ratio=70.0, **MOMENTUM)],
    blind=lambda: [
        record
        for accuracy, how in ((0.9, "fedavg"), (0.7, "median"))
        for record in runs(accuracy=accuracy, aggregation=how, blind=1)
    ],
    disturbed=lambda: [
        *runs(disturbed=True),
        *runs(accuracy=0.7, aggregation="median", disturbed=True),
        *runs(engine="stacked", update_s=0.005, disturbed=True),
    ],
    methods=methods,
    sooner=waits,
    later=lambda: waits(turn=3.0),
    never=lambda: waits(accuracy=0.5),
    partitions=lambda: [
        *runs(),
        *runs(accuracy=0.7, partition="dirichlet-0.3"),
        *runs(accuracy=0.901, partition="labels-2"),
    ],
    engines=lambda: [*aggregations(), *aggregations(engine="stacked", update_s=0.005)],
    ranks=lambda: [*runs(), *runs(update_s=0.012, ranks_per_node=2), *runs(update_s=0.007, ranks_per_node=4)],
    skipped=lambda: [*runs(), run(aggregation="krum", fields=SKIPPED)],
    lacking=lambda: [
        *aggregations(),
        run(aggregation="krum", fields=SKIPPED),
        run(aggregation="fedadam", fields=DIVERGED),
    ],
)
KINDS = tuple(
    f"federated-{kind}" for kind in ("path", "aggregation", "method", "waiting", "partition", "engine", "ranks")
)


def test_prose(snapshot):
    shown = ("engines", "methods", "sooner", "skipped", "one_wrong")
    assert prose(SETS, *KINDS) | {f"section of {name}": Made(*SETS[name]).prose for name in shown} == snapshot


def decided(kind: str, name: str) -> Decision:
    decision = SETS.only(kind, name).decision
    assert decision is not None
    return decision


def test_the_best_aggregation_is_told_with_what_each_other_one_costs():
    found = SETS.only("federated-aggregation", "apart")
    assert (
        found.confidence is Confidence.CONFIRMED
        and decided("federated-aggregation", "apart").winner == "fedavgm with momentum 0.5"
    )
    assert [group.cell.aggregation for group in found.groups] == ["fedavgm", "fedavg", "median"]
    assert "fedavg ends 9.0 points lower" in found.claim and "median ends 28.8 points lower" in found.claim


def test_what_ends_alike_is_a_tie_and_one_run_tells_nothing():
    near = decided("federated-aggregation", "near")
    # Of those that tie the usual one stands first, which has no option.
    assert {near.winner, *near.tied} == {"fedavg", "median", "fedavgm with momentum 0.5"} and not near.unknown
    assert SETS.only("federated-aggregation", "one_run").confidence is Confidence.INCONCLUSIVE
    assert "not told apart" in SETS.only("federated-aggregation", "one_run").claim


def test_what_clients_gain_by_a_method_is_told_beside_plain_steps():
    found = SETS.only("federated-method", "methods")
    assert found.confidence is Confidence.CONFIRMED
    assert "fedprox ends 5.0 points higher" in found.claim
    assert "fedprox with mu 0.5 ends 0.1 points higher, the same within" in found.claim


def test_scores_of_clients_own_models_are_called_so_and_tell_no_update_of_a_target():
    def of_own(made: Record) -> Record:
        kept = [number for number in made.metrics if "to_quality" not in number.name]
        quality = made.details["quality"] | {"of": "each client's own model", "reached": None}
        return made.model_copy(update={"metrics": kept, "details": made.details | {"quality": quality}})

    records = [*runs(), *map(of_own, runs(accuracy=0.95, method="ditto")), *runs(accuracy=0.5, method="scaffold")]
    found = only("federated-method", *records)
    assert "scored by each client's own model: ditto" in found.evidence
    section = Made(*records).prose
    assert "fedavg | ditto | all 5 | 20 | 94.5 % | +5.0 | better [good] | 84.5 % | – |" in section
    assert "| not reached |" in section


def test_an_aggregation_without_a_result_is_left_out_and_named():
    left = decided("federated-aggregation", "lacking").left_out
    assert {(other.what, other.why) for other in left} == {("krum", "skipped: unsupported"), ("fedadam", "diverged")}


def test_a_wrong_simulation_is_an_alarm_and_never_wins():
    assert SETS.only("federated-path", "one_wrong").alarm
    assert "1 left it" in SETS.only("federated-path", "one_wrong").claim
    assert not SETS.only("federated-path", "apart").alarm
    assert decided("federated-aggregation", "wrong_and_best").winner == "fedavg"
    # It ended well, and is outside of its tolerance.
    assert SETS.only("federated-path", "wrong_and_best").alarm


def test_what_cannot_be_told_from_the_reference_confirms_nothing():
    for kind in ("federated-path", "federated-aggregation"):
        found = SETS.only(kind, "blind")
        assert found.confidence is Confidence.PROVISIONAL and "from update 1 on" in found.evidence


def test_other_programs_disturb_a_time_and_no_accuracy():
    sure = [SETS.only(f"federated-{kind}", "disturbed").confidence for kind in ("aggregation", "engine")]
    assert sure == [Confidence.CONFIRMED, Confidence.PROVISIONAL]


def test_what_can_be_told_up_to_the_target_confirms_a_time_to_it_and_no_end():
    sure = [only(f"federated-{kind}", *blind_late()).confidence for kind in ("waiting", "partition")]
    assert sure == [Confidence.CONFIRMED, Confidence.PROVISIONAL]


@pytest.mark.parametrize(("name", "said"), [("sooner", "sooner"), ("later", "later")])
def test_waiting_for_fewer_updates_is_told_by_the_simulated_time_to_the_target(name, said):
    found = SETS.only("federated-waiting", name)
    [pair] = found.contrasts
    assert (pair.metric, pair.group.cell.buffer) == ("simulated_time_to_quality", 2)
    assert found.claim.endswith(f": {said}.") and found.confidence is Confidence.CONFIRMED


def test_a_target_that_is_not_reached_has_no_time_to_it():
    found = SETS.only("federated-waiting", "never")
    assert found.contrasts == () and "waits for 2 of 5 does not reach accuracy 0.6 in every run" in found.claim
    rows = Made(*SETS["never"]).table("digits-cnn: what is learned")
    assert [row["Updates to accuracy 0.6"] for row in rows] == ["4", "not reached"]


def test_rows_that_are_not_alike_cost_what_the_runs_show():
    found = SETS.only("federated-partition", "partitions")
    assert [pair.shown for pair in found.contrasts] == [True, False]
    assert (
        "19.9 points lower with dirichlet-0.3;" in found.claim and "with labels-2, the same within 5 %" in found.claim
    )
    assert "79.5 % with iid" in found.evidence and "59.6 % with dirichlet-0.3" in found.evidence


def test_each_federation_is_learned_once_whoever_computes_it_and_engines_are_told_by_their_updates():
    made = Made(*SETS["engines"])
    assert len(made.table("digits-cnn: what is learned")) == 3
    assert len(made.table("digits-cnn: who computes")) == 6
    assert decided("federated-engine", "engines").winner == "stacked"
    assert "loop with numpy takes 4 times as long" in SETS.only("federated-engine", "engines").claim
    assert len(SETS.findings("engines")["federated-aggregation"]) == 1


def test_the_most_ranks_stand_beside_one():
    [pair] = SETS.only("federated-ranks", "ranks").contrasts
    assert (pair.group.cell.ranks, pair.base.cell.ranks) == (4, 1) and pair.ratio.value == pytest.approx(0.35)


def test_courses_are_drawn_over_updates_and_over_simulated_time_where_servers_wait_for_fewer():
    assert [chart.across for chart in Made(*SETS["apart"]).charts] == ["updates of the server"]
    updates, timed = Made(*SETS["sooner"]).charts
    assert timed.across == "simulated time, in turns of the median client"
    names = ["fedavg · waits for all 5", "fedavg · waits for 2 of 5"]
    assert list(dict.fromkeys(mark.label for mark in updates.marks)) == names
    assert {row[0]: row[3] for row in timed.table.rows} == dict(zip(names, ["40", "20"], strict=True))


def test_what_was_skipped_or_wrong_is_listed_with_why():
    [_, skipped] = Made(*SETS["skipped"]).table("digits-cnn: what is learned")
    assert (skipped["Aggregation"], skipped["Runs"], skipped[""]) == ("krum", "0", "unsupported")
    wrong = Made(*SETS["one_wrong"]).table("digits-cnn: who computes")
    assert [row[""] for row in wrong if row["Aggregation"] == "median"] == ["wrong result"]


def test_no_score_stands_among_times_and_each_is_called_after_what_it_differs_in():
    of_times = Section("pictures", *SETS["engines"]).chart("Learning together, 3 comparisons")
    assert {(row[0], row[1]) for row in of_times.table.rows} == {
        ("stacked", f"digits-cnn, beside numpy ({how})") for how in ("fedavg", "median", "fedavgm, momentum 0.5")
    }
    fedavg, median, momentum = (group.cell for group in learned(context(*SETS["apart"]), "digits-cnn"))
    called = [people_name(cell, [fedavg, median, momentum]) for cell in (fedavg, momentum)]
    assert called == ["fedavg", "fedavgm (momentum 0.5)"]
    pictured = Section("picture", *SETS["engines"]).chart("digits-cnn, partition iid, 20 clients, 5 at once, fedavg:")
    assert [row[0] for row in pictured.table.rows] == ["stacked", "numpy"]
    both = people_name(momentum, [fedavg.changed(engine="stacked", framework=None)])
    assert both.startswith("numpy") and "fedavgm" in both


def test_a_score_of_which_less_is_better_is_told_without_points():
    def with_errors(made: Record) -> Record:
        kept = [number for number in made.metrics if number.name not in ("accuracy", "worst_clients_score")]
        error = MetricValue.of("mean_squared_error", 1 - made.value("accuracy"))
        quality = {"metric": "mean_squared_error", "target": 0.4, "reached": True}
        return made.model_copy(update={"metrics": [*kept, error], "details": made.details | {"quality": quality}})

    found = only("federated-aggregation", *map(with_errors, aggregations()))
    assert "ends with the best mean squared error, 0.0152; fedavg ends 0.0895 higher" in found.claim
    # No pair of accuracies was planned of what has none.
    assert found.confidence is Confidence.PROVISIONAL


def test_a_study_without_simulations_has_no_section():
    made = Made()
    assert (made.lead, made.blocks) == ("", [])
