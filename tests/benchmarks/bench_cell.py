"""What one cell costs beyond its payload, in its block's runner, and Snakemake's share of a job.

Run by hand: `python tests/benchmarks/bench_cell.py [--runs 15] [--against CHECKOUT]`. Builds the
base environment when the cache has none.

The cells are repeats of one epoch of `iris-mlp-ce` in numpy. `added` is the slope of the wall
time of `python -m transect.engine.run_block`, less the sum of its records' `payload_s` (the wall
time of a payload's process), over the number of cells. `--against` runs the runner of
another checkout in turn with this one, and gives the ratio. The split comes from one more run whose
functions are timed. Snakemake's share is the slope of bare `shell: "touch …"` jobs over their number,
under profiles/local. Prints medians and quartiles; asserts nothing.
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

from bench_grid import BARE, bare_grid
from measuring import about

from transect.domain.files import write_atomic
from transect.domain.paths import ROOT

FEW, MANY = 2, 12
STUDY: dict[str, Any] = {
    "name": "one",
    "limits": {"repeats_if_disturbed": 0},
    "workloads": {"iris-mlp-ce": {"epochs": 1}},
    "train": {
        "repeats": MANY,
        "grids": [{"workloads": ["iris-mlp-ce"], "frameworks": ["numpy"], "strategies": ["single"]}],
    },
}
# Functions that the runner calls by these names, where they are looked up.
PARTS = {
    ("guard", "snapshot"): "looks at the machine",
    ("run_cell", "collect"): "provenance of the machine and git",
    ("run_cell", "write_record"): "write the record (fsync)",
    ("run_cell", "fingerprint_of"): "checksums of the inputs",
    ("run_cell", "_fresh"): "clear the folder, write the spec",
    ("payload", "refuse"): "ask plug-ins, check the environment",
    ("payload", "run"): "payload",
}
JOBS = (10, 110)
CHILD = """
import sys
sys.path.insert(0, {folder!r})
import bench_cell
sys.exit(bench_cell.timed_child({out!r}, sys.argv[1:]))
"""


def timed_child(out: str, arguments: list[str]) -> int:
    from transect.engine import payload, run_block, run_cell
    from transect.measure import guard

    owners = {"guard": guard, "run_cell": run_cell, "payload": payload}
    spent: dict[str, float] = {}

    def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        spent[name] = 0.0

        def call(*positional: Any, **named: Any) -> Any:
            start = time.monotonic()
            try:
                return function(*positional, **named)
            finally:
                spent[name] += time.monotonic() - start

        return call

    for (owner, name), text in PARTS.items():
        setattr(owners[owner], name, timed(text, getattr(owners[owner], name)))
    if hasattr(run_cell, "refuse"):
        run_cell.refuse = payload.refuse
    start = time.monotonic()
    code = run_block.main(arguments)
    spent["rest of the block"] = time.monotonic() - start - sum(spent.values())
    Path(out).write_text(json.dumps(spent))
    return code


def spread(values: list[float]) -> str:
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{1e3 * middle:8.1f} ms ({1e3 * low:.1f}-{1e3 * high:.1f})"


def prepare(folder: Path) -> tuple[Path, dict[int, Path], dict[str, str]]:
    """Run what the cells need; return their folder, a block file by number of cells, variables."""
    from transect.engine.build_environment import build
    from transect.engine.plan_files import write_plan
    from transect.planning.blocks import make_blocks
    from transect.planning.plan import make_plan
    from transect.planning.study import find_system

    results = folder / "results"
    (folder / "one.yaml").write_text(json.dumps(STUDY))
    plan = make_plan(folder / "one.yaml", find_system("laptop"), results)
    blocks = make_blocks(plan)
    write_plan(plan, blocks)
    facts = build("base", folder / "base.log")
    write_atomic(plan.paths.environment("base"), json.dumps(facts))
    # Byte code is written and found, as it is for a user, whatever this shell forbids.
    drop = ("PYTHON", "TRANSECT_CELL", "TRANSECT_SNAKEMAKE", "SLURM_")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(drop)}
    files: dict[int, Path] = {}
    for block in blocks:
        file = plan.paths.block(block.rule, block.name)
        if block.rule != "train":
            block_run(file, results, kept | {"PYTHONPATH": str(ROOT / "src")})
            continue
        head, *specs = file.read_text().splitlines()
        for count in (FEW, MANY):
            files[count] = folder / f"block-{count}.json"
            files[count].write_text("\n".join([head, *specs[:count]]) + "\n")
    return plan.paths.folder / "train", files, kept


def block_run(file: Path, results: Path, variables: dict[str, str], *argv: str) -> float:
    """Run a block; return its wall time in s."""
    command = argv or ("-m", "transect.engine.run_block")
    start = time.monotonic()
    subprocess.run(
        [sys.executable, *command, "--block", str(file), "--results", str(results)],
        env=variables,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    return time.monotonic() - start


def payload_s(path: Path) -> float:
    """Return the wall time of a record's payload. Exits when the cell is not ok."""
    record = json.loads(path.read_text())
    if record["status"] != "ok":
        sys.exit(f"{path}: {record['message']}")
    return float(record["details"]["payload_s"])


def runner_share(runs: int, folder: Path, against: Path | None) -> None:
    cells, files, kept = prepare(folder)
    results = folder / "results"
    checkouts = {"this checkout": ROOT} | ({str(against): against} if against else {})
    added: dict[str, list[float]] = {name: [] for name in checkouts}
    payloads: dict[str, list[float]] = {name: [] for name in checkouts}
    variables = {
        name: kept | {"PYTHONPATH": str(path / "src"), "PYTHONPYCACHEPREFIX": str(folder / f"byte-code-{number}")}
        for number, (name, path) in enumerate(checkouts.items())
    }
    for turn in range(runs + 1):
        for name in checkouts:
            walls, seconds = {}, {}
            for count, file in files.items():
                shutil.rmtree(cells, ignore_errors=True)
                walls[count] = block_run(file, results, variables[name])
                seconds[count] = [payload_s(path) for path in cells.glob("*/record.json")]
            if turn:
                apart = {count: walls[count] - sum(seconds[count]) for count in files}
                payloads[name].append(statistics.median(seconds[MANY]))
                added[name].append((apart[MANY] - apart[FEW]) / (MANY - FEW))
    print(f"\none train cell, slope from {FEW} to {MANY} in a block, {runs} runs: median (quartiles)")
    for name in checkouts:
        print(f"  {'added by the runner, ' + name:40s} {spread(added[name])}")
        print(f"  {'payload_s':40s} {spread(payloads[name])}")
    if against:
        here, there = added.values()
        ratios = [one / other for one, other in zip(here, there, strict=True)]
        print(f"  {'this over the other':40s} {statistics.median(ratios):8.2f}")
    shutil.rmtree(cells, ignore_errors=True)
    out = folder / "parts.json"
    child = CHILD.format(folder=str(Path(__file__).parent), out=str(out))
    block_run(files[MANY], results, variables["this checkout"], "-c", child)
    print(f"split, each of {MANY} cells, from a run with timed functions:")
    for text, took in json.loads(out.read_text()).items():
        print(f"  {text:40s} {1e3 * took / MANY:8.1f} ms")


def snakemake_share(runs: int, folder: Path) -> None:
    """Time bare jobs: the slope over their number is one job's share."""
    walls: dict[int, list[float]] = {jobs: [] for jobs in JOBS}
    grids = {jobs: bare_grid(folder / f"bare-{jobs}", BARE.format(jobs=jobs)) for jobs in JOBS}
    for turn in range(runs + 1):
        for jobs, grid in grids.items():
            shutil.rmtree(grid.folder / "out", ignore_errors=True)
            seconds, _, _ = grid.run("--cores", "1")
            if turn:
                walls[jobs].append(seconds)
    few, many = JOBS
    slopes = [(b - a) / (many - few) for a, b in zip(walls[few], walls[many], strict=True)]
    print(f"\nSnakemake's own, bare `touch` jobs one after another, {runs} pairs of {few} and {many}:")
    print(f"  {'per job':40s} {spread(slopes)}")
    start = [a - few * slope for a, slope in zip(walls[few], slopes, strict=True)]
    print(f"  {'once per call':40s} {spread(start)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--against", type=Path, help="another checkout, to compare with")
    given = parser.parse_args()
    print(about(snakemake=version("snakemake")))
    with tempfile.TemporaryDirectory() as temporary:
        runner_share(given.runs, Path(temporary), given.against)
        snakemake_share(max(3, given.runs // 3), Path(temporary))


if __name__ == "__main__":
    main()
