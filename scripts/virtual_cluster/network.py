"""Links between the nodes: a bridge and pairs of interfaces, or the software switch.

The switch carries what has a rate or a delay. The kernel's token buckets cannot take its place: they
let as much as fits into the bucket pass at once, and with buckets of a few frames their timers miss
the rate. All functions run inside the world.
"""

from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from . import switch
from .errors import ClusterError
from .kernel import MS_BIND, NEWNET, mount, setns, unshare
from .options import CONTROL, Link, Node, Options
from .processes import DAEMON_ENVIRONMENT
from .state import Folder


def _enter_network(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    setns(descriptor, NEWNET)
    os.close(descriptor)


def _batch(program: str, lines: Iterable[str], namespace: Path | None = None) -> None:
    """Run ip or tc once on many lines, in a node's network namespace or in the world's."""
    done = subprocess.run(
        [program, "-batch", "-"],
        input="\n".join(lines) + "\n",
        env=DAEMON_ENVIRONMENT,
        capture_output=True,
        text=True,
        preexec_fn=functools.partial(_enter_network, namespace) if namespace else None,
    )
    if done.returncode != 0:
        where = namespace.name if namespace else "the login node"
        raise ClusterError(f"{program} failed on {where}: {done.stderr.strip()}")


def make_namespace(path: Path) -> None:
    """Make a network namespace that lasts as long as its file stays mounted."""
    path.touch()
    child = os.fork()
    if child == 0:
        try:
            unshare(NEWNET)
            mount("/proc/self/ns/net", path, flags=MS_BIND)
            os._exit(0)
        except OSError as error:
            os.write(2, f"{error}\n".encode())
        finally:
            os._exit(1)
    if os.waitpid(child, 0)[1] != 0:
        raise ClusterError(f"cannot make the network namespace of {path.name}")


def uses_switch(link: Link) -> bool:
    """Whether the software switch carries this link; the control link is always bridged."""
    shaped = link.rate_bit_per_s is not None or link.delay_us is not None
    return shaped and link.name != CONTROL


def _token_bucket(link: Link) -> str:
    """Return the queueing discipline of the control link's ports; empty for none."""
    if link.rate_bit_per_s is None:
        return ""
    # A bucket of 2 ms: a 16 KB bucket halves the throughput of 1 Gbit/s. 32 KB at least: segments
    # that the kernel hands over undivided are 64 KB long, and smaller buckets cost more.
    burst = max(link.rate_bit_per_s // 8 // 500, 32_768)
    return f"tbf rate {link.rate_bit_per_s}bit burst {burst}b latency 50ms"


def _port(options: Options, link: Link, node: Node) -> str:
    return f"p{[each.name for each in options.all_links].index(link.name)}-{node.name}"


def _bridge(options: Options, link: Link) -> str:
    return f"br{[each.name for each in options.all_links].index(link.name)}"


def _limit_control(folder: Folder, before: Options, link: Link) -> None:
    """Set the control link's rate at both ends of each node's pair."""
    old, new = _token_bucket(before.control), _token_bucket(link)
    for node in before.all_nodes:
        for device, namespace in ((link.name, folder.network_namespace(node)), (_port(before, link, node), None)):
            lines = [f"qdisc del dev {device} root"] if old else []
            lines += [f"qdisc add dev {device} root {new}"] if new else []
            if lines:
                _batch("tc", lines, namespace)


def _add_bridged(folder: Folder, options: Options, link: Link) -> None:
    bridge = _bridge(options, link)
    lines = [f"link add name {bridge} type bridge", f"link set dev {bridge} up"]
    if link.name == CONTROL:
        lines.append(f"addr add {options.address(link)}/24 dev {bridge}")
    for node in options.all_nodes:
        port = _port(options, link, node)
        namespace = folder.network_namespace(node)
        lines += [
            f"link add name {port} type veth peer name {link.name} netns {namespace}",
            f"link set dev {port} master {bridge} up",
        ]
    _batch("ip", lines)
    _set_addresses(folder, options, link)


def _set_addresses(folder: Folder, options: Options, link: Link) -> None:
    for node in options.all_nodes:
        lines = [f"addr add {options.address(link, node)}/24 dev {link.name}", f"link set dev {link.name} up"]
        _batch("ip", lines, folder.network_namespace(node))


def _add(folder: Folder, options: Options, link: Link) -> None:
    if uses_switch(link):
        namespaces = [folder.network_namespace(node) for node in options.all_nodes]
        switch.start(folder, link, namespaces)
        _set_addresses(folder, options, link)
    else:
        _add_bridged(folder, options, link)


def _remove(options: Options, link: Link, folder: Folder) -> None:
    if switch.carries(folder, link):
        switch.stop(folder, link)
        return
    # Removing one end of a pair removes the other.
    _batch("ip", [f"link del dev {_port(options, link, node)}" for node in options.all_nodes])
    _batch("ip", [f"link del dev {_bridge(options, link)}"])


def build(folder: Folder, options: Options) -> None:
    """Make the network namespaces of all nodes, and all links."""
    _batch("ip", ["link set dev lo up"])
    for node in options.all_nodes:
        make_namespace(folder.network_namespace(node))
        _batch("ip", ["link set dev lo up"], folder.network_namespace(node))
    for link in options.all_links:
        _add(folder, options, link)


def reshape(folder: Folder, before: Options, link: Link) -> None:
    """Change a link's rate and delay.

    When it changes between the kernel's bridge and the software switch, its interfaces are made
    anew, and what is connected over it breaks.
    """
    on_switch = switch.carries(folder, link)
    if link.name == CONTROL:
        _limit_control(folder, before, link)
    elif on_switch and uses_switch(link):
        switch.reshape(folder, link)
    elif on_switch or uses_switch(link):
        _remove(before, link, folder)
        _add(folder, before, link)
