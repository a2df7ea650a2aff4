"""Predictions of trainings: what they are planned for, made of, and refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from factories import bare_record, bench_cell, plan_study
from transect.domain.axes.train import ForecastCell, ProfileCell, TrainCell, forecast_of, trained_as
from transect.domain.errors import BadInput
from transect.domain.record import LogPoint, MetricValue, Record
from transect.payloads.forecast_prediction import Setting, predict
from transect.payloads.forecast_sources import collective_points, fitted, lasting_rate, message_points, profiled
from transect.payloads.profile import profile
from transect.planning.plan import StudyPlan
from transect.planning.stage import STAGES
from transect.simulation.collectives import Measured
from transect.simulation.networks import Machine, Network
from transect.training.strategies import STRATEGIES
from transect.training.workloads import WORKLOADS

WORKLOAD = "digits-mlp"
STUDY = """
name: told
train:
  repeats: 2
  grids:
    - {{workloads: [digits-mlp], frameworks: [numpy], strategies: [single]}}
    - {{workloads: [digits-mlp], frameworks: [numpy], strategies: {strategies}, ranks: [2]}}
forecast: {forecast}
"""


def forecast_plan(folder: Path, section: str, strategies: str = "[mpi-allreduce]") -> StudyPlan:
    return plan_study(folder, STUDY.format(forecast=section, strategies=strategies))


@pytest.fixture(scope="module")
def measured() -> dict[int, dict[str, Any]]:
    """Profiles by their batch."""
    found = {}
    for batch in (16, 64):
        cell = ProfileCell(workload=WORKLOAD, framework="numpy", batch=batch, precision="fp64")
        found[batch] = profile(cell, WORKLOADS.get(WORKLOAD).defaults, 3, seed=1)[0]
    return found


def training(strategy: str, ranks: int = 2, **axes: Any) -> TrainCell:
    return TrainCell(
        workload=WORKLOAD,
        framework="numpy",
        strategy=strategy,
        batch=64,
        ranks_per_node=ranks,
        precision="fp64",
        **axes,
    )


def setting(measured: dict[str, Any], strategy: str, network: Network, **axes: Any) -> Setting:
    cell = training(strategy, **axes)
    of = STRATEGIES.get(strategy)
    traffic = of.traffic(cell)
    assert traffic is not None
    machine = Machine(cell.ranks, network, network)
    layout = of.layout(cell)
    batch = cell.batch // layout.replicas // layout.micro_batches
    return Setting(
        cell=cell, layout=layout, traffic=traffic, profiled=profiled(measured, batch), machine=machine, cores=16
    )


def test_a_prediction_has_the_axes_of_its_training_and_is_none():
    cell = training("mpi-pipeline", options=(("micro_batches", 2),), repeat=3)
    predicted = forecast_of(cell)
    assert (type(predicted), predicted.stage, predicted.repeat) == (ForecastCell, "forecast", 0)
    assert trained_as(predicted) == cell.without_repeat()
    # The folders differ, the words do not.
    assert predicted.id.split("~")[0] == cell.without_repeat().id.split("~")[0]


def test_each_training_waits_for_its_prediction_and_is_no_input_of_it(tmp_path):
    made = forecast_plan(tmp_path, "{grids: [{}]}")
    assert len(made.stage("forecast")) == 2 and len(made.stage("train")) == 4
    names = list(made.cells)
    assert names.index("profile") < names.index("forecast") < names.index("train")
    for planned in made.stage("train").values():
        ((stage, cell_id),) = planned.waits
        assert stage == "forecast"
        assert made.stage("forecast")[cell_id].cell == forecast_of(planned.cell)
        assert "forecast" not in str(planned.spec["inputs"])
    for planned in made.stage("forecast").values():
        assert {stage for stage, _ in planned.inputs.values()} <= {"profile", "bench"}
        assert planned.waits == ()


def test_a_training_is_the_same_cell_with_and_without_a_prediction(tmp_path):
    plain, predicted = forecast_plan(tmp_path, "{grids: []}"), forecast_plan(tmp_path, "{grids: [{}]}")
    assert not plain.stage("forecast") and not plain.stage("profile")
    for cell_id, planned in plain.stage("train").items():
        assert predicted.stage("train")[cell_id].fingerprint == planned.fingerprint


def test_what_goes_through_one_rank_is_measured_as_such(tmp_path):
    made = forecast_plan(tmp_path, "{grids: [{ranks: [2]}]}", "[mpi-bcast-reduce, mpi-pipeline]")
    tests = {
        planned.cell.strategy: {
            role: dict(made.cells[stage][name].cell.options).get("test")
            for role, (stage, name) in planned.inputs.items()
            if stage == "bench"
        }
        for planned in made.stage("forecast").values()
    }
    assert tests == {
        "mpi-bcast-reduce": {"messages": "latency", "broadcast": "bcast", "reduce": "reduce"},
        "mpi-pipeline": {"messages": "latency"},
    }


BAD = {
    "nothing of that kind": ("{grids: [{ranks: [7]}]}", "trains nothing"),
    "unknown strategy": ("{grids: [{strategies: [no]}]}", "forecast.grids.0.strategies"),
    "unknown framework": ("{grids: [{frameworks: [numpy, no]}]}", "forecast.grids.0.frameworks"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_is_an_error_of_the_study(tmp_path, what):
    section, expected = BAD[what]
    with pytest.raises(BadInput, match=expected):
        forecast_plan(tmp_path, section)


@pytest.mark.parametrize(
    ("given", "again"), [("epochs: 2, reference_steps: 1, learning_rate: 0.5", False), ("optimiser: nesterov", True)]
)
def test_what_a_step_takes_is_measured_again_only_for_another_step(tmp_path, given, again):
    grid = "workloads: [digits-mlp], frameworks: [torch], strategies: [single]"
    planned = []
    for name, parameters in (("one", ""), ("other", given)):
        made = plan_study(
            tmp_path,
            f"name: same\nworkloads: {{digits-mlp: {{{parameters}}}}}\n"
            f"train:\n  grids:\n    - {{{grid}, memories: [plain, planned], memory_budgets: [null, 64000000]}}\n"
            "forecast: {grids: [{}]}\n",
            name=f"{name}.yaml",
        )
        planned.append([entry for stage in ("profile", "memory-plan") for entry in made.stage(stage).values()])
    assert len(planned[0]) == 2
    for first, second in zip(*planned, strict=True):
        assert first.id == second.id and (first.fingerprint != second.fingerprint) == again


UNSUPPORTED = {
    "a strategy that says nothing": (training("kvstore-dist-sync"), "no `traffic`"),
    "memory": (training("mpi-allreduce", memory="recompute"), "recompute memory"),
    "a budget": (training("mpi-allreduce", memory_budget=1 << 30), "a memory_budget costs"),
    "a GPU": (training("ddp-gloo", device="cuda"), "on cuda"),
    "files": (training("mpi-allreduce", input="files"), "input 'files'"),
    "an optimiser": (training("mpi-allreduce", hyperparameters=(("optimiser", "adam"),)), "workload's own"),
}


@pytest.mark.parametrize("what", UNSUPPORTED)
def test_what_is_not_simulated_is_said(what):
    cell, expected = UNSUPPORTED[what]
    reason = STAGES.get("forecast").supports(forecast_of(cell))
    assert reason is not None and expected in reason


def test_every_strategys_word_names_a_pattern_that_is_simulated(measured):
    silent = set()
    for name in STRATEGIES:
        cell = training(name)
        traffic = STRATEGIES.get(name).traffic(cell) if STRATEGIES.get(name).supports(cell) is None else None
        if traffic is None:
            silent.add(name)
            continue
        step = predict(setting(measured[16 if "pipeline" in name else 64], name, Network(1e-6, 1e-9)))
        assert step.seconds > 0, name
    assert silent.isdisjoint(name for name in STRATEGIES if name.startswith("mpi-"))


def test_one_rank_takes_what_was_profiled(measured):
    found = predict(setting(measured[64], "single", Network(0, 0), ranks=1))
    times = measured[64]["trainer"]
    assert found.step.overlap == 0
    middle = {name: sorted(values)[1] for name, values in times.items()}
    passes = middle.get("fused_s") or middle["compute_s"] + middle["update_s"]
    assert found.seconds == pytest.approx(passes + ("fused_s" not in middle) * middle["input_s"])


def test_messages_add_to_computing_and_replicas_halve_it(measured):
    free = predict(setting(measured[64], "mpi-allreduce", Network(0, 0)))
    slow = predict(setting(measured[64], "mpi-allreduce", Network(1e-3, 1e-8)))
    size = sum(layer["gradient_bytes"] for layer in measured[64]["layers"])
    assert slow.seconds - free.seconds == pytest.approx(min(1e-3 + 1e-8 * size, 2e-3 + 1e-8 * size))
    assert slow.algorithm == "recursive-doubling"


def test_a_pipeline_is_simulated_from_its_own_cuts(measured):
    given = setting(measured[16], "mpi-pipeline", Network(1e-6, 1e-9))
    assert len(given.traffic.cuts) == 1
    found = predict(given)
    assert 0 < found.step.bubble < 1
    assert found.seconds >= 5 / 8 * 4 * given.profiled.whole_s * 0.99


def test_where_no_core_is_spare_messages_take_the_time_of_computing(measured):
    given = setting(measured[64], "mpi-overlap", Network(1e-6, 1e-8), options=(("progress", "test"),))
    spare, none = predict(given), predict(Setting(**_fields(given) | {"cores": 2}))
    assert spare.step.overlap > 0
    assert none.seconds == pytest.approx(spare.step.compute_s + spare.step.under_way_s)
    assert "no core" in none.assumed[0]


def _fields(given: Setting) -> dict[str, Any]:
    return {name: getattr(given, name) for name in Setting.__slots__}


def probed(benchmark: str, metrics: dict[str, tuple[str, float]], **details: Any) -> Record:
    values = [
        MetricValue.of(name, value, series, LogPoint(series=series.split()[0], size=int(series.split()[1])))
        for series, (name, value) in metrics.items()
    ]
    return bare_record(bench_cell(benchmark), values, details=details)


def test_points_come_from_the_probes_own_words():
    probe = probed(
        "network-probe",
        {
            **{f"pingpong_median {n}": ("message_time", 1e-6 + 1e-9 * n) for n in (0, 64, 4096)},
            **{f"pingpong_best {n}": ("message_time", 1e-7) for n in (64, 4096)},
        },
    )
    line = fitted(message_points(probe))
    assert (line.alpha_s, 1 / line.beta) == (pytest.approx(1e-6), pytest.approx(1e-9))
    samples = {str(n): {"unit": "us", "values": [1.0, 2.0, n]} for n in (4, 16, 64)}
    swept = probed("message-sweep-torch", {}, runs=[{"samples": samples}])
    assert message_points(swept) == collective_points(swept) == [(4, 2e-6), (16, 2e-6), (64, 2e-6)]
    with pytest.raises(BadInput, match="0 sizes"):
        message_points(probed("network-probe", {}))


def test_large_messages_take_what_the_largest_took():
    points = [(float(n), 1e-6 + 1e-10 * n) for n in (64, 4096, 65536, 2**20)]
    assert lasting_rate(fitted(points), points) == pytest.approx(1e10, rel=1e-3)
    out_of_cache = [*points, (2.0**24, 1e-6 + 4e-10 * 2**24)]
    assert lasting_rate(fitted(out_of_cache), out_of_cache) == pytest.approx(2.5e9, rel=1e-2)


def test_measured_collectives_stand_in_for_algorithms(measured):
    given = setting(measured[64], "mpi-bcast-reduce", Network(0, 0))
    free = predict(given).seconds
    size = given.profiled.work.bytes
    taken = {
        role: Measured(((1.0, seconds), (size, seconds))) for role, seconds in (("broadcast", 2e-3), ("reduce", 3e-3))
    }
    found = predict(Setting(**_fields(given) | {"measured": taken}))
    assert found.algorithm == "measured"
    assert found.seconds - free == pytest.approx(5e-3, rel=0.05)


def test_trainings_that_do_not_fit_need_no_prediction(tmp_path):
    grid = "workloads: [digits-mlp], frameworks: [numpy], strategies: [mpi-allreduce]"
    made = plan_study(
        tmp_path,
        f"name: large\ntrain:\n  grids:\n    - {{{grid}, ranks: [1, 4096], where_it_fits: true}}\n"
        "forecast: {grids: [{ranks: [4096]}]}\n",
    )
    assert made.left_out == 3 and made.stage("train") and not made.stage("forecast")
