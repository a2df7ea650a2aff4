"""`transect doctor --system` over programs that say what Slurm says; jobs run on this machine."""

from __future__ import annotations

import pytest

from slurm_programs import write_programs
from transect.adapters.slurm import scheduler
from transect.adapters.slurm.doctor import absent, examine_system, fitting, gpus, minutes, usable
from transect.domain.strict_yaml import load_model
from transect.domain.system import System

PARTITIONS = {
    "cpu": (
        "Default=YES MaxTime=01:00:00 State=UP",
        "c1|16|64000|(null)|ib,icelake|planned\nc2|16|64000|(null)|ib,icelake|mixed-",
    ),
    "fat": ("Default=NO MaxTime=2-00:00:00 State=UP", "f1|64|512000|(null)|icelake|idle"),
    "gpu": ("Default=NO MaxTime=UNLIMITED State=UP", "g1|32|128000|(null)|(null)|down*"),
}
SYSTEM = """
name: mine
scheduler: slurm
launcher: srun
mpi_launcher: srun
nodes: 1
block_minutes: 50
"""


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """Return what asks about a system file that has more lines: state and detail by row."""
    folder = tmp_path / "programs"
    write_programs(folder, PARTITIONS, accounts="physics|normal,long")
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    # None is built: each one would be tried.
    monkeypatch.setenv("TRANSECT_ENVS", str(tmp_path / "environments"))
    scheduler.accounting.cache_clear()
    scheduler.associations.cache_clear()

    def ask(lines: str) -> dict[str, tuple[str, str]]:
        (tmp_path / "system.yaml").write_text(SYSTEM + lines)
        system = load_model(tmp_path / "system.yaml", System)
        sections = examine_system(system, tmp_path / "results", 60)
        found = [row for section in sections.values() for row in section]
        return {row["name"]: (row["state"], row["detail"]) for row in found}

    yield ask
    scheduler.accounting.cache_clear()
    scheduler.associations.cache_clear()


def wrong(rows: dict[str, tuple[str, str]]) -> set[str]:
    return {name for name, (state, _) in rows.items() if state == "wrong"}


@pytest.mark.env
def test_modules_and_replaced_environments_are_tried_on_a_node(rows, tmp_path):
    (tmp_path / "image").mkdir()
    found = rows(
        "modules: [site/1]\n"
        "environments: {torch: {modules: [gcc/99]}, mxnet: {image: /no/such.sif}, "
        "toch: {modules: [gcc/99]}}\n"
        "benchmarks: {hpl: {modules: [hpl/2]}}\n"
    )
    assert wrong(found) == {"modules", "environment torch", "environment mxnet", "benchmark hpl"}
    for name in ("modules", "environment torch", "benchmark hpl"):
        assert "module: command not found" in found[name][1], found[name]
    assert "set environments.torch" in found["environment torch"][1]
    assert found["environment toch"][0] == "note"
    assert "/no/such.sif" in found["environment mxnet"][1]


@pytest.mark.env
def test_modules_that_bring_what_an_environment_needs_are_ok(rows, tmp_path):
    (tmp_path / ".bash_profile").write_text("module() { :; }\n")
    found = rows("environments: {trainer-go: {modules: [go/1]}, torch: {modules: [torch/2]}}\n")
    assert found["environment trainer-go"][0] == "ok", found
    # The machine's own Python has no torch.
    assert "No module named" in found["environment torch"][1]


@pytest.mark.env
def test_problems_of_all_groups_are_told_in_one_round(rows, tmp_path):
    found = rows(
        "partition: nowhere\naccount: chemistry\nqos: short\nmpi_type: pmi9\nscratch: /nowhere\n"
        "networks: {ib: {interface: ib0}}\nmodules: [site/1]\n"
    )
    assert wrong(found) == {
        "partition",
        "account chemistry",
        "qos short",
        "mpi_type pmi9",
        "scratch",
        "network ib",
        "modules",
    }
    # What Slurm refuses was left out of the job.
    asked = (tmp_path / "programs/asked-of-srun").read_text()
    assert not any(word in asked for word in ("nowhere ", "chemistry", "--qos"))


@pytest.mark.env
def test_a_list_of_partitions_fits_where_one_of_them_does(rows):
    lists = "partition: cpu,fat\n"
    found = rows(lists + "cores_per_node: 64\nconstraint: icelake&ib\n")
    assert found["cpu: cores_per_node"] == ("wrong", "64 asked, 16 offered: set it to 16")
    assert found["fat: constraint icelake&ib"][0] == "wrong"
    found = rows(lists + "cores_per_node: 64\nconstraint: icelake|ib\n")
    assert wrong(found) == set() and found["cpu: cores_per_node"][0] == "note"
    found = rows("partition: cpu,nowhere\n")
    assert wrong(found) == {"partition"} and "'nowhere'" in found["partition"][1]


@pytest.mark.env
def test_states_and_what_is_not_there_are_read_as_slurm_means_them(rows):
    found = rows("gpus_per_node: 1\ngpu_partition: gpu\n")
    # `planned` and `mixed-` serve jobs, `down*` does not.
    assert "cpu: node states" not in found
    assert found["gpu: node states"] == ("note", "1 of 1 cannot be used now: g1")
    assert "no GPUs" in found["gpu: gpus_per_node"][1]
    found = rows("partition: gpu\nconstraint: ib\n")
    assert found["gpu: constraint ib"][1].endswith("features there: none")


@pytest.mark.env
def test_accounts_that_nobody_tells_are_not_called_wrong(rows, tmp_path):
    (tmp_path / "programs" / "sacctmgr").write_text("#!/bin/sh\necho Connection refused >&2; exit 1\n")
    found = rows("account: physics\n")
    assert wrong(found) == set()
    assert found["accounting"][0] == "note" and "slurmdbd" in found["accounting"][1]


# Nodes by index, as sinfo's %f has their features.
FEATURES = ["ib,skylake,rack1", "ib,icelake,rack1", "eth,icelake,rack2", "icelake,rack2,ib", "(null)"]


@pytest.mark.parametrize(
    ("constraint", "nodes"),
    [
        ("icelake", [1, 2, 3]),
        # A part of a feature's name is none.
        ("lake", []),
        ("ib&icelake", [1, 3]),
        ("skylake|eth", [0, 2]),
        # From left to right: (skylake or eth), and ib.
        ("skylake|eth&ib", [0]),
        # What the job that tries it decides.
        ("[rack1*2&eth*1]", [0, 1, 2]),
        ("a&", []),
    ],
)
def test_a_constraint_is_read_as_slurm_reads_it(constraint, nodes):
    assert fitting(constraint, FEATURES) == nodes


SERVES = "idle IDLE mixed- mix- allocated+ alloc planned plnd idle~ mix# completing reserved resv powering_up pow_dn idle% idle! mixed@"
SERVES_NOT = "down down* idle* drained drng maint idle$ idle^ fail unknown future inval boot reboot^ no_respond n/a"


def test_a_node_in_some_states_serves_jobs():
    assert [state for state in SERVES.split() if not usable(state)] == []
    assert [state for state in SERVES_NOT.split() if usable(state)] == []


def test_what_is_not_there_counts_for_nothing():
    assert (absent("(null)"), absent("N/A"), absent("a,b ")) == ("", "", "a,b")
    assert gpus("(null)", None) == 0
    assert gpus("gpu:a100:4(S:0-1),gpu:t4:2", None) == 6 and gpus("gpu:a100:4,gpu:t4:2", "t4") == 2


@pytest.mark.parametrize(
    ("text", "value"),
    [("1-02:30:00", 1590), ("30:00", 30), ("02:00:30", 120.5), ("UNLIMITED", float("inf")), ("(null)", float("inf"))],
)
def test_limits_in_minutes(text, value):
    assert minutes(text) == value
