"""One call: plans among data, model and hybrid, in a command and as a study's option."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from factories import plan_study
from partitions import by_trying, random_layers
from transect.cli.main import app
from transect.domain.errors import BadInput, TransectError
from transect.planner.auto import Asked, Plan, make_plan
from transect.planner.costs import Rates
from transect.planner.machine import Machine, measured_here
from transect.planner.partition import partition
from transect.planner.problem import Infeasible, Link, Problem
from transect.planning.plan import StudyPlan
from transect.training.layout import Layout
from transect.training.strategies import STRATEGIES

MACHINE = Machine(rates=Rates(1e9, 1e9), inside=Link(0.0, 0.0), between=Link(0.5, 1e-6), source="a test")
LAYERS = random_layers(np.random.default_rng(5), 7)
BATCH = 16


def costs_of(batch: int):
    """Layers whose passes take a little for being called, and the rest for each sample."""
    return tuple(
        replace(
            layer,
            forward_s=0.05 + layer.forward_s * batch / BATCH,
            backward_s=0.05 + layer.backward_s * batch / BATCH,
            kept_bytes=layer.kept_bytes * batch // BATCH,
            out_bytes=layer.out_bytes * batch // BATCH,
        )
        for layer in LAYERS
    )


def asked(**more: object) -> Asked:
    return Asked(**{"costs_of": costs_of, "machine": MACHINE, "ranks": 4, "batch": BATCH} | more)


def every_step(wanted: Asked, kinds: tuple[str, ...]) -> list[float]:
    """The best step of every layout, by trying every cut."""
    found = []
    for stages in (1, 2, 4):
        kind = "data" if stages == 1 else "model" if stages == 4 else "hybrid"
        for micro_batches in (1, 2, 4, 8, 16):
            layout = Layout(4 // stages, stages, micro_batches)
            if kind not in kinds or layout.complaint(BATCH):
                continue
            size = layout.micro(BATCH // layout.replicas)[0].stop
            machine, per_node = wanted.machine, 4 // wanted.nodes
            best = by_trying(
                Problem(
                    layers=costs_of(size),
                    devices=stages,
                    micro_batches=micro_batches,
                    memory_bytes=wanted.memory_bytes,
                    links=machine.links(stages, 4, per_node),
                    replicas=layout.replicas,
                    replica_link=machine.replica_link(4, per_node),
                )
            )
            found += [best.step_s] if best else []
    return found


@pytest.mark.parametrize("nodes", [1, 2, 4])
@pytest.mark.parametrize("mode", ["auto", "data", "model", "hybrid"])
def test_a_plan_is_the_best_of_all_layouts_and_cuts(mode, nodes):
    wanted = asked(mode=mode, nodes=nodes)
    found = make_plan(wanted)
    assert isinstance(found, Plan)
    kinds = ("data", "model", "hybrid") if mode == "auto" else (mode,)
    assert found.kind in kinds
    assert found.predicted_step_s == pytest.approx(min(every_step(wanted, kinds)), rel=1e-6)
    assert len(found.memory_bytes) == found.stages and found.why


def test_slow_links_and_little_memory_change_the_plan():
    free = make_plan(asked(nodes=4))
    assert isinstance(free, Plan)
    # Gradients of 7 layers over a link that takes 20 s for each of their megabytes.
    slow = make_plan(asked(machine=replace(MACHINE, inside=Link(0, 2e-5), between=Link(0, 2e-5))))
    assert isinstance(slow, Plan) and slow.stages > 1
    whole = make_plan(asked(mode="data"))
    assert isinstance(whole, Plan)
    tight = make_plan(asked(memory_bytes=whole.memory_bytes[0] // 2))
    assert isinstance(tight, Plan) and max(tight.memory_bytes) <= whole.memory_bytes[0] // 2
    assert tight.stages > 1 and any("memory" in reason for reason in tight.why)
    none = make_plan(asked(memory_bytes=1000))
    assert isinstance(none, Infeasible) and none.reason.startswith("memory: layer")


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"ranks": 3, "mode": "data"}, "batch: 16 samples"),
        ({"ranks": 2, "mode": "hybrid"}, "ranks: 2 cannot be divided"),
        ({"ranks": 8, "mode": "model"}, "stages: 7 layers cannot be cut in 8 stages"),
        # Fewer stages would do, were there memory.
        ({"ranks": 8, "memory_bytes": 1000}, "memory: layer"),
    ],
)
def test_what_cannot_be_planned_names_the_constraint(more, reason):
    found = make_plan(asked(**more))
    assert isinstance(found, Infeasible) and found.reason.startswith(reason)


def test_a_row_of_more_devices_than_layers_is_refused_without_its_tables():
    problem = Problem(layers=LAYERS, devices=100_000)
    found = partition(problem)
    assert isinstance(found, Infeasible)
    assert found.reason.startswith(f"stages: {len(LAYERS)} layers ") and "100000" in found.reason
    assert "tables" not in vars(problem)


@pytest.mark.parametrize("more", [{"mode": "best"}, {"ranks": 0}, {"ranks": 3, "nodes": 2}])
def test_numbers_that_fit_nothing_are_refused(more):
    with pytest.raises(BadInput):
        make_plan(asked(**more))


def test_links_between_stages_follow_the_nodes():
    # Two replicas of four stages, two ranks a node: the second boundary of each crosses nodes.
    assert MACHINE.links(4, 8, 2) == (MACHINE.inside, MACHINE.between, MACHINE.inside)
    # Three stages on nodes of two ranks: one replica or the other crosses at each boundary.
    assert MACHINE.links(3, 6, 2) == (MACHINE.between, MACHINE.between)
    assert MACHINE.replica_link(8, 8) == MACHINE.inside
    with pytest.raises(BadInput, match="--link"):
        replace(MACHINE, between=None).replica_link(8, 2)


@pytest.mark.env
def test_this_machine_has_rates_and_a_link():
    here = measured_here()
    assert min(*here.rates, here.inside.alpha_s) > 0 and here.inside.beta_s_per_byte >= 0
    assert here.between is None


@pytest.mark.env
def test_rates_are_those_of_as_many_threads_as_a_rank_has(monkeypatch, tmp_path):
    """A BLAS takes its threads when it is loaded, so another process measures, which is told how many."""
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho $OMP_NUM_THREADS $OPENBLAS_NUM_THREADS\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    here = measured_here(3)
    assert here.rates == (3, 3) and "3 threads" in here.source
    program.write_text("#!/bin/sh\necho no numpy >&2; exit 1\n")
    with pytest.raises(TransectError, match="no numpy"):
        measured_here()


def transect(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


def test_the_command_prints_a_plan_and_a_study_that_is_valid(tmp_path):
    done = transect("plan", "digits-cnn", "--framework", "numpy", "--ranks", "4", "--plan", "hybrid", "--json")
    assert done.exit_code == 0, done.output
    printed = json.loads(done.stdout)
    assert (printed["stages"], printed["replicas"], printed["kind"]) == (2, 2, "hybrid")
    assert printed["predicted_step_s"] > 0 and printed["why"]
    cells = [p.cell for p in plan_study(tmp_path, yaml.safe_dump(printed["study"]))]
    trained = [cell for cell in cells if cell.stage == "train"]
    assert len(trained) == 1
    assert dict(trained[0].options)["stages"] == 2
    text = transect("plan", "digits-cnn", "--framework", "numpy", "--ranks", "4", "--plan", "hybrid")
    assert "hybrid: 2 x 2" in text.output and "strategies:" in text.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--plan", "best"), "expected auto, data, model, hybrid"),
        (("--ranks", "3", "--nodes", "2"), "as many on each of 2 nodes"),
        (("--ranks", "4", "--nodes", "2", "--system", "virtual-cluster"), "give --link"),
        (("--ranks", "4", "--nodes", "2"), "system 'laptop' has 1"),
        (("--memory", "lots"), "expected a number of bytes"),
        (("--memory", "1,5GiB"), "expected a number of bytes"),
        (("--memory", "1KiB"), "no plan: memory: layer"),
        (("--link", "fast"), "expected SECONDS,BYTES_PER_SECOND"),
        (("--ranks", "2", "--plan", "hybrid"), "no plan: ranks: 2"),
        (("--framework", "theano"), "unknown framework 'theano'"),
        (("--framework", "caffe"), "cannot be trained by caffe so: Caffe's last release is 1.0"),
        (("--profile", "nowhere"), "no profile of workload digits-cnn"),
        (("--solver", "simplex"), "expected highs, cbc"),
        (("--batch", "0"), "expected 1 or more"),
        (("--ranks", "9" * 30), "expected 1 to 1000000"),
        (("--framework", "numpy", "--precision", "bf16"), "cannot be trained by numpy so: "),
    ],
)
def test_the_command_refuses_what_it_cannot_plan(options, message):
    done = transect("plan", "digits-cnn", *options)
    assert isinstance(done.exception, BadInput) and message in str(done.exception)


def test_a_systems_network_is_what_lies_between_its_nodes(tmp_path):
    system = tmp_path / "two.yaml"
    network = "network: slow\nnetworks: {slow: {interface: lo, latency_s: 1.0, bytes_per_s: 1.0e6}}\n"
    system.write_text(f"name: two\nnodes: 2\nlauncher: srun\nmpi_launcher: srun\n{network}")
    call = ("plan", "digits-mlp", "--framework", "numpy", "--nodes", "2", "--plan", "data", "--json")
    planned = json.loads(transect(*call, "--system", str(system)).stdout)
    assert planned["predicted_step_s"] > 2 and "system file" in planned["machine"]
    given = json.loads(transect(*call, "--system", str(system), "--link", "0,1e12").stdout)
    assert given["predicted_step_s"] < 1 and given["machine"].endswith("as given")


@pytest.mark.parametrize(("cores", "warned"), [(3, True), (64, False)])
def test_ranks_share_the_cores_that_the_system_file_gives_a_node(tmp_path, cores, warned):
    system = tmp_path / "system.yaml"
    system.write_text(f"name: given\ncores_per_node: {cores}\n")
    printed = transect("plan", "digits-mlp", "--ranks", "4", "--system", str(system)).output
    assert (f"4 threads on a node's {cores} " in printed) == warned


def test_a_model_without_layers_cannot_be_planned():
    done = transect("plan", "tickets-transformer")
    assert isinstance(done.exception, BadInput) and "cannot be planned" in str(done.exception)


PLANNER = {"flops_per_s": 1e10, "bytes_per_s": 1e10, "latency_s": 2e-5, "link_bytes_per_s": 1e9}


def grid_plan(tmp_path: Path, **grid: object) -> StudyPlan:
    planner = grid.pop("planner", PLANNER)
    content = {
        "name": "planned",
        "train": {
            "repeats": 1,
            **({"planner": planner} if planner else {}),
            "grids": [
                {
                    "workloads": ["digits-cnn"],
                    "frameworks": ["numpy"],
                    "strategies": ["mpi-pipeline"],
                    "ranks": [4],
                    **grid,
                }
            ],
        },
    }
    return plan_study(tmp_path, yaml.safe_dump(content))


def test_an_option_of_a_study_becomes_explicit_before_the_cell_has_an_id(tmp_path):
    options = [{"plan": "hybrid"}, {"plan": "data", "progress": "thread"}]
    for _ in range(2):
        cells = [p.cell for p in grid_plan(tmp_path, options=options)]
        hybrid, data = (dict(cell.options) for cell in cells if cell.stage == "train")
        assert hybrid["stages"] == 2 and "plan" not in hybrid and "cut" in hybrid
        assert data["stages"] == 1 and data["progress"] == "thread"
        assert all("plan" not in cell.id for cell in cells)


@pytest.mark.parametrize("batch", [1, 3, 8])
@pytest.mark.parametrize("strategy", ["mpi-pipeline", "torch-pipeline"])
def test_what_is_planned_is_what_the_strategy_takes(tmp_path, strategy, batch):
    """Torch's 1F1B takes no fewer micro-batches than stages."""
    slow = PLANNER | {"latency_s": 1e-3}
    made = grid_plan(
        tmp_path,
        workloads=["iris-mlp"],
        frameworks=["torch"],
        strategies=[strategy],
        batches=[batch],
        options=[{"plan": "model"}],
        planner=slow,
    )
    (cell,) = (p.cell for p in made if p.cell.stage == "train")
    assert dict(cell.options)["micro_batches"] < 4 == dict(cell.options)["stages"]
    assert STRATEGIES.get(strategy).supports(cell) is None


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"options": [{"plan": "best"}]}, "expected auto, data, model, hybrid, got 'best'"),
        ({"options": [{"plan": "auto", "stages": 2}]}, "`plan` decides stages"),
        ({"options": [{"plan": "auto"}], "planner": None}, "expected `train.planner`"),
        ({"options": [{"plan": "auto"}], "scaling": "weak"}, "expected strong"),
        ({"options": [{"plan": "auto"}], "strategies": ["ddp-gloo"]}, "has no option stages"),
        ({"options": [{"plan": "data"}], "ranks": [3]}, "train.grids.0.options.plan: no plan data of"),
    ],
)
def test_an_option_that_cannot_be_followed_is_refused(tmp_path, grid, message):
    with pytest.raises(BadInput) as raised:
        grid_plan(tmp_path, **grid)
    assert message in str(raised.value)


def test_cells_that_fit_nowhere_need_no_plan(tmp_path):
    grid = {"options": [{"plan": "data"}], "ranks": [2], "nodes": [1, 5], "where_it_fits": True}
    made = grid_plan(tmp_path, **grid)
    assert [p.cell.nodes for p in made if p.cell.stage == "train"] == [1]
