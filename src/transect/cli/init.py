"""`transect init`: a folder for studies of one's own on this machine, or on the cluster whose login node it is."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transect.cli.new_files import write_new
from transect.cli.output import print_lines
from transect.domain.errors import BadInput, MissingDependency, unknown_name

if TYPE_CHECKING:
    from transect.adapters.slurm.offers import Offers, Partition
    from transect.cli.init_files import Fact

_OVERHEAD_MINUTES = 5
_BLOCK_MINUTES = 240
# Of a node's memory, in per cent: the system takes some.
_MEMORY_SHARE = 90
# Of modules that are listed.
_NAMED = 12


def init(
    folder: Annotated[Path, typer.Argument(help="made if it is not there; no file in it is overwritten")],
    name: Annotated[str | None, typer.Option(help="of the system [default: the cluster's or the machine's]")] = None,
    scheduler: Annotated[str, typer.Option(help="none, slurm, auto: Slurm where one answers")] = "auto",
    partition: Annotated[str | None, typer.Option(help="where jobs queue [default: Slurm's own]")] = None,
    account: Annotated[str | None, typer.Option(help="who pays [default: the only one, else Slurm's own]")] = None,
    gpus: Annotated[int | None, typer.Option(min=0, help="of each node, to be used [default: all that it has]")] = None,
    module: Annotated[list[str] | None, typer.Option(help="loaded before every payload; repeatable")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="ask nothing")] = False,
) -> None:
    """Write a folder for studies of your own: Snakefile, config, a system file of this machine or cluster, a first study.

    Looks at the machine, and at Slurm where it answers: partitions, nodes, GPUs, accounts, kinds of MPI. Above each
    fact of the system file stands where it was read. Asks what is open where stdin is a terminal.
    Example: transect init my-studies --partition batch --yes
    """
    from transect.cli.init_files import files

    if scheduler not in ("none", "slurm", "auto"):
        raise unknown_name("scheduler", scheduler, ("none", "slurm", "auto"), "--scheduler")
    if scheduler == "none" and (given := partition or account) is not None:
        raise BadInput(f"'{given}': --partition and --account are Slurm's: expected --scheduler slurm or auto")
    asks = sys.stdin is not None and sys.stdin.isatty() and not yes
    offers = None if scheduler == "none" else _slurm(must=scheduler == "slurm" or bool(partition or account))
    usual = re.sub(r"[^A-Za-z0-9_.-]+|^[^A-Za-z0-9]+", "-", offers.cluster if offers else os.uname().nodename)
    usual = usual.lstrip("-_.") or "mine"
    called = name or (typer.prompt("Name of the system", default=usual) if asks else usual)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", called):
        raise BadInput(f"--name {called!r}: expected letters, digits and _.-, first a letter or digit")
    if offers is None:
        facts, notes = _here(gpus), list[str]()
    else:
        facts, notes = _on_slurm(offers, partition, account, gpus, asks=asks)
    known = offers.modules if offers else ()
    facts, notes = [*facts, *_modules(module, known)], [*notes, *_modules_seen(known)]
    write_new(made := files(folder, called, facts, notes))
    print_lines(*(f"wrote {path}" for path in made))
    profile = "slurm" if offers else "local"
    print_lines(
        f"next: cd {shlex.quote(str(folder))}",
        *([f"      transect doctor --system config/systems/{called}.yaml"] if offers else []),
        f"      transect check config/studies/first.yaml --system config/systems/{called}.yaml",
        f"      snakemake --profile profiles/{profile}",
    )


def _slurm(*, must: bool) -> Offers | None:
    """Return what Slurm offers; None where none answers and none was asked for."""
    from transect.adapters.slurm.offers import survey

    offers = survey()
    if offers is None and must:
        raise MissingDependency("no Slurm answers here (`scontrol ping`): call this on a login node of the cluster")
    if offers is not None and not offers.partitions:
        raise BadInput(
            "Slurm has no partition with nodes that serve jobs now (`sinfo`): ask the site, or give --scheduler none "
            "for this machine alone"
        )
    return offers


def _here(gpus: int | None) -> list[Fact]:
    """Return what this machine has."""
    from transect.cli.init_files import Fact
    from transect.measure import provenance

    seen = provenance.collect()
    found = [str(gpu["name"]) for gpu in provenance.gpus()]
    if gpus is not None and gpus > len(found):
        raise BadInput(f"--gpus {gpus}: this machine has {len(found)} that NVIDIA's library tells")
    facts = [
        Fact(key="scheduler", value="none", source="no Slurm: cells run on this machine"),
        Fact(key="launcher", value="plain", source="ranks that need no MPI are processes of this machine"),
        Fact(key="mpi_launcher", value="mpiexec", source="of the environment's own MPI, or of PATH"),
        Fact(key="nodes", value=1, source="this machine alone"),
        Fact(
            key="cores_per_node",
            value=provenance.available_cores(),
            source=f"what this process may use of: {seen['cpu_model'] or 'an unknown processor'}",
        ),
    ]
    if found:
        wanted = len(found) if gpus is None else gpus
        facts.append(Fact(key="gpus_per_node", value=wanted, source=f"NVIDIA's library: {', '.join(found)}"))
    return facts


def _on_slurm(
    offers: Offers, partition: str | None, account: str | None, gpus: int | None, *, asks: bool
) -> tuple[list[Fact], list[str]]:
    """Return what the chosen partition has, and what is said besides at the end of the file."""
    from transect.cli.init_files import Fact

    known = {one.name: one for one in offers.partitions}
    usual = next((one.name for one in offers.partitions if one.default), offers.partitions[0].name)
    if partition is None:
        partition = _asked(f"Partition ({', '.join(known)})", usual) if asks and len(known) > 1 else usual
    if partition not in known:
        raise unknown_name("partition with nodes that serve jobs", partition, known, "--partition")
    chosen = known[partition]
    on_gpus, count = _gpus(chosen, offers.partitions, gpus)
    both = [chosen, *([on_gpus] if on_gpus not in (None, chosen) else [])]
    limit = min(one.minutes for one in both)
    overhead = _OVERHEAD_MINUTES if limit > 2 * _OVERHEAD_MINUTES else 1
    of = " and ".join(f"'{one.name}'" for one in both)
    least, memory = min(one.cores for one in both), min(one.memory_mb for one in both)
    facts = [
        Fact(key="scheduler", value="slurm", source=f"`scontrol ping`: cluster '{offers.cluster}' answers"),
        Fact(key="launcher", value="srun", source="Slurm starts ranks inside of a job"),
        *_mpi(offers.mpi_types),
        Fact(
            key="partition",
            value=chosen.name,
            source=f"sinfo: partition '{chosen.name}', {chosen.nodes} nodes of {chosen.cores} cores"
            + (", Slurm's default" if chosen.default else ""),
        ),
        *_account(offers.accounts, account, asks=asks),
        Fact(key="nodes", value=chosen.nodes, source=f"sinfo: nodes of '{chosen.name}' that serve jobs now"),
        Fact(key="cores_per_node", value=max(1, least), source=f"sinfo %c: the smallest node of {of}"),
        Fact(
            key="memory_mb_per_node",
            value=max(1, memory * _MEMORY_SHARE // 100),
            source=f"sinfo %m: {memory} MB of the smallest node of {of}, less what the system takes",
        ),
        Fact(
            key="block_minutes",
            value=int(max(1, min(_BLOCK_MINUTES, limit - overhead))),
            source=f"scontrol: MaxTime of {of} is "
            + ("no limit" if limit == float("inf") else f"{limit:g} minutes, and overhead_minutes stay below it"),
        ),
        Fact(key="overhead_minutes", value=overhead, source="for a job's own start: a guess, nothing was read"),
    ]
    if on_gpus is not None and count:
        facts.append(Fact(key="gpus_per_node", value=count, source=f"sinfo %G: nodes of '{on_gpus.name}'"))
        if on_gpus is not chosen:
            facts.append(Fact(key="gpu_partition", value=on_gpus.name, source="sinfo %G: its nodes have GPUs"))
        if on_gpus.gpu_type is not None:
            facts.append(Fact(key="gpu_type", value=on_gpus.gpu_type, source="sinfo %G: the only kind there"))
    others = [f"{one.name} ({one.nodes} nodes of {one.cores} cores)" for one in offers.partitions if one not in both]
    return facts, [f"other partitions: {', '.join(others)}"] if others else []


def _asked(question: str, usual: str) -> str:
    return str(typer.prompt(question, default=usual))


def _gpus(chosen: Partition, every: Sequence[Partition], wanted: int | None) -> tuple[Partition | None, int]:
    """Return the partition for cells on GPUs, the chosen one where it has some, and how many of each node.

    Raises BadInput where more are wanted than any partition's nodes have.
    """
    if wanted == 0:
        return None, 0
    able = [one for one in (chosen, *every) if one.gpus >= (wanted or 1)]
    if not able:
        if wanted is None:
            return None, 0
        most = max((one.gpus, one.name) for one in every)
        raise BadInput(f"--gpus {wanted}: the most that every node of a partition has is {most[0]} (of '{most[1]}')")
    return able[0], wanted or able[0].gpus


def _mpi(types: Sequence[str]) -> list[Fact]:
    from transect.cli.init_files import Fact

    told = f"`srun --mpi=list`: {', '.join(types) or 'nothing'}"
    # Open MPI's wheel speaks PMIx, MPICH's PMI-2.
    for kind in ("pmix", "pmi2"):
        if found := sorted(name for name in types if name.startswith(kind)):
            return [
                Fact(key="mpi_launcher", value="srun", source=told),
                Fact(key="mpi_type", value=found[0], source=told),
            ]
    return [Fact(key="mpi_launcher", value="mpiexec", source=f"{told}, so that mpiexec starts MPI's ranks")]


def _account(known: Sequence[str] | None, given: str | None, *, asks: bool) -> list[Fact]:
    """Return who pays: nobody is named where Slurm's own default will do, or nobody tells."""
    from transect.cli.init_files import Fact

    if known is None:
        told = "as given: no accounting tells whether you may use it"
        return [Fact(key="account", value=given, source=told)] if given else []
    told = f"sacctmgr: your accounts are {', '.join(known) or 'none'}"
    if given is None and len(known) > 1 and asks:
        given = _asked(f"Account ({', '.join(known)}; - is your default)", "-").removeprefix("-")
    chosen = given or (known[0] if len(known) == 1 else "")
    if not chosen:
        return []
    if chosen.lower() not in known:
        raise unknown_name("account of yours", chosen, known, "--account")
    return [Fact(key="account", value=chosen, source=told)]


def _modules(given: Sequence[str] | None, known: Sequence[str]) -> list[Fact]:
    from transect.cli.init_files import Fact

    missing = [
        name for name in given or () if name not in known and not any(one.startswith(f"{name}/") for one in known)
    ]
    told = (
        f"as given; `module avail` names no {', '.join(missing)} here" if missing else "as given, and in `module avail`"
    )
    return [Fact(key="modules", value=list(given), source=told)] if given else []


def _modules_seen(known: Sequence[str]) -> list[str]:
    """Say what could be loaded before every payload: a site's MPI, and what this shell has loaded."""
    mpi = [name for name in known if "mpi" in name.lower()]
    loaded = [name for name in os.environ.get("LOADEDMODULES", "").split(":") if name]
    return [
        *(
            [f"`module avail` names {len(known)}, with MPI in the name: {', '.join(mpi[:_NAMED]) or 'none'}"]
            if known
            else []
        ),
        *([f"loaded in the shell that called `transect init`: {', '.join(loaded)}"] if loaded else []),
    ]
