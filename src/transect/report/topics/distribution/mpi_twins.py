"""One training under several MPI libraries: what a step takes beside the same with Open MPI."""

from __future__ import annotations

import math

from transect.analysis.contrast import Contrast
from transect.analysis.labels import people_name
from transect.analysis.scaling import TrainGroup
from transect.domain.axes.train import TrainCell
from transect.domain.mpi_libraries import chosen_mpi
from transect.report.engine.context import Context
from transect.report.engine.contrast_words import basis_words, doubt_words
from transect.report.engine.finding import Finding, joined, limited_confidence
from transect.report.engine.text import ends, factor


def _mpi_of(group: TrainGroup) -> str:
    """Return name and version of the library that ran."""
    return str(group.ok[0].provenance.get("mpi") or chosen_mpi(group.cell.options))


def _without_mpi(cell: TrainCell) -> TrainCell:
    return cell.model_copy(update={"options": tuple(option for option in cell.options if option[0] != "mpi")})


def mpi_findings(context: Context, workload: str) -> list[Finding]:
    """Say of each training with another MPI library what a step takes beside the base's, the largest difference first."""
    every = context.contrasts.of("twin.mpi", workload)
    cells = {made.group.cell: _without_mpi(made.group.cell) for made in every}

    def size(made: Contrast) -> tuple[bool, float, str]:
        return made.over_subscribed, -abs(math.log(made.cost.value)), made.group.cell.id

    found = []
    for made in sorted(every, key=size):
        name = people_name(cells[made.group.cell], list(cells.values()), always=("ranks",))
        short = (
            f"{name} takes {factor(made.cost.value)} times ({ends(made.cost, factor)}) as long for a step with "
            f"{_mpi_of(made.group)} as with {_mpi_of(made.base)}{doubt_words(made)}"
        )
        found.append(
            Finding(
                subject=workload,
                claim=f"{short}.",
                short=short,
                evidence=joined(basis_words(made), made.reason),
                confidence=limited_confidence(made.confidence, made.group, made.base),
                kind="mpi",
                contrasts=(made,),
                groups=(made.group, made.base),
            )
        )
    return found
