"""The throw-away Slurm cluster that other tests stand on; three quick ones: test_cluster_nodes.py."""

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


NODES = ["g1", "n1", "n2"]


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
def test_every_node_runs_tasks_under_its_own_name_and_address(cluster: VirtualCluster) -> None:
    say = "echo $(hostname) $(ip -4 -br addr show eth0 | tr -s ' ' | cut -d' ' -f3)"
    cpu = cluster.run("srun", "-N2", "sh", "-c", say).stdout.splitlines()
    gpu = cluster.run("srun", "-p", "gpu", "sh", "-c", say).stdout.splitlines()
    assert sorted(cpu + gpu) == ["g1 10.77.0.3/24", "n1 10.77.0.1/24", "n2 10.77.0.2/24"]


@needs_cluster
def test_a_node_sees_only_its_own_processes_interfaces_and_shared_memory(cluster: VirtualCluster) -> None:
    cluster.node_run("n1", "touch", "/dev/shm/of-n1")
    assert cluster.node_run("n2", "ls", "/dev/shm").stdout == ""
    assert not Path("/dev/shm/of-n1").exists()
    interfaces = cluster.node_run("n2", "ls", "/sys/class/net").stdout.split()
    assert sorted(interfaces) == ["eth0", "far", "free", "lo", "slow"]
    names = cluster.node_run("n2", "sh", "-c", "cat /proc/[0-9]*/comm").stdout.split()
    assert names.count("slurmd") == 1 and "slurmctld" not in names


@needs_cluster
def test_nodes_share_the_file_system_of_the_host(cluster: VirtualCluster, tmp_path: Path) -> None:
    cluster.run("srun", "-N2", "sh", "-c", "hostname > $(hostname)", cwd=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["n1", "n2"]


@needs_cluster
def test_a_rate_limits_a_link_and_can_be_changed(cluster: VirtualCluster) -> None:
    reaches(cluster, "slow", 5_000_000, 50e6, 110e6)
    cluster.shape("slow", rate="20mbit")
    reaches(cluster, "slow", 2_000_000, 10e6, 22e6)
    cluster.shape("slow", rate="100mbit")


@needs_cluster
@pytest.mark.parametrize("size", [1, 1024, 16_384, 65_536])
def test_short_messages_see_the_rate_as_long_ones_do(cluster: VirtualCluster, size: int) -> None:
    both_ways = 2 * size * 8 / 100e6
    answers(cluster, "slow", 20, both_ways, 1.1 * both_ways + 2e-3, size)


@needs_cluster
def test_a_rate_can_be_given_and_taken_away(cluster: VirtualCluster) -> None:
    cluster.shape("free", rate="20mbit")
    reaches(cluster, "free", 2_000_000, 10e6, 22e6)
    cluster.shape("free", rate="")
    reaches(cluster, "free", 20_000_000, 300e6, inf)


@needs_cluster
def test_the_control_link_can_have_a_rate(cluster: VirtualCluster) -> None:
    cluster.shape("eth0", rate="20mbit")
    reaches(cluster, "eth0", 2_000_000, 10e6, 25e6)
    cluster.shape("eth0", rate="")
    assert cluster.status()["healthy"]


@needs_cluster
def test_a_delay_holds_in_each_direction_and_the_rate_with_it(cluster: VirtualCluster) -> None:
    answers(cluster, "far", 50, 4e-3, 8e-3)
    reaches(cluster, "far", 20_000_000, 200e6, 1.1e9)


@needs_cluster
def test_a_link_without_a_shape_is_not_limited(cluster: VirtualCluster) -> None:
    reaches(cluster, "free", 20_000_000, 300e6, inf)
    answers(cluster, "free", 50, 0, 2e-3)


@needs_cluster
def test_up_again_changes_nothing(cluster: VirtualCluster) -> None:
    job = submit(cluster, "--wrap", "sleep 100")
    said = cluster.command("up", *cluster.arguments).stdout
    assert "up already" in said
    assert cluster.job_state(job) in ("PENDING", "RUNNING")
    cluster.run("scancel", job)


@needs_cluster
def test_status_tells_nodes_links_and_jobs(cluster: VirtualCluster) -> None:
    told = cluster.status()
    assert told["healthy"] and told["problems"] == []
    assert sorted(node["name"] for node in told["nodes"]) == NODES
    links = {link["name"]: (link["rate"], link["delay"]) for link in told["links"]}
    assert links == {"eth0": ("", ""), "slow": ("100mbit", ""), "far": ("1gbit", "2ms"), "free": ("", "")}
    assert told["accounting"] is False


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
def test_a_running_job_outlives_restarts_of_the_daemons(cluster: VirtualCluster, tmp_path: Path) -> None:
    go = tmp_path / "go"
    job = submit(cluster, "-w", "n1", "--wrap", f"until [ -e {go} ]; do sleep 0.1; done")
    eventually(lambda: cluster.job_state(job) == "RUNNING", what="the job runs")
    cluster.restart("slurmctld")
    cluster.restart("slurmd", "n1")
    assert cluster.job_state(job) == "RUNNING"
    go.touch()
    eventually(lambda: cluster.job_state(job) == "COMPLETED", what="the job ends")
    assert [row["restarts"] for row in cluster.jobs() if row["id"] == job] == ["0"]


@needs_cluster
def test_a_killed_rank_ends_its_step(cluster: VirtualCluster) -> None:
    step = cluster.popen("srun", "-K", "-N2", "-w", "n1,n2", "sleep", "4712")
    eventually(lambda: _find(cluster, "sleep 4712", "n2") != [], what="n2 has a rank")
    cluster.node_run("n2", "kill", "-9", *_find(cluster, "sleep 4712", "n2"))
    assert "task 1: Killed" in step.communicate(timeout=BOUND_S)[1]
    assert step.returncode in (137, 143)  # of the killed rank, or of the one ended for it


@needs_cluster
def test_memory_limits_act(cluster: VirtualCluster) -> None:
    hog = "import time; x = b'x' * 300_000_000; time.sleep(6000)"
    done = cluster.run("srun", "--mem=100", "python3", "-c", hog, check=False)
    assert done.returncode != 0 and "exceeded" in done.stderr.lower()


@needs_cluster
def test_a_power_cut_shows_and_power_back_serves_again(cluster: VirtualCluster) -> None:
    cluster.kill_node("n2")
    assert cluster.node_run("n2", "true", check=False).returncode == 3
    assert cluster.command("status", check=False).returncode == 3
    eventually(lambda: cluster.node_state("n2").startswith("down"), what="n2 shows as down")
    cluster.start_node("n2")
    eventually(lambda: cluster.node_state("n2") == "idle", what="n2 is idle again")
    assert cluster.run("srun", "-w", "n2", "hostname").stdout == "n2\n"
    assert cluster.status()["healthy"]


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
