"""What Slurm says of a system file: every promise of the file is checked, and what to change."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transect.domain.paths import ROOT
from transect.domain.system import System
from transect.execution.associations import associations
from transect.execution.locks import user_name
from transect.execution.scheduler import accounting, ask
from transect.launch import LAUNCHERS
from transect.measure.node_probe import gathered, sees
from transect.planning.environments import environment_folder, environment_names

__all__ = ["examine_system"]

Row = dict[str, str]

# The time limit of a job here.
_RUN_S = 180
_PROGRAMS = ("sbatch", "srun", "squeue", "scancel", "scontrol", "sinfo")


def _row(name: str, state: str, detail: str = "") -> Row:
    return {"name": name, "state": state, "detail": detail}


def _programs() -> list[Row]:
    missing = [name for name in _PROGRAMS if shutil.which(name) is None]
    if missing:
        text = f"{', '.join(missing)}: run this on a login node of the cluster"
        return [_row("Slurm's programs", "wrong", text)]
    if ask("scontrol", "ping") is None:
        return [_row("Slurm's controller", "wrong", "`scontrol ping` fails: is slurmctld up?")]
    version = (ask("sinfo", "--version") or "").strip()
    return [_row("Slurm", "ok", version)]


def _minutes(text: str) -> float:
    """Return Slurm's `days-hours:minutes:seconds` in minutes; UNLIMITED is infinite."""
    if text in ("UNLIMITED", "INFINITE"):
        return float("inf")
    days, _, rest = text.rpartition("-")
    parts = [int(part) for part in rest.split(":")]
    hours, minutes, seconds = [0, 0, 0, *parts][-3:]
    return int(days or 0) * 1440 + hours * 60 + minutes + seconds / 60


def _nodes(partition: str) -> list[dict[str, str]]:
    text = ask("sinfo", "--noheader", "-N", "-p", partition, "-o", "%N|%c|%m|%G|%f|%T") or ""
    keys = ("name", "cores", "memory", "gres", "features", "state")
    return [dict(zip(keys, line.split("|"), strict=False)) for line in text.splitlines() if line]


def _gpus(gres: str, kind: str | None) -> int:
    amounts = [
        int(match[2])
        for match in re.finditer(r"gpu:(?:([\w.-]+):)?(\d+)", gres)
        if kind is None or match[1] == kind
    ]
    return sum(amounts)


def _partition(system: System, name: str | None, *, gpus: bool) -> list[Row]:
    key = "gpu_partition" if gpus and system.gpu_partition else "partition"
    text = ask("scontrol", "--oneliner", "show", "partition") or ""
    known = {m[1]: line for line in text.splitlines() if (m := re.search(r"PartitionName=(\S+)", line))}  # fmt: skip
    if name is None:
        name = next((n for n, line in known.items() if "Default=YES" in line), None)
        if name is None:
            text = f"the cluster has no default: set it to one of {', '.join(known)}"
            return [_row(key, "wrong", text)]
    if name not in known:
        return [_row(key, "wrong", f"'{name}' does not exist: set it to one of {', '.join(known)}")]
    line, nodes = known[name], _nodes(name)
    rows = [_row(f"{key} {name}", "ok", f"{len(nodes)} nodes")]

    def check(what: str, asked: float | None, offered: float, advice: str) -> None:
        if asked is None:
            return
        state = "ok" if asked <= offered else "wrong"
        text = f"{asked:g} asked, {offered:g} offered"
        rows.append(_row(f"{name}: {what}", state, text if state == "ok" else f"{text}: {advice}"))

    state = re.search(r"\bState=(\S+)", line)
    if state and state[1] != "UP":
        rows.append(_row(f"{name}: state", "wrong", f"{state[1]}: ask the site"))
    most = re.search(r"\bMaxTime=(\S+)", line)
    limit = _minutes(most[1]) if most else float("inf")
    longest = system.block_minutes + system.overhead_minutes
    check("minutes", longest, limit, f"set block_minutes to {limit - system.overhead_minutes:g} or less")  # fmt: skip
    fit = [n for n in nodes if system.constraint is None or system.constraint in n["features"]]
    if system.constraint is not None and not fit:
        features = sorted({f for n in nodes for f in n["features"].split(",")})
        text = f"no node has it; features there: {', '.join(features)}"
        rows.append(_row(f"{name}: constraint {system.constraint}", "wrong", text))
        return rows
    check("nodes", min(system.nodes, len(nodes)) if gpus else system.nodes, len(fit), f"set nodes to {len(fit)} or less")  # fmt: skip
    least = {k: min((int(n[k].rstrip("+")) for n in fit), default=0) for k in ("cores", "memory")}
    check("cores_per_node", system.cores_per_node, least["cores"], f"set it to {least['cores']}")
    check("memory_mb_per_node", system.memory_mb_per_node, least["memory"], f"set it to {least['memory']} or less")  # fmt: skip
    if gpus:
        there = min((_gpus(n["gres"], system.gpu_type) for n in fit), default=0)
        kinds = sorted({n["gres"] for n in fit})
        check("gpus_per_node", system.gpus_per_node, there, f"the nodes offer {', '.join(kinds)}")
    down = [n["name"] for n in fit if not re.match(r"idle|alloc|mix|comp|resv", n["state"])]
    if down:
        text = f"{len(down)} of {len(fit)} cannot be used now: {', '.join(down[:8])}"
        rows.append(_row(f"{name}: node states", "note", text))
    return rows


def _account(system: System) -> list[Row]:
    if not accounting():
        text = "no accounting database: account and QOS are not checked; states come from squeue"
        return [_row("accounting", "note", text)]
    user, found = user_name(), associations()
    if found is None:
        text = "sacctmgr does not answer (is slurmdbd down?): account and QOS are not checked"
        return [_row("accounting", "note", text)]
    accounts = sorted(found)
    rows = []
    if system.account is None:
        rows.append(_row("account", "ok", f"your default; yours are: {', '.join(accounts)}"))
    elif system.account.lower() in accounts:
        rows.append(_row(f"account {system.account}", "ok", f"user {user} may use it"))
    else:
        text = f"user {user} has {', '.join(accounts) or 'none'}: set account to one of these"
        rows.append(_row(f"account {system.account}", "wrong", text))
    if system.qos is not None:
        known = sorted({qos for names in found.values() for qos in names})
        state = "ok" if system.qos in known else "wrong"
        rows.append(_row(f"qos {system.qos}", state, f"yours are: {', '.join(known) or 'none'}"))
    return rows


def _mpi(system: System) -> list[Row]:
    for key in ("launcher", "mpi_launcher"):
        LAUNCHERS.get(getattr(system, key), f"system '{system.name}': {key}")
    if system.mpi_launcher != "srun":
        return [
            _row("mpi_launcher", "note", f"{system.mpi_launcher}: starts ranks on one node only")
        ]
    done = subprocess.run(["srun", "--mpi=list"], capture_output=True, text=True)
    known = re.findall(r"^\s*(?:srun: )?\s*([a-z][\w-]*)$", done.stdout + done.stderr, re.MULTILINE)
    state = "ok" if system.mpi_type in known else "wrong"
    return [_row(f"mpi_type {system.mpi_type}", state, f"srun offers: {', '.join(known)}")]


def _srun(system: System, nodes: int, *, gpus: bool = False) -> list[str]:
    command = ["srun", "--quiet", f"--nodes={nodes}", f"--ntasks={nodes}", f"--time={_RUN_S // 60}"]
    command += ["--ntasks-per-node=1", "--kill-on-bad-exit=1", "--input=none"]
    partition = (gpus and system.gpu_partition) or system.partition
    for flag, value in (
        ("partition", partition), ("account", system.account), ("qos", system.qos),
        ("constraint", system.constraint),
    ):  # fmt: skip
        if value is not None:
            command.append(f"--{flag}={value}")
    return command


def _facts(system: System, results: Path, wait_s: float) -> tuple[list[dict[str, Any]], str]:
    """Run the node probe on up to two nodes; return what each says, or why there is nothing."""
    nodes = min(2, system.nodes)
    results.mkdir(parents=True, exist_ok=True)
    token = results / f".doctor-{secrets.token_hex(6)}"
    token.write_text("from the login node")
    order = {
        "token": str(token),
        "results": str(results),
        "interfaces": {k: v.interface for k, v in system.networks.items()},
        "scratch": system.scratch,
        "pythons": {
            name: str(environment_folder(name) / "bin" / "python")
            for name in environment_names()
            if name not in ("driver", "test") and name not in system.environments
        },
    }
    command = [
        *_srun(system, nodes), "--mpi=none", sys.executable, "-m", "transect.measure.node_probe",
        json.dumps(order),
    ]  # fmt: skip
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=wait_s + _RUN_S,
            env=environment,
            cwd="/",
        )
    except subprocess.TimeoutExpired:
        return [], f"a job of {nodes} nodes did not end within {wait_s:g} s: is the queue full?"
    finally:
        token.unlink(missing_ok=True)
    facts = gathered(done.stdout)
    if len(facts) < nodes:
        return facts, (done.stderr.strip() or f"srun ended with {done.returncode}")[:500]
    for node in facts:
        answer = results / node["answer"]
        # Where a node does not see what is here, waiting for what it wrote is in vain.
        node["answer_seen"] = sees(answer, 10 if node["token_seen"] else 0)
        answer.unlink(missing_ok=True)
    return facts, ""


def _on_nodes(system: System, results: Path, wait_s: float) -> list[Row]:
    facts, problem = _facts(system, results, wait_s)
    if problem:
        return [_row("a job on compute nodes", "wrong", problem)]
    rows = [_row("a job on compute nodes", "ok", ", ".join(node["host"] for node in facts))]

    def check(name: str, test: Callable[[dict[str, Any]], bool], advice: str) -> None:
        bad = [node["host"] for node in facts if not test(node)]
        text = f"on {', '.join(bad)}: {advice}" if bad else ""
        rows.append(_row(name, "wrong" if bad else "ok", text))

    check("results folder, seen from there", lambda node: node["token_seen"],
          f"{results} is not shared: give --results a folder that every node sees")  # fmt: skip
    check("results folder, written from there", lambda node: node["answer_seen"],
          f"what a node writes in {results} does not show here")  # fmt: skip
    for name, network in system.networks.items():
        check(f"network {name}", lambda node, n=name: node["interfaces"][n],  # type: ignore[misc]
              f"no interface '{network.interface}' there: see `ip -brief link` on a node")  # fmt: skip
    if system.scratch:
        reasons = {node["scratch"] for node in facts if node["scratch"]}
        text = f"{system.scratch} cannot be written: {'; '.join(sorted(reasons))}"
        check("scratch", lambda node: not node["scratch"], text)
    for name in facts[0]["pythons"]:
        if not (environment_folder(name) / "transect-complete.json").is_file():
            rows.append(_row(f"environment {name}", "note", "not built yet: the first run does"))
            continue
        check(f"environment {name}", lambda node, n=name: node["pythons"][n],  # type: ignore[misc]
              f"{environment_folder(name)} cannot be used there: set TRANSECT_ENVS to a shared "
              "folder")  # fmt: skip
    return rows


def _mpi_on_nodes(system: System, wait_s: float) -> list[Row]:
    """Let ranks on two nodes find each other through the system's MPI type."""
    folder = environment_folder("base")
    nodes = min(2, system.nodes)
    if system.mpi_launcher != "srun" or "base" in system.environments:
        return []
    if not (folder / "transect-complete.json").is_file():
        return [_row("MPI between nodes", "note", "not tried: environment 'base' is not built yet")]
    code = "from mpi4py import MPI; print('size', MPI.COMM_WORLD.size)"
    command = [*_srun(system, nodes), f"--mpi={system.mpi_type}", str(folder / "bin" / "python")]
    try:
        done = subprocess.run(
            [*command, "-c", code], capture_output=True, text=True, timeout=wait_s + _RUN_S, cwd="/"
        )
    except subprocess.TimeoutExpired:
        return [_row("MPI between nodes", "wrong", f"no answer within {wait_s:g} s")]
    if done.stdout.split() == ["size", str(nodes)] * nodes:
        return [_row("MPI between nodes", "ok", f"{nodes} ranks found each other")]
    text = "ranks do not find each other: try another mpi_type, or modules for 'base'. "
    return [_row("MPI between nodes", "wrong", text + done.stderr.strip()[-300:])]


def examine_system(system: System, results: Path, wait_s: float) -> dict[str, list[Row]]:
    """Return sections of rows `name`, `state` (ok, wrong, note), `detail` with what to change.

    Runs two short jobs of up to two nodes; each may wait `wait_s` seconds for its turn.
    """
    title = f"system {system.name}"
    if system.scheduler != "slurm":
        return {title: [_row("scheduler", "note", "none: cells run on this machine")]}
    rows = _programs()
    if rows[0]["state"] == "wrong":
        return {title: rows}
    rows += _account(system) + _partition(system, system.partition, gpus=False)
    if system.gpus_per_node:
        rows += _partition(system, system.gpu_partition or system.partition, gpus=True)
    rows += _mpi(system)
    sections = {title: rows}
    if not any(row["state"] == "wrong" for row in rows):
        nodes = _on_nodes(system, results.resolve(), wait_s)
        if nodes[0]["state"] == "ok":
            nodes += _mpi_on_nodes(system, wait_s)
        sections["compute nodes"] = nodes
    return sections
