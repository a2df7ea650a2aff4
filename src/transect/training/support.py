"""Why a training cell cannot run: what framework, strategy, model, optimiser and data say."""

from __future__ import annotations

from typing import Any

from transect.domain.axes.train import TrainCell
from transect.domain.mpi_libraries import chosen_mpi, inside_container, linked
from transect.training.datasets import DATASETS
from transect.training.frameworks import FRAMEWORKS, Framework, ProgramFramework
from transect.training.losses import unsupported_loss
from transect.training.memory import DIVIDED_LAYERS, MEMORIES, too_small, whole_models
from transect.training.optimisers import OPTIMISERS, OWN_OPTIMISER, unsupported_optimiser
from transect.training.strategies import STRATEGIES, Strategy
from transect.training.workloads import WORKLOADS, Parameters


def program_settings(strategy: Strategy, cell: TrainCell) -> dict[str, Any]:
    """Return the options that a trainer of another language has to follow: its MPI library is chosen when it is linked."""
    return {name: value for name, value in strategy.settings(cell).items() if name != "mpi"}


def _program_lacks(framework: Framework, strategy: Strategy, cell: TrainCell) -> str | None:
    if not isinstance(framework, ProgramFramework) or framework.program_strategies is None:
        return None
    implemented = framework.program_strategies
    if cell.strategy not in implemented:
        return f"the program of {cell.framework} knows the strategies {', '.join(sorted(implemented))}, not {cell.strategy}"
    more = framework.program_options.get(cell.strategy, {})
    for name, value in program_settings(strategy, cell).items():
        takes = more.get(name, (strategy.options[name].default,))
        if takes is not None and value not in takes:
            return f"the program of {cell.framework} takes {name} {' or '.join(map(str, takes))} of {cell.strategy}, not {value}"
    return None


def _other_mpi(framework: Framework, cell: TrainCell) -> str | None:
    mpi = chosen_mpi(cell.options)
    program = linked(f"the program of {cell.framework}", mpi) if isinstance(framework, ProgramFramework) else None
    return program or inside_container(mpi, cell.container)


# Hyper-parameters that a framework says that it follows, where they are not at their defaults.
SPECIAL = ("decay", "label_smoothing", "clip_norm", "accumulation", "ema")


def _does_not_follow(framework: Framework, cell: TrainCell, parameters: Parameters) -> str | None:
    for name in SPECIAL:
        value = getattr(parameters, name)
        if value != Parameters.model_fields[name].default and name not in framework.follows:
            return f"{cell.framework} does not follow {name}: {value}"
    return None


def updates_whole(strategy: Strategy, cell: TrainCell) -> bool:
    """Whether all ranks' trainers are the framework's own, and hold the weights of the same step."""
    trainers = whole_models(cell.strategy) or cell.strategy in DIVIDED_LAYERS
    return trainers and not strategy.layout(cell).servers


def _accumulates(strategy: Strategy, framework: str) -> bool:
    return strategy.accumulates or framework in strategy.accumulates_in


def _cannot_update(strategy: Strategy, cell: TrainCell, parameters: Parameters) -> str | None:
    if strategy.splits_weights and OPTIMISERS.get(parameters.optimiser).by_array:
        own = parameters.optimiser == OWN_OPTIMISER
        looks = "an optimiser of your own may look" if own else f"the optimiser {parameters.optimiser} looks"
        return f"{looks} at each weight as a whole, and a rank of {cell.strategy} holds a part"
    if strategy.splits_update and parameters.clip_norm is not None:
        return (
            f"clip_norm needs the norm of all gradients, and {cell.strategy} updates parts of the model by themselves"
        )
    if parameters.ema is not None and not updates_whole(strategy, cell):
        return f"ema averages the weights of each step, and {cell.strategy} updates parts of the model by themselves, or late"
    parts = parameters.accumulation
    if parts > 1 and not _accumulates(strategy, cell.framework):
        able = ", ".join(name for name in STRATEGIES if _accumulates(STRATEGIES.get(name), cell.framework))
        return f"{cell.framework} takes a rank's batch at once under {cell.strategy}: accumulation is for {able}"
    samples = cell.batch // strategy.layout(cell).replicas
    if parts > max(1, samples):
        return f"a rank's {samples} samples cannot be taken in {parts} micro-batches"
    return None


def reason_to_skip(cell: TrainCell, parameters: Parameters) -> str | None:
    """Return the first reason why the training cell cannot run, or None.

    Raises BadInput for a plug-in that is not known.
    """
    framework, strategy = FRAMEWORKS.get(cell.framework), STRATEGIES.get(cell.strategy)
    workload = WORKLOADS.get(cell.workload)
    reason = (
        framework.supports(cell)
        or _other_mpi(framework, cell)
        or _program_lacks(framework, strategy, cell)
        or strategy.supports(cell)
        or framework.builds(workload.model)
        or strategy.follows(parameters)
        or unsupported_optimiser(cell.framework, framework.optimisers, parameters.optimiser)
        or unsupported_loss(cell.framework, framework.losses, parameters.loss)
        or _does_not_follow(framework, cell, parameters)
        or _cannot_update(strategy, cell, parameters)
    )
    if reason is not None:
        return reason
    return MEMORIES.get(cell.memory).supports(cell) or cannot_be_cut(cell)


def cannot_be_cut(cell: TrainCell) -> str | None:
    """Return why data, batch or budget do not fit the ranks of a cell, or None."""
    layout, dataset = STRATEGIES.get(cell.strategy).layout(cell), WORKLOADS.get(cell.workload).dataset
    if cell.input == "files" and not DATASETS.get(dataset).files:
        return f"the samples of {dataset} are not files that could be decoded in each step"
    return layout.complaint(cell.batch) or too_small(cell, cell.batch // layout.replicas)
