"""Tells how a cluster is."""

from __future__ import annotations

import subprocess
from dataclasses import asdict, dataclass
from typing import Any

from . import switch
from .options import Options
from .processes import run
from .state import Folder

ANSWER_S = 120
ILL = ("down", "fail", "drain", "unk", "inval", "err")


@dataclass(frozen=True, kw_only=True, slots=True)
class Status:
    """The state of one cluster. ``problems`` is empty when it is healthy."""

    name: str
    folder: str
    up: bool
    problems: tuple[str, ...]
    accounting: bool = False
    nodes: tuple[dict[str, Any], ...] = ()
    links: tuple[dict[str, Any], ...] = ()
    jobs: dict[str, int] | None = None

    @property
    def healthy(self) -> bool:
        """Whether it is up and nothing is wrong."""
        return self.up and not self.problems

    def as_json(self) -> dict[str, Any]:
        """Return all of it, with ``healthy``."""
        return {**asdict(self), "healthy": self.healthy}

    def lines(self) -> list[str]:
        """Return it for people."""
        state = "healthy" if self.healthy else "unhealthy" if self.up else "not up"
        lines = [f"cluster {self.name}: {state}, state in {self.folder}"]
        for node in self.nodes:
            gpus = f"  {node['gpus']} fake GPUs" if node["gpus"] else ""
            lines.append(f"  {node['name']:6} {node['address']:14} {node['state']}{gpus}")
        for link in self.links:
            shape = ", ".join(filter(None, (link["rate"], link["delay"]))) or "not shaped"
            lines.append(f"  link {link['name']}: {link['subnet']}, {shape}")
        if self.jobs is not None:
            lines.append(f"  jobs: {self.jobs['running']} running, {self.jobs['pending']} pending")
            lines.append(f"  accounting: {'on' if self.accounting else 'off'}")
        return lines + [f"  problem: {problem}" for problem in self.problems]


def status(folder: Folder) -> Status:
    """Return how a cluster is, also of one that does not exist."""
    name, path = folder.name, str(folder.path)
    world, options = folder.world(), folder.options()
    if world is None or not world.alive() or options is None or not folder.ready.exists():
        left = f"; remains of it are in {path}" if folder.path.exists() else ""
        return Status(name=name, folder=path, up=False, problems=(f"it does not run{left}",))
    problems: list[str] = []
    try:
        said = run(world, ["sinfo", "-h", "-N", "-o", "%N %T"], timeout_s=ANSWER_S)
        queue = run(world, ["squeue", "-h", "-o", "%t"], timeout_s=ANSWER_S)
    except subprocess.TimeoutExpired:
        said = queue = subprocess.CompletedProcess([], 1, "", f"no answer within {ANSWER_S} s")
    if said.returncode != 0 or queue.returncode != 0:
        problems.append(f"slurmctld does not answer: {(said.stderr or queue.stderr).strip()}")
    states = dict(line.split() for line in said.stdout.splitlines())
    nodes = _nodes(folder, options, states)
    for node in nodes:
        if not node["powered"]:
            problems.append(f"node {node['name']} has no power")
        elif node["state"].startswith(ILL) or node["state"].endswith("*"):
            problems.append(f"node {node['name']} is {node['state']}")
    for link in options.links:
        if not switch.running(folder, link):
            problems.append(f"link {link.name}: its software switch does not run")
    jobs = queue.stdout.split()
    return Status(
        name=name,
        folder=path,
        up=True,
        problems=tuple(problems),
        accounting=options.accounting,
        nodes=nodes,
        links=_links(options),
        jobs={"running": jobs.count("R") + jobs.count("CG"), "pending": jobs.count("PD")},
    )


def _nodes(folder: Folder, options: Options, states: dict[str, str]) -> tuple[dict[str, Any], ...]:
    rows = []
    for node in options.all_nodes:
        init = folder.node_init(node)
        rows.append(
            {
                "name": node.name,
                "address": options.address(options.control, node),
                "gpus": node.gpus,
                "state": states.get(node.name, "unknown"),
                "powered": init is not None and init.alive(),
            }
        )
    return tuple(rows)


def _links(options: Options) -> tuple[dict[str, Any], ...]:
    return tuple(
        {
            "name": link.name,
            "rate": link.rate,
            "delay": link.delay,
            "subnet": options.address(link).rpartition(".")[0] + ".0/24",
        }
        for link in options.all_links
    )
