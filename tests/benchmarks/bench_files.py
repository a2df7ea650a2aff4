"""The probe of files against fio on equal patterns: as many bytes, records, jobs, and the same files and ways.

Run by hand, alone on the disk: `python tests/benchmarks/bench_files.py [--ranks 2] [--rounds 3] [--seconds 20]
[--folder FOLDER]`. Needs fio on PATH. Goal: each phase at least 0.9 of fio's; IOR and mdtest, which would be nearer,
are in no package here.

The probe and fio take turns; a phase's rate is the median over all samples of all rounds, fio's over `--repeats` runs in
each round. fio moves records by pwrite and pread as the probe does (ioengine psync), in processes; its time is that of
its slowest job, which it tells in whole milliseconds: too coarse for what is written into the page cache and not synced.
It reads the page cache many times over. Prints; asserts nothing of times.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from measuring import about, python_of

from transect.domain.axes.bench import BenchCell
from transect.domain.paths import ROOT
from transect.hpc.base import Run
from transect.hpc.benchmarks.base import BENCHMARKS
from transect.hpc.ingest import ingest
from transect.launch.launchers.mpiexec import mpiexec_prefix

RECORD = {"easy": 1 << 20, "hard": 47008, "random": 4096}
FILES = 4000
LOOPS = 30
WAYS = {
    "direct-unsynced": ["--direct=1"],
    "direct-synced": ["--direct=1", "--end_fsync=1"],
    "buffered-unsynced": [],
    "buffered-synced": ["--end_fsync=1"],
    "direct": ["--direct=1"],
    "dropped": ["--invalidate=1"],
    "cached": ["--invalidate=0"],
}


def probe(folder: Path, ranks: int, seconds: int) -> Run:
    benchmark = BENCHMARKS.get("file-probe")
    python = python_of("base", folder)
    options = (("folder", str(folder)), ("seconds", seconds))
    cell = BenchCell(benchmark="file-probe", ranks_per_node=ranks, options=options)
    prefix = [*mpiexec_prefix(str(Path(python).parent / "mpiexec")), "--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]
    log = folder / "output.log"
    with log.open("w") as stream:
        subprocess.run(
            benchmark.command(cell, folder, python, [*prefix, "-n", str(ranks)]),
            env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
            stdout=stream,
            check=True,
        )
    (run,) = ingest([log], "file-probe")
    assert run.status == "ok", run.reason
    return run


def fio(folder: Path, ranks: int, *options: str) -> float:
    """Return the seconds of fio's slowest job."""
    shared = [
        f"--directory={folder}",
        "--ioengine=psync",
        "--fallocate=none",
        "--output-format=json",
        f"--numjobs={ranks}",
    ]
    argv = ["fio", "--name=job", *shared, *options]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    jobs = json.loads(done.stdout[done.stdout.index("{") :])["jobs"]
    return max(job[way]["runtime"] for job in jobs for way in ("read", "write")) / 1000


def data(folder: Path, run: Run, label: str) -> float:
    """Return the bytes a second of fio in one phase of the probe."""
    ranks = int(str(run.parameters["ranks"]))
    does, whose, pattern, way = label.split("-", 3)
    size = int(str(run.parameters[f"{pattern}_bytes"])) // ranks
    held = int(str(run.parameters["easy_bytes"])) // ranks if pattern == "random" else size
    record, shared = RECORD[pattern], whose == "shared"
    options = [
        f"--bs={record}",
        f"--io_size={size}",
        "--filename=shared" if shared else "--filename_format=own-$jobnum",
    ]
    rule = does
    if pattern == "random":
        rule = f"rand{does}"
    if shared and pattern == "hard":
        # Records of the ranks by turns: each skips those of the others.
        rule = f"{does}:{record * (ranks - 1)}"
        options += [f"--offset_increment={record}", f"--size={size * ranks - record * (ranks - 1)}"]
    else:
        options += [f"--size={held}", *([f"--offset_increment={held}"] if shared else [])]
    fresh = does == "write" and pattern != "random"
    if fresh:
        for path in folder.iterdir():
            path.unlink()
    if pattern == "random":
        options.append("--overwrite=1")
    # Else fio would write the whole before it measures.
    options += ["--create_on_open=1"] if fresh else []
    loops = LOOPS if way == "cached" else 1
    if way == "cached":  # other places of the file than those that were read before, too
        for path in folder.iterdir():
            path.read_bytes()
    return loops * size * ranks / fio(folder, ranks, f"--rw={rule}", f"--loops={loops}", *options, *WAYS[way])


def metadata(folder: Path, run: Run, does: str) -> float:
    """Return the files a second of fio in one phase of the probe, in one folder; enough of them for its clock."""
    ranks, files = int(str(run.parameters["ranks"])), max(FILES, int(str(run.parameters["files"])))
    options = [
        f"--nrfiles={files // ranks}",
        "--filesize=4k",
        "--bs=4k",
        "--openfiles=1",
        "--file_service_type=sequential",
    ]
    rule = {
        "create": ["--rw=write", "--create_on_open=1"],
        "stat": ["--ioengine=filestat", "--rw=read"],
        "read": ["--rw=read", "--invalidate=0"],
        "remove": ["--ioengine=filedelete", "--rw=write"],
    }
    return files / fio(folder, ranks, *options, *rule[does])


def fio_round(folder: Path, run: Run, repeats: int, rates: dict[str, list[float]]) -> None:
    labels = [metric.phase for metric in run.metrics if metric.name.endswith("_best")]
    with tempfile.TemporaryDirectory(dir=folder) as made:
        place = Path(made)
        for _ in range(repeats):
            for whose in ("own", "shared"):
                for pattern in ("easy", "random", "hard"):
                    for label in filter(None, labels):
                        if label.split("-")[1:3] == [whose, pattern]:
                            rates[label].append(data(place, run, label))
            for path in place.iterdir():
                path.unlink()
            for does in ("create", "stat", "read", "remove"):
                rates[f"{does}-shared-files"].append(metadata(place, run, does))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    given = parser.parse_args()
    ours: dict[str, list[float]] = defaultdict(list)
    theirs: dict[str, list[float]] = defaultdict(list)
    version = subprocess.run(["fio", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    print(about(fio=version, ranks=str(given.ranks)))
    with tempfile.TemporaryDirectory(dir=given.folder) as made:
        for number in range(given.rounds):
            run = probe(Path(made), given.ranks, given.seconds)
            for metric in run.metrics:
                if metric.name.endswith("_best") and metric.phase:
                    work = metric.value * min(run.samples[metric.phase].values)
                    ours[metric.phase] += [work / seconds for seconds in run.samples[metric.phase].values]
            fio_round(Path(made), run, given.repeats, theirs)
            print(f"round {number + 1} of {given.rounds}", file=sys.stderr)
    print(f"{'phase':38} {'probe':>12} {'fio':>12}  probe/fio")
    for label, rates in ours.items():
        mine, other = statistics.median(rates), statistics.median(theirs.get(label, [0.0]))
        scale, unit = (1.0, "1/s") if label.split("-")[2] == "files" else (1e6, "MB/s")
        ratio = f"{mine / other:9.2f}" if other else "  no fio of that kind"
        print(f"{label:38} {mine / scale:12.1f} {other / scale:12.1f}  {ratio} {unit}")


if __name__ == "__main__":
    main()
