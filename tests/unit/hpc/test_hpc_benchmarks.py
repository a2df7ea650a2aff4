"""The benchmarks that transect runs itself: what they need, what they start, what they leave."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from factories import bench_cell, plan_study
from transect.domain.errors import MissingDependency
from transect.domain.record import Cause
from transect.engine.job import Job, load_job
from transect.engine.stage import RUNNERS
from transect.hpc.base import PARSERS
from transect.hpc.benchmarks import hpcc
from transect.hpc.benchmarks.base import BENCHMARKS
from transect.hpc.ingest import ingest
from transect.hpc.probes.common import available_memory, last_level_cache
from transect.hpc.probes.memory_bandwidth import plan_array_bytes
from transect.launch import LAUNCHERS
from transect.launch.processes import run

MIB = 1 << 20


@pytest.mark.parametrize("name", list(BENCHMARKS))
def test_every_benchmark_keeps_the_contract(name: str, tmp_path: Path) -> None:
    benchmark = BENCHMARKS.get(name)
    assert benchmark.name == name
    assert benchmark.parser in PARSERS
    assert all(path.is_file() for path in benchmark.code_files())
    argv = benchmark.command(bench_cell(name), tmp_path, "python", ["mpiexec"])
    assert argv and all(isinstance(part, str) for part in argv)
    assert benchmark.logs(tmp_path) == [tmp_path / "output.log"], "nothing has run yet"
    cell = bench_cell(name, benchmark.smoke, ranks_per_node=benchmark.least_ranks, device=benchmark.devices[0])
    if name != "onnxruntime-perf-test":  # which needs a model
        assert benchmark.supports(cell) is None, "a run of seconds is one that it can do"
    assert benchmark.smoke.keys() <= benchmark.options.keys()
    if "cuda" not in benchmark.devices:
        reason = benchmark.supports(bench_cell(name, device="cuda"))
        assert reason is not None and "\n" not in reason
    if benchmark.programs(cell) and name != "onnxruntime-perf-test":
        assert benchmark.install, "what is missing is named with the command that brings it"


@pytest.mark.parametrize(("ranks", "grid"), [(1, (1, 1)), (2, (1, 2)), (6, (2, 3)), (7, (1, 7)), (16, (4, 4))])
def test_hpcc_input_uses_every_rank(ranks: int, grid: tuple[int, int]) -> None:
    lines = hpcc.input_file(ranks).splitlines()
    assert (int(lines[10].split()[0]), int(lines[11].split()[0])) == grid
    assert lines[31].startswith("#####"), "the separator is line 32"


def test_hpcc_is_started_by_the_launcher_beside_it(tmp_path: Path) -> None:
    for name in ("hpcc", "mpiexec"):
        (tmp_path / name).touch()
    (tmp_path / "hpccoutf.txt").write_text("old")
    program = str(tmp_path / "hpcc")
    two = bench_cell("hpcc", ranks_per_node=2, options=(("N", 500), ("NB", 40)))
    argv = BENCHMARKS.get("hpcc").command(two, tmp_path, program, ["/env/mpiexec", "--x"])
    assert argv == [str(tmp_path / "mpiexec"), "--x", "-n", "2", program]
    assert not (tmp_path / "hpccoutf.txt").exists(), "the program would append to it"
    lines = (tmp_path / "hpccinf.txt").read_text().splitlines()
    assert (lines[5].split()[0], lines[7].split()[0]) == ("500", "40")
    argv = BENCHMARKS.get("hpcc").command(two, tmp_path, program, ["srun"])
    assert argv == ["srun", "-n", "2", program]
    # Modules or an image bring the MPI with the program.
    argv = BENCHMARKS.get("hpcc").command(two, tmp_path, "hpcc", ["/env/mpiexec"])
    assert argv == ["mpiexec", "-n", "2", "hpcc"]


@pytest.mark.parametrize(
    ("cache", "available", "expected"),
    [
        (32 * MIB, 64 << 30, 129 * MIB),  # beyond the cache
        (480 * MIB, 3 << 30, int((3 << 30) * 0.4) // 3 // 4096 * 4096),  # bounded by memory
        (None, 64 << 30, 256 * MIB),
        (MIB, 64 << 30, 64 * MIB),
    ],
)
def test_arrays_go_beyond_the_cache_where_memory_allows(cache: int | None, available: int, expected: int) -> None:
    assert plan_array_bytes(cache, available) == expected


def test_caches_are_added_up_once_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for cpu, shared in ((0, "0-1"), (1, "0-1"), (2, "2-3")):
        for index, (level, kind, size) in enumerate(
            [(1, "Data", "32K"), (1, "Instruction", "64K"), (3, "Unified", "16M")]
        ):
            folder = tmp_path / f"cpu{cpu}" / "cache" / f"index{index}"
            folder.mkdir(parents=True)
            for key, value in (
                ("level", level),
                ("type", kind),
                ("size", size),
                ("shared_cpu_list", shared if level == 3 else cpu),
            ):
                (folder / key).write_text(f"{value}\n")
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    assert last_level_cache(tmp_path) == 32 * MIB
    assert last_level_cache(tmp_path / "nowhere") is None
    assert available_memory() > 0


def test_a_wrong_product_does_not_pass_freivalds() -> None:
    np = pytest.importorskip("numpy")
    from transect.hpc.probes.matrix_multiply import freivalds

    rng = np.random.default_rng(0)
    for kind in ("float64", "float32"):
        a, b = (rng.standard_normal((64, 64)).astype(kind) for _ in range(2))
        deviation, tolerance = freivalds(np, a, b, a @ b, rng)
        assert deviation <= tolerance
        wrong = a @ b
        wrong[3, 5] += 0.5
        deviation, tolerance = freivalds(np, a, b, wrong, rng)
        assert deviation > tolerance
        wrong[3, 5] = np.nan
        deviation, tolerance = freivalds(np, a, b, wrong, rng)
        assert not deviation <= tolerance


@pytest.mark.env
@pytest.mark.parametrize(
    ("module", "options"),
    [
        ("memory_bandwidth", ["--array-bytes", "80008", "--threads", "3"]),
        ("matrix_multiply", ["--sizes", "16", "33", "--threads", "2"]),
    ],
)
def test_a_probe_runs_and_its_log_is_read_as_ok(module: str, options: list[str], tmp_path: Path) -> None:
    pytest.importorskip("numpy")
    log = tmp_path / "output.log"
    with log.open("wb") as stream:
        argv = [sys.executable, "-m", f"transect.hpc.probes.{module}", "--seconds", "0.01"]
        subprocess.run([*argv, *options], stdout=stream, check=True)
    (run,) = ingest([log])
    assert (run.status, run.reason) == ("ok", "")
    assert run.metrics and all(m.normalised is not None for m in run.metrics)
    assert all(len(series.values) >= 3 for series in run.samples.values())


def test_a_probe_that_finds_a_wrong_array_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("numpy")
    from transect.hpc.probes import memory_bandwidth as probe

    broken = SimpleNamespace(real=probe._Arrays.run)

    def run(self: object, kernel: str) -> float:
        seconds: float = broken.real(self, kernel)
        self.b[7] += 1  # type: ignore[attr-defined]
        return seconds

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probe._Arrays, "run", run)
        assert probe.main(["--array-bytes", "8000", "--seconds", "0"]) == 1
    assert "status: invalid: " in capsys.readouterr().out


def make_job(tmp_path: Path, benchmark: str, grid: str, system: str = "") -> Job:
    bench = f"bench: {{grids: [{{benchmarks: [{benchmark}], {grid}}}]}}"
    plan = plan_study(tmp_path, f"name: installed\n{bench}\n", system=f"name: here\n{system}")
    (planned,) = plan.stage("bench").values()
    job = load_job(planned.spec, plan.paths)
    job.folder.mkdir(parents=True)
    return job


# A stand-in that reads N, NB, P and Q where HPL does, and prints what HPL 2.3 would.
XHPL = r"""
word() { sed -n "$1p" HPL.dat | awk '{print $1}'; }
n=$(word 6) nb=$(word 8) p=$(word 11) q=$(word 12)
echo "HPLinpack 2.3  --  High-Performance Linpack benchmark  --   December 2, 2018"
printf 'N      : %7d\nNB     : %7d\nP      : %7d\nQ      : %7d\n' "$n" "$nb" "$p" "$q"
echo "- Computational tests pass if scaled residuals are less than                16.0"
echo "T/V                N    NB     P     Q               Time                 Gflops"
awk -v n="$n" -v nb="$nb" -v p="$p" -v q="$q" 'BEGIN {
  printf "WR11C2R4  %10d %5d %5d %5d %18.2f %22.4e\n", n, nb, p, q, 2, (2/3*n + 3/2)*n*n/2/1e9 }'
echo "||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   1.13100920e-03 ...... PASSED"
echo "Finished      1 tests with the following results:"
echo "              1 tests completed and passed residual checks,"
echo "              0 tests completed and failed residual checks,"
echo "              0 tests skipped because of illegal input values."
echo "End of Tests."
"""


@pytest.mark.env
def test_a_cell_of_hpl_from_its_study_to_its_number(tmp_path, monkeypatch) -> None:
    xhpl = tmp_path / "bin" / "xhpl"
    xhpl.parent.mkdir()
    xhpl.write_text(f"#!/bin/sh\n{XHPL}")
    xhpl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    job = make_job(tmp_path, "hpl", "options: [{N: 3840}]")
    stage = RUNNERS.get("bench")
    name, request = stage.prepare(job)
    assert (name, request.rendezvous, request.command) == ("mpiexec", "mpi", [str(xhpl)])
    # One rank needs no launcher of MPI.
    commands = LAUNCHERS.get("plain").processes(request)
    outcome = run(commands, log=job.log, cwd=job.folder, seconds=60)
    result = stage.collect(job, outcome)
    assert (result.status.value, result.message) == ("ok", "")
    (metric,) = [metric for metric in result.metrics if metric.name == "flops"]
    assert metric.value == pytest.approx((2 / 3 * 3840 + 1.5) * 3840**2 / 2, rel=1e-4)
    (run_facts,) = result.details["runs"]
    assert (run_facts["parameters"]["N"], run_facts["parameters"]["NB"]) == (3840, 192)


def test_a_missing_program_is_a_missing_dependency(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    job = make_job(tmp_path, "stream", "threads: [2]")
    with pytest.raises(MissingDependency, match=r"stream_c.exe or stream .*PATH: .*'stream'"):
        RUNNERS.get("bench").prepare(job)


@pytest.mark.parametrize("name", ["stream", "hpl", "hpcc"])
def test_modules_bring_a_program_that_is_not_here(name, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    system = f"benchmarks: {{{name}: {{modules: [site/{name}]}}}}\n"
    job = make_job(tmp_path, name, "options: [{}]", system)
    _, request = RUNNERS.get("bench").prepare(job)
    assert request.command == [BENCHMARKS.get(name).programs(job.cell)[0]]
    assert request.variables["TRANSECT_MODULES"] == f"site/{name}" and request.wrap[0] == "bash"


@pytest.mark.parametrize(("processes", "ending"), [(2, "ok"), (1, "failed")])
def test_a_cell_whose_log_tells_of_other_ranks_is_wrong(processes, ending, tmp_path) -> None:
    job = make_job(tmp_path, "imb", "ranks: [2], options: [{mpi: system}]")
    table = "       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n      4194304           10       7.61       7.80       7.71"
    job.log.write_text(
        f"# Benchmarking Allreduce\n# #processes = {processes}\n{table}\n# All processes entering MPI_Finalize\n"
    )
    result = RUNNERS.get("bench").collect(job, SimpleNamespace(code=0))
    assert result.status.value == ending, result.message
    if ending == "failed":
        assert (result.cause, result.message) == (
            Cause.WRONG_RESULT,
            "the cell has 2 ranks, its log tells of 1 processes",
        )


@pytest.mark.env
@pytest.mark.skipif(shutil.which("hpcc") is None, reason="hpcc is not on PATH")
def test_a_cell_of_hpcc_runs_with_its_options(tmp_path) -> None:
    job = make_job(tmp_path, "hpcc", "ranks: [2], options: [{N: 500, NB: 50}]")
    stage = RUNNERS.get("bench")
    name, request = stage.prepare(job)
    commands = LAUNCHERS.get(name).processes(request)
    outcome = run(commands, log=job.log, cwd=job.folder, seconds=120)
    result = stage.collect(job, outcome)
    assert (result.status.value, result.message) == ("ok", ""), job.log.read_text()
    (run_facts,) = result.details["runs"]
    assert (run_facts["parameters"]["HPL_N"], run_facts["parameters"]["HPL_NB"]) == (500, 50)
    assert run_facts["parameters"]["CommWorldProcs"] == 2


@pytest.mark.env
@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not on PATH")
def test_a_cell_of_fio_runs_at_its_smallest_size(tmp_path) -> None:
    job = make_job(tmp_path, "fio", f"threads: [2], options: [{{size: smoke, folder: {tmp_path}}}]")
    stage = RUNNERS.get("bench")
    name, request = stage.prepare(job)
    outcome = run(LAUNCHERS.get(name).processes(request), log=job.log, cwd=job.folder, seconds=120)
    result = stage.collect(job, outcome)
    assert (result.status.value, result.message) == ("ok", ""), job.log.read_text()
    assert {metric.name for metric in result.metrics} == {"storage_bandwidth"}
    assert result.details["status_counts"] == {"ok": 4}
    assert not list(tmp_path.glob("transect-fio-*"))
