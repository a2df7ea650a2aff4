"""What compute nodes say of a system file: two short jobs try all that its cells will need there."""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

from transect.domain.errors import TransectError
from transect.domain.paths import PYTHONPATH
from transect.domain.system import EnvironmentChoice, System
from transect.launch.images import complaint
from transect.launch.wrapping import USUAL, modules, wrapped
from transect.measure.node_probe import LOADS, gathered, sees
from transect.planning.environments import environment_folder, environment_names, environment_source

Row = dict[str, str]
Program = dict[str, Any]

# The time limit of a job here.
_RUN_S = 300
# What workers import of an environment's packages, by the names that these have in lock files.
_IMPORTED = ("numpy", "pydantic", "psutil", "mpi4py", "torch", "tensorflow", "onnx", "onnxruntime")


def row(name: str, state: str, detail: str = "") -> Row:
    """Return what the doctor says of one thing: `state` is ok, wrong or note."""
    return {"name": name, "state": state, "detail": detail}


def _ran(system: System, command: list[str], variables: dict[str, str], wait_s: float) -> CompletedProcess[str]:
    """Run a command on each of up to two nodes, beginning with further options of srun."""
    nodes = min(2, system.nodes)
    start = ["srun", "--quiet", f"--nodes={nodes}", f"--ntasks={nodes}", f"--time={_RUN_S // 60}"]
    start += ["--ntasks-per-node=1", "--kill-on-bad-exit=1", "--input=none"]
    asked = system.model_dump(include={"partition", "account", "qos", "constraint"}, exclude_none=True)
    return subprocess.run(
        [*start, *(f"--{flag}={value}" for flag, value in asked.items()), *command],
        capture_output=True,
        text=True,
        timeout=wait_s + _RUN_S,
        env=os.environ | variables,
        cwd="/",
    )


def _program(system: System, choice: EnvironmentChoice | None, *command: str) -> Program:
    """Return `argv` and `variables` of a command as a cell starts it. Raises TransectError."""
    argv, variables = modules([*system.modules, *(choice.modules if choice else ())])
    if choice is not None and choice.image:
        if reason := complaint(choice.image):
            raise TransectError(reason)
        inside, wrapper_variables = wrapped(choice.image, wrapper=choice.wrapper or USUAL)
        argv, variables = [*argv, *inside], wrapper_variables | variables
    return {"argv": [*argv, *command], "variables": variables}


def _imports(name: str) -> str:
    listed = (environment_source(name) / "requirements.txt").read_text(encoding="utf-8")
    wanted = [module for module in _IMPORTED if re.search(rf"^{module}\b(?!-)", listed, re.MULTILINE)]
    return f"import {', '.join(wanted)}" if wanted else ""


def _environment(system: System, name: str) -> Program:
    choice = system.environments.get(name)
    if choice is not None:
        return _program(system, choice, choice.python, "-c", _imports(name))
    return _program(system, None, str(environment_folder(name) / "bin" / "python"), "-c", LOADS)


def _made(system: System, name: str) -> bool:
    built = environment_folder(name) / "transect-complete.json"
    return name in system.environments or built.is_file()


def _programs(system: System) -> tuple[dict[str, Program], list[Row]]:
    """Return what is to be started on the nodes, by the name of its row, and what cannot be."""
    wanted: dict[str, Callable[[], Program]] = {}
    if system.modules:
        wanted["modules"] = partial(_program, system, None, "true")
    for name in environment_names():
        if name not in ("driver", "test") and _made(system, name):
            wanted[f"environment {name}"] = partial(_environment, system, name)
    for name, choice in system.benchmarks.items():
        wanted[f"benchmark {name}"] = partial(_program, system, choice, "true")
    found, rows = {}, []
    for name, make in wanted.items():
        try:
            found[name] = make()
        except TransectError as error:
            rows.append(row(name, "wrong", str(error)))
    return found, rows


def _facts(
    system: System, programs: dict[str, Program], results: Path, wait_s: float
) -> tuple[list[dict[str, Any]], str]:
    nodes = min(2, system.nodes)
    results.mkdir(parents=True, exist_ok=True)
    token = results / f".doctor-{secrets.token_hex(6)}"
    token.write_text("from the login node")
    order = {
        "token": str(token),
        "results": str(results),
        "interfaces": {k: v.interface for k, v in system.networks.items()},
        "scratch": system.scratch,
        "programs": programs,
    }
    probe = ["--mpi=none", sys.executable, "-m", "transect.measure.node_probe", json.dumps(order)]
    try:
        done = _ran(system, probe, {"PYTHONPATH": PYTHONPATH}, wait_s)
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
    programs, unable = _programs(system)
    facts, problem = _facts(system, programs, results, wait_s)
    if problem:
        return [row("a job on compute nodes", "wrong", problem), *unable]
    rows = [row("a job on compute nodes", "ok", ", ".join(node["host"] for node in facts))]

    def check(name: str, sound: Iterable[bool], advice: str) -> None:
        bad = [node["host"] for node, good in zip(facts, sound, strict=True) if not good]
        rows.append(row(name, "wrong" if bad else "ok", f"on {', '.join(bad)}: {advice}" if bad else ""))

    text = f"{results} is not shared: give --results a folder that every node sees"
    check("results folder, seen from there", (node["token_seen"] for node in facts), text)
    check("results folder, written from there", (node["answer_seen"] for node in facts), text)
    for name, network in system.networks.items():
        text = f"no interface '{network.interface}' there: see `ip -brief link` on a node"
        check(f"network {name}", (node["interfaces"][name] for node in facts), text)
    if system.scratch:
        reasons = sorted({node["scratch"] for node in facts} - {""})
        text = f"{system.scratch} cannot be written: {'; '.join(reasons)}"
        check("scratch", (not node["scratch"] for node in facts), text)
    for name in programs:
        faults = [node["programs"][name] for node in facts]
        text = f"{next(filter(None, faults), '')}: {_advice(system, name)}"
        check(name, (not fault for fault in faults), text)
    absent = [name for name in environment_names() if not _made(system, name)]
    for name in sorted({*absent} - {"driver", "test"}):
        rows.append(row(f"environment {name}", "note", "not built yet: the first run does"))
    for name in sorted({*system.environments} - {*environment_names()}):
        text = "not tried: there is no such folder in envs/; a study's plug-ins may bring it"
        rows.append(row(f"environment {name}", "note", text))
    return [*rows, *unable]


def _advice(system: System, row: str) -> str:
    kind, _, name = row.partition(" ")
    if kind == "modules" or (kind == "environment" and name not in system.environments and system.modules):
        return "see `module avail` on a node, and set modules"
    if kind == "environment" and name not in system.environments:
        return f"{environment_folder(name)} cannot be used there: set TRANSECT_ENVS to a shared folder"
    return f"set {kind}s.{name} to modules that are there, or to an image that runs there"


def _mpi_on_nodes(system: System, wait_s: float) -> list[Row]:
    name, nodes = "MPI between nodes", min(2, system.nodes)
    if system.mpi_launcher != "srun":
        return []
    if not _made(system, "base"):
        return [row(name, "note", "not tried: environment 'base' is not built yet")]
    choice = system.environments.get("base")
    python = choice.python if choice else str(environment_folder("base") / "bin" / "python")
    code = "from mpi4py import MPI; print('size', MPI.COMM_WORLD.size)"
    try:
        program = _program(system, choice, python, "-c", code)
        done = _ran(system, [f"--mpi={system.mpi_type}", *program["argv"]], program["variables"], wait_s)
    except TransectError:
        return []  # reported with the environment
    except subprocess.TimeoutExpired:
        return [row(name, "wrong", f"no answer within {wait_s:g} s")]
    if done.stdout.split() == ["size", str(nodes)] * nodes:
        return [row(name, "ok", f"{nodes} ranks found each other")]
    text = "ranks do not find each other: try another mpi_type, or modules for 'base'. "
    return [row(name, "wrong", text + done.stderr.strip()[-300:])]


def examine_nodes(system: System, results: Path, wait_s: float, *, mpi: bool) -> list[Row]:
    """Return rows of what up to two nodes say; `mpi`: also whether ranks find each other there."""
    rows = _on_nodes(system, results, wait_s)
    if mpi and rows[0]["state"] == "ok":
        rows += _mpi_on_nodes(system, wait_s)
    return rows
