"""The benchmarks that transect runs itself: what they need, what they start, what they leave."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from transect.domain.cell import Cell
from transect.hpc.base import PARSERS
from transect.hpc.benchmarks import hpcc
from transect.hpc.benchmarks.base import BENCHMARKS
from transect.hpc.ingest import ingest
from transect.hpc.probes.common import available_memory, last_level_cache
from transect.hpc.probes.memory_bandwidth import plan_array_bytes

MIB = 1 << 20


def cell(benchmark: str, **axes: object) -> Cell:
    return Cell(stage="bench", benchmark=benchmark, **axes)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", list(BENCHMARKS))
def test_every_benchmark_keeps_the_contract(name: str, tmp_path: Path) -> None:
    benchmark = BENCHMARKS.get(name)
    assert benchmark.name == name
    assert benchmark.parser in PARSERS
    assert all(path.is_file() for path in benchmark.code_files())
    argv = benchmark.command(cell(name), tmp_path, "python", ["mpiexec"])
    assert argv and all(isinstance(part, str) for part in argv)
    assert benchmark.logs(tmp_path) == [tmp_path / "output.log"], "nothing has run yet"
    reason = benchmark.supports(cell(name, device="cuda"))
    assert reason is not None and "\n" not in reason


@pytest.mark.parametrize("name", ["memory-bandwidth-probe", "matrix-multiply-probe"])
def test_a_probe_refuses_ranks(name: str) -> None:
    assert BENCHMARKS.get(name).supports(cell(name, threads=2)) is None
    assert "2 ranks" in str(BENCHMARKS.get(name).supports(cell(name, nodes=2)))


@pytest.mark.parametrize(
    ("ranks", "grid"), [(1, (1, 1)), (2, (1, 2)), (6, (2, 3)), (7, (1, 7)), (16, (4, 4))]
)
def test_hpcc_input_uses_every_rank(ranks: int, grid: tuple[int, int]) -> None:
    lines = hpcc.input_file(ranks).splitlines()
    assert (int(lines[10].split()[0]), int(lines[11].split()[0])) == grid
    assert lines[31].startswith("#####"), "the separator is line 32"


def test_hpcc_says_when_it_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert BENCHMARKS.get("hpcc").supports(cell("hpcc")) == "hpcc is not on PATH"


def test_hpcc_is_started_by_the_launcher_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("hpcc", "mpiexec"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "hpccoutf.txt").write_text("old")
    two = cell("hpcc", ranks_per_node=2)
    argv = BENCHMARKS.get("hpcc").command(two, tmp_path, "python", ["/env/mpiexec", "--x"])
    assert argv == [str(tmp_path / "mpiexec"), "--x", "-n", "2", str(tmp_path / "hpcc")]
    assert not (tmp_path / "hpccoutf.txt").exists(), "the program would append to it"
    argv = BENCHMARKS.get("hpcc").command(two, tmp_path, "python", ["srun"])
    assert argv == ["srun", "-n", "2", str(tmp_path / "hpcc")]


@pytest.mark.parametrize(
    ("cache", "available", "expected"),
    [
        (32 * MIB, 64 << 30, 129 * MIB),  # beyond the cache
        (480 * MIB, 3 << 30, int((3 << 30) * 0.4) // 3 // 4096 * 4096),  # bounded by memory
        (None, 64 << 30, 256 * MIB),
        (MIB, 64 << 30, 64 * MIB),
    ],
)
def test_arrays_go_beyond_the_cache_where_memory_allows(
    cache: int | None, available: int, expected: int
) -> None:
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


@pytest.mark.parametrize(
    ("module", "options"),
    [
        ("memory_bandwidth", ["--array-bytes", "80008", "--threads", "3"]),
        ("matrix_multiply", ["--sizes", "16", "33", "--threads", "2"]),
    ],
)
def test_a_probe_runs_and_its_log_is_read_as_ok(
    module: str, options: list[str], tmp_path: Path
) -> None:
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
