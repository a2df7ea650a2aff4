"""`transect plan` and `transect train`: one call for data, model and hybrid parallelism."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transect.cli.output import Json, print_lines, print_table
from transect.domain.errors import BadInput

if TYPE_CHECKING:
    from transect.cli.planned_training import Answer, Wanted
    from transect.domain.record import Record
    from transect.planner.auto import Plan
    from transect.planner.problem import Link

Workload = Annotated[str, typer.Argument(help="a workload's name")]
Framework = Annotated[str, typer.Option(help="who computes gradients")]
Ranks = Annotated[int, typer.Option(help="ranks, of all nodes together")]
Nodes = Annotated[int, typer.Option(help="nodes that they stand on, as many on each")]
Kind = Annotated[str, typer.Option("--plan", help="auto, data, model or hybrid")]
Batch = Annotated[int | None, typer.Option(help="global batch [default: the workload's]")]
Memory = Annotated[str | None, typer.Option(help="what a rank's training may hold, e.g. 512MiB [default: no limit]")]
SystemName = Annotated[str, typer.Option(help="a system's name or file")]
Threads = Annotated[int, typer.Option(help="threads per rank")]
Precision = Annotated[str, typer.Option(help="fp32, fp64, …")]
Profiled = Annotated[
    Path | None, typer.Option(help="results/STUDY with `profile` cells, and network-probe for several nodes")
]
LinkText = Annotated[
    str | None, typer.Option("--link", help="SECONDS,BYTES_PER_SECOND of a message between nodes, e.g. 5e-5,125e6")
]
Solver = Annotated[str, typer.Option(help="highs or cbc")]


def _size(text: str | None) -> int | None:
    from pydantic import ByteSize, TypeAdapter

    if text is None:
        return None
    try:
        # Of `1,5GiB` pydantic reads the 1 and leaves the rest.
        whole = re.fullmatch(r"\s*\d*\.?\d+\s*\w*\s*", text)
        size = int(TypeAdapter(ByteSize).validate_python(text)) if whole else 0
    except ValueError:
        size = 0
    if size < 1:
        raise BadInput(f"--memory {text!r}: expected a number of bytes, KiB, MiB or GiB")
    return size


def _link(text: str | None) -> Link | None:
    from transect.planner.problem import Link

    if text is None:
        return None
    try:
        alpha, rate = map(float, text.split(","))
        if not (0 <= alpha < float("inf") and 0 < rate < float("inf")):
            raise ValueError
    except ValueError:
        raise BadInput(f"--link {text!r}: expected SECONDS,BYTES_PER_SECOND such as 5e-5,125e6") from None
    return Link(alpha, 1 / rate)


def _system(name: str, nodes: int) -> dict[str, Any]:
    """Return what the system file says of a node's cores, and of a message between nodes."""
    from transect.domain.strict_yaml import load_model
    from transect.domain.system import System
    from transect.measure.provenance import available_cores
    from transect.planner.problem import Link
    from transect.planning.study import find_system

    found = load_model(find_system(name), System)
    if nodes > found.nodes:
        raise BadInput(f"--nodes {nodes}: system '{found.name}' has {found.nodes}")
    facts: dict[str, Any] = {"cores": found.cores_per_node or available_cores()}
    network = found.networks.get(found.network or "")
    if network is not None and network.latency_s is not None and network.bytes_per_s is not None:
        facts["system_link"] = Link(network.latency_s, 1 / network.bytes_per_s)
    return facts


def _wanted(system: str, **given: Any) -> Wanted:
    from transect.cli.planned_training import Wanted
    from transect.domain.precisions import named_precision
    from transect.launch.hosts import MOST_RANKS
    from transect.planner.auto import MODES
    from transect.planner.partition import SOLVERS
    from transect.training.frameworks import FRAMEWORKS

    given |= {"framework": FRAMEWORKS.named(given["framework"]), "precision": named_precision(given["precision"])}
    FRAMEWORKS.get(given["framework"], "--framework")
    for option, value, known in (("--plan", given["mode"], MODES), ("--solver", given["solver"], SOLVERS)):
        if value not in known:
            raise BadInput(f"{option} {value!r}: expected {', '.join(known)}")
    for option in ("ranks", "nodes", "threads"):
        if not 1 <= given[option] <= MOST_RANKS:
            raise BadInput(f"--{option} {given[option]}: expected 1 to {MOST_RANKS}")
    if given["ranks"] % given["nodes"]:
        raise BadInput(f"--ranks {given['ranks']}: expected as many on each of {given['nodes']} nodes")
    if given["batch"] is not None and given["batch"] < 1:
        raise BadInput(f"--batch {given['batch']}: expected 1 or more")
    return Wanted(**given, **_system(system, given["nodes"]))


def _say(planned: Answer, found: Plan, wanted: Wanted) -> None:
    """Print a plan, and why it is this one."""
    from transect.planner.partition import mebibytes

    print_lines(
        f"{found.kind}: {found.replicas} x {found.stages} (replicas x stages), "
        f"{found.micro_batches} micro-batches; predicted step {found.predicted_step_s:.4g} s",
        f"costs: {planned.costs}; machine: {planned.machine.source}",
    )
    stages = [
        (str(stage), f"{first} to {last - 1}", mebibytes(size))
        for stage, ((first, last), size) in enumerate(zip(found.layers, found.memory_bytes, strict=True))
    ]
    print_table(("stage", "layers", "memory of a rank"), stages)
    print_lines(*(f"- {reason}" for reason in found.why))
    threads = wanted.ranks // wanted.nodes * wanted.threads
    if threads > wanted.cores:  # a plan gives each rank its own
        print_lines(f"- {threads} threads on a node's {wanted.cores} cores: a step takes longer than predicted")


def _found(planned: Answer) -> Plan:
    """Return the plan. Raises BadInput with the constraint that leaves none."""
    from transect.planner.problem import Infeasible

    if isinstance(planned.found, Infeasible):
        raise BadInput(f"no plan: {planned.found.reason}")
    return planned.found


def _name(wanted: Wanted) -> str:
    return f"planned-{wanted.workload}-{wanted.framework}-{wanted.nodes}x{wanted.ranks // wanted.nodes}"


def plan(
    workload: Workload,
    framework: Framework = "torch",
    ranks: Ranks = 2,
    nodes: Nodes = 1,
    kind: Kind = "auto",
    memory: Memory = None,
    batch: Batch = None,
    threads: Threads = 1,
    precision: Precision = "fp32",
    profile: Profiled = None,
    link: LinkText = None,
    solver: Solver = "highs",
    system: SystemName = "laptop",
    as_json: Json = False,
) -> None:
    """Say how to divide a training among ranks: stages, replicas, micro-batches, memory, predicted step, and why.

    Costs are counted from the model's definition and a moment's measurement of this machine, or measured by the
    `profile` cells of a study. Ends with that study's YAML. Exit code 2 when nothing fits, naming the constraint.
    Example: transect plan digits-cnn --framework torch --ranks 4 --plan hybrid
    """
    import yaml

    from transect.cli.planned_training import answer, study_of

    wanted = _wanted(
        system,
        workload=workload,
        framework=framework,
        ranks=ranks,
        nodes=nodes,
        mode=kind,
        batch=batch,
        memory_bytes=_size(memory),
        threads=threads,
        precision=precision,
        results=profile,
        link=_link(link),
        solver=solver,
    )
    planned = answer(wanted)
    found = _found(planned)
    study = study_of(wanted, found, _name(wanted))
    if as_json:
        facts = found.json() | {"costs": planned.costs, "machine": planned.machine.source, "study": study}
        print(json.dumps(facts, indent=1))
        return
    _say(planned, found, wanted)
    print_lines("", *yaml.safe_dump(study, sort_keys=False).rstrip().split("\n"))


def train(
    workload: Annotated[str, typer.Argument(help="a workload's name, or FILE.py:NAME of a module of torch")],
    framework: Framework = "torch",
    ranks: Ranks = 2,
    nodes: Nodes = 1,
    kind: Kind = "auto",
    memory: Memory = None,
    batch: Batch = None,
    threads: Threads = 1,
    precision: Precision = "fp32",
    profile: Profiled = None,
    link: LinkText = None,
    solver: Solver = "highs",
    measure: Annotated[bool, typer.Option(help="profile the layers first, and plan with what was measured")] = False,
    system: SystemName = "laptop",
    results: Annotated[Path, typer.Option(help="folder of all results")] = Path("results"),
    repeats: Annotated[
        int | None, typer.Option(help="runs, each with its own weights and order [default: 1, of a module 5]")
    ] = None,
    data: Annotated[str | None, typer.Option(help="a module's: FILE.npz, or FILE.py:NAME of a function")] = None,
    target: Annotated[float | None, typer.Option(help="a module's: the score at which training is done")] = None,
    as_json: Json = False,
) -> None:
    """Plan a training as `transect plan` does, and run it: the one call. Exit code 1 unless it ended well.

    The plan becomes a study in its results' folder, which runs as any other: with data, reference and check. A module
    is trained alone and data parallel, exported and served, and its report made.
    Example: transect train digits-cnn --framework torch --ranks 4 --plan auto
    Example: transect train my_model.py:Net --data my.npz --target 0.9 --ranks 2
    """
    from transect.cli.own_training import names_a_module, study_of_module
    from transect.cli.planned_training import answer, profile_study, run_study, study_of
    from transect.domain.paths import PYTHONPATH
    from transect.domain.record import Status
    from transect.training.frameworks import FRAMEWORKS

    if repeats is not None and repeats < 1:
        raise BadInput(f"--repeats {repeats}: expected 1 or more")
    os.environ["PYTHONPATH"] = PYTHONPATH
    if names_a_module(workload):
        _of_workloads_only(
            framework=FRAMEWORKS.named(framework) != "torch",
            nodes=nodes != 1,
            plan=kind != "auto",
            memory=memory is not None,
            threads=threads != 1,
            precision=precision != "fp32",
            profile=profile is not None,
            link=link is not None,
            solver=solver != "highs",
            measure=measure,
        )
        study = study_of_module(workload, data, target, ranks=ranks, batch=batch, repeats=repeats)
        records = run_study(study, system, results)
        report = results / study["name"] / "report.html"
        if not as_json:
            print_lines(f"report: {report}")
        _say_ended(records, {"report": str(report)} if as_json else None)
        return
    if data is not None or target is not None:
        raise BadInput(f"--data and --target are of a module: expected FILE.py:NAME, got {workload!r}")
    if measure and profile is not None:
        raise BadInput("--measure and --profile: expected one of them")
    given: dict[str, Any] = {
        "workload": workload,
        "framework": framework,
        "ranks": ranks,
        "nodes": nodes,
        "mode": kind,
        "batch": batch,
        "memory_bytes": _size(memory),
        "threads": threads,
        "precision": precision,
        "results": profile,
        "link": _link(link),
        "solver": solver,
    }
    wanted = _wanted(system, **given)
    if measure:
        name = f"{_name(wanted)}-profile"
        profiles = run_study(profile_study(wanted, name), system, results)
        for record in profiles:
            if record.status is not Status.OK:
                raise BadInput(f"{record.cell_id}: {record.status.value}, {record.message}")
        only = frozenset(record.cell_id for record in profiles)
        wanted = _wanted(system, **given | {"results": results / name, "profiles": only})
    planned = answer(wanted)
    found = _found(planned)
    if not as_json:
        _say(planned, found, wanted)
    records = run_study(study_of(wanted, found, _name(wanted), repeats or 1), system, results)
    _say_ended(records, {"plan": found.json()} if as_json else None)


def _of_workloads_only(**given: bool) -> None:
    """Raise BadInput naming the options that were given, of those that a module's training would not follow."""
    if found := [f"--{name}" for name, asked in given.items() if asked]:
        raise BadInput(
            f"{', '.join(found)}: not of a module: without, the call leaves a study among its results, to be changed"
        )


def _say_ended(records: list[Record], facts: dict[str, Any] | None) -> None:
    """Print how each cell ended, as JSON beside `facts` where there are any; exit code 1 unless all ended well."""
    from transect.domain.record import Status

    if facts is not None:
        ended = [
            {
                "cell": record.cell_id,
                "status": record.status.value,
                "message": record.message,
                "metrics": {m.name: m.value for m in record.metrics if not m.label},
            }
            for record in records
        ]
        print(json.dumps(facts | {"records": ended}, indent=1))
    else:
        for record in records:
            step = record.value("step_time")
            text = record.message if step is None else f"step {step:.4g} s"
            print_lines(f"{record.cell_id}: {record.status.value}" + (f", {text}" if text else ""))
    if any(record.status is not Status.OK for record in records):
        raise typer.Exit(1)
