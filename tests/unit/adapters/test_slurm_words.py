"""Words of sinfo, scontrol and sbatch: states, constraints, times, what Slurm calls nothing."""

from __future__ import annotations

import pytest

from transect.adapters.slurm.words import absent, fitting, gpus, minutes, usable
from transect.domain.errors import BadInput

# Nodes by index, as sinfo's %f has their features.
NODES = ["ib,skylake,rack1", "ib,icelake,rack1", "eth,icelake,rack2", "icelake,rack2,ib", "(null)"]


@pytest.mark.parametrize(
    ("constraint", "nodes"),
    [
        ("icelake", [1, 2, 3]),
        # A part of a feature's name is none.
        ("lake", []),
        ("(null)", []),
        ("ib&icelake", [1, 3]),
        ("skylake|eth", [0, 2]),
        # From left to right: (skylake or eth), and ib.
        ("skylake|eth&ib", [0]),
        ("ib&(skylake|rack2)", [0, 3]),
        # All nodes of a job have the same one: the most that can be had.
        ("[rack1|rack2]&icelake", [2, 3]),
        ("[ib|eth]", [0, 1, 3]),
        # So many of each, among nodes that have one or the other.
        ("[rack1*2&rack2*1]", [0, 1, 2, 3]),
        ("ib*3", [0, 1, 3]),
        ("ib*4", []),
        ("[rack1*2&eth*2]", []),
        ("[(ib&icelake)*2&skylake*1]", [0, 1, 3]),
        ("a&", None),
        ("a,b", None),
        ("(a", None),
        ("a)", None),
        ("a*b", None),
        ("", None),
    ],
)
def test_a_constraint_is_read_as_slurm_reads_it(constraint, nodes):
    if nodes is None:
        with pytest.raises(BadInput, match="no constraint of Slurm's"):
            fitting(constraint, NODES)
    else:
        assert fitting(constraint, NODES) == nodes


@pytest.mark.parametrize(
    "state",
    [
        "idle",
        "IDLE",
        "mixed-",
        "mix-",
        "allocated+",
        "alloc",
        "planned",
        "plnd",
        "idle~",
        "mix#",
        "completing",
        "reserved",
        "resv",
        "powering_up",
        "pow_dn",
        "idle%",
        "idle!",
        "mixed@",
    ],
)
def test_a_node_that_serves_jobs_is_usable(state):
    assert usable(state)


@pytest.mark.parametrize(
    "state",
    [
        "down",
        "down*",
        "idle*",
        "drained",
        "drng",
        "maint",
        "idle$",
        "idle^",
        "fail",
        "unknown",
        "future",
        "inval",
        "boot",
        "reboot^",
        "no_respond",
        "n/a",
    ],
)
def test_a_node_that_serves_none_is_not(state):
    assert not usable(state)


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
