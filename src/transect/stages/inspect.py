"""The inspect stage: what a study's own module is, asked once where torch is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transect.domain.axes.data import InspectCell
from transect.domain.registry import Registry
from transect.planning.context import Context
from transect.planning.parameters import dataset_paths
from transect.planning.stage import STAGES, Placement, Stage
from transect.training.datasets import DATASETS
from transect.training.workloads import WORKLOADS


@STAGES.register("inspect")
class Inspect(Stage[InspectCell]):
    """Makes a user's module, tries one step, draws its initial weights."""

    payload = "transect.payloads.inspect_module:run"
    placement = Placement(group="prepare")

    def plugins(self, cell: InspectCell) -> list[tuple[Registry[Any], str]]:
        """Workload and dataset."""
        return [(WORKLOADS, cell.workload), (DATASETS, WORKLOADS.get(cell.workload).dataset)]

    def spec(self, cell: InspectCell, context: Context) -> dict[str, Any]:
        """As many starts as there are repeats."""
        repeats = (taker.repeat for data in context.takers(cell) for taker in context.takers(data))
        values = context.values(cell.workload)
        return {
            "workload": cell.workload,
            "seed": context.study.seed,
            "repeats": 1 + max(repeats, default=0),
            "parameters": values,
            "dataset_paths": list(dataset_paths(cell.workload)),
        }

    def environment(self, cell: InspectCell) -> str:
        """Torch's."""
        return "torch"

    def files(self, spec: dict[str, Any]) -> list[Path]:
        """The user's data."""
        options = spec["parameters"]["dataset_options"]
        return [Path(options[key]) for key in spec["dataset_paths"] if options.get(key)]
