"""Predictions beside measurements, and the curve that nobody has measured, from cells that ran."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from co_design_records import changed, measured, write_measured
from said_of_records import Made, context, old_rules, only, prose, shipped

from transect.analysis.claims import Decided, Evidence, Verdict, decide_all
from transect.analysis.extrapolation import Curve, speed_up
from transect.analysis.load import load_records
from transect.domain.study import Question
from transect.payloads.forecast import forecast
from transect.report.engine.collect import make_findings, make_section
from transect.report.engine.context import Context
from transect.report.engine.parts import all_parts
from transect.report.topics.claims.findings import claim_findings, decided_claims
from transect.report.topics.forecasts import forecasts, mean_error, order_of
from transect.stats.comparisons import Confidence

WORKS = [shipped("hypar-flow")]
LATER = "2099-01-01T00:00:00+00:00"


def predicted(strategy: str, step_s: float, **fields):
    [record] = measured("forecast", strategy=strategy, ranks_per_node=2)
    return changed(record, {"predicted_step_time": step_s}, **fields)


def trained(strategy: str, step_s: float):
    """Repeat a training as on a quiet machine."""
    record = next(
        run
        for run in measured("train", strategy=strategy, ranks_per_node=2, framework="numpy", options=())
        if not run.cell.repeat
    )
    return [
        changed(record, {"step_time": step_s * (1 + n / 1000)}, axes={"repeat": n}, started=LATER, ended=LATER)
        for n in range(6)
    ]


BOTH = [*trained("mpi-allreduce", 0.01), *trained("mpi-bcast-reduce", 0.02)]
RIGHT = [predicted("mpi-allreduce", 0.0102), predicted("mpi-bcast-reduce", 0.0194), *BOTH]
REVERSED = [predicted("mpi-allreduce", 0.03), predicted("mpi-bcast-reduce", 0.02), *BOTH]
LATE = [predicted("mpi-allreduce", 0.01, ended="2100-01-01T00:00:00+00:00"), *BOTH[:6]]


def test_prose(snapshot):
    sets = {"the right order": RIGHT, "a wrong order": REVERSED, "too late": LATE, "alone": RIGHT[:1]}
    assert (
        prose(sets, "forecast") | {f"section of {n}": Made("forecasts", *runs).prose for n, runs in sets.items()}
        == snapshot
    )


def beside(records):
    """Return the predictions beside their trainings, and what came of their order."""
    made = context(*records)
    found = forecasts(made.of("forecast"), made.of("train"))
    return found, order_of(found, made.floors, asked=True)


def test_the_error_and_the_order_are_told():
    found, order = beside(RIGHT)
    assert [forecast.error for forecast in found] == pytest.approx([0.0175, -0.0325], abs=0.002)
    assert mean_error(found) == pytest.approx(0.025, abs=0.002)
    assert (order.decided, order.right, list(order.wrong)) == (1, 1, [])
    assert [c.ratio for c in only("forecast", *RIGHT).contrasts] == [c.ratio for c in order.contrasts]
    _, order = beside(REVERSED)
    assert (order.decided, order.right, len(order.wrong)) == (1, 0, 1)
    found, order = beside(LATE)
    assert [forecast.in_time for forecast in found] == [False] and order.decided == 0


def test_each_prediction_that_ran_was_stored_before_its_training():
    made = context(*measured())
    found = forecasts(made.of("forecast"), made.of("train"))
    assert found and all(forecast.in_time for forecast in found)


# The probe that ran was disturbed: its messages lie on no line.
FLAT = {"from": "probe", "latency_s": 5e-5, "bytes_per_s": 1e9, "remark": ""}


def joined_by(network):
    """Return the cells that ran, and their predictions over another network."""
    return [changed(run, details={"network": network}) if run.stage == "forecast" else run for run in measured()]


def read(study) -> Context:
    return Context(
        load_records(study),
        title="t",
        works=WORKS,
        since=old_rules(WORKS),
        questions=[Question(ask="?", answered_by=["claim"])],
    )


def drawn(study) -> list[Curve]:
    return read(study).curves


def section_of(made: Context):
    """Return the section that a context makes, and the problems that it and the findings meet."""
    parts = all_parts()
    make_findings(made, parts.findings)
    [section] = [part for part in parts.sections if part.key == "forecasts"]
    found = make_section(section, made)
    assert found is not None
    return found.body, [str(problem) for problem in made.problems]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return write_measured(tmp_path_factory.mktemp("results") / "co-design", joined_by(FLAT))


def test_the_curve_is_drawn_to_131072_ranks_and_called_extrapolated(study):
    made = read(study)
    assert made.curves
    for curve in made.curves:
        assert max(point.ranks for point in curve.points) == 131_072
        assert curve.points[0].speed_up == 1 and curve.points[0].replicas == 1
        assert {128, 512} <= {point.replicas for point in curve.points}
    body, problems = section_of(made)
    assert problems == [] and "Nobody has measured" in str(body) and "extrapolated" in str(body)
    several = [each for each in decided_claims(made) if each.claim.key.startswith("nodes-")]
    assert len(several) == 2 and all(each.points and not each.firm for each in several)
    assert sum("extrapolated, not measured" in finding.evidence for finding in claim_findings(made)) == 2


def simulated(speed: float, poor: bool, error: float | None) -> Decided:
    """Return what becomes of the claim of 128 nodes, of which 110 times was published."""
    evidence = Evidence(
        study="co-design",
        groups=lambda stage: [],
        floors=context().floors,
        since=old_rules(WORKS),
        speed_up=lambda n: (speed * n, poor),
        error=error,
    )
    return next(each for each in decide_all(WORKS, evidence) if each.claim.key == "nodes-128")


@pytest.mark.parametrize(("error", "verdict"), [(None, "OPEN"), (0.02, "DIRECTION"), (0.5, "OPEN"), (0.0, "DIRECTION")])
def test_an_extrapolation_decides_as_far_as_predictions_were_right(error, verdict):
    found = simulated(0.7, False, error)  # 89.6 beside 110
    assert found.verdict is Verdict[verdict]
    assert not found.firm and found.confidence is not Confidence.CONFIRMED and "extrapolated" in found.reason


def test_a_network_that_no_line_describes_decides_no_claim(tmp_path):
    study = write_measured(tmp_path / "co-design")
    found = drawn(study)
    assert found and all(curve.poor for curve in found)
    reached = speed_up(found, 128)
    assert reached is not None and reached[1]
    assert speed_up([replace(curve, network=FLAT) for curve in found], 128) == (reached[0], False)
    answer = simulated(reached[0] / 128, reached[1], 0.0)
    assert answer.verdict is Verdict.OPEN and "no line" in answer.reason
    body, problems = section_of(read(study))
    assert problems == [] and "poor network" in str(body)


def test_a_curve_begins_where_the_prediction_stood(study):
    """On as many ranks as were predicted, by the same profile and network, additions included."""
    curve = next(curve for curve in drawn(study) if curve.group.cell.strategy == "mpi-allreduce")
    [wanted] = measured("profile", ranks_per_node=2, batch=32)
    read = json.loads((study / "profile" / wanted.cell_id / "profile.json").read_text())
    network = {name: FLAT[name] for name in ("latency_s", "bytes_per_s")}
    spec = {"cell": curve.group.cell.axes(), "network_from": "system", "network": network}
    [there] = [point for point in curve.points if point.ranks == 2]
    assert there.step_s == forecast(spec, read, cores=2)["metrics"][0]["value"]


def test_more_stages_than_cores_have_a_curve_too(tmp_path):
    """Their profile is of as many ranks at once as there are cores, not as there are ranks."""
    hybrid = changed(
        measured("forecast", strategy="mpi-pipeline")[0],
        details={"network": FLAT, "cores": 2},
        axes={"ranks_per_node": 4, "options": (("stages", 2),), "batch": 128},
    )
    study = write_measured(tmp_path / "co-design", [*measured("profile"), hybrid])
    [curve] = drawn(study)
    assert (curve.parts, curve.points[0].ranks) == (2, 2)
