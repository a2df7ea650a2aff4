"""`transect launch`: start ranks of any framework, on this machine or in a Slurm allocation."""

from __future__ import annotations

import math
import os
import re
import secrets
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from transect.cli.container import choose_container
from transect.cli.output import print_lines
from transect.domain.errors import BadInput
from transect.launch import LAUNCHERS, Request, wrapping
from transect.launch.hosts import HOSTS, allocation, ranks_on
from transect.launch.rendezvous import RENDEZVOUS, choose
from transect.launch.slurm import expand_hosts, is_local

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _variables(pairs: Sequence[str]) -> dict[str, str]:
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not _NAME.fullmatch(name):
            raise BadInput(f"--env {pair!r}: expected NAME=VALUE")
        found[name] = value
    return found


def _pick(launcher: str, needs_mpiexec: bool) -> str:
    """Return the launcher for `auto`: srun in Slurm's allocation, else mpiexec for MPI and other hosts."""
    if launcher != "auto":
        LAUNCHERS.get(launcher, "--launcher")
        return launcher
    if "SLURM_JOB_ID" in os.environ and not os.environ.get(HOSTS) and shutil.which("srun"):
        return "srun"
    return "mpiexec" if needs_mpiexec else "plain"


def _cores(launcher: str, counts: Sequence[int]) -> int:
    if launcher == "srun":
        from transect.launch.slurm import cores_per_node

        return cores_per_node(ranks=counts)
    from transect.measure.provenance import available_cores

    return available_cores()


def script(processes: list[tuple[list[str], dict[str, str]]]) -> str:
    """Return a bash script that starts these processes: variables in common are exported first."""
    first = processes[0][1]
    common = {k: v for k, v in first.items() if all(p[1].get(k) == v for p in processes)}
    lines = [f"export {name}={shlex.quote(value)}" for name, value in sorted(common.items())]
    for argv, variables in processes:
        differing = {k: v for k, v in variables.items() if k not in common}
        set_own = ["env", *(f"{k}={v}" for k, v in sorted(differing.items()))] if differing else []
        lines.append(" ".join(map(shlex.quote, [*set_own, *argv])) + (" &" if len(processes) > 1 else ""))
    return "\n".join([*lines, "wait"] if len(processes) > 1 else lines)


def launch(
    command: Annotated[list[str], typer.Argument(help="after `--`: what each rank runs")],
    framework: Annotated[str, typer.Option(help="torch, tensorflow, keras, mxnet, numpy, go")],
    strategy: Annotated[str, typer.Option(help="how ranks work together, e.g. ddp, horovod")],
    nodes: Annotated[int | None, typer.Option(help="nodes; default: all of the scheduler's job, or --hosts")] = None,
    ranks: Annotated[
        int | None, typer.Option(help="ranks on all nodes together; default: the job's tasks, or one a node")
    ] = None,
    ranks_per_node: Annotated[int | None, typer.Option(help="ranks on each node, instead of --ranks")] = None,
    hosts: Annotated[
        str | None,
        typer.Option(help="where to start, e.g. n1,n[2-4]; reached by the mpiexec, by ssh if it has no other way"),
    ] = None,
    threads: Annotated[int | None, typer.Option(help="threads of a rank; default: its share of the cores")] = None,
    gpus_per_rank: Annotated[int, typer.Option(help="GPUs that each rank has for its own")] = 0,
    share_gpus: Annotated[bool, typer.Option("--share-gpus", help="show each rank all GPUs of its node")] = False,
    launcher: Annotated[str, typer.Option(help="auto, srun, mpiexec, plain")] = "auto",
    network_interface: Annotated[str | None, typer.Option(help="as `ip link` names it on every node, e.g. ib0")] = None,
    mpi_type: Annotated[str, typer.Option(help="srun --mpi=; see `srun --mpi=list`")] = "pmix",
    container: Annotated[
        str | None,
        typer.Option(help="image of each rank: [WRAPPER:]FILE, FOLDER, URI or environment; e.g. podman:base"),
    ] = None,
    module: Annotated[list[str] | None, typer.Option(help="environment module to load; may be repeated")] = None,
    env: Annotated[list[str] | None, typer.Option(help="NAME=VALUE for all ranks; may be repeated")] = None,
    label: Annotated[bool, typer.Option(help="begin each line of output with `[rank] `")] = True,
    bind: Annotated[bool, typer.Option(help="give each rank cores of its own")] = True,
    grace: Annotated[float, typer.Option(help="seconds to end in, after a signal")] = 30.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="print the script and end")] = False,
) -> None:
    """Start ranks with all that their framework needs; good in anybody's batch script.

    Ends all ranks when one fails, and exits with that rank's code.
    Example: transect launch --framework torch --strategy ddp --ranks-per-node 2 -- python train.py
    """
    if not 0 <= grace < math.inf:
        raise BadInput(f"--grace {grace:g}: expected a number of seconds, 0 or more")
    choice = choose(framework, strategy, gpus_per_rank)
    if hosts is not None:
        os.environ[HOSTS] = ",".join(expand_hosts(hosts))  # also refuses none
    named = os.environ.get(HOSTS)
    if choice.strategy == "single" and ranks is None and ranks_per_node is None:
        nodes, ranks_per_node = nodes or 1, 1
    # Schedulers are asked only for what the options do not say. In Slurm's jobs mpiexec starts ranks on one
    # node unless more are asked for: what srun has started cannot always start more itself.
    open_ = nodes is None or (ranks is None and ranks_per_node is None)
    here = launcher == "plain" or (launcher == "mpiexec" and "SLURM_JOB_ID" in os.environ)
    given = allocation() if named or (open_ and not here) else None
    counts = ranks_on(given, nodes=nodes, ranks=ranks, ranks_per_node=ranks_per_node)
    elsewhere = len(counts) > 1 or (given is not None and not is_local(given.hosts[0]))
    chosen = _pick(launcher, RENDEZVOUS.get(choice.rendezvous).mpi or elsewhere)
    if named and chosen != "mpiexec" and (elsewhere or chosen != "plain"):
        raise BadInput(f"--launcher {chosen} does not reach --hosts {named}: leave it out, or take mpiexec")
    starter = LAUNCHERS.get(chosen)
    if gpus_per_rank < 0 or (threads is not None and threads < 1):
        raise BadInput("--gpus-per-rank and --threads: expected a count")
    if choice.strategy.endswith("nccl") and not gpus_per_rank:
        raise BadInput(f"{choice.strategy} works between GPUs: give --gpus-per-rank")
    if choice.strategy == "single" and sum(counts) > 1:
        raise BadInput(f"single runs on 1 rank, not on {sum(counts)}")
    cores = _cores(chosen, counts)
    most = max(counts)
    wrap, loaded = wrapping.modules(module or ())
    inside = None
    if container is not None:
        inside = choose_container(container, gpus=gpus_per_rank > 0)
        wrap, loaded = wrap + inside.wrap, inside.variables | loaded
    program = shutil.which(command[0])
    beside = Path(program).absolute().parent if program else None
    request = Request(
        command=command,
        nodes=len(counts),
        ranks_per_node=most,
        counts=tuple(counts) if len({*counts}) > 1 else (),
        threads=threads or max(1, cores // most),
        cores=cores,
        # mpiexec beside the command's python: mpi4py there loads that MPI.
        bin=inside.bin if inside is not None and inside.bin is not None else beside,
        # Lines are to come when they are written, not when a buffer is full.
        variables={
            "PYTHONUNBUFFERED": "1",
            "TRANSECT_STRATEGY": choice.strategy,
            # Open MPI binds by itself unless it is told not to.
            **({} if bind else {"TRANSECT_BIND": "none"}),
            **loaded,
            **_variables(env or ()),
        },
        rendezvous=choice.rendezvous,
        interface=network_interface,
        mpi_type=mpi_type,
        gpus_per_rank=gpus_per_rank,
        share_gpus=share_gpus,
        wrap=wrap,
        bind=bind,
        label=label,
        name=f"transect-launch-{os.getpid()}",
        stdin_at=f"transect-launch-{os.getpid()}-{secrets.token_hex(8)}",
    )
    reason = starter.supports(request)
    if reason is not None:
        raise BadInput(f"launcher {chosen}: {reason}")
    processes = starter.processes(request)
    if dry_run:
        print_lines(f"# {framework} {choice.strategy}, rendezvous {choice.rendezvous}, {chosen}")
        print_lines(*script(processes).split("\n"))
        return
    from transect.launch.slurm import signal_step
    from transect.launch.supervise import signal_mpi_ranks, supervise

    signal_ranks: Callable[[int], bool] | None = None
    if chosen == "srun":
        signal_ranks = partial(signal_step, request.name)
    elif chosen == "mpiexec":
        signal_ranks = partial(signal_mpi_ranks, alone=not elsewhere)
    if sys.stdout is not None:  # as it is where it was closed
        sys.stdout.flush()
    code = supervise(
        processes,
        launcher=chosen != "plain",
        signal_ranks=signal_ranks,
        grace_s=grace,
        stdin_at=request.stdin_at if chosen == "mpiexec" else "",
    )
    raise typer.Exit(code)
