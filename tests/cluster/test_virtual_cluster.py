"""The throw-away Slurm cluster that other tests stand on, as far as these do not show it themselves."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from clusters import VirtualCluster, eventually, virtual_cluster, why_not

# Sends bytes between two nodes over TCP, and says the least time until they were acknowledged.
PROBE = """
import socket, sys, time
role, address, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
if role == "serve":
    listener = socket.create_server((address, 5001))
    print("ready", flush=True)
    connection = listener.accept()[0]
    while connection.recv(size, socket.MSG_WAITALL): connection.sendall(b".")
else:
    connection, times = socket.create_connection((address, 5001)), []
    for _ in range(int(sys.argv[4])):
        start = time.perf_counter()
        connection.sendall(bytes(size))
        connection.recv(1)
        times.append(time.perf_counter() - start)
    print(min(times))
"""


def takes(cluster: VirtualCluster, link: str, size: int, low: float, high: float) -> None:
    """Check that so many bytes never arrive from n2 at n1 in less than `low` s, and once in less than `high`."""
    # n1's, on the interface that has the link's name.
    shown = cluster.node_run("n1", "ip", "-4", "-br", "address", "show", link).stdout
    address = shown.split()[2].split("/")[0]

    def look() -> bool:
        server = cluster.popen("python3", "-c", PROBE, "serve", address, str(size), node="n1")
        assert server.stdout is not None
        try:
            assert server.stdout.readline() == "ready\n"
            seconds = cluster.node_run("n2", "python3", "-c", PROBE, "ask", address, str(size), "5").stdout
        finally:
            server.kill()
            server.communicate()
        assert float(seconds) > low
        return float(seconds) < high

    eventually(look, what=f"{size} bytes over {link} within {high:g} s")


NO_CLUSTER = why_not()
_skips = pytest.mark.skipif(bool(NO_CLUSTER), reason=NO_CLUSTER)


def needs_cluster(test: Callable[..., None]) -> Callable[..., None]:
    """Mark what has a cluster of its own, which takes minutes: what the tests of studies need is asked there."""
    return pytest.mark.exhaustive(_skips(test))


@pytest.fixture(scope="module")
def cluster() -> Iterator[VirtualCluster]:
    """Two CPU nodes, one GPU node, and three links beside the control link."""
    links = ["slow=100mbit", "far=1gbit,2ms", "free="]
    with VirtualCluster("test", nodes=2, gpu_nodes=1, link=links) as made:
        yield made


def submit(cluster: VirtualCluster, *argv: str) -> str:
    """Submit a job and return its number."""
    return cluster.run("sbatch", "--parsable", "-o", "/dev/null", *argv).stdout.strip()


@needs_cluster
def test_links_have_the_rate_and_the_delay_that_they_are_given(cluster: VirtualCluster) -> None:
    takes(cluster, "free", 1, 0, 2e-3)
    takes(cluster, "free", 20_000_000, 0, 0.5)
    # In each direction, and the rate with it.
    takes(cluster, "far", 1, 4e-3, 8e-3)
    takes(cluster, "far", 20_000_000, 0.15, 0.8)
    takes(cluster, "slow", 1_000_000, 0.07, 0.15)
    cluster.command("shape", "free", "--rate", "20mbit")
    takes(cluster, "free", 1_000_000, 0.36, 0.8)
    cluster.command("shape", "free", "--rate", "")
    takes(cluster, "free", 20_000_000, 0, 0.5)
    assert cluster.status()["healthy"]


@needs_cluster
def test_every_node_is_a_machine_of_its_own(cluster: VirtualCluster) -> None:
    cluster.node_run("n1", "touch", "/dev/shm/of-n1")
    assert "of-n1" not in cluster.node_run("n2", "ls", "/dev/shm").stdout
    assert not Path("/dev/shm/of-n1").exists()
    assert cluster.node_run("n2", "hostname").stdout == "n2\n"
    interfaces = cluster.node_run("n2", "ls", "/sys/class/net").stdout.split()
    assert sorted(interfaces) == ["eth0", "far", "free", "lo", "slow"]
    names = cluster.node_run("n2", "sh", "-c", "cat /proc/[0-9]*/comm").stdout.split()
    assert names.count("slurmd") == 1 and "slurmctld" not in names


@needs_cluster
def test_shell_keeps_folder_environment_input_and_exit_code(cluster: VirtualCluster, tmp_path: Path) -> None:
    done = cluster.run(
        "sh",
        "-c",
        "pwd; echo $COLOUR; cat; exit 7",
        cwd=tmp_path,
        env=os.environ | {"COLOUR": "green"},
        input="said",
        stdin=None,
        check=False,
    )
    assert (done.returncode, done.stdout) == (7, f"{tmp_path}\ngreen\nsaid")
    assert cluster.run("no-such-program", check=False).returncode == 127
    assert cluster.run("sh", "-c", "kill -9 $$", check=False).returncode == 137


@needs_cluster
def test_gpu_jobs_see_their_devices(cluster: VirtualCluster) -> None:
    say = "echo $CUDA_VISIBLE_DEVICES"
    both = cluster.run("srun", "-p", "gpu", "--gres=gpu:2", "sh", "-c", say).stdout
    assert both == "0,1\n"
    each = cluster.run("srun", "-p", "gpu", "-n2", "--gpus-per-task=1", "sh", "-c", say).stdout
    assert sorted(each.split()) == ["0", "1"]
    bound = cluster.run("srun", "-p", "gpu", "-n2", "--gres=gpu:2", "--gpu-bind=single:1", "sh", "-c", say).stdout
    assert sorted(bound.split()) == ["0", "1"]
    refused = cluster.run("srun", "-p", "gpu", "--gres=gpu:3", "true", check=False)
    assert refused.returncode != 0


@needs_cluster
def test_down_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    root = tmp_path / "c"
    monkeypatch.setenv("TRANSECT_CLUSTERS", str(root))
    interfaces, mounts = os.listdir("/sys/class/net"), Path("/proc/mounts").read_text()
    with VirtualCluster("gone", nodes=1, gpu_nodes=1, link=["far=1gbit,1ms"]) as made:
        submit(made, "--wrap", "sleep 47110815")
        eventually(lambda: "sleep 47110815" in made.processes().values(), what="sleep runs")
        # Other options take the old one down first.
        made.command("up", "--nodes", "1", "--gpu-nodes", "0")
        assert [node["name"] for node in made.status()["nodes"]] == ["n1"] and made.jobs() == []
    assert not root.exists() and os.listdir("/sys/class/net") == interfaces
    assert Path("/proc/mounts").read_text() == mounts
    argv = [" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])]
    assert not [line for line in argv if str(root) in line or "sleep 47110815" in line]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ((), "required: COMMAND"),
        (("up", "--nodes", "0"), "--nodes 0: expected a whole number from 1 to"),
        (("up", "--name", "Ä"), "--name 'Ä': expected"),
        (("up", "--link", "fast"), "--link 'fast': expected NAME=RATE[,DELAY]"),
        (("up", "--link", "fast=1gbit,5"), "delay '5': expected"),
        (("up", "--link", "a=1gbit", "--link", "a=2gbit"), "given 2 times"),
    ],
)
def test_bad_input_is_told_in_one_line(argv: tuple[str, ...], message: str) -> None:
    done = virtual_cluster(*argv)
    assert done.returncode == 2
    assert message in done.stderr and done.stderr.count("\n") == 1
