"""What this machine offers, and what is missing for which rows."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from transect.adapters.slurm.scheduler import ask
from transect.cli.output import Json, print_lines, print_table
from transect.launch.launchers.mpiexec import find_mpiexec
from transect.launch.wrapping import WRAPPERS, program_says
from transect.measure.provenance import available_cores, collect, gpus
from transect.planning.environments import environment_folder, environment_names
from transect.planning.stage import ordered_stages

Row = dict[str, str]

# No row of this version compiles anything: listed for plug-ins and their build scripts.
_TOOLCHAINS = ("gcc", "g++", "cmake", "cargo", "node", "go", "nvcc")


def _row(name: str, state: str, detail: str = "") -> Row:
    return {"name": name, "state": state, "detail": detail}


def _machine() -> list[Row]:
    facts = collect()
    memory = facts["memory_bytes"]
    return [
        _row("cores", str(available_cores()), str(facts["cpu_model"])),
        _row("memory", f"{memory / 2**30:.1f} GiB" if memory else "unknown"),
        _row("python", sys.version.split()[0], sys.executable),
        *(
            [_row("gpu", str(gpu["name"]), f"driver {gpu['driver']}") for gpu in gpus()]
            or [_row("gpu", "missing", "cells on cuda, nccl and the CUDA provider are skipped")]
        ),
    ]


def _programs() -> list[Row]:
    mpi, which = find_mpiexec(None), shutil.which("which")
    missing = "Snakemake's Slurm plug-in calls it at every start: install package which"
    rows = [
        _row("mpiexec", "found" if mpi else "not needed", mpi or "environments bring Open MPI's wheel"),
        _row("which", "found" if which else "missing", which or missing),
    ]
    for name in _TOOLCHAINS:
        path = shutil.which(name)
        rows.append(_row(name, "found" if path else "missing", path or ""))
    for name in WRAPPERS:
        says = program_says(name)
        rows.append(_row(f"container {name}", "found" if says else "missing", " ".join(says or ())))
    return [*rows, _slurm()]


def _slurm() -> Row:
    """Tell a cluster that answers from commands that were only installed."""
    sbatch = shutil.which("sbatch")
    if sbatch is None:
        return _row("slurm", "missing", "no Slurm here: use profiles/local")
    version = ask("sbatch", "--version")
    if version is None or ask("scontrol", "ping") is None:
        text = f"its commands are there ({sbatch}), no cluster answers: use profiles/local"
        return _row("slurm", "no cluster", text)
    return _row("slurm", "found", version.strip())


def _environments() -> list[Row]:
    folders = {name: environment_folder(name) for name in environment_names() if name not in ("driver", "test")}
    return [
        _row(name, "built" if (folder / "transect-complete.json").is_file() else "not yet", str(folder))
        for name, folder in folders.items()
    ]


def examine() -> dict[str, list[Row]]:
    """Return sections of rows `name`, `state`, `detail`."""
    offers = [_row(*offer) for _, stage in ordered_stages() for offer in stage.offers()]
    return {"machine": _machine(), "programs": _programs(), "environments": _environments(), "rows": offers}


def doctor(
    system: Annotated[str | None, typer.Option(help="check this system file against Slurm")] = None,
    results: Annotated[Path, typer.Option(help="folder that every node has to see")] = Path("results"),
    wait: Annotated[float, typer.Option(help="seconds that a test job may take to start")] = 120,
    as_json: Json = False,
) -> None:
    """Show what this machine offers, and what is missing for which rows.

    Cores, memory, MPI, frameworks, runtimes, toolchains, GPU, Slurm. With --system: whether Slurm has what the system
    file says, with two short jobs on its nodes, and what to change; exit code 1 when something is wrong. Example:
    transect doctor --system config/systems/mine.yaml
    """
    if system is None:
        facts = examine()
    else:
        from transect.adapters.slurm.doctor import examine_system
        from transect.domain.strict_yaml import load_model
        from transect.domain.system import System
        from transect.planning.study import find_system

        facts = examine_system(load_model(find_system(system), System), results, wait)
    if as_json:
        print(json.dumps(facts, indent=1))
    else:
        for title, rows in facts.items():
            print_table((title, "", ""), [(row["name"], row["state"], row["detail"]) for row in rows])
            print_lines("")
    if any(row["state"] == "wrong" for rows in facts.values() for row in rows):
        raise typer.Exit(1)
