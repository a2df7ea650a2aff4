"""What a study says of a workload that is a training script of the user's, or several for one target."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from transect.domain.errors import BadInput, Complaints, unknown_name
from transect.domain.metrics import METRICS, Nature
from transect.domain.precisions import find_precision
from transect.domain.strict_yaml import validate
from transect.launch import THREAD_VARIABLES
from transect.training.script_workload import PLACEHOLDERS, Script, register_scripts

# What a pattern for printed lines may name, and what it has to.
_GROUPS, _NEEDED = ("epoch", "metric", "loss", "seconds", "samples"), ("epoch", "metric")
# Stand for what cannot be used; nothing is planned with them.
_NO_SCRIPT = Script(
    file="", arguments=(), variables={}, data=(), environment="base", precisions={}, epoch_line=None
).model_dump()
_UNUSABLE = {"score": "accuracy", "label": "accuracy", "clock": "start", "batch": 1, "target": 1.0}
# Variables that say how a script is started, to itself and to its libraries.
OF_THE_CELL = frozenset(
    (
        "RANK",
        "WORLD_SIZE",
        "LOCAL_RANK",
        "LOCAL_WORLD_SIZE",
        "GROUP_RANK",
        "GROUP_WORLD_SIZE",
        "MASTER_ADDR",
        "MASTER_PORT",
    )
) | frozenset(THREAD_VARIABLES)
# The name of the framework of a workload with one script.
_ONE = "script"


class ScriptDefinition(BaseModel):
    """How `workloads.NAME`, or one of its `scripts`, starts a training script."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    script: str = Field(description="`FILE.py`, relative to the study")
    arguments: list[str | int | float] = Field(
        default=[],
        description="its arguments; {ranks}, {ranks_per_node}, {nodes}, {threads}, {batch}, {batch_per_rank}, "
        "{precision}, {device}, {repeat} and {seed} stand for those of the cell",
    )
    variables: dict[str, str] = Field(default={}, description="environment variables, with the same words in braces")
    data: list[str] = Field(
        default=[],
        description="files and folders that it reads, relative to the study: the script finds them under the same names in the folder "
        "in which it runs, and an edit of one runs it again",
    )
    environment: str = Field(default="torch", description="a folder of `envs/`, or of a plug-in folder's `envs/`")
    precisions: dict[str, str] = Field(
        default={}, description="what {precision} is in the script's own words, such as `amp-bf16: bf16-mixed`"
    )
    epoch_line: str | None = Field(
        default=None,
        description="a regular expression for lines that it prints, with groups `epoch`, `metric` and, if the lines say so, "
        "`loss`, `seconds` and `samples`; null: it calls `transect.log_epoch`",
    )


class MetricDefinition(BaseModel):
    """What a script's target is a value of."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[A-Za-z][\w -]*$", description="as the report calls it")
    better: Literal["higher", "lower"] = Field(description="which way is better")


class TargetDefinition(BaseModel):
    """What `workloads.NAME` says of all its scripts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    batch: int = Field(ge=1, description="samples in a step, of all ranks together")
    target: float = Field(gt=0, description="of the metric: when training is done")
    metric: str | MetricDefinition = Field(
        default="accuracy", description="a quality of [metrics.md](metrics.md), or `name` and `better`"
    )
    clock: Literal["start", "told"] = Field(
        default="start",
        description="what times count from: `start`: the script's, with all that it loads and tests; `told`: each script tells "
        "`seconds` of training alone",
    )
    scripts: dict[str, dict[str, Any]] = Field(
        default={},
        description="several scripts for the same target, by names of your own, each with its keys; what stands beside "
        "`scripts` holds for all",
    )


def is_script(keys: dict[str, Any]) -> bool:
    """Whether a study's `workloads.NAME` describes a script of the user's."""
    return bool({"script", "scripts"} & keys.keys())


def define_scripts(name: str, keys: dict[str, Any], study: Path) -> dict[str, Any]:
    """Make a study's scripts known as a workload and its frameworks; return batch and target as hyper-parameters.

    Raises BadInput naming file and key, with all that is wrong.
    """
    where, complaints = f"{study}: workloads.{name}", Complaints()
    for key in keys.keys() - {*ScriptDefinition.model_fields, *TargetDefinition.model_fields}:
        with complaints.noted():
            known = {*ScriptDefinition.model_fields, *TargetDefinition.model_fields}
            raise unknown_name("key", key, known, where)
    told: dict[str, Any] = {}
    with complaints.noted():
        given = {key: value for key, value in keys.items() if key in TargetDefinition.model_fields}
        target = validate(TargetDefinition, given, str(study), f"workloads.{name}.")
        score, label = _score(target, where)
        told = {"score": score, "label": label, "batch": target.batch, "target": target.target, "clock": target.clock}
    told["scripts"] = {}
    each: dict[str, tuple[str, dict[str, Any]]] = {}
    with complaints.noted():
        each = _each(keys, where)
    for script, (place, own) in each.items():
        with complaints.noted():
            told["scripts"][script] = _script(own, place, study)
    if len(complaints):
        # Its names are known all the same: that a grid names what is not there would mislead.
        with complaints.noted():
            _register(name, _UNUSABLE | {"scripts": dict.fromkeys(each, _NO_SCRIPT)}, study)
    complaints.end()
    _register(name, told, study)
    return {"batch": told["batch"], "quality_target": told["target"]}


def _register(name: str, told: dict[str, Any], study: Path) -> None:
    try:
        register_scripts(name, told, study.parent)
    except BadInput as error:
        raise BadInput(f"{study}: workloads.{name}: {error}") from None


def _each(keys: dict[str, Any], where: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return by name where each script stands and its keys, those for all included. Raises BadInput where there are none."""
    shared = {key: value for key, value in keys.items() if key in ScriptDefinition.model_fields}
    if "scripts" not in keys:
        return {_ONE: (where, shared)}
    if "script" in keys:
        raise BadInput(f"{where}: has both `script` and `scripts`: expected one of them")
    several = keys["scripts"]
    if not isinstance(several, Mapping) or not several:
        raise BadInput(f"{where}.scripts: expected a mapping of names to scripts, found {several!r}")
    # What is no mapping is told by its key.
    own = {str(name): dict(value) if isinstance(value, Mapping) else {} for name, value in several.items()}
    return {name: (f"{where}.scripts.{name}", shared | value) for name, value in own.items()}


def _score(target: TargetDefinition, where: str) -> tuple[str, str]:
    """Return the registered metric of the script's score, and what it is called."""
    if isinstance(target.metric, str):
        known = [name for name, kind in METRICS.items() if kind.nature & Nature.QUALITY]
        if target.metric not in known:
            raise BadInput(
                f"{where}.metric: {target.metric!r} is none of {', '.join(sorted(known))}: expected one of them, or "
                "{name: …, better: higher or lower}"
            )
        return target.metric, target.metric
    kind = METRICS.get(target.metric.name)
    if kind is not None and kind.nature & Nature.QUALITY and kind.direction.value == target.metric.better:
        return kind.name, kind.name
    return ("own_score" if target.metric.better == "higher" else "own_error"), target.metric.name


def _script(keys: dict[str, Any], place: str, study: Path) -> dict[str, Any]:
    """Return a script's keys as `training.script_workload.Script` has them."""
    file, _, below = place.partition(": ")
    found, complaints = validate(ScriptDefinition, keys, file, f"{below}."), Complaints()
    with complaints.noted():
        path = study.parent / found.script
        if path.suffix != ".py" or not path.is_file():
            raise BadInput(f"{place}.script: {path}: expected a file of Python, NAME.py")
    data = []
    for given in found.data:
        with complaints.noted():
            data.append(_data(given, f"{place}.data", study))
    for precision in found.precisions:
        with complaints.noted():
            find_precision(precision, f"{place}.precisions")
    with complaints.noted():
        _check_pattern(found.epoch_line, f"{place}.epoch_line")
    texts = [str(argument) for argument in found.arguments]
    script = Script(
        file=found.script,
        arguments=tuple(texts),
        variables=found.variables,
        data=tuple(data),
        environment=found.environment,
        precisions=found.precisions,
        epoch_line=found.epoch_line,
    )
    for word in sorted(script.placeholders - PLACEHOLDERS.keys()):
        with complaints.noted():
            raise unknown_name("word in braces", word, PLACEHOLDERS, f"{place}.arguments")
    for variable in found.variables:
        with complaints.noted():
            if variable in OF_THE_CELL or variable.startswith("TRANSECT_"):
                raise BadInput(
                    f"{place}.variables: {variable} follows from the cell's ranks and threads: expected another one"
                )
    complaints.end()
    return script.model_dump(mode="json")


def _data(given: str, where: str, study: Path) -> str:
    """Return a file or folder as given, a folder with a / at its end: without one its name is any text."""
    path, folder = Path(given).expanduser(), study.parent.resolve()
    found = (folder / path).resolve()
    if not found.exists():
        raise BadInput(f"{where}: {found}: no such file or folder")
    if folder.is_relative_to(found):
        raise BadInput(f"{where}: {given!r} holds the study itself: expected what the script reads, and no more")
    if not path.is_absolute() and ".." in path.parts:
        raise BadInput(f"{where}: {given!r}: expected a path below the study's folder, or an absolute one")
    return f"{path.as_posix()}/" if found.is_dir() else path.as_posix()


def _check_pattern(pattern: str | None, where: str) -> None:
    if pattern is None:
        return
    try:
        groups = re.compile(pattern).groupindex
    except re.error as error:
        raise BadInput(f"{where}: {pattern!r} is no regular expression: {error}") from None
    if missing := [name for name in _NEEDED if name not in groups]:
        raise BadInput(f"{where}: {pattern!r} lacks the group {', '.join(f'(?P<{name}>…)' for name in missing)}")
    for name in groups.keys() - set(_GROUPS):
        raise unknown_name("group", name, _GROUPS, where)
