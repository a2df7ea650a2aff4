"""The nodes that all tests here stand on are what they claim; the rest: test_virtual_cluster.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusters import VirtualCluster
from links import answers, reaches

pytestmark = pytest.mark.cluster


def test_every_node_is_a_machine_of_its_own(cluster: VirtualCluster) -> None:
    cluster.node_run("n1", "touch", "/dev/shm/of-n1")
    assert "of-n1" not in cluster.node_run("n2", "ls", "/dev/shm").stdout
    assert not Path("/dev/shm/of-n1").exists()
    assert cluster.node_run("n2", "hostname").stdout == "n2\n"
    interfaces = cluster.node_run("n2", "ls", "/sys/class/net").stdout.split()
    assert sorted(interfaces) == ["eth0", "lo", "slow"]
    names = cluster.node_run("n2", "sh", "-c", "cat /proc/[0-9]*/comm").stdout.split()
    assert names.count("slurmd") == 1 and "slurmctld" not in names


def test_status_tells_nodes_links_and_accounting(cluster: VirtualCluster) -> None:
    told = cluster.status()
    assert told["healthy"] and told["problems"] == [] and told["accounting"] is True
    nodes = {f"n{number}" for number in range(1, 13)} | {"g1"}
    assert {node["name"] for node in told["nodes"]} == nodes
    links = {link["name"]: (link["rate"], link["delay"]) for link in told["links"]}
    assert links == {"eth0": ("", ""), "slow": ("100mbit", "")}


def test_a_shaped_link_keeps_its_rate_for_long_and_short_messages(cluster: VirtualCluster) -> None:
    reaches(cluster, "slow", 5_000_000, 50e6, 110e6)
    both_ways = 2 * 65_536 * 8 / 100e6
    answers(cluster, "slow", 20, both_ways, 1.1 * both_ways + 2e-3, 65_536)
