"""The throw-away Slurm cluster that other tests stand on, as far as these do not show it themselves."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from math import inf
from pathlib import Path

import pytest

from clusters import BOUND_S, SCRIPT, SYSTEM_PYTHON, VirtualCluster, eventually, virtual_cluster, why_not
from links import answers, reaches

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


def _find(cluster: VirtualCluster, text: str, node: str | None = None) -> list[str]:
    return [str(pid) for pid, argv in cluster.processes(node).items() if argv.endswith(text)]


def submit(cluster: VirtualCluster, *argv: str) -> str:
    """Submit a job and return its number."""
    return cluster.run("sbatch", "--parsable", "-o", "/dev/null", *argv).stdout.strip()


@needs_cluster
def test_links_have_the_rate_and_the_delay_that_they_are_given(cluster: VirtualCluster) -> None:
    reaches(cluster, "free", 20_000_000, 300e6, inf)
    answers(cluster, "free", 50, 0, 2e-3)
    # In each direction, and the rate with it.
    answers(cluster, "far", 50, 4e-3, 8e-3)
    reaches(cluster, "far", 20_000_000, 200e6, 1.1e9)
    for size in (1, 1024, 16_384):
        both_ways = 2 * size * 8 / 100e6
        answers(cluster, "slow", 20, both_ways, 1.1 * both_ways + 2e-3, size)
    for link in ("slow", "free", "eth0"):
        cluster.shape(link, rate="20mbit")
        reaches(cluster, link, 2_000_000, 10e6, 25e6 if link == "eth0" else 22e6)
    # As they were, for what asks later.
    for link, rate in (("slow", "100mbit"), ("free", ""), ("eth0", "")):
        cluster.shape(link, rate=rate)
    reaches(cluster, "free", 20_000_000, 300e6, inf)
    assert cluster.status()["healthy"]


@needs_cluster
def test_up_again_changes_nothing(cluster: VirtualCluster) -> None:
    job = submit(cluster, "--wrap", "sleep 100")
    said = cluster.command("up", *cluster.arguments).stdout
    assert "up already" in said
    assert cluster.job_state(job) in ("PENDING", "RUNNING")
    cluster.run("scancel", job)


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
@pytest.mark.parametrize("how", ["one process", "its group"])
def test_shell_forwards_a_signal_once(cluster: VirtualCluster, how: str) -> None:
    # A second one would come at once; the first may take its time.
    count = "n=0; trap 'n=$((n+1))' TERM; echo ready; until [ $n -gt 0 ]; do sleep 0.1; done; sleep 1; echo $n; exit 5"
    running = cluster.popen("sh", "-c", count, start_new_session=True)
    assert running.stdout is not None
    assert running.stdout.readline() == "ready\n"
    if how == "one process":
        running.terminate()
    else:
        os.killpg(running.pid, signal.SIGTERM)
    assert running.communicate(timeout=BOUND_S)[0] == "1\n"
    assert running.returncode == 5


@needs_cluster
def test_a_killed_shell_takes_its_command_with_it(cluster: VirtualCluster) -> None:
    running = cluster.popen("sleep", "4711")
    eventually(lambda: _find(cluster, "sleep 4711") != [], what="sleep runs")
    running.kill()
    running.communicate()
    eventually(lambda: _find(cluster, "sleep 4711") == [], what="sleep is gone")


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
def test_memory_limits_act(cluster: VirtualCluster) -> None:
    hog = "import time; x = b'x' * 300_000_000; time.sleep(6000)"
    done = cluster.run("srun", "--mem=100", "python3", "-c", hog, check=False)
    assert done.returncode != 0 and "exceeded" in done.stderr.lower()


@needs_cluster
@pytest.mark.skipif(bool(why_not(accounting=True)), reason=f"no accounting: {why_not(accounting=True)}")
def test_a_second_cluster_with_accounting_stands_beside_the_first(cluster: VirtualCluster) -> None:
    with VirtualCluster("books", nodes=1, gpu_nodes=0, accounting=True) as other:
        job = submit(other, "-A", "transect", "--comment", "mine", "--wrap", "true")
        unknown = other.run("sbatch", "-A", "nobody", "--wrap", "true", check=False)
        assert unknown.returncode != 0 and "account" in unknown.stderr
        users = other.run("sacctmgr", "-n", "-P", "list", "user", "root", "format=defaultaccount")
        assert users.stdout.strip() == "transect"
        ask = ("sacct", "-n", "-P", "-X", "-j", job, "-o", "state,account,comment")
        done = "COMPLETED|transect|mine\n"
        eventually(lambda: other.run(*ask).stdout == done, what="sacct tells the end")
        assert cluster.run("sinfo", "-h", "-o", "%D", "-p", "cpu").stdout == "2\n"
        assert other.run("sinfo", "-h", "-o", "%D", "-p", "cpu").stdout == "1\n"
    assert cluster.status()["healthy"]


def _named(text: str) -> list[str]:
    """Return the argv of all processes that mention a text."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            argv = path.read_text(errors="replace").replace("\0", " ")
        except OSError:
            continue
        if text in argv:
            found.append(argv)
    return found


def _in_namespaces(namespaces: set[str]) -> set[tuple[str, str]]:
    """Return the processes in PID namespaces as their folder and when they started.

    Not the dead ones, which the machine's init has yet to collect.
    """
    found = set()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(path / "ns/pid") in namespaces:
                state, *rest = (path / "stat").read_text().rpartition(")")[2].split()
                if state not in "ZX":
                    found.add((str(path), rest[18]))
        except OSError:
            continue
    return found


@needs_cluster
def test_down_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    root = tmp_path / "c"
    monkeypatch.setenv("TRANSECT_CLUSTERS", str(root))
    interfaces, mounts = os.listdir("/sys/class/net"), Path("/proc/mounts").read_text()
    with VirtualCluster("gone", nodes=1, gpu_nodes=1, link=["far=1gbit,1ms"]) as made:
        submit(made, "--wrap", "sleep 1000")
        where = [None, "n1", "g1"]
        ask = ("readlink", "/proc/self/ns/pid")
        namespaces = {made.run(*ask, node=node).stdout.strip() for node in where}
        processes = _in_namespaces(namespaces)
        assert len(namespaces) == 3 and len(processes) >= 6
        assert os.listdir("/sys/class/net") == interfaces
        # Other options take the old one down first.
        made.command("up", "--nodes", "1", "--gpu-nodes", "0")
        assert [node["name"] for node in made.status()["nodes"]] == ["n1"]
        assert made.jobs() == []
        again = {made.run(*ask, node=node).stdout.strip() for node in (None, "n1")}
        processes |= _in_namespaces(again)
    # A number of a namespace is used again; a process with its start is not.
    assert not processes & _in_namespaces(namespaces | again)
    assert _named(str(root)) == []
    assert not root.exists()
    assert os.listdir("/sys/class/net") == interfaces
    assert Path("/proc/mounts").read_text() == mounts
    assert "was not there" in made.command("down").stdout


@needs_cluster
def test_a_broken_cluster_is_unhealthy_and_started_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRANSECT_CLUSTERS", str(tmp_path / "c"))
    with VirtualCluster("mend", nodes=1, gpu_nodes=0) as made:
        made.kill_node("n1")
        assert made.command("status", check=False).returncode == 3
        assert "up in" in made.command("up", *made.arguments).stdout
        assert made.status()["healthy"]
        assert "expected one of eth0" in made.command("shape", "fast", check=False).stderr
        assert "expected one of n1" in made.command("kill-node", "n9", check=False).stderr


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        ((), "required: COMMAND"),
        (("up", "--nodes", "0"), "--nodes 0: expected a whole number from 1 to"),
        (("up", "--nodes", "two"), "'two'"),
        (("up", "--name", "Ä"), "--name 'Ä': expected"),
        (("up", "--link", "fast"), "--link 'fast': expected NAME=RATE[,DELAY]"),
        (("up", "--link", "fast=1"), "rate '1': expected"),
        (("up", "--link", "fast=1gbit,5"), "delay '5': expected"),
        (("up", "--link", "Fast=1gbit"), "expected a name of 1 to 15"),
        (("up", "--link", "sixteen-letters-=1gbit"), "expected a name of 1 to 15"),
        (("up", "--link", "eth0=1gbit"), "every node has eth0 already"),
        (("up", "--link", "a=1gbit", "--link", "a=2gbit"), "given 2 times"),
        (("up", "--", "x"), "expected nothing after --"),
        (("down", "--all", "--name", "x"), "not allowed with"),
        (("restart", "munged"), "invalid choice: 'munged'"),
    ],
)
def test_bad_input_is_told_in_one_line(argv: tuple[str, ...], told: str) -> None:
    done = virtual_cluster(*argv)
    assert done.returncode == 2
    assert told in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize("argv", [("status",), ("shell", "--", "true"), ("kill-node", "n1")])
def test_what_is_not_up_is_told_with_exit_code_3(argv: tuple[str, ...], tmp_path: Path) -> None:
    command, *rest = argv
    env = os.environ | {"TRANSECT_CLUSTERS": str(tmp_path / "c")}
    assert virtual_cluster(command, "--name", "none", *rest, env=env).returncode == 3


def test_missing_programs_are_told_with_their_packages() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(SCRIPT.parent)!r})\n"
        "from virtual_cluster import main, requirements\n"
        "requirements.PROGRAMS['no-such-program'] = 'its-package'\n"
        "requirements.os.geteuid = lambda: 0\n"
        "sys.exit(main.main(['up', '--name', 'never']))"
    )
    done = subprocess.run([SYSTEM_PYTHON, "-c", code], capture_output=True, text=True)
    assert done.returncode == 3
    assert "no-such-program (Debian package its-package)" in done.stderr
