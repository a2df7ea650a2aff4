"""What each framework's ranks are told, and the store that Horovod meets at."""

import json
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace

import pytest

from transect.domain.errors import BadInput
from transect.launch import keystore
from transect.launch.network import PORTS, free_port, interface_variables
from transect.launch.rank import Numbers, fill
from transect.launch.rendezvous import RENDEZVOUS, World, choose
from transect.training.strategies import STRATEGIES

WORLD = World(
    hosts=("n1", "n2"), addresses=("10.0.0.1", "10.0.0.2"), ranks_per_node=2, threads=3, port=20000, interface="ib0"
)
LAST = Numbers(3, 4, 1, 2, 1, 2, "n2", 1, 2)


def settings(kind: str, world: World = WORLD, numbers: Numbers = LAST) -> dict[str, str]:
    """All variables of one rank."""
    found = RENDEZVOUS.get(kind)
    of_rank = {name: fill(template, numbers) for name, template in found.per_rank(world).items()}
    return found.common(world) | of_rank


TORCHRUN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE")
NUMBERS = dict(zip(TORCHRUN, "341212", strict=True))


DMLC = "PS_ROOT_URI=10.0.0.1 PS_ROOT_PORT=20000 NUM_WORKER=4 NUM_SERVER=2 INTERFACE=ib0 ROLE=worker WORKER_ID=3"
HOROVOD = (
    "CONTROLLER=gloo CPU_OPERATIONS=gloo GLOO_RENDEZVOUS_ADDR=10.0.0.1 GLOO_RENDEZVOUS_PORT=20000 GLOO_IFACE=ib0 "
    "GLOO_TIMEOUT_SECONDS=86400 "
    "HOSTNAME=n2 RANK=3 SIZE=4 LOCAL_RANK=1 LOCAL_SIZE=2 CROSS_RANK=1 CROSS_SIZE=2"
)


def named(prefix: str, text: str) -> dict[str, str]:
    return {f"{prefix}_{name}": value for name, value in (pair.split("=") for pair in text.split())}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("none", NUMBERS),
        ("mpi", {}),
        ("tcp", NUMBERS | named("MASTER", "ADDR=n1 PORT=20000")),
        ("dmlc", NUMBERS | named("DMLC", DMLC)),
        ("horovod", NUMBERS | named("HOROVOD", HOROVOD)),
        ("horovod-mpi", named("HOROVOD", "CONTROLLER=mpi CPU_OPERATIONS=mpi")),
    ],
)
def test_rank_is_told(kind, expected):
    assert settings(kind) == expected


def test_tf_config_lists_all_workers_and_the_own_index():
    variables = settings("tf-config")
    assert json.loads(variables["TF_CONFIG"]) == {
        "cluster": {"worker": ["10.0.0.1:20000", "10.0.0.1:20001", "10.0.0.2:20000", "10.0.0.2:20001"]},
        "task": {"type": "worker", "index": 3},
    }
    assert variables["TF_NUM_INTRAOP_THREADS"] == "3"
    uneven = replace(WORLD, counts=(2, 1))
    listed = json.loads(settings("tf-config", uneven)["TF_CONFIG"])["cluster"]["worker"]
    assert listed == ["10.0.0.1:20000", "10.0.0.1:20001", "10.0.0.2:20000"] and uneven.ranks == 3


def test_one_node_needs_no_network():
    world, first = World(hosts=("127.0.0.1",), addresses=("127.0.0.1",), port=20000), Numbers(0, 1, 0, 1, 0, 1, "here")
    assert settings("horovod", world, first)["HOROVOD_GLOO_IFACE"] == "lo" and settings("none", world, first) == {}
    assert settings("dmlc", world, first)["DMLC_NODE_HOST"] == "127.0.0.1"


def test_services():
    scheduler, server = RENDEZVOUS.get("dmlc").services(WORLD)
    assert (scheduler.on, scheduler.variables) == ("first-node", {"DMLC_ROLE": "scheduler"})
    assert (server.on, server.variables) == ("every-node", {"DMLC_ROLE": "server"})
    (store,) = RENDEZVOUS.get("horovod").services(WORLD)
    assert store.argv == (sys.executable, keystore.__file__, "10.0.0.1", "20000")
    assert store.wait_for == "10.0.0.1:20000" and not store.ends


@pytest.mark.parametrize(
    ("framework", "strategy", "gpus", "full", "kind"),
    [
        ("torch", "ddp", 0, "ddp-gloo", "tcp"),
        ("torch", "ddp", 1, "ddp-nccl", "tcp"),
        ("torch", "horovod", 0, "horovod-gloo", "horovod"),
        ("torch", "ddp-mpi", 0, "ddp-mpi", "mpi"),
        ("tensorflow", "multiworker", 0, "multiworker-ring", "tf-config"),
        ("keras", "multiworker", 1, "multiworker-nccl", "tf-config"),
        ("mxnet", "kvstore", 0, "kvstore-dist-sync", "dmlc"),
        ("numpy", "mpi-allreduce", 0, "mpi-allreduce", "mpi"),
    ],
)
def test_strategy_has_a_rendezvous(framework, strategy, gpus, full, kind):
    choice = choose(framework, strategy, gpus)
    assert (choice.strategy, choice.rendezvous) == (full, kind)


def test_pipeline_strategies_meet_as_they_say():
    for name in STRATEGIES.names():
        kind = STRATEGIES.get(name).rendezvous
        listed = [f for f, names in RENDEZVOUS.get(kind).strategies.items() if name in names]
        # A torch built with MPI may take either way: the pipeline's has MASTER_ADDR.
        assert listed or name == "ddp-mpi", name
        for framework in listed:
            assert choose(framework, name).rendezvous == kind


def test_unknown_names_list_the_known_ones():
    with pytest.raises(BadInput, match=r"'troch'.*'torch'.*keras"):
        choose("troch", "ddp")
    with pytest.raises(BadInput, match=r"torch 'kvstore'.*ddp, ddp-gloo"):
        choose("torch", "kvstore")
    with pytest.raises(BadInput, match=r"mxnet 'ddp'.*kvstore"):
        choose("mxnet", "ddp")


def test_interface_reaches_every_library():
    assert interface_variables(None) == {}
    variables = interface_variables("ib0")
    assert variables["NCCL_SOCKET_IFNAME"] == "=ib0"
    assert variables["GLOO_SOCKET_IFNAME"] == variables["PRTE_MCA_prte_if_include"] == "ib0"


def test_free_ports_are_free_and_in_a_row():
    first = free_port(3, "job")
    assert first in PORTS and first + 2 in PORTS
    with socket.socket() as taken:
        taken.bind(("", first))
        taken.listen()
        assert free_port(3, "job") not in range(first - 2, first + 1)


@pytest.fixture
def store() -> Iterator[str]:
    """The store as a process of its own; its base address."""
    port = free_port()
    child = subprocess.Popen([sys.executable, keystore.__file__, "127.0.0.1", str(port)])
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=600).close()
                break
            except OSError:
                assert child.poll() is None
        yield f"http://127.0.0.1:{port}"
    finally:
        child.kill()
        child.wait()


def ask(address: str, method: str, body: bytes | None = None) -> tuple[int, bytes]:
    request = urllib.request.Request(address, data=body, method=method)
    try:
        with urllib.request.urlopen(request, timeout=600) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, b""


@pytest.mark.env
def test_store_keeps_bytes(store):
    assert ask(f"{store}/global_/0", "GET")[0] == 404
    value = bytes(range(256))
    assert ask(f"{store}/global_/0", "PUT", value)[0] == 200
    assert ask(f"{store}/global_/0", "GET") == (200, value)
    assert ask(f"{store}/local_/0", "GET")[0] == 404
    # A rank that has met all others says so; others may still be asking.
    assert ask(f"{store}/global_/0", "DELETE")[0] == 200
    assert ask(f"{store}/global_/0", "GET") == (200, value)
