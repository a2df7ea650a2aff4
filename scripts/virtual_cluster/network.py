"""Links between the nodes: a bridge for the control link, the software switch for all others.

The kernel's `tc` cannot take the switch's place: a delay wants netem, which not every kernel has, and token
buckets let as much as fits into the bucket pass at once, and with buckets of a few frames their timers miss
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
from .options import CONTROL, Link, Options
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


def _token_bucket(link: Link) -> str:
    """Return the queueing discipline of the control link's ports; empty for none."""
    if not link.rate:
        return ""
    # A bucket of 2 ms: a 16 KB bucket halves the throughput of 1 Gbit/s. 32 KB at least: segments
    # that the kernel hands over undivided are 64 KB long, and smaller buckets cost more.
    burst = max(link.rate_bit_per_s // 8 // 500, 32_768)
    return f"tbf rate {link.rate_bit_per_s}bit burst {burst}b latency 50ms"


def _limit_control(folder: Folder, before: Options, link: Link) -> None:
    """Set the control link's rate at both ends of each node's pair."""
    old, new = _token_bucket(before.control), _token_bucket(link)
    for node in before.all_nodes:
        for device, namespace in ((CONTROL, folder.network_namespace(node)), (f"p-{node.name}", None)):
            lines = [f"qdisc del dev {device} root"] if old else []
            lines += [f"qdisc add dev {device} root {new}"] if new else []
            if lines:
                _batch("tc", lines, namespace)


def _add_bridge(folder: Folder, options: Options) -> None:
    lines = ["link add name br0 type bridge", "link set dev br0 up"]
    lines.append(f"addr add {options.address(options.control)}/24 dev br0")
    for node in options.all_nodes:
        namespace = folder.network_namespace(node)
        lines += [
            f"link add name p-{node.name} type veth peer name {CONTROL} netns {namespace}",
            f"link set dev p-{node.name} master br0 up",
        ]
    _batch("ip", lines)


def build(folder: Folder, options: Options) -> None:
    """Make the network namespaces of all nodes, and all links."""
    _batch("ip", ["link set dev lo up"])
    for node in options.all_nodes:
        make_namespace(folder.network_namespace(node))
        _batch("ip", ["link set dev lo up"], folder.network_namespace(node))
    _add_bridge(folder, options)
    for link in options.links:
        switch.start(folder, link, [folder.network_namespace(node) for node in options.all_nodes])
    for node in options.all_nodes:
        lines = []
        for link in options.all_links:
            lines += [f"addr add {options.address(link, node)}/24 dev {link.name}", f"link set dev {link.name} up"]
        _batch("ip", lines, folder.network_namespace(node))


def reshape(folder: Folder, before: Options, link: Link) -> None:
    """Change a link's rate and delay; what is connected over it stays connected."""
    if link.name == CONTROL:
        _limit_control(folder, before, link)
    else:
        switch.reshape(folder, link)
