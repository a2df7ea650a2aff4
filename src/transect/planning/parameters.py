"""A workload's hyper-parameters with a study's changes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from transect.domain.errors import BadInput, unknown_name
from transect.domain.paths import PACKAGE
from transect.domain.registry import Registry
from transect.domain.strict_yaml import validate
from transect.planning.code_hash import closure
from transect.planning.python_members import PYTHON_MEMBER, python_member
from transect.training.datasets import DATASETS
from transect.training.losses import LOSSES
from transect.training.optimisers import OPTIMISERS, OWN_OPTIMISER
from transect.training.own_workload import OwnWorkload
from transect.training.workloads import WORKLOADS, Parameters, model_of


def dataset_paths(workload: str) -> tuple[str, ...]:
    """Return the names of the dataset's options that are files or folders."""
    return DATASETS.get(WORKLOADS.get(workload).dataset).paths


def resolve(workload: str, override: dict[str, Any], where: Path) -> Parameters:
    """Return the hyper-parameters of a workload. Raises BadInput naming key and value."""
    # Those that the workload says: what else is usual may follow from the optimiser.
    defaults = WORKLOADS.get(workload, str(where)).defaults.model_dump(exclude_unset=True)
    for key in override:
        if key not in Parameters.model_fields:
            raise unknown_name("key", key, Parameters.model_fields, f"{where}: workloads.{workload}")
    described, optimiser = WORKLOADS.get(workload), str(override.get("optimiser"))
    asks = PYTHON_MEMBER.fullmatch(optimiser) or OPTIMISERS.named(optimiser) == OWN_OPTIMISER
    if asks and not (isinstance(described, OwnWorkload) and "optimiser_file" in described.definition):
        raise BadInput(
            f"{where}: key 'workloads.{workload}.optimiser': an optimiser of your own is FILE.py:NAME, of a workload with a `module`"
        )
    below = f"workloads.{workload}."
    parameters = validate(Parameters, defaults | override, str(where), below)
    if LOSSES.get(parameters.loss).targets == "tokens" and not isinstance(WORKLOADS.get(workload), OwnWorkload):
        raise BadInput(
            f"{where}: key 'workloads.{workload}.loss': {workload} has classes, {parameters.loss} takes tokens"
        )
    if asks and parameters.decay != "all":
        raise BadInput(
            f"{where}: key 'workloads.{workload}.decay': an optimiser of your own has its groups in its function"
        )
    target = parameters.quality_target
    if model_of(WORKLOADS.get(workload)).score.endswith("accuracy") and target > 1:
        raise BadInput(
            f"{where}: key 'workloads.{workload}.quality_target': an accuracy is at most 1, found {target:g}"
        )
    return _with_schedule(workload, _with_paths(workload, parameters, where), where)


def _with_schedule(workload: str, parameters: Parameters, where: Path) -> Parameters:
    """Make the path of a schedule's function absolute."""
    chosen = parameters.schedule
    if "file" not in chosen:
        return parameters
    path, _ = python_member(
        f"{chosen['file']}:{chosen['function']}", f"{where}: key 'workloads.{workload}.schedule'", where
    )
    beside = [own for own in closure(path, where.parent) - {path} if not own.is_relative_to(PACKAGE)]
    if beside:
        raise BadInput(
            f"{where}: key 'workloads.{workload}.schedule': {path} imports {', '.join(sorted(map(str, beside)))}, whose edits "
            "nobody would see: expected a file that imports installed packages alone"
        )
    return parameters.model_copy(update={"schedule": chosen | {"file": str(path)}})


def _with_paths(workload: str, parameters: Parameters, where: Path) -> Parameters:
    """Make paths absolute: those of a study are relative to its file."""
    options = dict(parameters.dataset_options)
    described = WORKLOADS.get(workload)
    own = isinstance(described, OwnWorkload)
    key = f"key 'workloads.{workload}.{'data_options' if own else 'dataset_options'}"
    dataset = DATASETS.get(described.dataset)
    known = options if dataset.option_names is None else dataset.option_names
    for name in options:
        if name not in known:
            what = f"option of dataset {described.dataset}"
            raise unknown_name(what, name, known, f"{where}: {key[5:]}")
    for name in dataset_paths(workload):
        if options.get(name):
            path = (where.parent / Path(str(options[name])).expanduser()).resolve()
            if path.exists():
                options[name] = str(path)
                continue
            # A dataset may have something else to offer, where its options ask for it.
            instead = dataset.without(options, name)
            if instead is None:
                # Those two a study of an own workload says by `data`.
                data = own and name in ("path", "folder")
                named = f"key 'workloads.{workload}.data'" if data else f"{key}.{name}'"
                raise BadInput(f"{where}: {named}: {path}: no such file or folder")
            options = instead
    try:
        # What a user's module takes is known when it has been tried.
        dataset.check(options, () if own else model_of(described).sample)
    except BadInput as error:
        raise BadInput(f"{where}: {key}': {error}") from None
    return parameters.model_copy(update={"dataset_options": options})


def check_read(registry: Registry[Any], changes: Iterable[str], chosen: Iterable[str], where: str) -> None:
    """Raise BadInput for a change of what some optimiser or loss reads, and none of those that were chosen."""
    takes = {name: registry.get(name).takes for name in registry}
    known = {key for keys in takes.values() for key in keys}
    used = sorted(chosen)
    # A plug-in's stage may have optimisers of its own, which may read anything.
    if not set(used) <= set(takes):
        return
    read = {key for name in used for key in takes[name]}
    for key in changes:
        if key in known - read:
            who = " or ".join(used)
            raise unknown_name(f"hyper-parameter of {who}", key, sorted(read), where)
