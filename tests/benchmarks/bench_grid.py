"""A large grid: dry run and no-op run of transect against bare workflows of as many jobs.

Run by hand: `python tests/benchmarks/bench_grid.py [--cells 1000 5000] [--alone 50000] [--pairs 5]`.

Three workflows of equally many jobs run in turn, in a temporary folder, under the same profile:

transect    a study of that many train cells of two frameworks (plus data, references, report)
bare        `shell:` jobs without inputs, and a target that wants them all
same edges  a bare workflow whose jobs take the inputs that train cells take: data, reference and
            environment; its report and target take all. What is left is transect's own part.

The cells of transect are jobs of the bare workflows, but share allocation blocks here. No payload
runs: for the no-op run every output is written by hand, with the fingerprints that a run would
give, and Snakemake's metadata come from `snakemake --touch`. The dry run comes before anything is
there, and once more when all is (`dry, done`): it then reads every record to say that none is
stale. The dry run is also made under the profile `slurm`, with blocks as large as a cluster's jobs and with
a job for each cell, beside the local one in turn: `slurm/local` is the ratio of processor times.
Sizes of `--alone` are run without bare workflows, for time and peak memory. Prints ratios of medians; asserts
nothing.
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
from importlib.metadata import version
from pathlib import Path

from measuring import about

from transect.adapters.snakemake.flow import facts_of_plan, write_facts
from transect.domain.paths import ROOT
from transect.domain.record import Record, Status, checksum_of
from transect.engine.job import load_job
from transect.engine.plan_files import write_plan
from transect.engine.stage import RUNNERS
from transect.engine.staleness import newest_change
from transect.engine.store import fingerprint_of, used_limits
from transect.planning.blocks import make_blocks
from transect.planning.plan import make_plan
from transect.planning.study import find_system

REPEATS = 5
BARE = """
rule all:
    default_target: True
    input:
        expand("out/{{i}}.json", i=range({jobs})),


rule cell:
    output:
        "out/{{i}}.json",
    shell:
        "touch {{output}}"
"""
SAME_EDGES = """
CELLS = expand("out/cell/{{i}}.r{{r}}.json", i=range({cells}), r=range({repeats}))


rule all:
    default_target: True
    input:
        "out/report.html",
        CELLS,


rule environment:
    output:
        "out/environment.json",
    shell:
        "touch {{output}}"


rule data:
    input:
        "out/environment.json",
    output:
        "out/data.json",
    shell:
        "touch {{output}}"


rule reference:
    input:
        "out/data.json",
        "out/environment.json",
    output:
        "out/reference/{{r}}.json",
    shell:
        "touch {{output}}"


rule cell:
    input:
        "out/data.json",
        "out/reference/{{r}}.json",
        "out/environment.json",
    output:
        "out/cell/{{i}}.r{{r}}.json",
    shell:
        "touch {{output}}"


rule report:
    input:
        CELLS,
    output:
        "out/report.html",
    shell:
        "touch {{output}}"
"""


def ratio(ours: list[float], theirs: list[float]) -> str:
    """Ratio of the medians, and the quartiles of the pairs' ratios."""
    middle = statistics.median(ours) / statistics.median(theirs)
    pairs = [a / b for a, b in zip(ours, theirs, strict=True)]
    if len(pairs) < 4:
        return f"{middle:.2f} ({min(pairs):.2f}-{max(pairs):.2f})"
    low, _, high = statistics.quantiles(pairs, n=4, method="inclusive")
    return f"{middle:.2f} ({low:.2f}-{high:.2f})"


class Workflow:
    def __init__(self, folder: Path, *arguments: str, profile: str = "local") -> None:
        self.folder = folder
        self.profile = f"profiles/{profile}"
        self.arguments = arguments
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("TRANSECT_", "PYTHON"))}
        # An own cache: the stamps made here must not touch anybody's environments.
        self.environment = kept | {"TRANSECT_ENVS": str(folder / "environments")}

    def run(self, *arguments: str) -> tuple[float, float, float]:
        """Run Snakemake; return wall and CPU seconds, and its peak memory in MB."""
        snakemake = str(Path(sys.executable).parent / "snakemake")
        argv = [sys.executable, snakemake, "--profile", self.profile]
        with tempfile.TemporaryFile("w+") as said:
            start = time.perf_counter()
            # Waited for by hand: what it used itself, and no other child.
            run = subprocess.Popen(
                [*argv, *arguments, *self.arguments],
                cwd=self.folder,
                env=self.environment,
                stdout=said,
                stderr=said,
                text=True,
            )
            _, status, used = os.wait4(run.pid, 0)
            wall = time.perf_counter() - start
            run.returncode = os.waitstatus_to_exitcode(status)
            said.seek(0)
            self.said = said.read()
            if run.returncode:
                sys.exit(f"{self.folder.name}: exit code {run.returncode}\n{self.said}")
        return wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024

    def pending(self) -> int:
        snakemake = str(Path(sys.executable).parent / "snakemake")
        argv = [snakemake, "--profile", "profiles/local", "--summary", *self.arguments]
        run = subprocess.run(argv, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=True)
        rows = [line.split("\t") for line in run.stdout.splitlines()[1:]]
        return sum(row[-1] != "no update" for row in rows if len(row) > 3)


def transect_grid(folder: Path, cells: int) -> Workflow:
    """Copy the checkout and give it a study of `cells` train cells: two frameworks."""
    folder.mkdir()
    for name in ("Snakefile", "workflow", "config", "envs", "profiles", "src"):
        source = ROOT / name
        if source.is_dir():
            skip = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(source, folder / name, ignore=skip)
        else:
            shutil.copy2(source, folder / name)
    threads = list(range(1, cells // (2 * REPEATS) + 1))
    study = {
        "name": "grid",
        "train": {
            "repeats": REPEATS,
            "grids": [
                {
                    "workloads": ["iris-mlp-ce"],
                    "frameworks": ["numpy", "torch"],
                    "strategies": ["single"],
                    "threads": threads,
                }
            ],
        },
    }
    # JSON is YAML.
    (folder / "grid.yaml").write_text(json.dumps(study))
    return Workflow(folder, "--config", "study=grid.yaml")


def bare_grid(folder: Path, text: str) -> Workflow:
    folder.mkdir()
    (folder / "Snakefile").write_text(text)
    shutil.copytree(ROOT / "profiles" / "local", folder / "profiles" / "local")
    return Workflow(folder)


def finish_transect(grid: Workflow) -> None:
    """Write every output of the study as if its payloads had run, oldest first."""
    results = (grid.folder / "results").resolve()
    plan = make_plan(grid.folder / "grid.yaml", find_system("laptop"), results)
    blocks = make_blocks(plan)
    write_plan(plan, blocks)
    for name, lock in sorted({pair for planned in plan for pair in planned.environments.items()}):
        stamp = plan.paths.environment(name)
        stamp.parent.mkdir(parents=True, exist_ok=True)
        told = {"name": name, "lock_hash": lock, "python": sys.executable, "status": "ok"}
        stamp.write_text(json.dumps(told | {"message": ""}))
    for planned in plan:
        job = load_job(planned.spec, plan.paths)
        fingerprint, inputs = fingerprint_of(job, RUNNERS.get(planned.cell.stage))
        record = Record(
            study="grid",
            stage=planned.cell.stage,
            cell=planned.cell,
            cell_id=planned.id,
            status=Status.OK,
            fingerprint=fingerprint,
            inputs=inputs,
            started="2026-01-01T00:00:00.000+00:00",
            ended="2026-01-01T00:00:01.000+00:00",
            parameters=planned.spec.get("parameters", {}),
        )
        job.folder.mkdir(parents=True)
        job.spec_file.write_text(json.dumps(planned.spec))
        # Not synced to disk: there are thousands, and nobody pulls the plug.
        content = json.loads(record.model_dump_json())
        content["checksum"] = checksum_of(content)
        (job.folder / "record.json").write_text(json.dumps(content))
    facts = facts_of_plan(plan, blocks)
    write_facts(plan.paths, facts)
    for block, known in zip(blocks, facts.blocks, strict=True):
        stamp = plan.paths.stamp(block.rule, block.name)
        stamp.parent.mkdir(parents=True, exist_ok=True)
        looked = newest_change(plan.paths.record(*planned.key) for planned in block.cells)
        limits = used_limits(plan.study.limits.model_dump())
        stamp.write_text(json.dumps({"state": known.state, "limits": limits, "records_ns": looked}))
    for name in ("records.parquet", "summary.json", "report.html"):
        (plan.paths.folder / name).write_text('{"counts": {}}')


def finish_bare(grid: Workflow, names: list[str]) -> None:
    for name in names:
        path = grid.folder / "out" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")


def compare(grids: dict[str, Workflow], what: str, arguments: tuple[str, ...], pairs: int) -> None:
    """Run all in turn and print their times and, beside bare ones, their ratios to these."""
    wall: dict[str, list[float]] = {name: [] for name in grids}
    cpu: dict[str, list[float]] = {name: [] for name in grids}
    peak = dict.fromkeys(grids, 0.0)
    # The first round warms the page cache and writes byte code.
    for turn in range(pairs + 1):
        for name in sorted(grids, reverse=bool(turn % 2)):
            seconds, used, memory = grids[name].run(*arguments)
            if turn:
                wall[name].append(seconds)
                cpu[name].append(used)
                peak[name] = max(peak[name], memory)
    for name in grids:
        ratios = ""
        if "bare" in grids:
            pairs_of = (wall[name], wall["bare"]), (cpu[name], cpu["bare"])
            edges = (wall[name], wall["same edges"])
            ratios = "".join(f" {ratio(*pair):18s}" for pair in (*pairs_of, edges))
        print(
            f"{what:9s} {name:11s} {statistics.median(wall[name]):8.2f} s"
            f" {statistics.median(cpu[name]):8.2f} s {peak[name]:6.0f} MB  {ratios}",
            flush=True,
        )


def compare_profiles(local: Workflow, arguments: tuple[str, ...], pairs: int) -> None:
    """Run the same study under both profiles in turn; print times and ratios of processor times."""
    cluster = (ROOT / "config" / "systems" / "example-cpu-cluster.yaml").read_text()
    (local.folder / "one.yaml").write_text(f"{cluster}\ncells_per_job: 1\n")
    systems = {"slurm": "example-cpu-cluster", "one a job": "one.yaml"}
    grids = {"local": local} | {
        name: Workflow(local.folder, *local.arguments, f"system={system}", profile="slurm")
        for name, system in systems.items()
    }
    cpu: dict[str, list[float]] = {name: [] for name in grids}
    wall: dict[str, list[float]] = {name: [] for name in grids}
    for turn in range(pairs + 1):
        for name in sorted(grids, reverse=bool(turn % 2)):
            seconds, used, _ = grids[name].run(*arguments)
            if turn:
                wall[name].append(seconds)
                cpu[name].append(used)
    for name in grids:
        told = "" if name == "local" else f"  slurm/local {ratio(cpu[name], cpu['local'])}"
        middle = statistics.median(wall[name]), statistics.median(cpu[name])
        print(f"dry run   {name:11s} {middle[0]:8.2f} s {middle[1]:8.2f} s{told}", flush=True)


def measure(cells: int, pairs: int, temporary: Path, alone: bool) -> None:
    """Build, finish and compare the three workflows of one size; `alone`: no bare ones."""
    ours = transect_grid(temporary / f"transect-{cells}", cells)
    grids = {"transect": ours}
    # Besides the train cells: data, references, two environments, report and target.
    jobs = cells + REPEATS + 4
    if not alone:
        grids["bare"] = bare_grid(temporary / f"bare-{cells}", BARE.format(jobs=jobs))
        text = SAME_EDGES.format(cells=cells // REPEATS, repeats=REPEATS)
        grids["same edges"] = bare_grid(temporary / f"edges-{cells}", text)
    print(f"\n{cells} train cells, {jobs} jobs and a target in bare workflows, {pairs} rounds")
    print("run       workflow      median      CPU    peak  ", end="")
    print("  wall/bare          CPU/bare           wall/same edges")
    dry = ("-n", "--quiet", "all")
    compare(grids, "dry run", dry, pairs)
    compare_profiles(ours, dry, pairs)
    finish_transect(ours)
    if not alone:
        finish_bare(grids["bare"], [f"{i}.json" for i in range(jobs)])
        edges = ["environment.json", "data.json", *(f"reference/{r}.json" for r in range(REPEATS))]
        edges += [f"cell/{i}.r{r}.json" for i in range(cells // REPEATS) for r in range(REPEATS)]
        finish_bare(grids["same edges"], [*edges, "report.html"])
    for name, grid in grids.items():
        grid.run("--touch")
        left = grid.pending()
        if left:
            sys.exit(f"{name}: {left} outputs are pending, this would be no no-op run")
    compare(grids, "no-op", (), pairs)
    compare(grids, "dry, done", dry, pairs)
    ours.run(*dry)
    if "no cell would run" not in ours.said:
        sys.exit(f"the records do not hold: {ours.said}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, nargs="*", default=[1000, 5000])
    parser.add_argument("--alone", type=int, nargs="*", default=[50_000])
    parser.add_argument("--pairs", type=int, default=5)
    given = parser.parse_args()
    print(about(snakemake=version("snakemake")))
    with tempfile.TemporaryDirectory() as temporary:
        for cells in given.cells:
            measure(cells, given.pairs, Path(temporary), alone=False)
        for cells in given.alone:
            # Minutes for each round: two give the time, and the peak does not vary.
            measure(cells, min(2, given.pairs), Path(temporary), alone=True)


if __name__ == "__main__":
    main()
