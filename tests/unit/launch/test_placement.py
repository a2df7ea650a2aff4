"""Cores and GPUs of local ranks, from a made-up /sys."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.launch import placement


def make_sys(folder: Path, nodes: list[list[int]], siblings: int = 1) -> Path:
    """A /sys with these NUMA nodes; neighbouring CPUs are `siblings` threads of one core."""
    for number, cpus in enumerate(nodes):
        node = folder / f"devices/system/node/node{number}"
        node.mkdir(parents=True)
        (node / "cpulist").write_text(",".join(map(str, cpus)) + "\n")
        for cpu in cpus:
            topology = folder / f"devices/system/cpu/cpu{cpu}/topology"
            topology.mkdir(parents=True)
            first = cpu - cpu % siblings
            (topology / "thread_siblings_list").write_text(f"{first}-{first + siblings - 1}\n")
    return folder


TWO_SOCKETS = [list(range(8)), list(range(8, 16))]
INTERLEAVED = [list(range(0, 16, 2)), list(range(1, 16, 2))]


@pytest.mark.parametrize(
    ("nodes", "siblings", "allowed", "ranks", "threads", "expected"),
    [
        (TWO_SOCKETS, 1, range(16), 2, 1, [range(8), range(8, 16)]),
        (TWO_SOCKETS, 1, range(16), 4, 1, [range(0, 4), range(4, 8), range(8, 12), range(12, 16)]),
        # 5 cores each would cross the sockets: 4 do not.
        (TWO_SOCKETS, 1, range(16), 3, 2, [range(0, 4), range(4, 8), range(8, 12)]),
        (TWO_SOCKETS, 1, range(16), 3, 5, [range(0, 5), range(5, 10), range(10, 15)]),
        (INTERLEAVED, 1, range(16), 2, 4, [range(0, 16, 2), range(1, 16, 2)]),
        # Threads of one core stay together.
        (TWO_SOCKETS, 2, range(16), 8, 1, [range(i, i + 2) for i in range(0, 16, 2)]),
        # The mask of a job that has part of the machine.
        (TWO_SOCKETS, 1, [2, 3, 12, 13], 2, 2, [[2, 3], [12, 13]]),
        ([[0, 1], [2, 3], [4, 5], [6, 7]], 1, range(8), 2, 4, [range(4), range(4, 8)]),
        # Nothing to divide, or not enough of it.
        (TWO_SOCKETS, 1, range(16), 1, 1, None),
        (TWO_SOCKETS, 1, range(4), 8, 1, None),
        (TWO_SOCKETS, 1, range(4), 2, 4, None),
        # Without a word from the kernel about nodes.
        ([], 1, range(4), 2, 1, [[0, 1], [2, 3]]),
    ],
)
def test_core_blocks(tmp_path, nodes, siblings, allowed, ranks, threads, expected):
    blocks = placement.core_blocks(set(allowed), ranks, threads, make_sys(tmp_path, nodes, siblings))
    assert blocks == (expected and [set(block) for block in expected])


@given(st.lists(st.integers(1, 12), min_size=1, max_size=5), st.integers(2, 16), st.integers(1, 4))
def test_blocks_are_disjoint_equal_and_large_enough(sizes, ranks, threads):
    nodes = [node for node, size in enumerate(sizes) for _ in range(size)]
    if len(nodes) < ranks * threads:
        return
    blocks = placement._split(nodes, ranks, threads)
    taken = [core for block in blocks for core in block]
    assert len(set(taken)) == len(taken) and set(taken) <= set(range(len(nodes)))
    assert {len(block) for block in blocks} == {len(blocks[0])} and len(blocks) == ranks
    assert len(blocks[0]) >= threads


@pytest.mark.parametrize(
    ("mask", "environ", "bound"),
    [
        ({0}, {}, False),
        ({0}, {"SLURM_CPU_BIND_TYPE": "mask_cpu:"}, True),
        ({0}, {"SLURM_CPU_BIND_TYPE": "none"}, False),
        # The scheduler confines nobody: cores beyond the step's share may be another job's.
        ({0, 1, 2, 3}, {"SLURM_STEP_ID": "0", "SLURM_CPUS_ON_NODE": "2"}, True),
        ({0, 1}, {"SLURM_STEP_ID": "0", "SLURM_CPUS_ON_NODE": "2"}, False),
    ],
)
def test_binding_of_others_is_left_alone(mask, environ, bound):
    assert placement.already_bound(mask, environ, {0, 1, 2, 3}) is bound


def test_cgroup_limits_are_read(tmp_path):
    (tmp_path / "self").mkdir()
    (tmp_path / "self/cgroup").write_text("0::/slurm/job_1\n")
    folder = tmp_path / "fs/cgroup/slurm/job_1"
    folder.mkdir(parents=True)
    (folder / "cpuset.cpus.effective").write_text("4-7\n")
    assert placement.cgroup_cpus(tmp_path, tmp_path) == {4, 5, 6, 7}


def make_gpus(folder: Path, nodes: list[int]) -> tuple[Path, Path, Path]:
    """A /sys, /proc and /dev with one GPU on each of these NUMA nodes."""
    (folder / "dev").mkdir()
    for index, node in enumerate(nodes):
        name = f"0000:{index + 16:02X}:00.0"
        about = folder / "proc/driver/nvidia/gpus" / name
        about.mkdir(parents=True)
        (about / "information").write_text(f"Model: X\nDevice Minor: \t {index}\n")
        device = folder / "sys/bus/pci/devices" / name.lower()
        device.mkdir(parents=True)
        (device / "numa_node").write_text(f"{node}\n")
        (folder / f"dev/nvidia{index}").touch()
    return folder / "sys", folder / "proc", folder / "dev"


def test_gpus_that_cannot_be_opened_are_not_counted(tmp_path):
    sys_, proc, dev = make_gpus(tmp_path, [0, 0, 1, 1])
    assert placement.gpu_nodes(sys_, proc, dev) == [0, 0, 1, 1]
    (dev / "nvidia1").unlink()
    assert placement.gpu_nodes(sys_, proc, dev) == [0, 1, 1]


@pytest.mark.parametrize(
    ("devices", "where", "ranks", "per_rank", "expected"),
    [
        ("0123", [0, 0, 1, 1], [0, 0, 1, 1], 1, ["0", "1", "2", "3"]),
        ("0123", [1, 1, 0, 0], [0, 0, 1, 1], 1, ["2", "3", "0", "1"]),
        ("0123", [1, 1, 0, 0], [0, 1], 2, ["23", "01"]),
        ("0123", [], [None, None], 2, ["01", "23"]),
        # Rank 1 finds no near one left, and takes what nobody else is near to.
        ("012", [0, 1, 1], [0, 0, 1], 1, ["0", "2", "1"]),
        ("ab", [-1, -1], [0, 1], 1, ["a", "b"]),
    ],
)
def test_gpus_are_dealt_near_their_ranks(devices, where, ranks, per_rank, expected):
    shares = placement.gpu_shares(list(devices), where, ranks, per_rank)
    assert shares == [list(share) for share in expected]


def test_too_few_gpus():
    with pytest.raises(ValueError, match=r"2 ranks .*4 GPUs.* 0,1"):
        placement.gpu_shares(["0", "1"], [], [None, None], 2)
