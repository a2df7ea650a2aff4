"""What a cluster is asked to be: its nodes, links and limits."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace
from typing import Any

from .errors import BadInput

CONTROL = "eth0"
LOGIN = "login"
MAX_NODES = 200  # one /24 per link; the login node has the address 254
LOGIN_HOST_NUMBER = 254
MAX_LINKS = 16
RATE_UNITS = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
DELAY_UNITS_US = {"us": 1.0, "ms": 1e3, "s": 1e6}
RATE_RANGE = (64_000, 100 * 10**9)
DELAY_RANGE_US = (1.0, 1e6)


def _quantity(text: str, units: dict[str, Any]) -> float | None:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([a-z]+)", text.lower())
    if match is None or match[2] not in units:
        return None
    return float(match[1]) * float(units[match[2]])


def parse_rate_bit_per_s(text: str) -> int:
    """Return a rate such as ``100mbit`` or ``2.5gbit`` in bit/s; raises BadInput."""
    rate = _quantity(text, RATE_UNITS)
    if rate is None or not RATE_RANGE[0] <= rate <= RATE_RANGE[1]:
        raise BadInput(f"rate {text!r}: expected a number and a unit between 64kbit and 100gbit, such as 1gbit")
    return round(rate)


def parse_delay_us(text: str) -> float:
    """Return a delay such as ``50us`` or ``1.5ms`` in microseconds; raises BadInput."""
    delay = _quantity(text, DELAY_UNITS_US)
    if delay is None or not DELAY_RANGE_US[0] <= delay <= DELAY_RANGE_US[1]:
        raise BadInput(f"delay {text!r}: expected a number and a unit between 1us and 1s, such as 50us")
    return delay


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """One interface that every node has. Without rate and delay it is not shaped."""

    name: str
    rate: str = ""
    delay: str = ""

    def __post_init__(self) -> None:
        """Raise BadInput for what is no rate or no delay."""
        assert self.rate_bit_per_s >= 0 and self.delay_us >= 0

    @property
    def rate_bit_per_s(self) -> int:
        """The rate; 0 without one."""
        return parse_rate_bit_per_s(self.rate) if self.rate else 0

    @property
    def delay_us(self) -> float:
        """The one-way delay; 0 without one."""
        return parse_delay_us(self.delay) if self.delay else 0.0

    @classmethod
    def parse(cls, text: str) -> Link:
        """Read ``NAME=``, ``NAME=RATE`` or ``NAME=RATE,DELAY``; raises BadInput."""
        name, equals, shape = text.partition("=")
        if not equals:
            raise BadInput(f"--link {text!r}: expected NAME=RATE[,DELAY], or NAME= for no limit")
        if not re.fullmatch(r"[a-z][a-z0-9-]{0,14}", name):
            raise BadInput(
                f"--link {text!r}: expected a name of 1 to 15 of a-z, 0-9 and '-',"
                f" beginning with a letter, but got {name!r}"
            )
        if name in (CONTROL, "lo"):
            raise BadInput(f"--link {text!r}: every node has {name} already; choose another name")
        rate, _, delay = shape.partition(",")
        try:
            return cls(name=name, rate=rate, delay=delay)
        except BadInput as error:
            raise BadInput(f"--link {text!r}: {error}") from None


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """One compute node. ``number`` is the last part of its addresses."""

    name: str
    number: int
    gpus: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """Everything that tells one cluster from another of the same name."""

    nodes: int = 4
    gpu_nodes: int = 1
    gpus_per_node: int = 2
    cpus: int = 2
    memory_mb: int = 4000
    accounting: bool = False
    max_time_min: int = 60
    links: tuple[Link, ...] = ()
    control: Link = Link(name=CONTROL)

    def __post_init__(self) -> None:
        for option, value, low, high in (
            ("--nodes", self.nodes, 1, MAX_NODES),
            ("--gpu-nodes", self.gpu_nodes, 0, MAX_NODES),
            ("--gpus-per-node", self.gpus_per_node, 1, 16),
            ("--cpus", self.cpus, 1, 1024),
            ("--memory-mb", self.memory_mb, 100, 10**7),
            ("--max-time", self.max_time_min, 1, 10**5),
        ):
            if not low <= value <= high:
                raise BadInput(f"{option} {value}: expected a whole number from {low} to {high}")
        if self.nodes + self.gpu_nodes > MAX_NODES:
            raise BadInput(
                f"--nodes {self.nodes} and --gpu-nodes {self.gpu_nodes}: expected {MAX_NODES} nodes at most in all"
            )
        names = [link.name for link in self.links]
        for name in names:
            if names.count(name) > 1:
                raise BadInput(f"--link {name}: given {names.count(name)} times; expected once")
        if len(names) > MAX_LINKS:
            raise BadInput(f"{len(names)} links: expected {MAX_LINKS} at most")

    @property
    def all_nodes(self) -> tuple[Node, ...]:
        """CPU nodes n1, n2, ..., then GPU nodes g1, g2, ..."""
        cpu = [Node(name=f"n{i}", number=i) for i in range(1, self.nodes + 1)]
        gpu = [Node(name=f"g{i}", number=self.nodes + i, gpus=self.gpus_per_node) for i in range(1, self.gpu_nodes + 1)]
        return (*cpu, *gpu)

    @property
    def all_links(self) -> tuple[Link, ...]:
        """The control link, then the others; the place of a link is its subnet."""
        return (self.control, *self.links)

    def node(self, name: str) -> Node:
        """Return the node of this name; raises BadInput."""
        for node in self.all_nodes:
            if node.name == name:
                return node
        names = ", ".join(node.name for node in self.all_nodes)
        raise BadInput(f"node {name!r}: expected one of {names}")

    def link(self, name: str) -> Link:
        """Return the link of this name; raises BadInput."""
        for link in self.all_links:
            if link.name == name:
                return link
        raise BadInput(f"link {name!r}: expected one of {', '.join(link.name for link in self.all_links)}")

    def with_link(self, changed: Link) -> Options:
        """Return these options with one link's shape changed."""
        if changed.name == CONTROL:
            return replace(self, control=changed)
        links = tuple(changed if link.name == changed.name else link for link in self.links)
        return replace(self, links=links)

    def address(self, link: Link, node: Node | None = None) -> str:
        """Return the address of a node on a link; without a node, of the login node on eth0."""
        subnet = [each.name for each in self.all_links].index(link.name)
        return f"10.77.{subnet}.{node.number if node else LOGIN_HOST_NUMBER}"

    def as_json(self) -> dict[str, Any]:
        """Return what `from_json` reads."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Options:
        """Read what `as_json` gave."""
        links = tuple(Link(**link) for link in data["links"])
        return cls(**data | {"links": links, "control": Link(**data["control"])})
