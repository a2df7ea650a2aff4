"""The modules that decide, by area: what a wrong line there would turn into a wrong result."""

from __future__ import annotations

from pathlib import Path

# Patterns below src/transect. A module that two areas name belongs to the first.
AREAS = {
    "fingerprints": [
        "planning/code_hash.py",
        "planning/sources.py",
        "planning/environments.py",
        "planning/images.py",
        "domain/checksums.py",
        "domain/files.py",
        "domain/inventory.py",
        "domain/options.py",
        "engine/staleness.py",
        "engine/differences.py",
        "engine/store.py",
    ],
    "planning": ["planning/**/*.py", "stages/*.py", "stages/*/stage.py", "stages/infer/grids.py", "domain/study.py"],
    "records": [
        "domain/record.py",
        "domain/cell.py",
        "domain/metrics.py",
        "domain/strict_yaml.py",
        "domain/until.py",
        "engine/run_cell.py",
        "engine/verify.py",
        "engine/attempts.py",
        "engine/repetition.py",
        "engine/payload.py",
        "engine/plan_files.py",
        "engine/result_folders.py",
        "adapters/snakemake/finalize.py",
        "analysis/load.py",
        "analysis/entries.py",
        "analysis/index.py",
    ],
    "statistics": [
        "stats/samples.py",
        "stats/estimates.py",
        "stats/noise.py",
        "stats/verdicts.py",
        "stats/comparisons.py",
        "analysis/contests.py",
        "analysis/groups.py",
        "analysis/bounds.py",
        "stats/change_points.py",
        "analysis/scaling.py",
        "analysis/set_*.py",
        "report/topics/distribution/twins.py",
        "analysis/side_by_side.py",
        "report/topics/ranks/amdahl.py",
        "analysis/kinds.py",
        "report/topics/ranks/costs.py",
        "report/topics/distribution/facts.py",
        "analysis/network.py",
        "report/topics/serving/load_facts.py",
        "report/topics/serving/condition_facts.py",
        "measure/intervals.py",
    ],
    "equality": [
        "training/tolerance.py",
        "training/divergence.py",
        "training/distance.py",
        "training/restarts.py",
        "training/sharpness.py",
        "stages/train/result*.py",
        "payloads/retrain_verdict.py",
    ],
    "parsers": ["hpc/parsers/*.py", "hpc/*.py"],
    "exports": [
        "onnx_models/comparison.py",
        "onnx_models/tolerance.py",
        "onnx_models/dynamic_tolerance.py",
        "onnx_models/lowered_tolerance.py",
        "onnx_models/accumulation.py",
        "onnx_models/results.py",
        "onnx_models/tensors.py",
        "runtimes/conformance.py",
        "runtimes/outputs.py",
    ],
}


def modules_of(area: str, source: Path) -> list[Path]:
    """Return an area's modules below `source` (the folder of the package `transect`)."""
    taken: set[Path] = set()
    for name, patterns in AREAS.items():
        found = {path for pattern in patterns for path in source.glob(pattern)} - taken
        if name == area:
            return sorted(path for path in found if path.name != "__init__.py")
        taken |= found
    raise KeyError(area)
