"""What one cell costs beyond its payload: the wall time of its runner, and Snakemake's share.

Run by hand: `python tests/benchmarks/bench_cell.py [--runs 15]`. Builds the base environment when
the cache has none.

The cell is one epoch of `iris-mlp-ce` in numpy. `added` is the wall time of
`python -m transect.execution.run_cell` less the record's `payload_s`, which is the wall time of
the payload's process. The split comes from runs of the same module in turn with these, whose
functions are timed. Snakemake's share is the slope of bare `shell: "touch …"` jobs over their
number, under profiles/local. Prints medians and quartiles; asserts nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench_grid import BARE, about, bare_grid

from transect.domain.files import write_atomic
from transect.domain.paths import ROOT

STUDY = {
    "name": "one",
    "workloads": {"iris-mlp-ce": {"epochs": 1}},
    "train": {
        "repeats": 1,
        "grids": [
            {"workloads": ["iris-mlp-ce"], "frameworks": ["numpy"], "strategies": ["single"]}
        ],
    },
}
# Functions that `run_cell` and its helpers call by these names; `run` is the payload.
PARTS = {
    "load_job": "read the spec",
    "snapshot": "two snapshots of the machine",
    "collect": "provenance of the machine and git",
    "write_record": "write the record (fsync)",
    "note_progress": "progress journal and line",
    "run": "payload",
}
JOBS = (10, 110)


# Nothing of this file is imported before the runner's own imports are timed.
CHILD = """
import time
started = time.monotonic()
from transect.execution import run_cell
imported = time.monotonic()
import sys
sys.path.insert(0, {folder!r})
import bench_cell
sys.exit(bench_cell.timed_child(started, imported, {out!r}, sys.argv[1:]))
"""


def timed_child(started: float, imported: float, out: str, arguments: list[str]) -> int:
    """Run the module with its functions timed. The clock is the machine's, shared by processes."""
    from transect.execution import payload, run_cell
    from transect.measure import guard

    ready = time.monotonic()
    began = float(os.environ["BENCH_BEGAN"])
    marks = {"interpreter": started - began, "import run_cell": imported - started}
    spent = dict.fromkeys([*PARTS, "stage.collect", "stage.inputs", "discover"], 0.0)

    def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*positional: Any, **named: Any) -> Any:
            start = time.monotonic()
            try:
                return function(*positional, **named)
            finally:
                spent[name] += time.monotonic() - start

        return call

    start = time.monotonic()
    for registry in (run_cell.STAGES, payload.LAUNCHERS):
        registry.names()
    stage = type(run_cell.STAGES.get("train"))
    spent["discover"] = time.monotonic() - start
    owners = {"run": payload, "snapshot": guard}
    for name in PARTS:
        owner = owners.get(name, run_cell)
        setattr(owner, name, timed(name, getattr(owner, name)))
    for name in ("collect", "inputs"):
        setattr(stage, name, timed(f"stage.{name}", getattr(stage, name)))
    start = time.monotonic()
    code = run_cell.main(arguments)
    end = time.monotonic()
    spent["rest of main"] = end - start - sum(spent.values()) + spent["discover"]
    # Importing this file belongs to none of the parts.
    facts = marks | spent | {"until_end": end - began, "excluded": ready - imported}
    Path(out).write_text(json.dumps(facts))
    return code


def spread(values: list[float]) -> str:
    """Median and quartiles in milliseconds."""
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{1e3 * middle:8.1f} ms ({1e3 * low:.1f}-{1e3 * high:.1f})"


def prepare(folder: Path) -> tuple[Path, dict[str, str], list[str]]:
    """Run what the cell needs; return its record, the variables, and the runner's arguments."""
    from transect.domain.record import read_record
    from transect.execution.build_environment import build
    from transect.planning.plan import make_plan
    from transect.planning.study import find_system

    results = folder / "results"
    (folder / "one.yaml").write_text(json.dumps(STUDY))
    plan = make_plan(folder / "one.yaml", find_system("laptop"), results)
    plan.write_specs()
    facts = build("base", folder / "base.log")
    write_atomic(plan.paths.environment("base"), json.dumps(facts))
    # Byte code is written and found, as it is for a user, whatever this shell forbids.
    drop = ("PYTHON", "TRANSECT_CELL", "TRANSECT_SNAKEMAKE")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(drop)}
    variables = kept | {
        "PYTHONPATH": str(ROOT / "src"),
        "PYTHONPYCACHEPREFIX": str(folder / "byte-code"),
    }
    for stage in ("data", "reference", "train"):
        (planned,) = plan.stage(stage).values()
        spec = plan.paths.spec(stage, planned.id)
        arguments = ["--spec", str(spec), "--results", str(results)]
        run = subprocess.run(
            [sys.executable, "-m", "transect.execution.run_cell", *arguments],
            env=variables, capture_output=True, text=True,
        )  # fmt: skip
        record = read_record(plan.paths.record(stage, planned.id))
        if run.returncode or record.status != "ok":
            sys.exit(f"{stage}: {record.message}\n{run.stderr}")
    return plan.paths.record("train", planned.id), variables, arguments


def runner_share(runs: int, folder: Path) -> None:
    """Time the runner and its parts."""
    record, variables, arguments = prepare(folder)
    totals, payloads, added, empty = [], [], [], []
    parts: dict[str, list[float]] = {}

    def wall(argv: list[str]) -> float:
        shutil.rmtree(record.parent, ignore_errors=True)
        start = time.monotonic()
        subprocess.run(
            [sys.executable, *argv],
            env=variables | {"BENCH_BEGAN": repr(start)}, stderr=subprocess.DEVNULL, check=True,
        )  # fmt: skip
        return time.monotonic() - start

    out = folder / "parts.json"
    child = CHILD.format(folder=str(Path(__file__).parent), out=str(out))
    for turn in range(runs + 1):
        nothing = wall(["-c", "pass"])
        total = wall(["-m", "transect.execution.run_cell", *arguments])
        payload = json.loads(record.read_text())["details"]["payload_s"]
        instrumented = wall(["-c", child, *arguments])
        if not turn:
            continue
        empty.append(nothing)
        totals.append(total)
        payloads.append(payload)
        added.append(total - payload)
        split = json.loads(out.read_text())
        split["exit"] = instrumented - split.pop("until_end")
        del split["excluded"]
        for name, seconds in split.items():
            parts.setdefault(name, []).append(seconds)
    print(f"\none train cell, {runs} runs: median (quartiles)")
    print(f"  {'added by the runner':40s} {spread(added)}")
    print(f"  {'whole runner':40s} {spread(totals)}")
    print(f"  {'payload_s':40s} {spread(payloads)}")
    print(f"  {'for comparison: python -c pass':40s} {spread(empty)}")
    print("split, from timed runs in turn with these:")
    names = {
        "interpreter": "interpreter starts",
        "import run_cell": "imports of run_cell",
        "discover": "plug-ins of stages and launchers",
        "stage.inputs": "checksums of the inputs",
        "stage.collect": "payload's series into metrics",
        "rest of main": "rest",
        "exit": "interpreter ends",
    }
    for name, values in parts.items():
        print(f"  {names.get(name) or PARTS[name]:40s} {spread(values)}")


def snakemake_share(runs: int, folder: Path) -> None:
    """Time bare jobs: the slope over their number is one job's share."""
    walls: dict[int, list[float]] = {jobs: [] for jobs in JOBS}
    grids = {jobs: bare_grid(folder / f"bare-{jobs}", BARE.format(jobs=jobs)) for jobs in JOBS}
    for turn in range(runs + 1):
        for jobs, grid in grids.items():
            shutil.rmtree(grid.folder / "out", ignore_errors=True)
            seconds, _ = grid.run("--cores", "1")
            if turn:
                walls[jobs].append(seconds)
    few, many = JOBS
    slopes = [(b - a) / (many - few) for a, b in zip(walls[few], walls[many], strict=True)]
    print(
        f"\nSnakemake's own, bare `touch` jobs one after another, {runs} pairs of {few} and {many}:"
    )
    print(f"  {'per job':40s} {spread(slopes)}")
    start = [a - few * slope for a, slope in zip(walls[few], slopes, strict=True)]
    print(f"  {'once per call':40s} {spread(start)}")


def main() -> None:
    """Measure the runner, then Snakemake."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=15)
    given = parser.parse_args()
    print(about(snakemake=version("snakemake")))
    with tempfile.TemporaryDirectory() as temporary:
        runner_share(given.runs, Path(temporary))
        snakemake_share(max(3, given.runs // 3), Path(temporary))


if __name__ == "__main__":
    main()
