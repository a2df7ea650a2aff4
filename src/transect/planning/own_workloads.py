"""What a study says of a workload of its own: which module, which data, which hyper-parameters."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from transect.domain.errors import BadInput, Complaints, unknown_name
from transect.domain.paths import PACKAGE
from transect.domain.strict_yaml import validate
from transect.planning.code_hash import closure
from transect.planning.python_members import PYTHON_MEMBER, python_member
from transect.training.datasets.table import SAVED
from transect.training.losses import LOSSES
from transect.training.optimisers import OPTIMISERS, OWN_OPTIMISER
from transect.training.own_workload import register_own
from transect.training.workloads import Parameters

# A longer text names no file.
_LONGEST_NAME = 256


class Definition(BaseModel):
    """What `workloads.NAME` of a study says of a module of the user's, besides hyper-parameters."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    module: str = Field(description="`FILE.py:NAME`, relative to the study: a class or function that gives the module")
    module_options: dict[str, Any] = Field(default={}, description="arguments that the class or function is given")
    data: str = Field(
        description="`FILE.npz` with arrays x and y; `FILE.csv`, `FILE.parquet` or a folder that `datasets` saved; a folder of images, `FOLDER/CLASS/FILE` or as a published set unpacks; `FILE.py:NAME`, a function that gives a dataset"
    )
    data_options: dict[str, Any] = Field(
        default={},
        description="of tables `target` and `features`, of images `size` and what their `dataset_options` have, of a function its arguments",
    )
    loss_function: str | None = Field(
        default=None,
        description="`FILE.py:NAME` of a function of outputs and targets that gives the mean loss; it is computed in place of `loss`, "
        "which still says what targets are and how outputs are scored",
    )
    environment: str = Field(
        default="torch", description="a folder of `envs/`, or of a plug-in folder's, with what the files import"
    )


def is_own(keys: dict[str, Any]) -> bool:
    """Whether a study's `workloads.NAME` describes a workload, and does not change a known one's parameters."""
    return bool({"module", "data"} & keys.keys())


def define(name: str, keys: dict[str, Any], study: Path) -> dict[str, Any]:
    """Make a study's own workload known; return its hyper-parameters.

    Raises BadInput naming file and key.
    """
    where = f"workloads.{name}."
    given = {key: value for key, value in keys.items() if key in Definition.model_fields}
    parameters = {key: value for key, value in keys.items() if key not in given}
    if "target" in parameters:
        parameters["quality_target"] = parameters.pop("target")
    complaints, place = Complaints(), f"{study}: key '{where}"
    with complaints.noted():
        definition = validate(Definition, given, str(study), where)
        with complaints.noted():
            file, member = python_member(definition.module, f"{place}module'", study)
        with complaints.noted():
            loss = (
                python_member(definition.loss_function, f"{place}loss_function'", study)
                if definition.loss_function
                else None
            )
        with complaints.noted():
            maker = None
            if PYTHON_MEMBER.fullmatch(str(parameters.get("optimiser"))):
                maker = python_member(parameters["optimiser"], f"{place}optimiser'", study)
                parameters["optimiser"] = OWN_OPTIMISER
            elif OPTIMISERS.named(str(parameters.get("optimiser"))) == OWN_OPTIMISER:
                raise BadInput(f"{place}optimiser': expected FILE.py:NAME of the function")
        with complaints.noted():
            dataset, options = _data(definition, f"{place}data'", study)
    with complaints.noted():
        if "quality_target" not in parameters:
            raise BadInput(f"{place}target': expected the score of the test set at which training is done, such as 0.9")
    for key in parameters.keys() - Parameters.model_fields.keys() | parameters.keys() & {"dataset_options"}:
        known = {*Definition.model_fields, "target", *Parameters.model_fields} - {"dataset_options", "quality_target"}
        with complaints.noted():
            raise unknown_name("key", key, known, f"{study}: workloads.{name}")
    if complaints:
        # Grids that name it are read on, and complain of what is theirs.
        register_own(name, {"file": str(study), "name": name, "options": {}, "dataset": "arrays"})
    complaints.end()
    told: dict[str, Any] = {"file": str(file), "name": member, "options": definition.module_options, "dataset": dataset}
    told["environment"] = definition.environment
    told["loss"] = LOSSES.named(str(parameters.get("loss", Parameters.model_fields["loss"].default)))
    if loss is not None:
        told["loss_file"], told["loss_name"] = str(loss[0]), loss[1]
    if maker is not None:
        told["optimiser_file"], told["optimiser_name"] = str(maker[0]), maker[1]
    if dataset == "python":
        told["data_file"] = options["path"]
    files = {Path(told[key]) for key in ("file", "loss_file", "optimiser_file", "data_file") if key in told}
    told["reads"] = read_by(files, study.parent)
    register_own(name, told)
    return parameters | {"dataset_options": options}


def _data(definition: Definition, where: str, study: Path) -> tuple[str, dict[str, Any]]:
    """Return the dataset's name and options."""
    given, options = definition.data, definition.data_options
    if PYTHON_MEMBER.fullmatch(given):
        file, member = python_member(given, where, study)
        return "python", {"path": str(file), "name": member, "arguments": options}
    path = (study.parent / Path(given).expanduser()).resolve()
    if taken := options.keys() & {"path", "folder"}:
        raise BadInput(f"{where[:-1]}_options': has {', '.join(sorted(taken))}: where the data lies is said by `data`")
    if study.resolve().is_relative_to(path):
        raise BadInput(f"{where}: {given!r} is the study's own folder: expected one of data alone")
    if path.is_dir():
        if any((path / name).is_file() for name in SAVED):
            return "table", {"path": given, **options}
        return "images", {"folder": given, **options}
    if path.suffix in (".csv", ".parquet"):
        return "table", {"path": given, **options}
    if path.suffix != ".npz":
        raise BadInput(
            f"{where}: expected FILE.npz, FILE.csv, FILE.parquet, a folder of images FOLDER/CLASS/FILE or one that "
            f"`datasets` has saved, or FILE.py:NAME of a function, got {given!r}"
        )
    if options:
        raise BadInput(f"{where[:-1]}_options': arrays take none, and `data` is {given!r}")
    return "arrays", {"path": given}


def read_by(files: Iterable[Path], folder: Path) -> list[str]:
    """Return the files and folders that texts in files of Python name, or in what these import: they count.

    They are looked for beside those files and in the study's folder; folders only below there.
    """
    ground, texts = folder.resolve(), set()
    for file in files:
        for source in closure(file, ground):
            if source.suffix == ".py" and not source.is_relative_to(PACKAGE):
                texts |= {(place, text) for text in _texts(source) for place in (file.parent, source.parent, ground)}
    return sorted({path for place, text in texts for path in _there(place, text)})


def _texts(file: Path) -> set[str]:
    try:
        nodes = ast.walk(ast.parse(file.read_bytes()))
    except (SyntaxError, ValueError):
        # Whoever imports it is told.
        return set()
    texts = (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return {text for text in texts if 0 < len(text) < _LONGEST_NAME}


def _there(place: Path, text: str) -> set[str]:
    try:
        # A link to a folder elsewhere lies below all the same.
        path = Path(os.path.normpath(place / text))
        below = path.is_relative_to(place) and path != place and path.exists()
        return {str(path)} if below or path.is_file() else set()
    except (OSError, ValueError):
        return set()
