"""Slurm's srun, inside an allocation."""

from __future__ import annotations

import os

from transect.domain.errors import BadInput
from transect.launch import LAUNCHERS, Launcher, Request, rank
from transect.launch.network import addresses_of, derived_port, free_port
from transect.launch.rendezvous import RENDEZVOUS, Rendezvous, World
from transect.launch.shim import common_variables, rank_command
from transect.launch.slurm import ask, is_local, job_hosts, job_id, srun

# crashes at a message of a rank that is ahead in MPI_Init (mca_pml_ob1_recv_frag_callback_match,
# https://github.com/open-mpi/ompi/issues/12495). Fences over a ring wait: seen with Slurm 22.05.
_FENCES = {"SLURM_PMIX_FENCE": "ring"}


@LAUNCHERS.register("srun")
class Srun(Launcher):
    """One job step; Slurm starts, binds and ends the ranks.

    Slurm 21.08 or later. Where it does not bind, rank.py may.
    """

    def supports(self, request: Request) -> str | None:
        """Needs a Slurm allocation."""
        return None if "SLURM_JOB_ID" in os.environ else "srun needs a Slurm allocation"

    def processes(self, request: Request) -> list[tuple[list[str], dict[str, str]]]:
        """Return the one srun command."""
        kind = RENDEZVOUS.get(request.rendezvous)
        hosts = self._hosts(request, kind)
        world = self._world(request, kind, hosts)
        command = [
            *self._step(request, hosts, stdin="0" if request.stdin_at else "none"),
            f"--ntasks={request.ranks}",
            *self._placed(request, hosts),
            # With --overcommit it is the number for each node.
            f"--cpus-per-task={max(1, request.cores) if request.over_subscribed else request.threads}",
            "--kill-on-bad-exit=1",
            # A site's WaitTime would end ranks that finish later than the first one.
            "--wait=0",
            f"--mpi={request.mpi_type if kind.mpi else 'none'}",
        ]
        if request.patience_s is not None:
            command.append(f"--immediate={request.patience_s}")
        if request.name:
            command.append(f"--job-name={request.name}")
        if request.gpus_per_rank:
            # The node's GPUs together: rank.py deals them out, and peers can reach each other's.
            # Without --gpu-bind=none, which leaves CUDA_VISIBLE_DEVICES unset.
            count = request.gpus_per_rank * request.ranks_per_node
            command.append(f"--gres=gpu:{count}")
        variables = common_variables(request, kind, world)
        if kind.mpi:
            # A site that has chosen its own keeps it.
            variables = {k: v for k, v in _FENCES.items() if k not in os.environ} | variables
        if request.over_subscribed:
            command.append("--overcommit")
            # Ranks that share a core must not spin while they wait for each other.
            idle = {"OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_MCA_hwloc_base_binding_policy": "none"}
            variables = idle | variables
        ranks = rank_command(request, kind, world, numbered_by="slurm", bind="auto")
        return [([*command, *ranks], variables)]

    def _placed(self, request: Request, hosts: list[str]) -> list[str]:
        """Return the options that fill one node after another; of two --nodelist the later counts."""
        if not request.counts:
            return [f"--ntasks-per-node={request.ranks_per_node}", "--distribution=block"]
        named = zip(hosts, request.counts, strict=False)
        listed = ",".join(host for host, count in named for _ in range(count))
        return ["--distribution=arbitrary", f"--nodelist={listed}"]

    def _step(self, request: Request, hosts: list[str], stdin: str = "none") -> list[str]:
        memory = request.memory_mb_per_node or 0
        step = [
            *srun(gpus=request.gpus_per_rank > 0),
            f"--nodes={request.nodes}",
            # All that the job has: steps run one after another. In batch scripts the variables of
            # --mem-per-cpu would give a step of few cores little memory.
            f"--mem={memory}",
            # Snakemake's job is a step itself, which otherwise holds everything.
            "--overlap",
            "--export=ALL",
            f"--input={stdin}",
            # One SIGINT ends the step, as it does with other launchers.
            "--quit-on-interrupt",
        ]
        if len(hosts) > request.nodes:
            step.append(f"--nodelist={','.join(hosts[: request.nodes])}")
        return step

    def _hosts(self, request: Request, kind: Rendezvous) -> list[str]:
        known = bool(os.environ.get("SLURM_JOB_NODELIST"))
        if not known and not request.counts and (kind.mpi or request.rendezvous == "none"):
            return []  # nobody needs to know: do not ask the scheduler
        hosts = job_hosts()
        if len(hosts) < request.nodes:
            raise BadInput(f"job {job_id()} has {len(hosts)} nodes ({','.join(hosts)}), {request.nodes} are asked for")
        return hosts

    def _world(self, request: Request, kind: Rendezvous, hosts: list[str]) -> World:
        names = tuple(hosts[: request.nodes]) or ("",) * request.nodes
        here, count, seed = bool(hosts) and is_local(names[0]), request.ranks_per_node, job_id()
        return World(
            hosts=names,
            addresses=self._addresses(request, kind, names),
            ranks_per_node=count,
            counts=request.counts,
            threads=request.threads,
            port=free_port(count, seed) if here else derived_port(seed),
            interface=request.interface,
        )

    def _addresses(self, request: Request, kind: Rendezvous, names: tuple[str, ...]) -> tuple[str, ...]:
        if not kind.numeric:
            return names

        def answers() -> str:
            asked = [request.shim_python, rank.__file__, "--address", str(request.interface)]
            per_node = [f"--ntasks={request.nodes}", "--ntasks-per-node=1", "--mpi=none"]
            return ask(*self._step(request, job_hosts()), *per_node, *asked)

        return addresses_of(names, answers if request.interface else None)
