"""What a study says of a workload of its own: which module, which data, which hyper-parameters."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from transect.domain.errors import BadInput, Complaints, unknown_name
from transect.domain.strict_yaml import validate
from transect.training.own_workload import register_own
from transect.training.workloads import Parameters

# Something that a file of Python has.
PYTHON_MEMBER = re.compile(r"(?P<file>.+\.py):(?P<name>[A-Za-z_]\w*)")


class Definition(BaseModel):
    """What `workloads.NAME` of a study says of a module of the user's, besides hyper-parameters."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    module: str = Field(description="`FILE.py:NAME`, relative to the study: a class or function that gives the module")
    module_options: dict[str, Any] = Field(default={}, description="arguments that the class or function is given")
    data: str = Field(description="`FILE.npz` with arrays x and y, or `FILE.py:NAME`, a function that gives a dataset")
    data_options: dict[str, Any] = Field(default={}, description="arguments that the function is given")


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
            file, member = _python(definition.module, f"{place}module'", study)
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
    told = {"file": str(file), "name": member, "options": definition.module_options, "dataset": dataset}
    if dataset == "python":
        told["data_file"] = options["path"]
    register_own(name, told)
    return parameters | {"dataset_options": options}


def _python(given: str, where: str, study: Path) -> tuple[Path, str]:
    found = PYTHON_MEMBER.fullmatch(given)
    if found is None:
        raise BadInput(f"{where}: expected FILE.py:NAME, got {given!r}")
    file = (study.parent / Path(found["file"]).expanduser()).resolve()
    if not file.is_file():
        raise BadInput(f"{where}: {file}: no such file")
    known = _defined(file)
    if known is not None and found["name"] not in known:
        raise unknown_name("member", found["name"], known, f"{where}: {file}")
    return file, found["name"]


def _defined(file: Path) -> set[str] | None:
    """Return what a file defines or imports at its top, None where that is not known without running it.

    Raises BadInput where it is no Python.
    """
    try:
        body = ast.parse(file.read_bytes(), str(file)).body
    except (SyntaxError, ValueError) as error:
        raise BadInput(f"{file}: is no Python: {error}") from None
    names: set[str] = set()
    for statement in body:
        match statement:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                names.add(name)
            case ast.Assign(targets=targets):
                names |= {target.id for target in targets if isinstance(target, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names |= {alias.asname or alias.name.split(".")[0] for alias in aliases}
            case ast.Expr(value=ast.Constant()):
                pass
            case _:
                return None
    return None if "*" in names else names


def _data(definition: Definition, where: str, study: Path) -> tuple[str, dict[str, Any]]:
    """Return the dataset's name and options."""
    if PYTHON_MEMBER.fullmatch(definition.data):
        file, member = _python(definition.data, where, study)
        return "python", {"path": str(file), "name": member, "arguments": definition.data_options}
    if definition.data_options:
        raise BadInput(f"{where[:-1]}_options': only a function takes arguments, and `data` is {definition.data!r}")
    if definition.data.endswith(".npz"):
        return "arrays", {"path": definition.data}
    raise BadInput(f"{where}: expected FILE.npz, or FILE.py:NAME of a function, got {definition.data!r}")
