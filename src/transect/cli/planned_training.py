"""One call from a workload to a training: costs, plan, a study of one cell, its record."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from transect.cli.study import check_here
from transect.domain.axes.train import ProfileCell, TrainCell
from transect.domain.errors import BadInput
from transect.domain.files import write_atomic
from transect.domain.paths import StudyPaths
from transect.domain.record import Record, Status, read_record
from transect.domain.strict_yaml import load_model
from transect.domain.system import System
from transect.engine.run_chosen import run_chosen
from transect.payloads.forecast_sources import fitted, lasting_rate, message_points
from transect.payloads.profile import PROFILE
from transect.planner.auto import PIPELINE, Asked, Mode, Plan, make_plan
from transect.planner.costs import LayerCosts, counted_costs, measured_costs, scaled, weight_copies, whole_over_layers
from transect.planner.machine import Machine, measured_here
from transect.planner.problem import Infeasible, Link
from transect.planning.parameters import resolve
from transect.planning.plan import make_plan as plan_study
from transect.planning.study import find_system
from transect.training.parts import no_parts
from transect.training.strategies import strategy_options
from transect.training.support import reason_to_skip
from transect.training.workloads import WORKLOADS, Parameters, model_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """What a person asks for. `results`: the folder of a study's results to take costs from, or None.

    `cores`: a node's. `profiles`: ids of the only profiles there that count; None: all. `link`: what a message between nodes takes, where it is given; `system_link`: where the system says so. `batch`: in place of the workload's.
    """

    workload: str
    framework: str
    ranks: int
    nodes: int = 1
    mode: Mode = "auto"
    threads: int = 1
    cores: int = 1
    precision: str = "fp32"
    batch: int | None = None
    memory_bytes: int | None = None
    results: Path | None = None
    profiles: frozenset[str] | None = None
    link: Link | None = None
    system_link: Link | None = None
    solver: str = "highs"

    def parameters(self) -> Parameters:
        """Return the workload's hyper-parameters. Raises BadInput for an unknown workload."""
        WORKLOADS.get(self.workload, "WORKLOAD")
        return resolve(self.workload, {}, Path("command line"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """A plan, or why there is none; where its costs are from, and the study that runs it."""

    found: Plan | Infeasible
    costs: str
    machine: Machine


def _records(results: Path, stage: str) -> Iterator[tuple[Path, Record]]:
    """Yield the records of a stage that ended well."""
    for path in sorted(results.glob(f"{stage}/*/record.json")):
        record = read_record(path)
        if record.status is Status.OK:
            yield path.parent, record


def _profiles(wanted: Wanted, results: Path) -> list[dict[str, Any]]:
    """Read the profiles of what is wanted, one for each batch size. Raises BadInput where there is none.

    Those by as many ranks at once as share a node, else by the fewest: never of both.
    """
    found: dict[int, dict[int, dict[str, Any]]] = {}
    axes = ("workload", "framework", "threads", "precision")
    for folder, record in _records(results, "profile"):
        cell = record.cell
        if (
            isinstance(cell, ProfileCell)
            and cell.device == "cpu"
            and all(getattr(cell, axis) == getattr(wanted, axis) for axis in axes)
            and (wanted.profiles is None or cell.id in wanted.profiles)
        ):
            read = _profile(folder / PROFILE, cell.batch)
            found.setdefault(cell.ranks_per_node, {}).setdefault(cell.batch, read)
    if not found:
        raise BadInput(
            f"--profile {results}: no profile of {', '.join(f'{axis} {getattr(wanted, axis)}' for axis in axes)}: "
            "expected the folder of a study whose `profile` has it"
        )
    beside = min(found, key=lambda ranks: (ranks != wanted.ranks // wanted.nodes, ranks))
    return [found[beside][size] for size in sorted(found[beside])]


def _profile(path: Path, batch: int) -> dict[str, Any]:
    """Read one profile. Raises BadInput for what no costs can be taken from."""
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        measured_costs([found], batch)
        whole_over_layers([found])
    except (OSError, LookupError, TypeError, ValueError) as error:
        raise BadInput(f"{path}: no profile: {type(error).__name__}: {error}") from None
    return found


class _Probed(NamedTuple):
    """What a message takes over a network, None being a system's own choice. `poor`: on no line."""

    nodes: int
    network: str | None
    link: Link
    poor: bool


def _probed(results: Path) -> list[_Probed]:
    """Return what records of MPI's messages say, those of predictions or of network-probe: within a node first."""
    found = []
    for _, record in _records(results, "bench"):
        cell = record.cell
        tells = cell.get("benchmark") == "network-probe" or (
            cell.get("benchmark") == "message-sweep" and ("test", "latency") in cell.get("options")
        )
        if tells and cell.ranks > 1:
            points = message_points(record)
            line = fitted(points)
            link = Link(line.alpha_s, 1 / lasting_rate(line, points))
            found.append(_Probed(cell.nodes, cell.network, link, line.poor))
    return sorted(found, key=lambda probe: probe.nodes)


def _machine(wanted: Wanted) -> Machine:
    """Return what a rank computes and what messages take. Raises BadInput where networks compete."""
    here = measured_here(wanted.threads)
    known = _probed(wanted.results) if wanted.results is not None else []
    inside = next((probe.link for probe in known if probe.nodes == 1), here.inside)
    beyond = [probe for probe in known if probe.nodes > 1]
    networks = sorted({probe.network or "the system's own choice" for probe in beyond})
    if len(networks) > 1 and wanted.nodes > 1 and wanted.link is None:
        raise BadInput(
            f"--profile {wanted.results}: probes of several networks ({', '.join(networks)}): expected one, or --link"
        )
    between = wanted.link or (beyond[0].link if beyond else wanted.system_link)
    sources = [here.source]
    if known:
        sources.append("messages as probed" + ", which lie on no line" * any(probe.poor for probe in known))
    if wanted.nodes > 1 and wanted.link:
        sources.append("between nodes as given")
    elif wanted.nodes > 1 and wanted.system_link and not beyond:
        sources.append("between nodes as the system file says")
    return Machine(rates=here.rates, inside=inside, between=between, source="; ".join(sources))


def answer(wanted: Wanted) -> Answer:
    """Plan a training. Raises BadInput for what cannot be planned at all."""
    parameters = wanted.parameters()
    model = model_of(WORKLOADS.get(wanted.workload))
    if (reason := no_parts(model)) is not None:
        raise BadInput(f"workload {wanted.workload} cannot be planned: {reason}")
    machine = _machine(wanted)
    if wanted.results is None:
        text = "counted operations and bytes"

        def costs_of(batch: int) -> tuple[LayerCosts, ...]:
            return counted_costs(model, parameters, batch, wanted.precision, machine.rates)

    else:
        profiles = _profiles(wanted, wanted.results)
        sizes = ", ".join(str(profile["batch"]) for profile in profiles)
        factor = whole_over_layers(profiles)
        text = f"profiles of micro-batches of {sizes} samples in {wanted.results}"

        def costs_of(batch: int) -> tuple[LayerCosts, ...]:
            return scaled(measured_costs(profiles, batch), factor)

    asked = Asked(
        costs_of=costs_of,
        machine=machine,
        ranks=wanted.ranks,
        nodes=wanted.nodes,
        batch=wanted.batch or parameters.batch,
        mode=wanted.mode,
        memory_bytes=wanted.memory_bytes,
        copies=weight_copies(parameters),
        solver=wanted.solver,
    )
    found = make_plan(asked)
    if isinstance(found, Plan) and (reason := _refused(wanted, parameters, found)) is not None:
        raise BadInput(f"workload {wanted.workload} cannot be trained by {wanted.framework} so: {reason}")
    return Answer(found=found, costs=text, machine=machine)


def _refused(wanted: Wanted, parameters: Parameters, plan: Plan) -> str | None:
    """Return why the plan's cell would be skipped, or None."""
    cell = TrainCell(
        workload=wanted.workload,
        framework=wanted.framework,
        strategy=PIPELINE,
        nodes=wanted.nodes,
        ranks_per_node=wanted.ranks // wanted.nodes,
        threads=wanted.threads,
        precision=wanted.precision,
        batch=wanted.batch or parameters.batch,
        options=strategy_options(PIPELINE, plan.options(), "plan"),
    )
    return reason_to_skip(cell, parameters)


def study_of(wanted: Wanted, plan: Plan, name: str, repeats: int = 1) -> dict[str, Any]:
    """Return a study of the plan's one cell, as its file holds it."""
    grid: dict[str, Any] = {
        "workloads": [wanted.workload],
        "frameworks": [wanted.framework],
        "strategies": [PIPELINE],
        "ranks": [wanted.ranks // wanted.nodes],
        "options": [plan.options()],
    }
    for key, value, default in (
        ("nodes", wanted.nodes, 1),
        ("threads", wanted.threads, 1),
        ("precisions", wanted.precision, "fp32"),
        ("batches", wanted.batch, None),
    ):
        if value != default:
            grid[key] = [value]
    return {"name": name, "train": {"repeats": repeats, "grids": [grid]}}


def profile_study(wanted: Wanted, name: str) -> dict[str, Any]:
    """Return a study that profiles what a plan for these ranks will need: two sizes of micro-batches.

    By as many ranks at once as share a node, or as can compute at once on its cores.
    """
    beside = min(wanted.ranks // wanted.nodes, wanted.cores // wanted.threads)
    batch = wanted.batch or wanted.parameters().batch
    sizes = sorted({max(1, batch // (4 * wanted.ranks)), max(1, batch // wanted.ranks)})
    grid: dict[str, Any] = {
        "workloads": [wanted.workload],
        "frameworks": [wanted.framework],
        "batches": sizes,
        "threads": [wanted.threads],
        "precisions": [wanted.precision],
        "ranks": [max(1, beside)],
    }
    return {"name": name, "profile": {"grids": [grid]}}


def run_study(content: dict[str, Any], system: str, results: Path) -> list[Record]:
    """Write a study into the folder of its results and run it here; return the records of what it asks for."""
    import yaml

    system_file = find_system(system)
    check_here(load_model(system_file, System))
    paths = StudyPaths(results=results.resolve(), study=str(content["name"]))
    paths.folder.mkdir(parents=True, exist_ok=True)
    file = paths.folder / "study.yaml"
    write_atomic(file, yaml.safe_dump(content, sort_keys=False))
    plan = plan_study(file, system_file, paths.results)
    stages = [key for key in content if key != "name"]
    cells = [planned for planned in plan if planned.cell.stage in stages]
    run_chosen(plan, cells, force=False)
    return [read_record(paths.record(*planned.key)) for planned in cells]
