"""`transect init`: a folder that fits this machine or a Slurm, and nothing of anybody's is overwritten."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from checkouts import ROOT
from slurm_programs import write_programs
from transect.adapters.slurm import scheduler
from transect.domain.strict_yaml import load_model, load_yaml
from transect.domain.system import System

FILES = {
    ".gitignore",
    "Snakefile",
    "config/config.yaml",
    "config/studies/first.yaml",
    "profiles/local/config.yaml",
    "profiles/slurm/config.yaml",
}
ONE = {"batch": ("Default=YES MaxTime=02:00:00 State=UP", "n1|4|8000|(null)|(null)|idle")}
SEVERAL = {
    "short": ("Default=NO MaxTime=00:08:00 State=UP", "s1|8|16000|(null)|(null)|idle\ns2|8|16000|(null)|(null)|idle"),
    "batch": (
        "Default=YES MaxTime=1-00:00:00 State=UP",
        "n1|32|128000|(null)|ib|idle\nn2|32|128000|(null)|ib|mixed\nn3|24|96000+|(null)|ib|alloc\nn4|1|1|(null)|ib|down*",
    ),
    "gpu": ("Default=NO MaxTime=12:00:00 State=UP", "g1|16|64000|gpu:a100:4(S:0-1)|(null)|idle"),
    "closed": ("Default=NO MaxTime=UNLIMITED State=DOWN", "n1|32|128000|gpu:t4:8|ib|idle"),
}


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Return what puts a Slurm on PATH that says so."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TRANSECT_ENVS", str(tmp_path / "environments"))

    def make(partitions, **more):
        write_programs(tmp_path / "programs", partitions, **more)
        monkeypatch.setenv("PATH", f"{tmp_path}/programs:/usr/bin:/bin")

    for kept in (scheduler.accounting, scheduler.associations):
        kept.cache_clear()
    yield make
    for kept in (scheduler.accounting, scheduler.associations):
        kept.cache_clear()


@pytest.fixture
def made(transect, tmp_path):
    """Return what makes a folder, with the system in it."""

    def make(*options):
        code, _, err = transect("init", tmp_path / "mine", *options)
        assert code == 0, err
        found = {path.relative_to(tmp_path / "mine").as_posix() for path in (tmp_path / "mine").rglob("*.*")}
        (system,) = {name for name in found if name.startswith("config/systems/")}
        assert found | {"Snakefile"} == {*FILES, system}
        assert load_yaml(tmp_path / "mine/config/config.yaml")["system"] == system
        return load_model(tmp_path / "mine" / system, System), (tmp_path / "mine" / system).read_text()

    return make


def grids(tmp_path):
    return load_yaml(tmp_path / "mine/config/studies/first.yaml")["train"]["grids"]


@pytest.mark.env
def test_on_one_machine_the_study_has_something_to_run(made, tmp_path, transect):
    system, text = made("--scheduler", "none", "--name", "desk", "--module", "gcc/13")
    assert (system.name, system.scheduler, system.nodes, system.modules) == ("desk", "none", 1, ["gcc/13"])
    assert "may use of" in text
    config = tmp_path / "mine/config"
    code, out, err = transect("check", config / "studies/first.yaml", "--system", config / "systems/desk.yaml")
    assert code == 0 and " 0 of them would be skipped" in out, out + err


@pytest.mark.study
@pytest.mark.parametrize(
    "words",
    (
        ["snakemake", "--profile", "profiles/local"],
        # Its profile is the new folder's too.
        ["transect", "run", "config/studies/first.yaml", "--system", "config/systems/desk.yaml"],
    ),
    ids=lambda words: words[0],
)
def test_the_study_is_planned_in_the_new_folder(words, made, tmp_path):
    made("--scheduler", "none", "--name", "desk")
    done = subprocess.run(
        [sys.executable, "-m", *words, "-n"],
        cwd=tmp_path / "mine",
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "Using profile profiles/local" in done.stderr
    assert "cells would run" in done.stderr and "make_report" in done.stdout


@pytest.mark.env
def test_every_fact_of_a_cluster_says_where_it_was_read(site, made, tmp_path, transect):
    site(SEVERAL, accounts="physics|normal")
    system, text = made()
    assert system.model_dump(exclude_defaults=True) == {
        "name": "site",
        "scheduler": "slurm",
        "launcher": "srun",
        "mpi_launcher": "srun",
        "partition": "batch",
        "account": "physics",
        # Neither n4, which is down, nor more cores or memory than the smallest of both partitions has.
        "nodes": 3,
        "cores_per_node": 16,
        "memory_mb_per_node": 57600,
        "gpus_per_node": 4,
        "gpu_partition": "gpu",
        "gpu_type": "a100",
    }
    lines = text.splitlines()
    keys = [number for number, line in enumerate(lines) if not line.startswith("#")]
    assert all(lines[number - 1].startswith("# ") for number in keys)
    assert "# sinfo: partition 'batch', 3 nodes of 24 cores, Slurm's default" in lines
    assert "# other partitions: short (2 nodes of 8 cores)" in lines
    config = tmp_path / "mine/config"
    code, out, err = transect("check", config / "studies/first.yaml", "--system", config / "systems/site.yaml")
    assert code == 0, out + err
    assert grids(tmp_path)[1]["nodes"] == [2, 3] and grids(tmp_path)[2]["device"] == "cuda"


@pytest.mark.env
@pytest.mark.parametrize(("partitions", "accounts"), [(ONE, None), (ONE, "physics|normal,long\nchemistry|normal")])
def test_the_doctor_finds_nothing_wrong_with_the_file(partitions, accounts, site, made, tmp_path, transect):
    site(partitions, accounts=accounts)
    system, _ = made()
    assert system.account is None and system.block_minutes == 115
    file = tmp_path / "mine/config/systems/site.yaml"
    code, out, err = transect("doctor", "--system", file, "--results", tmp_path / "results")
    assert code == 0 and " wrong " not in out, out + err


@pytest.mark.env
def test_what_is_given_is_taken(site, made, tmp_path, monkeypatch):
    site(SEVERAL, accounts="physics|normal\nchemistry|normal", mpi="none pmi2 pmix_v4 pmix")
    listed = "/opt/modules:\\ngcc/13\\nopenmpi/5.0(default)\\n"
    (tmp_path / ".bash_profile").write_text(f"module() {{ printf '{listed}' >&2; }}\n")
    monkeypatch.setenv("LOADEDMODULES", "slurm/23:gcc/13")
    system, text = made(
        *("--partition", "short", "--account", "chemistry", "--gpus", "0", "--name", "mine.2"),
        *("--module", "openmpi/5.0", "--module", "gcc", "--module", "hdf5"),
    )
    assert system.modules == ["openmpi/5.0", "gcc", "hdf5"] and "names no hdf5 here" in text
    assert "# `module avail` names 2, with MPI in the name: openmpi/5.0\n" in text and ": slurm/23, gcc/13\n" in text
    assert (system.name, system.partition, system.account) == ("mine.2", "short", "chemistry")
    assert (system.gpus_per_node, system.mpi_type) == (0, "pmix")
    # Jobs of eight minutes, their start included.
    assert (system.block_minutes, system.overhead_minutes) == (7, 1)


@pytest.mark.env
def test_a_slurm_without_a_kind_of_mpi_that_is_known_starts_mpi_by_mpiexec(site, made):
    site(ONE, mpi="none openmpi")
    system, text = made()
    assert system.mpi_launcher == "mpiexec" and "none, openmpi" in text


@pytest.mark.env
def test_odd_names_stay_what_they_are(site, made):
    odd = {"010": ONE["batch"], "größe-1": ("Default=NO State=UP", "x1|2|4000|(null)|(null)|idle")}
    site(odd, cluster="«Kiste 7»", accounts="yes|normal")
    system, _ = made()
    assert (system.name, system.partition, system.account) == ("Kiste", "010", "yes")


@pytest.mark.env
@pytest.mark.parametrize(
    ("partitions", "options", "code", "message"),
    [
        (SEVERAL, ("--partition", "bath"), 2, "did you mean 'batch'? Known: batch, gpu, short"),
        (SEVERAL, ("--account", "phyics"), 2, "did you mean 'physics'?"),
        (SEVERAL, ("--gpus", "5"), 2, "the most that every node of a partition has is 4 (of 'gpu')"),
        (SEVERAL, ("--name", "a b"), 2, "--name 'a b': expected letters"),
        (SEVERAL, ("--scheduler", "slrm"), 2, "did you mean 'slurm'?"),
        (SEVERAL, ("--scheduler", "none", "--partition", "batch"), 2, "are Slurm's"),
        ({}, (), 2, "no partition with nodes that serve jobs"),
        ({"closed": SEVERAL["closed"]}, (), 2, "no partition with nodes that serve jobs"),
        (None, ("--scheduler", "slurm"), 3, "no Slurm answers here"),
        (None, ("--partition", "batch"), 3, "no Slurm answers here"),
    ],
)
def test_what_cannot_be_is_one_message_and_nothing_is_written(
    partitions, options, code, message, site, tmp_path, monkeypatch, transect
):
    if partitions is None:
        (tmp_path / "empty").mkdir()
        monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    else:
        site(partitions, accounts="physics|normal")
    found, _, err = transect("init", tmp_path / "mine", *options)
    assert found == code and message in err and len(err.splitlines()) == 1
    assert not (tmp_path / "mine").exists()


@pytest.mark.env
def test_the_folder_can_be_called_anything_and_what_is_said_next_can_be_pasted(tmp_path, transect):
    folder = tmp_path / "it's mine"
    code, out, _ = transect("init", folder, "--scheduler", "none")
    [line] = [line for line in out.splitlines() if line.startswith("next: ")]
    done = subprocess.run(["sh", "-c", f"{line.removeprefix('next: ')} && pwd"], capture_output=True, text=True)
    assert code == 0 and done.stdout == f"{folder}\n"


@pytest.mark.env
def test_a_file_that_is_there_is_kept_and_nothing_is_written(tmp_path, transect):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/Snakefile").write_text("mine")
    code, _, err = transect("init", tmp_path / "mine", "--scheduler", "none")
    assert code == 2 and f"{tmp_path}/mine/Snakefile: is there already" in err
    assert [path.read_text() for path in (tmp_path / "mine").iterdir()] == ["mine"]


@pytest.mark.env
def test_on_a_terminal_it_asks_what_is_open_and_with_yes_nothing(site, tmp_path):
    site(SEVERAL, accounts="physics|normal\nchemistry|normal")

    def call(folder, answers, *options):
        keyboard, terminal = pty.openpty()
        os.write(keyboard, answers)
        done = subprocess.run(
            [sys.executable, "-m", "transect", "init", str(tmp_path / folder), *options],
            stdin=terminal,
            env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
            capture_output=True,
            text=True,
        )
        os.close(terminal), os.close(keyboard)
        assert done.returncode == 0, done.stderr
        return done.stdout, load_model(next((tmp_path / folder / "config/systems").iterdir()), System)

    said, system = call("asked", b"\nshort\nchemistry\n")
    assert "Partition (short, batch, gpu)" in said and "Account (chemistry, physics" in said
    assert (system.name, system.partition, system.account) == ("site", "short", "chemistry")
    said, system = call("silent", b"", "--yes")
    assert "Partition (" not in said and (system.partition, system.account) == ("batch", None)
