"""Open MPI's or MPICH's mpiexec: from the environment's wheel, else from PATH."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from transect.domain.errors import MissingDependency
from transect.launch import LAUNCHERS, Launcher, Request, rank
from transect.launch.hosts import HOSTS, Allocation, allocation
from transect.launch.network import addresses_of, derived_port, free_port
from transect.launch.rendezvous import RENDEZVOUS, Rendezvous, World
from transect.launch.shim import common_variables, rank_command
from transect.launch.slurm import is_local


def find_mpiexec(folder: Path | None) -> str | None:
    """Return the mpiexec beside the environment's python, or the one on PATH.

    The environment's own comes first: mpi4py there loads that MPI.
    """
    if folder is not None and (folder / "mpiexec").exists():
        return str(folder / "mpiexec")
    return shutil.which("mpiexec")


@cache
def _is_open_mpi(program: str) -> bool:
    text = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    return "Open MPI" in text or "OpenRTE" in text or "PRRTE" in text


# In a job of a scheduler every mpiexec starts its ranks on the job's nodes, as many as the job has tasks.
# Ranks of one node run here. Open MPI 5, Open MPI 4 and MPICH, in this order.
_SCHEDULERS = "^slurm,tm,pbs,lsf,gridengine,flux"
_HERE = {
    "PRTE_MCA_ras": _SCHEDULERS,
    "PRTE_MCA_plm": _SCHEDULERS,
    "OMPI_MCA_ras": _SCHEDULERS,
    "OMPI_MCA_plm": _SCHEDULERS,
    "HYDRA_RMK": "user",
    "HYDRA_LAUNCHER": "fork",
    "I_MPI_HYDRA_BOOTSTRAP": "fork",
}
# What belongs to one host, one process or one MPI world.
_LOCAL_VARIABLES = re.compile(r"(OMPI_(?!MCA)|PRTE_(?!MCA)|PMIX?_|SSH_|SLURM_|HOSTNAME$|PWD$|OLDPWD$|SHLVL$|_$)")
# Which whoever starts ranks sets then: the mark by which a payload's processes are found.
_SET_LATER = "TRANSECT_PAYLOAD"
_ANSWER_S = 120
# Open MPI 4 and 5, MPICH: a host that mpiexec cannot reach, or where it is not there.
_NO_HOST = re.compile(
    r"ORTE was unable to reliably start one or more daemons|A daemon failed to report back after being spawned"
    r"|: Launch proxy failed"
)
_NAME = re.compile(r"[A-Za-z_]\w*")
# The adapters of fast networks. On a machine without one Open MPI looks for them through libfabric in vain, and sleeps a
# second when it closes that part: 1.3 s of each start of ranks, which messages on one machine have nothing of.
_ADAPTERS = ("/sys/class/infiniband", "/sys/class/cxi")
_NO_LIBFABRIC = {"OMPI_MCA_btl": "^ofi", "OMPI_MCA_mtl": "^ofi"}


def on_this_node() -> dict[str, str]:
    """Return the variables with which mpiexec starts its ranks here, in a scheduler's job too."""
    jobs = ("SLURM_JOB_ID", "PBS_NODEFILE", "LSB_JOBID", "PE_HOSTFILE", "FLUX_JOB_ID", "FLUX_URI")
    return dict(_HERE) if any(name in os.environ for name in jobs) else {}


def first_words(log: str) -> str:
    """Return the first lines of what mpiexec printed, without rules: the message of ssh comes first."""
    return " | ".join([line.strip() for line in log.splitlines() if line.strip(" -")][:3])[:600]


def unreached(log: str) -> str | None:
    """Return the message about a host that mpiexec did not reach; None: it reached all."""
    match = _NO_HOST.search(log)
    return match and f"mpiexec started no ranks: {first_words(log[: match.end()])}"


def mpiexec_prefix(program: str) -> list[str]:
    """Return the program with the flag that Open MPI wants from root."""
    root = os.geteuid() == 0 and _is_open_mpi(program)
    return [program, "--allow-run-as-root"] if root else [program]


def over_hosts(program: str, hosts: Sequence[str], counts: Sequence[int], variables: Mapping[str, str]) -> list[str]:
    """Return mpiexec with the options that start `counts` ranks on `hosts`, in this order.

    The hosts are reached as this mpiexec does it: by its scheduler, or by ssh. Ranks have this
    environment and `variables`, as with srun: MPICH hands on all, Open MPI what is named.
    """
    placed = list(zip(hosts, counts, strict=True))
    command = [*mpiexec_prefix(program), "-n", str(sum(counts))]
    if not _is_open_mpi(program):
        return [*command, "-hosts", ",".join(f"{host}:{count}" for host, count in placed)]
    names = {*os.environ, *variables}
    handed = sorted(name for name in names if _NAME.fullmatch(name) and not _LOCAL_VARIABLES.match(name))
    # A host for each rank: by slots Open MPI 4 begins with this machine, wherever it stands in the list,
    # and shortens the names of the others.
    command += ["--host", ",".join(host for host, count in placed for _ in range(count))]
    command += ["--map-by", "seq:OVERSUBSCRIBE", "--bind-to", "none"]
    command += ["--mca", "orte_keep_fqdn_hostnames", "1"] if any("." in host for host in hosts) else []
    return [*command, *(word for name in handed for word in ("-x", name))]


def _given(request: Request) -> Allocation | None:
    if request.nodes == 1 and not os.environ.get(HOSTS):
        return None
    given = allocation()
    here = request.nodes == 1 and given is not None and is_local(given.hosts[0])
    return None if here else given


@LAUNCHERS.register("mpiexec")
class Mpiexec(Launcher):
    """One mpiexec process; it starts and ends the ranks, here or on the hosts of an allocation."""

    def supports(self, request: Request) -> str | None:
        """Needs an mpiexec, and for several nodes an allocation that has them."""
        if find_mpiexec(request.bin) is None:
            return "no mpiexec in the environment or on PATH"
        given = _given(request)
        if given is None and request.nodes > 1:
            return f"{request.nodes} nodes are asked for: neither a scheduler, --hosts nor {HOSTS} names the hosts"
        if given is not None and len(given.hosts) < request.nodes:
            return f"{request.nodes} nodes are asked for, the allocation ({given.source}) has {','.join(given.hosts)}"
        return None

    def processes(self, request: Request) -> list[tuple[list[str], dict[str, str]]]:
        """Return the one mpiexec command."""
        program = find_mpiexec(request.bin)
        assert program is not None
        kind = RENDEZVOUS.get(request.rendezvous)
        given = _given(request)
        if given is not None:
            return self._over_hosts(program, kind, request, given.hosts[: request.nodes])
        world = World(
            hosts=("127.0.0.1",),
            addresses=("127.0.0.1",),
            ranks_per_node=request.ranks,
            threads=request.threads,
            port=free_port(request.ranks),
            interface=request.interface,
        )
        command = [*mpiexec_prefix(program), "-n", str(request.ranks)]
        variables = on_this_node() | common_variables(request, kind, world)
        wish = (os.environ | request.variables).get("TRANSECT_BIND")
        # What mpiexec binds by is inherited by ranks that these spawn, for which no cores are
        # left then: MPI_Comm_spawn would fail. rank.py binds these ranks alone.
        bound = wish != "none" and not request.over_subscribed and not request.bind
        if _is_open_mpi(program):
            # A file of the site or of the user may say which parts of MPI are used.
            told = (*_ADAPTERS, os.path.expanduser("~/.openmpi/mca-params.conf"))  # noqa: PTH111 as a text, as the others
            if request.bin == Path(program).parent and not any(map(os.path.exists, told)):
                variables = {k: v for k, v in _NO_LIBFABRIC.items() if k not in os.environ} | variables
            if request.over_subscribed:
                # Ranks that share a core must not spin while they wait for each other.
                variables = {"OMPI_MCA_mpi_yield_when_idle": "1"} | variables
                command += ["--map-by", ":OVERSUBSCRIBE"]
            command += (
                ["--bind-to", "core", "--map-by", f"slot:PE={request.threads}"] if bound else ["--bind-to", "none"]
            )
        elif bound:
            # MPICH's binds ranks as it was built to, or not at all: rank.py gives them the cores that Open MPI's would.
            request, bound = replace(request, bind=True), False
        ranks = rank_command(request, kind, world, numbered_by="mpi", bind="never" if bound else "always")
        return [([*command, *ranks], variables)]

    def _over_hosts(
        self, program: str, kind: Rendezvous, request: Request, hosts: tuple[str, ...]
    ) -> list[tuple[list[str], dict[str, str]]]:
        here = is_local(hosts[0])

        def answers() -> str:
            asked = [request.shim_python, rank.__file__, "--address", str(request.interface)]
            start = over_hosts(program, hosts, (1,) * len(hosts), {})
            try:
                # Apart from a terminal, of which ssh would ask a password.
                done = subprocess.run(
                    [*start, *asked, "--numbered-by", "mpi"],
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    timeout=_ANSWER_S,
                    start_new_session=True,
                )
            except subprocess.TimeoutExpired:
                raise MissingDependency(f"{','.join(hosts)}: no answer in {_ANSWER_S} s") from None
            if done.returncode:
                raise MissingDependency(first_words(done.stderr) or f"{program} failed without a message")
            return done.stdout

        world = World(
            hosts=hosts,
            addresses=addresses_of(hosts, answers if request.interface else None) if kind.numeric else hosts,
            ranks_per_node=request.ranks_per_node,
            counts=request.counts,
            threads=request.threads,
            port=free_port(request.ranks_per_node) if here else derived_port(",".join(hosts)),
            interface=request.interface,
        )
        variables = common_variables(request, kind, world)
        if request.over_subscribed:
            variables = {"OMPI_MCA_mpi_yield_when_idle": "1"} | variables
        # What mpiexec binds here it would bind alike on hosts that it does not know. Rank 0 of another
        # host has no standard input.
        remote_request = replace(request, bind=not request.over_subscribed, stdin_at=request.stdin_at if here else "")
        ranks = rank_command(remote_request, kind, world, numbered_by="mpi", bind="always")
        handed = {**variables, _SET_LATER: ""}
        return [([*over_hosts(program, hosts, request.on_each, handed), *ranks], variables)]
