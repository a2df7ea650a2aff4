"""Hyper-parameters as an axis of trainings: what a grid may change, and the cells that it makes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import product
from typing import Any

from transect.domain.axes.train import Hyperparameters, hyperparameters_of
from transect.domain.errors import BadInput, unknown_name
from transect.planning.context import Context
from transect.planning.parameters import check_read
from transect.training.optimisers import OPTIMISERS
from transect.training.schedules import unusual_options
from transect.training.script_workload import ScriptWorkload
from transect.training.workloads import WORKLOADS, Parameters

# Hyper-parameters of a step's rule and of how long it trains: all else is the workload's, or an axis of its own.
_NOT_CHANGED = {"batch", "loss", "label_smoothing", "delta", "quality_target", "reference_steps", "test_fraction"}
CHANGEABLE = sorted(set(Parameters.model_fields) - _NOT_CHANGED - {"dataset_options"})


def check_changes(workloads: Sequence[str], choices: Sequence[dict[str, Any]], key: str, context: Context) -> None:
    """Note what is wrong with the hyper-parameters that stand under `key` of a study, for each of its workloads."""
    where = context.where(key)
    for workload, given in product(workloads, choices):
        if not given or workload not in WORKLOADS:
            continue
        with context.complaints.noted():
            if isinstance(WORKLOADS.get(workload), ScriptWorkload):
                raise BadInput(f"{where}: {workload} is a script, whose hyper-parameters are its own")
            for name in given:
                if name not in CHANGEABLE:
                    raise unknown_name("hyper-parameter that an axis may have", name, CHANGEABLE, where)
            try:
                optimiser = context.parameters(workload, hyperparameters_of(given)).optimiser
            except BadInput as error:
                # It names the place of the workload's own.
                raise BadInput(str(error).replace(f"workloads.{workload}.", f"{key}.")) from None
            check_read(OPTIMISERS, given, {optimiser}, where)


def changes_of(workload: str, given: dict[str, Any], context: Context) -> Hyperparameters:
    """Return the hyper-parameters of a grid that are not the workload's own: such a cell is the one without them.

    However they are written, 1 or 1.0, a schedule's name alone or with what it is anyway: one training is one cell.
    """
    if not given:
        return ()
    changed = context.values(workload, hyperparameters_of(given))
    told = {key: _told(key, given, changed) for key in given}
    # Without which nothing changes; 1e-8 is the workload's own epsilon, and not what lamb takes.
    for key in sorted(given):
        rest = {other: value for other, value in told.items() if other != key}
        # What is left may contradict the workload's own.
        with suppress(BadInput):
            told = rest if context.values(workload, hyperparameters_of(rest)) == changed else told
    return hyperparameters_of(told)


def _told(key: str, given: dict[str, Any], changed: dict[str, Any]) -> Any:
    chosen = changed[key]
    if key != "schedule":
        return chosen
    # The path of a function is absolute by now, and belongs in no cell.
    return given[key] if "file" in chosen else unusual_options(chosen)
