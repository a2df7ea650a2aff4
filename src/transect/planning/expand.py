"""A study's sections into cells: each once, with those that others need."""

from __future__ import annotations

import traceback
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice

from transect.domain.axes.train import TrainCell, changed_hyperparameters
from transect.domain.cell import Cell, OpenCell, class_of
from transect.domain.errors import FAULTS, BadInput, TransectError, unknown_name
from transect.planning.claims import check_claims
from transect.planning.context import NO_SYSTEM, Context
from transect.planning.parameters import check_read
from transect.planning.stage import STAGES, ordered_stages, running_order
from transect.planning.until import check_repeat_until, more_repeats, note_prerequisites
from transect.training.losses import LOSSES
from transect.training.optimisers import OPTIMISERS

# Every cell by its id, with the cells that it takes something from, by role.
Expanded = dict[str, tuple[Cell, dict[str, Cell]]]


@contextmanager
def hook_of(name: str) -> Iterator[None]:
    """Turn what a stage raises unawares into a BadInput that names it, and the place."""
    try:
        yield
    except TransectError:
        raise
    except FAULTS as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        raise BadInput(f"stage '{name}' raised {type(error).__name__}: {error} ({at.filename}:{at.lineno})") from error


def _check_class(name: str, cells: Iterable[Cell], what: str) -> None:
    """Raise BadInput for what a runner would not read back as the same cell of that stage."""
    known = class_of(name)
    # A stage without axes of its own has plain cells.
    kinds = (Cell, OpenCell) if known is OpenCell else (known,)
    for cell in cells:
        if type(cell) not in kinds or cell.stage != name:
            where = f"transect.stages.{name.replace('-', '_')}.cell"
            raise BadInput(f"{what} {cell!r:.100}: expected {kinds[0].__name__} of stage '{name}', as {where} has it")


def _check_size(context: Context, cells: int) -> None:
    """Raise BadInput where a study has more cells than it says that it may have."""
    most = context.study.max_cells
    if cells > most:
        raise BadInput(
            f"{context.where('max_cells')}: the study asks for {cells:,} cells or more, expected at "
            f"most {most:,}: make its grids or repeats smaller, or write max_cells: {cells}"
        )


def _check_networks(cells: Iterable[Cell], context: Context) -> None:
    """Note networks of cells that the system does not have."""
    known = context.system.networks
    if context.system is NO_SYSTEM:
        return
    for name in sorted({cell.network for cell in cells if cell.network is not None}):
        with context.complaints.noted():
            if name not in known:
                raise unknown_name(f"network of system {context.system.name}", name, known, str(context.file))


def _check_overrides(cells: Iterable[Cell], context: Context) -> None:
    """Note changes of workloads that no cell has, and of what their losses and the optimisers of their cells do not read."""
    optimisers: dict[str, set[str]] = {}
    for cell in cells:
        if cell.workload is not None:
            changed = changed_hyperparameters(cell.hyperparameters) if isinstance(cell, TrainCell) else {}
            named = cell.get("optimiser") or changed.get("optimiser") or ""
            optimisers.setdefault(cell.workload, set()).add(str(named))
    for workload, changes in context.study.workloads.items():
        where = context.where(f"workloads.{workload}")
        with context.complaints.noted():
            if workload in optimisers:
                parameters = context.parameters(workload)
                used = {optimiser or parameters.optimiser for optimiser in optimisers[workload]}
                check_read(OPTIMISERS, changes, used, where)
                check_read(LOSSES, changes, {parameters.loss}, where)
            elif not context.left_out:
                raise unknown_name("workload of this study's grids", workload, optimisers, context.where("workloads"))


def expand(context: Context, broken: Collection[str] = ()) -> dict[str, Expanded]:
    """Return the cells by stage and id, stages in the order in which they run.

    `broken` are keys of the study that cannot be used. Raises BadInput for all unknown names and bad
    values at once, and for a study without cells.
    """
    stages = ordered_stages()
    planned: dict[str, Expanded] = {name: {} for name, _ in stages}
    asked_of: dict[str, set[str]] = {name: set() for name, _ in stages}
    asked_for = 0
    for name, stage in stages:
        if stage.section is not None:
            with hook_of(name):
                asked_for += stage.size(context.section(stage.key))
    _check_size(context, asked_for)
    for workload in context.study.workloads:
        with context.complaints.noted():
            context.parameters(workload)
    # What is wrong with a stage that takes something from these may come from them alone.
    unsound: set[str] = set()
    for name, stage in stages:
        if stage.key in broken or unsound & {*stage.needs, *stage.precedes}:
            unsound.add(name)
        if stage.section is None or stage.key in broken:
            continue
        if name in unsound:
            with context.names_only(), hook_of(name):
                stage.check(context.section(stage.key), context)
            continue
        section, noted = context.section(stage.key), len(context.complaints)
        cells: list[Cell] | None = None
        with context.complaints.noted(), hook_of(name):
            stage.check(section, context)
            if len(context.complaints) == noted:
                # One more than there may be tells that there are too many.
                cells = list(islice(stage.cells(section, context), context.study.max_cells + 1))
        if cells is None:
            unsound.add(name)
            continue
        _check_size(context, len(cells))
        with hook_of(name):
            cells = more_repeats(cells, name, stage, context)
        _check_size(context, len(cells))
        _check_class(name, cells, f"stage '{name}' gives as its cell")
        asked = {cell.id: cell for cell in cells}
        asked_of[name] = set(asked)
        context.cells[name] += asked.values()
        planned[name] = {cell_id: (cell, {}) for cell_id, cell in asked.items()}
    every = [cell for cells in context.cells.values() for cell in cells]
    _check_networks(every, context)
    if not unsound:
        _check_overrides(every, context)
    check_claims(context)
    context.complaints.end()
    if not any(planned.values()):
        if context.left_out:
            raise BadInput(
                f"{context.file}: the study has no cells on system {context.system.name}: {context.left_out} would need a larger one, "
                "and where_it_fits leaves them out"
            )
        keys = ", ".join(stage.key for _, stage in stages if stage.key)
        raise BadInput(f"{context.file}: the study has no cells: give one of its keys {keys} a grid")
    check_repeat_until(context)
    behaviours = dict(stages)
    # From the last stage to the first: what a needed cell needs in turn comes before it.
    for name, stage in reversed(stages):
        for cell_id, (cell, _) in list(planned[name].items()):
            with hook_of(name):
                inputs = dict(stage.inputs(cell, context))
            planned[name][cell_id] = (cell, inputs)
            for role, taken in inputs.items():
                if not isinstance(taken, Cell):
                    raise BadInput(f"stage '{name}' takes as its {role} {taken!r:.100}: no cell")
                stage.taken(role)
                # A cell may go on with another one of its own stage, if a section asks for that too.
                asked_too = taken.stage == name and taken.id in asked_of[name]
                if not asked_too and taken.stage not in behaviours[name].needs:
                    raise BadInput(
                        f"stage '{name}' takes a cell of stage '{taken.stage}', which it does not "
                        f"name among what it needs"
                    )
                if taken.id not in planned[taken.stage]:
                    _check_class(taken.stage, [taken], f"stage '{name}' takes as its {role}")
                    planned[taken.stage][taken.id] = (taken, {})
                    context.cells[taken.stage].append(taken)
                context.note_taker(taken, cell)
    _check_size(context, sum(map(len, planned.values())))
    later_first = {name: [cell for cell, _ in planned[name].values()] for name, _ in stages[::-1]}
    note_prerequisites(later_first, asked_of, context)
    return {name: planned[name] for name in running_order() if planned[name]}


def precedences(expanded: dict[str, Expanded], context: Context) -> dict[Cell, list[Cell]]:
    """Return for each cell those that it waits for though it takes nothing from them."""
    waits: dict[Cell, list[Cell]] = {}
    for name, cells in expanded.items():
        stage = STAGES.get(name)
        for cell, _ in cells.values() if stage.precedes else ():
            with hook_of(name):
                for earlier in stage.before(cell, context):
                    waits.setdefault(earlier, []).append(cell)
    return waits


def reason_to_skip(cell: Cell) -> str | None:
    """Ask every plug-in of the cell and its stage; return the first reason why it cannot run."""
    stage = STAGES.get(cell.stage)
    for registry, name in [*stage.plugins(cell), (STAGES, cell.stage)]:
        reason = registry.get(name).supports(cell)
        if not isinstance(reason, str | None):
            what = f"{registry.kind} '{name}': `supports` gives {reason!r:.100}"
            raise BadInput(f"{what}: expected None, or a sentence that says why the cell cannot run")
        if reason is not None:
            return reason
    return None
