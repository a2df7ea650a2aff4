"""The argument list that starts a rank: rank.py before the command, where it has something to do."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from typing import Literal

# Imported for their files: they run on the nodes, and are part of what is measured.
from transect.launch import Request, parent, placement, rank, thread_variables
from transect.launch.network import interface_variables
from transect.launch.rendezvous import Rendezvous, World

FILES = tuple(module.__file__ for module in (rank, parent, placement))

# What rank.py says of a node where `placement.gpu_shares` cannot deal every rank its GPUs.
_TOO_FEW = re.compile(r"transect: on \S+: (\d+ ranks? needs? \d+ GPUs?, this node shows .*)")


def too_few_gpus(log: str) -> str | None:
    """Return the sentence of a rank that did not start for want of a GPU, or None.

    >>> too_few_gpus("[1] transect: on n3: 2 ranks need 2 GPUs, this node shows 0\\n")
    '2 ranks need 2 GPUs, this node shows 0'
    """
    match = _TOO_FEW.search(log)
    return match and match[1]


def common_variables(request: Request, kind: Rendezvous, world: World) -> dict[str, str]:
    """Return the variables of all ranks; the later win: threads, network, rendezvous, request."""
    return {
        **thread_variables(request.threads),
        **interface_variables(request.interface),
        **request.network_variables,
        **kind.common(world),
        **request.variables,
    }


def rank_command(
    request: Request,
    kind: Rendezvous,
    world: World,
    *,
    numbered_by: Literal["mpi", "slurm", "given"],
    bind: Literal["never", "auto", "always"],
) -> list[str]:
    """Return the argv of one rank. Without anything to do it is the wrapped command itself."""
    command = [*request.wrap, *request.command]
    # Plain processes have got theirs from the launcher.
    numbers = kind.per_rank(world).items() if numbered_by != "given" else ()
    options = [word for name, template in numbers for word in ("--set", f"{name}={template}")]
    if request.bind and bind != "never" and request.ranks_per_node > 1:
        options += ["--bind", bind, "--threads", str(request.threads)]
    if request.gpus_per_rank:
        options += ["--gpus-per-rank", str(request.gpus_per_rank)]
        options += ["--share-gpus"] if request.share_gpus else []
    if request.stdin_at and numbered_by == "mpi":
        options += ["--stdin-at", request.stdin_at]
    if request.label:
        options.append("--label")
    for service in kind.services(world):
        options += ["--service", json.dumps(asdict(service))]
    if not options:
        return command
    counts = request.counts or (request.ranks_per_node,)
    place = ["--numbered-by", numbered_by, "--ranks-per-node", ",".join(map(str, counts))]
    return [request.shim_python, rank.__file__, *place, *options, "--", *command]
