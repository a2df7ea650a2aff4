"""Environments that a system offers as modules or images: what srun is told to run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from factories import plan_study
from transect.domain.errors import BadInput
from transect.domain.strict_yaml import load_model
from transect.domain.system import System
from transect.execution.build_environment import chosen
from transect.execution.job import check_environment, load_job
from transect.execution.stage_helpers import ranks
from transect.launch import LAUNCHERS
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
    name, request = ranks(job, job.module("transect.stages.train.worker"), "mpi")
    ((argv, variables),) = LAUNCHERS.get(name).processes(request)
    return argv, variables


def test_a_container_on_gpus(tmp_path, allocation):
    image = tmp_path / "torch.sif"
    image.touch()
    argv, variables = command_of(make_job(tmp_path, f"{{image: {image}, python: python3}}"))
    step = argv[: next(i for i, word in enumerate(argv) if not word.startswith("-") and i)]
    assert step == [
        "srun", "--nodes=2", "--mem=900", "--overlap", "--export=ALL", "--input=none",
        "--quit-on-interrupt", "--ntasks=8", "--ntasks-per-node=4", "--cpus-per-task=1",
        "--distribution=block", "--kill-on-bad-exit=1", "--wait=0", "--mpi=pmix", "--immediate=5",
        "--gres=gpu:4",
    ]  # fmt: skip
    inside = argv[argv.index("bash") :]
    assert inside[:4] == ["bash", "-lc", 'module load $TRANSECT_MODULES && exec "$@"', "transect"]
    assert inside[4:7] == ["apptainer", "exec", "--nv"]
    assert inside[-4:] == [str(image), "python3", "-m", "transect.stages.train.worker"]
    assert variables["TRANSECT_MODULES"] == "site/1"
    assert variables["UCX_TLS"] == "rc" and variables["OMPI_MCA_btl_tcp_if_include"] == "ib0"


def test_modules_come_after_those_of_the_site(tmp_path, allocation):
    job = make_job(tmp_path, "{modules: [python/3.12, torch/2.13]}")
    argv, variables = command_of(job)
    assert "apptainer" not in argv
    assert variables["TRANSECT_MODULES"] == "site/1 python/3.12 torch/2.13"


def test_an_image_that_is_not_there_fails_its_cells_alone(tmp_path):
    choice = load_system(tmp_path, "{image: /no/such.sif}").environments["torch"]
    facts = chosen("torch", choice)
    assert facts["status"] == "failed" and "/no/such.sif, which is not" in facts["message"]


def load_system(tmp_path: Path, choice: str) -> System:
    (tmp_path / "system.yaml").write_text(SYSTEM % choice)
    return load_model(tmp_path / "system.yaml", System)


def test_another_image_makes_cells_stale(tmp_path):
    image = tmp_path / "torch.sif"
    image.write_text("one")
    choice = load_system(tmp_path, f"{{image: {image}}}").environments["torch"]
    first = lock_hash("torch", choice)
    assert first == lock_hash("torch", choice) != lock_hash("torch")
    image.write_text("another")
    assert lock_hash("torch", choice) != first


def test_modules_or_an_image_but_not_both(tmp_path):
    with pytest.raises(BadInput, match="either `modules` or `image`"):
        load_system(tmp_path, "{modules: [a], image: b}")
