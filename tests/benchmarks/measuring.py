"""What benchmarks share: on what they ran, interpreters of environments, studies, ratios."""

from __future__ import annotations

import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from transect.domain.paths import ROOT
from transect.engine.build_environment import build
from transect.training.workloads import WORKLOADS


def about(**more: str) -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    facts = {
        "date": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}",
        "cores": f"{len(os.sched_getaffinity(0))} x {next(models, platform.machine())}",
        "python": platform.python_version(),
        **more,
        "load": f"{os.getloadavg()[0]:.1f} at the start",
    }
    return ", ".join(f"{key} {value}" for key, value in facts.items())


def python_of(environment: str, logs: Path) -> str:
    """Return an environment's Python, making it if need be. Ends the process when it fails."""
    facts = build(environment, (logs / f"{environment}.log").resolve())
    if facts["status"] != "ok":
        sys.exit(f"environment '{environment}' {facts['message']}")
    return str(facts["python"])


def prepare(python: str, folder: Path, workload: str, epochs: int) -> Path:
    """Run the data stage of a workload once; return its folder."""
    out = folder / f"{workload}-{epochs}"
    if not out.exists():
        out.mkdir()
        values = WORKLOADS.get(workload).defaults.model_dump() | {"epochs": epochs}
        used = {name: values[name] for name in ("batch", "epochs", "test_fraction", "dataset_options")}
        spec = {"workload": workload, "seed": 20261120, "repeats": 1, "parameters": used}
        (out / "spec.json").write_text(json.dumps(spec))
        command = [python, "-m", "transect.payloads", "transect.payloads.dataset:run", "--spec", str(out / "spec.json")]
        variables = os.environ | {"PYTHONPATH": str(ROOT / "src")}
        subprocess.run([*command, "--out", str(out)], env=variables, check=True)
    return out


def ran(text: str, folder: Path) -> Iterator[dict[str, Any]]:
    """Run a study of a folder; yield its trainings that ended well, say of the others why not.

    Ends the process when it does not run.
    """
    study = folder / "study.yaml"
    study.write_text(text)
    command = [sys.executable, "-m", "snakemake", "--profile", "profiles/local"]
    command += ["--config", f"study={study}", f"results={folder / 'results'}"]
    variables = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    run = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=6 * 3600)
    if run.returncode:
        sys.exit(run.stdout[-3000:] + run.stderr[-3000:])
    for path in sorted((folder / "results").glob("*/train/*/record.json")):
        record = json.loads(path.read_text())
        if record["status"] == "ok":
            yield record | {"values": {one["name"]: one["value"] for one in record["metrics"]}}
        else:
            print(f"# {record['cell_id']}: {record['status']}: {record['message'].splitlines()[0]}")


def over(times: list[float], base: list[float]) -> str:
    ratios = [a / b for a in times for b in base]
    return f"{statistics.median(times) / statistics.median(base):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
