"""What Slurm says of a system file: every promise of the file is checked, and what to change."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transect.adapters.slurm.doctor_nodes import Row, examine_nodes, row
from transect.adapters.slurm.scheduler import accounting, ask, associations
from transect.domain.owner import user_name
from transect.domain.system import System
from transect.launch import LAUNCHERS

# What Slurm's programs say of partitions and nodes, read as Slurm means it: manuals of sinfo (NODE STATE CODES), sbatch
# (--constraint) and scontrol (show partition), Slurm 21.08 to 24.11.

# Slurm prints it for what a node or a partition does not have.
_NULL = "(null)"
# In sinfo's long and short form. What is powered down is started for a job.
_STATES = re.compile(
    r"(?:alloc(?:ated)?|comp(?:leting)?|idle|mix(?:ed)?|planned|plnd|resv|reserved|pow\w*"
    r"|reboot_requested)([*~#!%$@^+-]*)"
)
# Does not respond, in a maintenance reservation, reboots now.
_UNUSABLE = frozenset("*$^")


def absent(text: str) -> str:
    """Return `text`, empty where Slurm means that there is nothing."""
    return "" if text.strip() in (_NULL, "none", "N/A") else text.strip()


def minutes(text: str) -> float:
    """Return Slurm's `days-hours:minutes:seconds` in minutes; what has no limit is infinite."""
    if not absent(text) or text in ("UNLIMITED", "INFINITE", "NONE"):
        return float("inf")
    days, _, clock = text.rpartition("-")
    parts = [int(part) for part in clock.split(":")]
    hours, minutes_, seconds = [0, 0, 0, *parts][-3:]
    return int(days or 0) * 1440 + hours * 60 + minutes_ + seconds / 60


def gpus(gres: str, kind: str | None) -> int:
    """Return how many GPUs, of a kind if that is given, a node's `gres` has."""
    found = re.finditer(r"gpu:(?:([\w.-]+):)?(\d+)", gres)
    return sum(int(match[2]) for match in found if kind is None or match[1] == kind)


def usable(state: str) -> bool:
    """Tell whether a node in a state such as `mixed-` or `idle*` serves jobs, now or in its turn."""
    match = _STATES.fullmatch(state.lower())
    return match is not None and not _UNUSABLE & {*match[1]}


def fitting(constraint: str, features: Sequence[str]) -> list[int]:
    """Return which nodes satisfy a constraint, by index: `a&b|c`, read from left to right as Slurm does.

    `features`: of each node, as sinfo's %f has them. What else Slurm knows, such as counts and brackets, is left to
    the job that tries it: then all nodes that have one of its features are named.
    """
    sets = [{*absent(names).split(",")} - {""} for names in features]
    words = re.findall(r"[\w.:/=+-]+|[&|]", constraint)
    if not words or "".join(words) != constraint.replace(" ", ""):
        return [i for i, has in enumerate(sets) if has & {*words}]
    found = {i for i, has in enumerate(sets) if words[0] in has}
    for sign, word in zip(words[1::2], words[2::2], strict=False):
        having = {i for i, has in enumerate(sets) if word in has}
        found = found & having if sign == "&" else found | having
    return sorted(found)


_PROGRAMS = ("sbatch", "srun", "squeue", "scancel", "scontrol", "sinfo")


def _programs() -> list[Row]:
    if missing := [name for name in _PROGRAMS if shutil.which(name) is None]:
        return [row("Slurm's programs", "wrong", f"{', '.join(missing)}: run this on a login node of the cluster")]
    if ask("scontrol", "ping") is None:
        return [row("Slurm's controller", "wrong", "`scontrol ping` fails: is slurmctld up?")]
    return [row("Slurm", "ok", (ask("sinfo", "--version") or "").strip())]


def nodes_of(partition: str) -> list[dict[str, str]]:
    """Return what sinfo says of each node of a partition: name, cores, memory (MB), gres, features, state."""
    text = ask("sinfo", "--noheader", "-N", "-p", partition, "-o", "%N|%c|%m|%G|%f|%T") or ""
    keys = ("name", "cores", "memory", "gres", "features", "state")
    return [dict(zip(keys, line.split("|"), strict=False)) for line in text.splitlines() if line]


def partition_lines() -> dict[str, str]:
    """Return what scontrol says of each partition, in the order in which Slurm has them."""
    text = ask("scontrol", "--oneliner", "show", "partition") or ""
    return {m[1]: line for line in text.splitlines() if (m := re.search(r"PartitionName=(\S+)", line))}


def time_limit(line: str) -> float:
    """Return the most minutes that a job of a partition may take, of what scontrol says of it."""
    most = re.search(r"\bMaxTime=(\S+)", line)
    return minutes(most[1]) if most else float("inf")


def mpi_types() -> list[str]:
    """Return what `srun --mpi=` takes here."""
    done = subprocess.run(["srun", "--mpi=list"], capture_output=True, text=True)
    return re.findall(r"^\s*(?:srun: )?\s*([a-z][\w-]*)$", done.stdout + done.stderr, re.MULTILINE)


def _partitions(system: System, names: str | None, *, gpus_too: bool) -> list[Row]:
    """Check each partition of a list such as `a,b`: a job runs in one of them, whichever is free first."""
    key = "gpu_partition" if gpus_too and system.gpu_partition else "partition"
    known = partition_lines()
    wanted = (names or next((n for n, line in known.items() if "Default=YES" in line), "a default")).split(",")
    absent_ = [name for name in wanted if name not in known]
    rows = [row(key, "wrong", f"'{name}' does not exist: set it to one of {', '.join(known)}") for name in absent_]
    groups = [_partition(system, key, name, known[name], gpus_too=gpus_too) for name in wanted if name in known]
    every = [made for group in groups for made in group]
    if not all(any(made["state"] == "wrong" for made in group) for group in groups):
        # Slurm passes over those that do not fit.
        every = [made | ({"state": "note"} if made["state"] == "wrong" else {}) for made in every]
    return rows + every


def _partition(system: System, key: str, name: str, line: str, *, gpus_too: bool) -> list[Row]:
    nodes = nodes_of(name)
    rows = [row(f"{key} {name}", "ok", f"{len(nodes)} nodes")]

    def check(what: str, asked: float | None, offered: float, advice: str) -> None:
        if asked is not None:
            state, more = ("ok", "") if asked <= offered else ("wrong", f": {advice}")
            rows.append(row(f"{name}: {what}", state, f"{asked:g} asked, {offered:g} offered{more}"))

    state = re.search(r"\bState=(\S+)", line)
    if state and state[1] != "UP":
        rows.append(row(f"{name}: state", "wrong", f"{state[1]}: ask the site"))
    limit = time_limit(line)
    longest = system.block_minutes + system.overhead_minutes
    check("minutes", longest, limit, f"set block_minutes to {limit - system.overhead_minutes:g} or less")
    fit = nodes
    if system.constraint is not None:
        fit = [nodes[i] for i in fitting(system.constraint, [n["features"] for n in nodes])]
        if not fit:
            features = sorted({f for n in nodes for f in absent(n["features"]).split(",") if f})
            text = f"no nodes satisfy it; features there: {', '.join(features) or 'none'}"
            return [*rows, row(f"{name}: constraint {system.constraint}", "wrong", text)]
    asked = min(system.nodes, len(nodes)) if gpus_too else system.nodes
    check("nodes", asked, len(fit), f"set nodes to {len(fit)} or less")
    least = {k: min((int(n[k].rstrip("+")) for n in fit), default=0) for k in ("cores", "memory")}
    check("cores_per_node", system.cores_per_node, least["cores"], f"set it to {least['cores']}")
    check("memory_mb_per_node", system.memory_mb_per_node, least["memory"], f"set it to {least['memory']} or less")
    if gpus_too:
        there = min((gpus(n["gres"], system.gpu_type) for n in fit), default=0)
        kinds = sorted({absent(n["gres"]) or "no GPUs" for n in fit})
        check("gpus_per_node", system.gpus_per_node, there, f"the nodes offer {', '.join(kinds)}")
    if down := [n["name"] for n in fit if not usable(n["state"])]:
        text = f"{len(down)} of {len(fit)} cannot be used now: {', '.join(down[:8])}"
        rows.append(row(f"{name}: node states", "note", text))
    return rows


def _account(system: System) -> list[Row]:
    user, found = user_name(), associations() if accounting() else None
    if found is None:
        text = "no accounting, or sacctmgr does not answer (is slurmdbd down?): account and QOS are not checked"
        return [row("accounting", "note", text)]
    accounts, rows = sorted(found), []
    if system.account is None:
        rows.append(row("account", "ok", f"your default; yours are: {', '.join(accounts)}"))
    elif system.account.lower() in accounts:
        rows.append(row(f"account {system.account}", "ok", f"user {user} may use it"))
    else:
        text = f"user {user} has {', '.join(accounts) or 'none'}: set account to one of these"
        rows.append(row(f"account {system.account}", "wrong", text))
    if system.qos is not None:
        known = sorted({qos for names in found.values() for qos in names})
        state = "ok" if system.qos in known else "wrong"
        rows.append(row(f"qos {system.qos}", state, f"yours are: {', '.join(known) or 'none'}"))
    return rows


def _mpi(system: System) -> list[Row]:
    for key in ("launcher", "mpi_launcher"):
        LAUNCHERS.get(getattr(system, key), f"system '{system.name}': {key}")
    if system.mpi_launcher != "srun":
        return [row("mpi_launcher", "note", f"{system.mpi_launcher}: not tried between nodes")]
    known = mpi_types()
    state = "ok" if system.mpi_type in known else "wrong"
    return [row(f"mpi_type {system.mpi_type}", state, f"srun offers: {', '.join(known)}")]


def _startable(system: System, rows: list[Row]) -> System:
    """Return the system without what Slurm would refuse, so that nodes are looked at in the same round."""
    wrong = [made["name"] for made in rows if made["state"] == "wrong"]
    signs: dict[str, tuple[str, Any]] = {
        "partition": (r"^partition|: state$", None),
        "account": ("^account ", None),
        "qos": ("^qos ", None),
        "constraint": (": constraint ", None),
        "nodes": (": nodes$", 1),
    }
    asked = {key: value for key, (sign, value) in signs.items() if any(re.search(sign, name) for name in wrong)}
    return system.model_copy(update=asked)


def examine_system(system: System, results: Path, wait_s: float) -> dict[str, list[Row]]:
    """Return sections of rows `name`, `state` (ok, wrong, note), `detail` with what to change.

    Runs two short jobs of up to two nodes; each may wait `wait_s` seconds for its turn.
    """
    title = f"system {system.name}"
    if system.scheduler != "slurm":
        return {title: [row("scheduler", "note", "none: cells run here, or on the hosts of an allocation, not tried")]}
    rows = _programs()
    if rows[0]["state"] == "wrong":
        return {title: rows}
    rows += _account(system) + _partitions(system, system.partition, gpus_too=False)
    if system.gpus_per_node:
        rows += _partitions(system, system.gpu_partition or system.partition, gpus_too=True)
    mpi = _mpi(system)
    rows += mpi
    nodes = examine_nodes(_startable(system, rows), results.resolve(), wait_s, mpi=mpi[0]["state"] == "ok")
    return {title: rows, "compute nodes": nodes}
