"""A plug-in at work: a tiny study, through the engine and in its own environment, as any cell does."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from transect.cli.plugin_checks import Check, place_of, tiny_cell
from transect.domain.axes.train import TrainCell
from transect.domain.errors import BadInput
from transect.domain.paths import ROOT
from transect.domain.record import Record, read_record
from transect.runtimes import RUNTIMES
from transect.training.datasets import DATASETS, DerivedDataset
from transect.training.frameworks import FRAMEWORKS
from transect.training.support import reason_to_skip
from transect.training.workloads import WORKLOADS

# Of what a program printed that failed.
_LINES = 8
# Two widths of losses and rules, and layers of every usual kind.
_WORKLOADS = ("iris-mlp", "iris-mlp-ce", "digits-cnn")
_STUDY = """
name: check
workloads: {{{short}}}
train:
  repeats: 1
  grids:
    - {{workloads: [{workloads}], frameworks: [{framework}], strategies: [{strategy}], ranks: [{ranks}], memories: [{memory}]}}
export: {{workloads: [{workloads}], framework: {framework}, exporters: [torchscript]}}
infer:
  repeats: 1
  max_seconds: 0.2
  grids: [{infer}]
"""
_RETRAINED = """
retrain: {{grids: [{{workloads: [{workload}], base_epochs: [1], steps: [10], runtimes: [{runtime}]}}]}}
"""


def _place_for(strategy: str) -> TrainCell | None:
    """Return the smallest cell in which some framework is trained by a strategy; numpy first."""
    for framework in sorted(FRAMEWORKS, key=lambda name: (name != "numpy", name != "torch", name)):
        for ranks in (2, 1, 4):
            for workload in ("iris-mlp-ce", "digits-cnn"):
                cell = tiny_cell(framework, strategy, ranks, workload)
                if reason_to_skip(cell, WORKLOADS.get(workload).defaults) is None:
                    return cell
    return None


def _trained(cell: TrainCell, workloads: tuple[str, ...]) -> str:
    return _STUDY.format(
        short=", ".join(f"{one}: {{epochs: 1, reference_steps: 20}}" for one in workloads),
        workloads=", ".join(workloads),
        framework=cell.framework,
        strategy=cell.strategy,
        ranks=cell.ranks_per_node,
        memory=cell.memory,
        infer="",
    ).partition("export:")[0]


def _study_of(kind: str, name: str) -> tuple[str, str]:
    """Return a study in which a plug-in runs, and its stages. Raises BadInput that says why there is none."""
    if kind == "framework":
        return _trained(place_of(name), _WORKLOADS), "train"
    if kind == "strategy":
        cell = _place_for(name)
        if cell is None:
            raise BadInput(f"strategy '{name}': no framework takes it on 1, 2 or 4 ranks of this machine's CPUs")
        return _trained(cell, (cell.workload,)), "train"
    if kind == "memory":
        cell = tiny_cell("torch", memory=name)
        if reason := reason_to_skip(cell, WORKLOADS.get(cell.workload).defaults):
            raise BadInput(f"memory '{name}': {reason}")
        return _trained(cell, _WORKLOADS), "train"
    if kind == "runtime":
        workload = ("iris-mlp-ce",)
        grid = f"{{workloads: [{workload[0]}], runtimes: [{name}], exporters: [torchscript], batches: [1]}}"
        head = _trained(tiny_cell("torch"), workload)
        more = _STUDY.partition("export:")[2].format(workloads=workload[0], framework="torch", infer=grid)
        if not RUNTIMES.get(name).trains:
            return f"{head}export:{more}", "infer"
        return f"{head}export:{more}{_RETRAINED.format(workload=workload[0], runtime=name)}", "infer retrain"
    used = name if kind == "workload" else next((one for one in WORKLOADS if WORKLOADS.get(one).dataset == name), None)
    if used is None or isinstance(DATASETS.get(WORKLOADS.get(used).dataset), DerivedDataset):
        raise BadInput(f"{kind} '{name}': it takes what a study's own cells leave: it runs in that study only")
    framework = next(
        (one for one in ("numpy", "torch") if FRAMEWORKS.get(one).builds(WORKLOADS.get(used).model) is None), "numpy"
    )
    return _trained(tiny_cell(framework), (used,)), "dataset"


def runs(kind: str, name: str) -> Iterator[Check]:
    """Run a plug-in in a tiny study; a training is held to the float64 reference as in any study."""
    try:
        study, stages = _study_of(kind, name)
    except BadInput as error:
        yield Check("run", "a cell that it takes", f"not tried: {error}", holds=True)
        return
    with tempfile.TemporaryDirectory(prefix="transect-check-") as folder:
        file, results = Path(folder) / "check.yaml", Path(folder) / "results"
        file.write_text(study, encoding="utf-8")
        command = [sys.executable, "-m", "transect", "run", str(file), *stages.split(), "--results", str(results)]
        done = subprocess.run(
            command, env=os.environ | {"PYTHONPATH": str(ROOT / "src")}, capture_output=True, text=True, check=False
        )
        found = [path for stage in stages.split() for path in sorted(results.glob(f"check/{stage}/*/record.json"))]
        records = [read_record(path) for path in found]
        checks = [one for path, record in zip(found, records, strict=True) for one in _judged(record, path.parent)]
    if not records:
        yield Check(
            f"run of stage {stages}", "records", done.stderr.strip() or f"exit code {done.returncode}", holds=False
        )
    yield from checks
    ends = {record.status.value for record in records}
    yield Check("cells that ran", "one at least", ", ".join(sorted(ends)), "ok" in ends)


def _judged(record: Record, folder: Path) -> Iterator[Check]:
    words = (record.status.value, record.cause.value if record.cause else "", record.message or "")
    given = ": ".join(filter(None, words))
    log = folder / "output.log"
    if record.status.value == "failed" and log.is_file() and log.stat().st_size:
        # The folder is gone when a person reads this.
        last = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LINES:]
        given += f"; its output ends with: {' | '.join(last)}"
    expected = "ok, or skipped with a reason"
    yield Check(
        record.cell_id,
        expected,
        given,
        record.status.value == "ok" or (record.status.value == "skipped" and bool(record.message)),
    )
    if record.stage != "train" or record.status.value != "ok":
        return
    if why := record.details.get("not_checkable"):
        yield Check(f"{record.cell_id}: equality", "steps like the reference's", f"not checkable: {why}", holds=True)
        return
    ratios = [one.value for one in record.metrics if one.name == "equality_ratio"]
    deviation = ratios[0] if ratios else None
    yield Check(f"{record.cell_id}: equality_ratio", "at most 1", deviation, deviation is not None and deviation <= 1)
