"""Words of sinfo, scontrol and sbatch: states, constraints, times, what Slurm calls nothing."""

from __future__ import annotations

import pytest

from transect.adapters.slurm.doctor import absent, fitting, gpus, minutes, usable

# Nodes by index, as sinfo's %f has their features.
NODES = ["ib,skylake,rack1", "ib,icelake,rack1", "eth,icelake,rack2", "icelake,rack2,ib", "(null)"]


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
    assert fitting(constraint, NODES) == nodes


SERVES = "idle IDLE mixed- mix- allocated+ alloc planned plnd idle~ mix# completing reserved resv powering_up pow_dn idle% idle! mixed@"
SERVES_NOT = "down down* idle* drained drng maint idle$ idle^ fail unknown future inval boot reboot^ no_respond n/a"


def test_a_node_in_some_states_serves_jobs():
    assert [one for one in SERVES.split() if not usable(one)] == []
    assert [one for one in SERVES_NOT.split() if usable(one)] == []


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
