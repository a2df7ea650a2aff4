"""The dataset stage: split, normalised samples, initial weights and batch orders of a workload."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transect.domain.axes.data import DataCell, inspect_of
from transect.domain.cell import Cell
from transect.domain.registry import Registry
from transect.domain.takes import AllFiles, Takes
from transect.planning.context import Context
from transect.planning.parameters import dataset_paths
from transect.planning.stage import STAGES, Placement, Stage
from transect.training.datasets import DATASETS, DerivedDataset
from transect.training.own_workload import OwnWorkload
from transect.training.script_workload import ScriptWorkload
from transect.training.workloads import WORKLOADS

# What the split, the order and the initial weights depend on, and no more.
_USED = ("batch", "epochs", "test_fraction", "dataset_options")


def workload_plugins(workload: str) -> list[tuple[Registry[Any], str]]:
    """Return a workload and its dataset."""
    return [(WORKLOADS, workload), (DATASETS, WORKLOADS.get(workload).dataset)]


@STAGES.register("dataset")
class Data(Stage[DataCell]):
    """Splits, normalises, draws initial weights and batch orders."""

    payload = "transect.payloads.dataset:run"
    placement = Placement(group="prepare")

    def __init__(self) -> None:
        # Whatever any dataset takes its samples from.
        derived = (dataset for dataset in map(DATASETS.get, DATASETS) if isinstance(dataset, DerivedDataset))
        self.needs = ("inspect", *sorted({stage for dataset in derived for stage in dataset.stages}))

    def inputs(self, cell: DataCell, context: Context) -> dict[str, Cell]:
        """What the dataset takes."""
        workload = WORKLOADS.get(cell.workload)
        if isinstance(workload, OwnWorkload):
            return {"module": inspect_of(cell.workload)}
        dataset = DATASETS.get(workload.dataset)
        if not isinstance(dataset, DerivedDataset):
            return {}
        return dataset.cells(context.parameters(cell.workload).dataset_options)

    def taken(self, role: str) -> Takes:
        """All that its dataset takes, whose roles are the dataset's own."""
        return AllFiles(details=lambda spec: spec.get("dataset_details", ()))

    def plugins(self, cell: DataCell) -> list[tuple[Registry[Any], str]]:
        """Workload and dataset."""
        return workload_plugins(cell.workload)

    def supports(self, cell: DataCell) -> str | None:
        """A script of the study's own reads what it reads by itself."""
        scripts = isinstance(WORKLOADS.get(cell.workload), ScriptWorkload)
        return f"{cell.workload} is a script, which reads its own data" if scripts else None

    def spec(self, cell: DataCell, context: Context) -> dict[str, Any]:
        """As many starts as the cells that take them have repeats."""
        values = context.values(cell.workload)
        dataset = DATASETS.get(WORKLOADS.get(cell.workload).dataset)
        derived = {"dataset_details": list(dataset.details)} if isinstance(dataset, DerivedDataset) else {}
        return derived | {
            "workload": cell.workload,
            "seed": context.study.seed,
            "repeats": 1 + max(taker.repeat for taker in context.takers(cell)),
            "parameters": {key: values[key] for key in _USED},
            "dataset_paths": list(dataset_paths(cell.workload)),
        }

    def environment(self, cell: DataCell) -> str:
        """The dataset's."""
        return DATASETS.get(WORKLOADS.get(cell.workload).dataset).environment

    def made_up(self, spec: dict[str, Any]) -> str:
        """Samples, where the folder of the real ones is not there."""
        options = spec["parameters"]["dataset_options"]
        missing = options.get("otherwise") == "generate" and not options.get("folder")
        named = f"what workloads.{spec['workload']}.dataset_options.folder names"
        return f"{named} is not there, so its samples are generated" if missing else ""

    def files(self, spec: dict[str, Any]) -> list[Path]:
        """Files and folders that the dataset's options name."""
        options = spec["parameters"]["dataset_options"]
        return [Path(options[key]) for key in spec["dataset_paths"] if options.get(key)]
