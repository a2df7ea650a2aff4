"""Environments that a system offers as modules or images: what srun is told to run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from factories import plan_study
from transect.domain.record import Cause
from transect.domain.strict_yaml import load_model
from transect.domain.system import System
from transect.engine.build_environment import chosen
from transect.engine.job import Result, check_environment, load_job
from transect.engine.payload import execute
from transect.engine.stage_helpers import ranks
from transect.launch import LAUNCHERS, Request
from transect.launch.wrapping import modules
from transect.planning.environments import lock_hash

STUDY = """
name: wrapped
limits: {memory_mb: 900}
train:
  repeats: 1
  grids:
    - {workloads: [iris-mlp], frameworks: [torch], strategies: [mpi-allreduce], nodes: [2], ranks: [4],
       device: cuda}
"""
SYSTEM = """
name: wrapping
scheduler: slurm
launcher: srun
mpi_launcher: srun
nodes: 2
cores_per_node: 8
gpus_per_node: 4
networks: {ib: {interface: ib0, variables: {UCX_TLS: rc}}}
network: ib
modules: [site/1]
environments:
  torch: %s
"""


def make_job(tmp_path: Path, choice: str):
    plan = plan_study(tmp_path, STUDY, system=SYSTEM % choice)
    (planned,) = plan.stage("train").values()
    stamp = plan.paths.environment("torch")
    stamp.parent.mkdir(parents=True)
    stamp.write_text(json.dumps(chosen("torch", plan.system.environments["torch"])))
    return load_job(planned.spec, plan.paths)


@pytest.fixture
def allocation(monkeypatch):
    """What a job of two nodes finds in its environment."""
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "c[1-2]")


def command_of(job) -> tuple[list[str], dict[str, str]]:
    check_environment(job)
    name, request = ranks(job, [job.python, "-m", "transect.payloads"], "mpi")
    ((argv, variables),) = LAUNCHERS.get(name).processes(request)
    return argv, variables


def test_a_container_on_gpus(tmp_path, allocation):
    image = tmp_path / "torch.sif"
    image.touch()
    argv, variables = command_of(make_job(tmp_path, f"{{image: {image}, python: python3}}"))
    step = argv[: next(i for i, word in enumerate(argv) if not word.startswith("-") and i)]
    # All of them: tests/unit/launch/test_launch.py.
    assert {"--nodes=2", "--mem=900", "--ntasks-per-node=4", "--mpi=pmix", "--immediate=5", "--gres=gpu:4"} <= {*step}
    inside = argv[argv.index("bash") :]
    assert inside[:2] == ["bash", "-lc"] and inside[3] == "transect"
    assert re.match(r'module load \$TRANSECT_MODULES \|\| .*; exec "\$@"; .*', inside[2])
    assert inside[4:7] == ["apptainer", "exec", "--nv"]
    assert inside[-4:] == [str(image), "python3", "-m", "transect.payloads"]
    assert variables["TRANSECT_MODULES"] == "site/1"
    assert variables["UCX_TLS"] == "rc" and variables["OMPI_MCA_btl_tcp_if_include"] == "ib0"


def test_modules_come_after_those_of_the_site(tmp_path, allocation):
    job = make_job(tmp_path, "{modules: [python/3.12, torch/2.13]}")
    argv, variables = command_of(job)
    assert "apptainer" not in argv
    assert variables["TRANSECT_MODULES"] == "site/1 python/3.12 torch/2.13"


def load_system(tmp_path: Path, choice: str) -> System:
    (tmp_path / "system.yaml").write_text(SYSTEM % choice)
    return load_model(tmp_path / "system.yaml", System)


def test_another_image_makes_cells_stale(tmp_path):
    image = tmp_path / "torch.sif"
    image.write_text("one")
    choice = load_system(tmp_path, f"{{image: {image}}}").environments["torch"]
    first = lock_hash("torch", choice)
    gone = chosen("torch", load_system(tmp_path, "{image: /no/such.sif}").environments["torch"])
    assert gone["status"] == "failed" and "/no/such.sif is not there" in gone["message"]
    assert first == lock_hash("torch", choice) != lock_hash("torch")
    image.write_text("another")
    assert lock_hash("torch", choice) != first


# What a site's profile defines, and what a job ends in: the words that its record has to hold.
SITES = {
    "no modules here": ("", ["true"], "module: command not found"),
    "unknown module": (
        "module() { echo 'Lmod: these module(s) are unknown: \"gcc/99\"' >&2; return 1; }",
        ["true"],
        'unknown: "gcc/99"',
    ),
    "no interpreter": ("module() { :; }", ["python9"], "python9: cannot be run"),
    "a payload that fails": ("module() { :; }", ["sh", "-c", "echo 'x: not found'; exit 127"], None),
}


@pytest.mark.env
@pytest.mark.parametrize("name", SITES)
@pytest.mark.parametrize("launcher", ["plain", "srun"])
def test_modules_that_cannot_be_loaded_are_a_missing_dependency(tmp_path, monkeypatch, name, launcher):
    profile, command, words = SITES[name]
    (tmp_path / ".bash_profile").write_text(profile + "\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    wrap, variables = modules(["gcc/99"])
    wrap = [*wrap, *command]
    if launcher == "srun":
        # As srun does, which tells of the rank's end beside what the rank printed.
        ends = 'code=$?; echo "srun: error: n1: task 0: Exited with exit code $code" >&2; exit $code'
        wrap = ["sh", "-c", f'"$@"; {ends}', "srun", *wrap]
    folder = tmp_path / "cell"
    folder.mkdir()
    job = SimpleNamespace(
        folder=folder,
        log=folder / "output.log",
        environment={},
        others={},
        image_of=lambda _: None,
        spec={"cell_limits": {"seconds": 600, "memory_mb": None}},
    )
    stage = SimpleNamespace(
        energy=False,
        who=lambda *_: "",
        prepare=lambda _: ("plain", Request(command=wrap, variables=variables)),
        collect=lambda _, outcome: Result.failed(Cause.CRASH, f"exit code {outcome.code}"),
    )
    result = execute(job, stage)[0]  # type: ignore[arg-type]
    assert result.cause is (Cause.MISSING_DEPENDENCY if words else Cause.CRASH), result.message
    assert (words or "exit code") in result.message
