"""Runs a plug-in in a tiny study, by the engine and in its own environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from transect.cli.plugin_checks import place_of, tiny_cell
from transect.cli.rule_checks import Check
from transect.domain.axes.train import TrainCell
from transect.domain.errors import BadInput
from transect.domain.paths import PYTHONPATH
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
"""
_SERVED = """
export: {{workloads: [iris-mlp-ce], exporters: [torchscript]}}
infer:
  repeats: 1
  max_seconds: 0.2
  grids: [{{workloads: [iris-mlp-ce], runtimes: [{name}], exporters: [torchscript], batches: [1]}}]
"""
_RETRAINED = """
retrain: {{grids: [{{workloads: [iris-mlp-ce], base_epochs: [1], steps: [10], runtimes: [{runtime}]}}]}}
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
        short=", ".join(f"{workload}: {{epochs: 1, reference_steps: 20}}" for workload in workloads),
        workloads=", ".join(workloads),
        framework=cell.framework,
        strategy=cell.strategy,
        ranks=cell.ranks_per_node,
        memory=cell.memory,
    )


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
        served = _trained(tiny_cell("torch"), ("iris-mlp-ce",)) + _SERVED.format(name=name)
        if not RUNTIMES.get(name).trains:
            return served, "infer"
        return served + _RETRAINED.format(runtime=name), "infer retrain"
    used = name if kind == "workload" else next((w for w in WORKLOADS if WORKLOADS.get(w).dataset == name), None)
    if used is None or isinstance(DATASETS.get(WORKLOADS.get(used).dataset), DerivedDataset):
        raise BadInput(f"{kind} '{name}': it takes what a study's own cells leave: it runs in that study only")
    framework = next(
        (able for able in ("numpy", "torch") if FRAMEWORKS.get(able).builds(WORKLOADS.get(used).model) is None), "numpy"
    )
    return _trained(tiny_cell(framework), (used,)), "dataset"


def runs(kind: str, name: str, given: Path | None = None) -> Iterator[Check]:
    """Run a plug-in in a tiny study; a training is compared with the float64 reference as in any study.

    A stage runs in the study that is `given`: no other one asks for its cells.
    """
    with tempfile.TemporaryDirectory(prefix="transect-check-") as folder:
        file, stages, results = Path(folder) / "check.yaml", name, Path(folder) / "results"
        try:
            if kind != "stage":
                text, stages = _study_of(kind, name)
                file.write_text(text, encoding="utf-8")
            elif given is None:
                raise BadInput("it runs in a study that asks for its cells: --study FILE")
            else:
                file = given
        except BadInput as error:
            yield Check("run", "a cell that it takes", f"not tried: {error}", holds=True)
            return
        command = [sys.executable, "-m", "transect", "run", str(file), *stages.split(), "--results", str(results)]
        done = subprocess.run(
            command, env=os.environ | {"PYTHONPATH": PYTHONPATH}, capture_output=True, text=True, check=False
        )
        found = [path for stage in stages.split() for path in sorted(results.glob(f"*/{stage}/*/record.json"))]
        records = [read_record(path) for path in found]
        checks = [check for path, record in zip(found, records, strict=True) for check in _judged(record, path.parent)]
        for path in results.glob("*/summary.json") if kind == "stage" else ():
            problems = json.loads(path.read_text(encoding="utf-8"))["problems"]
            checks.append(Check("problems of the report", [], problems, not problems))
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
    ratios = [metric.value for metric in record.metrics if metric.name == "equality_ratio"]
    deviation = ratios[0] if ratios else None
    yield Check(f"{record.cell_id}: equality_ratio", "at most 1", deviation, deviation is not None and deviation <= 1)
