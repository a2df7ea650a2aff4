"""A study's own workload: a module of torch in the user's file, trained on the user's data.

    workloads:
      mine: {module: my_model.py:Net, data: my.npz, loss: cross-entropy, target: 0.9}

Planning knows no more of the module than its file. The stage `inspect` makes it once, in torch's environment, and
leaves `module.json`, from which `ModuleModel` answers everywhere else.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from transect.training.datasets import DATASETS
from transect.training.module_model import ModuleModel
from transect.training.workloads import WORKLOADS, Parameters, Workload

# Under which key of its cells' specs a payload finds the definition.
SPEC_KEY = "own_workload"
# Where modules are made, unless the study names another environment.
TORCH = "torch"
# What a user's module most often is trained with; whatever the study says replaces it.
_DEFAULTS = {"batch": 32, "epochs": 10, "learning_rate": 1e-3, "optimiser": "adamw"}


# What makes a module and computes it: loaded by name, where torch is.
COMPUTING = [
    Path(__file__).parent / "frameworks" / f"{name}.py"
    for name in ("_module_files", "_torch_computation", "_torch_own_optimiser", "_dataset_reader")
]


class OwnWorkload(Workload):
    """One of a study; `module_file` and `module_name` lead to what makes the module, with `options`."""

    module_file: ClassVar[Path]
    module_name: ClassVar[str]
    options: ClassVar[dict[str, Any]]
    definition: ClassVar[dict[str, Any]]
    dataset: ClassVar[str]
    environment: ClassVar[str]
    defaults: ClassVar[Parameters]

    @property
    def model(self) -> ModuleModel:
        """Return the model as planning knows it."""
        return self.model_in(None)

    def model_in(self, data: Path | None) -> ModuleModel:
        """Return the model, with what the data stage's folder knows of it."""
        told = self.definition
        own = (Path(told["loss_file"]), told["loss_name"]) if "loss_file" in told else None
        maker = (Path(told["optimiser_file"]), told["optimiser_name"]) if "optimiser_file" in told else None
        return ModuleModel.described(
            self.module_file, self.module_name, self.options, told.get("loss", "cross-entropy"), own, maker, data
        )

    def code_files(self) -> list[Path]:
        """What makes and computes it: nothing imports that where other workloads run."""
        more = [
            Path(self.definition[key]) for key in ("loss_file", "optimiser_file", "data_file") if key in self.definition
        ]
        return [Path(__file__), *COMPUTING, *more]


def register_own(name: str, definition: dict[str, Any]) -> None:
    """Make a workload known whose module is `name` in `file`, called with `options`, on samples of `dataset`."""
    members = {
        "module_file": Path(definition["file"]),
        "module_name": definition["name"],
        "options": definition["options"],
        "dataset": definition["dataset"],
        "environment": definition.get("environment", TORCH),
        "definition": definition,
        "defaults": Parameters.model_validate(_DEFAULTS | {"quality_target": 1.0}),
    }
    WORKLOADS.define(name, type("OwnWorkload", (OwnWorkload,), members), members["module_file"])


def environment_of(workload: str | None, environment: str) -> str:
    """Return where a cell's payload runs: an own workload may have another environment with torch."""
    known = WORKLOADS.get(workload) if environment == TORCH and workload is not None and workload in WORKLOADS else None
    return known.environment if isinstance(known, OwnWorkload) else environment


def cannot_import(workload: str, environment: str) -> str | None:
    """Return why a module's files may not be importable where a cell's payload runs, or None."""
    known = WORKLOADS.get(workload)
    if not isinstance(known, OwnWorkload) or known.environment == TORCH or environment in (TORCH, known.environment):
        return None
    return f"its module has the environment '{known.environment}', and this runs in '{environment}'"


def definition_of(workload: str | None) -> dict[str, Any]:
    """Return what a spec says of a cell's workload where it is a study's own; else nothing."""
    if workload is None or workload not in WORKLOADS:
        return {}
    known = WORKLOADS.get(workload)
    return {SPEC_KEY: {"workload": workload, **known.definition}} if isinstance(known, OwnWorkload) else {}


def define_from(spec: dict[str, Any]) -> None:
    """Make the workload of a spec known in the process that works on its cell."""
    definition = spec.get(SPEC_KEY)
    if definition and "scripts" in definition:
        # By its name: what runs other workloads does not depend on it.
        import_module("transect.training.script_workload").add_script(
            definition["workload"], definition, Path(spec["path"])
        )
    elif definition:
        DATASETS.get(definition["dataset"])
        register_own(definition["workload"], definition)
