"""The works that the project comes with: each file is whole, and its claims are measured by cells that some study plans."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from transect.domain.cell import Cell, class_of
from transect.domain.claims import CONDITIONS, Claim, Measured, Work
from transect.domain.errors import Complaints
from transect.domain.metrics import METRICS
from transect.domain.paths import ROOT
from transect.domain.strict_yaml import load_model, load_yaml
from transect.domain.study import Study
from transect.domain.system import Network, System
from transect.planning.context import Context
from transect.planning.expand import expand
from transect.planning.stage import STAGES
from transect.planning.study import read_study
from transect.report.engine.rules import RULES

WORKS = (
    "frameworks-on-slurm",
    "go-mpi",
    "go-resnet",
    "hpc-assessment",
    "hypar-flow",
    "oc-dnn",
    "onnx-thesis",
    "s-caffe",
)
FOLDER, STUDIES = ROOT / "config/claims", ROOT / "config/studies"
# As large as any study wants: what is left out on this machine is planned on another one.
LARGE = System(
    name="large",
    nodes=16,
    cores_per_node=64,
    gpus_per_node=4,
    networks={name: Network(interface="eth0") for name in ("direct", "1gbit", "1gbit-50us")},
)
# Claims of which no shipped study plans both sides, and what they wait for.
UNPLANNED = {
    # A plug-in's memory that fetches when asked.
    ("oc-dnn", "over-naive"),
    # The CPU twin of a training on a GPU that moves its activations.
    ("oc-dnn", "over-cpu"),
}


@cache
def work(name: str) -> Work:
    return load_model(FOLDER / f"{name}.yaml", Work)


def claims() -> Iterator[tuple[str, Claim]]:
    return ((name, claim) for name in WORKS for claim in work(name).claims)


def measured() -> list[Any]:
    found = [
        (name, claim, one, f"{name}-{claim.key}-{n}")
        for name, claim in claims()
        for n, one in enumerate(claim.measured)
    ]
    return [pytest.param(*row, id=label) for *row, label in found]


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stand for the file of tickets that has to be downloaded: planning looks whether it is there."""
    path = tmp_path_factory.mktemp("tickets") / "tickets.csv"
    path.write_text("Document,Topic_group\n")
    return path


@cache
def planned(name: str, table: Path) -> dict[str, list[Cell]]:
    """Return the cells of a study by stage, one for each point."""
    path = STUDIES / f"{name}.yaml"
    study, _ = read_study(path, Complaints())
    expanded = expand(Context(_with_tickets(study, table), path, LARGE))
    return {stage: list({cell.without_repeat() for cell, _ in cells.values()}) for stage, cells in expanded.items()}


def _with_tickets(study: Study, table: Path) -> Study:
    tickets: Any = study.tickets  # type: ignore[attr-defined]
    corpora = {
        name: rule if rule.path is None else rule.model_copy(update={"path": str(table)})
        for name, rule in tickets.corpora.items()
    }
    return study.model_copy(update={"tickets": tickets.model_copy(update={"corpora": corpora})})


def value_of(cell: Cell, axis: str) -> Any:
    """Return a cell's value of an axis, or of a setting of what it runs; None where it has neither."""
    return settings_of(cell).get(axis, cell.get(axis))


def matches(cell: Cell, wanted: dict[str, Any]) -> bool:
    """Whether a cell has what is wanted of each axis: a value, one of several, a pattern, or none of these."""
    return all(_fits(value_of(cell, axis), value) for axis, value in wanted.items())


def _fits(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        return not _fits(value, wanted["not"])
    if isinstance(wanted, list):
        return any(_fits(value, one) for one in wanted)
    if isinstance(wanted, str) and isinstance(value, str):
        return fnmatchcase(value, wanted)
    return bool(value == wanted)


def test_there_are_eight_works() -> None:
    assert sorted(path.stem for path in FOLDER.iterdir()) == sorted(WORKS)
    assert len({work(name).short for name in WORKS}) == len(WORKS)


def test_every_claim_is_compared_or_says_why_not() -> None:
    for name, claim in claims():
        assert bool(claim.measured) != bool(claim.not_comparable), f"{name}: {claim.key}"
        assert claim.why_apart or not claim.measured, f"{name}: {claim.key}"
        assert set(claim.why_apart) <= RULES.keys(), f"{name}: {claim.key}"


def test_eleven_doubts_are_settled_by_experiments() -> None:
    doubts = [claim for _, claim in claims() if claim.doubt]
    assert len(doubts) == 11
    assert all(claim.measured for claim in doubts)


def test_conditions_of_each_claim_say_all_that_pages_list() -> None:
    for name, claim in claims():
        assert tuple(work(name).conditions_of(claim)) == CONDITIONS, f"{name}: {claim.key}"


def test_studies_name_the_works_that_they_measure() -> None:
    measuring = {study: [name for name in WORKS if study in work(name).studies] for study in studies_named()}
    for study, works in measuring.items():
        assert sorted(load_yaml(STUDIES / f"{study}.yaml")["claims"]) == works, study


def studies_named() -> list[str]:
    return sorted({study for name in WORKS for study in work(name).studies})


@pytest.mark.parametrize(("name", "claim", "one"), measured())
def test_what_measures_a_claim_is_there(name: str, claim: Claim, one: Measured, table: Path) -> None:
    assert (STUDIES / f"{one.study}.yaml").is_file()
    if one.replicas:
        return
    assert one.stage in STAGES
    assert one.metric in METRICS
    cells = planned(one.study, table).get(one.stage, [])
    along = {one.along.axis: claim.axis_of(one)} if one.along else {}
    kind = class_of(one.stage)
    settings = {name for cell in cells for name in settings_of(cell)}
    for axis in {*one.cells, *one.over, *along, *(one.equal or ())}:
        known = axis in kind.model_fields or isinstance(getattr(kind, axis, None), property) or axis in settings
        assert known, f"{axis} is no axis of {one.stage}, and no setting that {one.study} gives"
    if (name, claim.key) not in UNPLANNED:
        assert not missing(cells, one, claim)


def settings_of(cell: Cell) -> dict[str, Any]:
    options = cell.get("options")
    return dict(options) if isinstance(options, tuple) else {}


def missing(cells: list[Cell], one: Measured, claim: Claim) -> str:
    """Say what a study does not plan of a comparison: both sides, or two points, that are alike where they have to be."""
    able = [cell for cell in cells if matches(cell, one.cells)]
    if not able:
        return f"no cell of {one.cells}"
    if one.along:
        axis, values = one.along.axis, claim.axis_of(one)
        lines: dict[str, set[Any]] = {}
        for cell in able:
            if (value := value_of(cell, axis)) in values:
                lines.setdefault(shared(cell, one, axis), set()).add(value)
        return "" if any(len(found) > 1 for found in lines.values()) else f"no two of {axis} {values}"
    if one.over:
        others = {shared(cell, one) for cell in cells if matches(cell, one.cells | one.over)}
        return (
            ""
            if others & {shared(cell, one) for cell in able}
            else f"no cell of {one.over} beside those of {one.cells}"
        )
    return ""


def shared(cell: Cell, one: Measured, *varies: str) -> str:
    """Return what both sides of a comparison must have alike."""
    settings = settings_of(cell)
    axes = one.equal
    if axes is None:
        named = {*one.cells, *one.over, *varies}
        # Of `ranks` two axes are the parts.
        named |= {"nodes", "ranks_per_node"} if "ranks" in {*one.over, *varies} else set()
        fields = set(type(cell).model_fields) - ({"options"} if settings else set())
        axes = sorted((fields | settings.keys()) - named)
    return str([(axis, value_of(cell, axis)) for axis in axes])
