"""What a step's folder says to runners that do not run its graphs: `workload.json`.

{"workload": NAME, "optimiser": NAME, "parameters": {…}}: a workload of transect, its optimiser,
and hyper-parameters as `transect.training.workloads.Parameters` has them, of which `loss` counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from step_folder import Step
from tensors import BadInput, read_json

_RULES = ("sgd", "nesterov", "adamw")


@dataclass(frozen=True)
class StepWorkload:
    """A workload by its name, and how it is trained. `momentum`: whether the rule has one."""

    name: str
    rule: str
    momentum: bool
    loss: str


def read_step_workload(folder: Path, step: Step, hyper: tuple[str, ...]) -> StepWorkload:
    """Read `workload.json` of a step's folder; `hyper` names the hyper-parameters one can set.

    Raises BadInput naming what cannot be done without the step's graphs.
    """
    file = folder / "workload.json"
    told = read_json(file)
    try:
        name, rule = told["workload"], told["optimiser"]
        loss = told.get("parameters", {}).get("loss", "cross-entropy")
    except (LookupError, TypeError, AttributeError) as error:
        raise BadInput(f'{file}: expected {{"workload", "optimiser", "parameters"}}') from error
    rule = "sgd" if rule == "momentum" else rule
    if rule not in _RULES:
        raise BadInput(f"{file}: optimiser {rule!r:.100}, expected one of {', '.join(_RULES)}")
    if strange := sorted(step.hyper.keys() - {*hyper}):
        raise BadInput(
            f"{folder}: the step has the hyper-parameter '{strange[0]}'; this runner sets {', '.join(hyper)}"
        )
    if step.seed:
        raise BadInput(f"{folder}: the step draws from a seed, which only its own graphs can")
    return StepWorkload(str(name), rule, "momentum" in step.hyper, str(loss))
