"""A study's own training script as a workload: it is run as it is, and what it tells of its epochs is measured.

    workloads:
      mine: {script: train.py, arguments: [--seed, "{seed}"], batch: 64, target: 0.9, metric: accuracy}

Nothing is known of its model and data: it has no reference, and no framework of ours trains it. Each script is a
framework of the study, by its name, so that several for one target are compared as frameworks are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from transect.domain.axes.train import TrainCell
from transect.training.datasets import DATASETS, Dataset
from transect.training.frameworks import FRAMEWORKS, ProgramFramework, RankFiles
from transect.training.workloads import WORKLOADS, Parameters, Workload

# Under which key of a cell's spec its script stands, and in which folder it lies; see `own_workload`.
SCRIPTS, FOLDER = "scripts", "path"
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
# What arguments may name in braces, of a cell and the study's seed. `batch` is of all ranks together.
PLACEHOLDERS: Mapping[str, Callable[[TrainCell, int], int | str]] = {
    "ranks": lambda cell, _: cell.ranks,
    "ranks_per_node": lambda cell, _: cell.ranks_per_node,
    "nodes": lambda cell, _: cell.nodes,
    "threads": lambda cell, _: cell.threads,
    "batch": lambda cell, _: cell.batch,
    "batch_per_rank": lambda cell, _: cell.batch // cell.ranks,
    "precision": lambda cell, _: cell.precision,
    "device": lambda cell, _: cell.device,
    "repeat": lambda cell, _: cell.repeat,
    "seed": lambda cell, seed: seed + cell.repeat,
}
# What these ranks are told by, and no more: how they work together is the script's own.
STRATEGIES_OF_SCRIPTS = frozenset({"single", "torchrun", "mpirun"})


class Script(BaseModel):
    """One script: what it is started with, in which environment, and what its outcome depends on.

    `file` and `data` are relative to the study. `epoch_line` is a regular expression for lines that it prints.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: str
    arguments: tuple[str, ...]
    variables: dict[str, str]
    data: tuple[str, ...]
    environment: str
    precisions: dict[str, str]
    epoch_line: str | None

    @property
    def placeholders(self) -> frozenset[str]:
        """Return the words in braces that arguments and variables hold."""
        texts = (*self.arguments, *self.variables.values())
        return frozenset(name for text in texts for name in _PLACEHOLDER.findall(text))

    def filled(self, text: str, cell: TrainCell, seed: int) -> str:
        """Return an argument or a variable for a cell; `seed` is the study's."""
        words = {name: str(value(cell, seed)) for name, value in PLACEHOLDERS.items()}
        words["precision"] = self.precisions.get(cell.precision, cell.precision)
        return _PLACEHOLDER.sub(lambda found: words[found[1]], text)

    def deaf_to(self, cell: TrainCell, batch: int) -> str | None:
        """Return what the cell asks for and the script is not told, or None; `batch` is the workload's."""
        told = self.placeholders
        if cell.precision not in (self.precisions or {cell.precision}):
            return f"its `precisions` are {', '.join(self.precisions)}, not {cell.precision}"
        if cell.precision != "fp32" and "precision" not in told:
            return f"{self.file} is not told of {cell.precision}: expected {{precision}} in its arguments"
        # A script with a batch of its own may keep it for all ranks together, or for each.
        if cell.batch not in (batch, batch * cell.ranks) and not told & {"batch", "batch_per_rank"}:
            return f"{self.file} is not told of batch {cell.batch}: expected {{batch}} in its arguments"
        return None


class ScriptModel:
    """What is known of what a script trains: how it is scored."""

    parts_matter = False
    sample: tuple[int, ...] = ()

    def __init__(self, score: str, scripts: frozenset[str]) -> None:
        self.score = score
        self.scripts = scripts


class ScriptData(Dataset):
    """Samples that a script reads by itself."""

    option_names = ()


class ScriptWorkload(Workload):
    """One of a study, with all scripts for its target, by name."""

    dataset = "script"
    defaults: ClassVar[Parameters]
    scripts: ClassVar[Mapping[str, Script]]
    # The study's, to which paths are relative.
    folder: ClassVar[Path]
    score: ClassVar[str]
    # What a record calls the score.
    label: ClassVar[str]
    # From what times count: the script's `start`, or what it has `told`.
    clock: ClassVar[str]

    @property
    def model(self) -> Any:
        """Return what no framework but its scripts builds."""
        return ScriptModel(self.score, frozenset(self.scripts))


class ScriptFramework(ProgramFramework):
    """A script of the study, whatever it trains with."""

    environment = "torch"
    program_strategies = STRATEGIES_OF_SCRIPTS
    name: ClassVar[str]

    def supports(self, cell: TrainCell) -> str | None:
        """What a script cannot be asked for, or is not told."""
        workload = WORKLOADS.get(cell.workload)
        if not isinstance(workload, ScriptWorkload):
            return f"{self.name} is a script, which trains what it is written for, not {cell.workload}"
        if (script := workload.scripts.get(self.name)) is None:
            return f"{cell.workload} has no script {self.name}: its scripts are {', '.join(workload.scripts)}"
        usual = {"input": "stored", "memory": "plain", "memory_budget": None, "reduce": "mean", "options": ()}
        usual |= {"learning_rate_rule": "none"}
        for axis, value in usual.items():
            if cell.get(axis) != value:
                return f"a script runs as it is: it cannot be asked for {axis.replace('_', ' ')} {cell.get(axis)}"
        if cell.strategy not in STRATEGIES_OF_SCRIPTS:
            known = ", ".join(sorted(STRATEGIES_OF_SCRIPTS))
            return f"a script's ranks work together by themselves: expected strategy {known}, not {cell.strategy}"
        return script.deaf_to(cell, workload.defaults.batch)

    def builds(self, model: object) -> str | None:
        """It builds its own alone."""
        if isinstance(model, ScriptModel) and self.name in model.scripts:
            return None
        return f"{self.name} is a script, which trains what it is written for"

    def command(self, files: RankFiles) -> list[str]:
        """It is started by `payloads.script_rank`."""
        raise TypeError(f"{self.name} is a script: see transect.stages.train.script")


def script_of(cell: TrainCell) -> Script | None:
    """Return the script that trains a cell, or None."""
    workload = WORKLOADS.get(cell.workload)
    return workload.scripts.get(cell.framework) if isinstance(workload, ScriptWorkload) else None


def script_workload(cell: TrainCell) -> ScriptWorkload:
    """Return the workload of a cell that a script trains. Raises TypeError for another one."""
    workload = WORKLOADS.get(cell.workload)
    if not isinstance(workload, ScriptWorkload):
        raise TypeError(f"{cell.workload} is no workload of scripts")
    return workload


def add_script(name: str, told: Mapping[str, Any], folder: Path) -> None:
    """Make known what a cell's spec says of its workload, beside what other cells' specs have said."""
    known = WORKLOADS.get(name) if name in WORKLOADS else None
    others = known.scripts if isinstance(known, ScriptWorkload) else {}
    register_scripts(name, {**told, SCRIPTS: {**others, **told[SCRIPTS]}}, folder)


def register_scripts(name: str, told: Mapping[str, Any], folder: Path) -> None:
    """Make a workload, its scripts and their data known; `told` as a spec has it (`stages.train.script_plan`).

    `folder` is the study's.
    """
    source, scripts = Path(__file__), {key: Script.model_validate(value) for key, value in told[SCRIPTS].items()}
    members = {
        "scripts": scripts,
        "folder": folder,
        "score": told["score"],
        "label": told["label"],
        "clock": told["clock"],
        # What else a workload has is nobody's: a script has its own.
        "defaults": Parameters(
            batch=told["batch"], quality_target=told["target"], epochs=1, learning_rate=1.0, reference_steps=0
        ),
    }
    for script in scripts:
        FRAMEWORKS.define(script, type("ScriptFramework", (ScriptFramework,), {"name": script}), source)
    DATASETS.define("script", ScriptData, source)
    WORKLOADS.define(name, type("ScriptWorkload", (ScriptWorkload,), members), source)
