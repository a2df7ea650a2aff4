"""Benchmarks on one machine: sizes that follow it, whose mpiexec starts them, and what their logs have to prove."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from factories import bench_cell
from transect.hpc.base import Run
from transect.hpc.benchmarks import _sizes, hpcg
from transect.hpc.benchmarks.base import BENCHMARKS
from transect.hpc.ingest import ingest
from transect.hpc.probes import cg


@given(st.integers(0, 1 << 45))
def test_the_grid_fills_its_memory_with_sides_that_hpcg_takes(memory) -> None:
    side = hpcg.side_for(memory)
    assert side % 8 == 0 and side >= 16
    assert side == 16 or 750 * side**3 <= memory * 1.001
    assert 750 * (side + 8) ** 3 > memory * 0.999


def test_sizes_follow_the_cores_of_a_cell(monkeypatch) -> None:
    monkeypatch.setattr(_sizes, "node_memory", lambda: 64 << 30)
    monkeypatch.setattr(_sizes, "available_cores", lambda: 16)
    ior = BENCHMARKS.get("ior")
    block = {ranks: ior.flags(bench_cell("ior", ranks_per_node=ranks))[7] for ranks in (1, 16)}
    assert block == {1: str(256 << 20), 16: str(256 << 20)}, "a sixteenth of 64 GiB on 16 cores, of each the same"
    sides = {
        hpcg._problem(bench_cell("hpcg", ranks_per_node=ranks, threads=threads))[0]
        for ranks, threads in ((1, 1), (16, 1))
    }
    assert len(sides) == 1 and sides.pop() == 112


def test_the_study_of_a_machine_lets_its_cells_grow_with_it() -> None:
    study = yaml.safe_load((Path(__file__).parents[3] / "config/studies/hpc.yaml").read_text(encoding="utf-8"))
    limit = study["limits"].get("memory_mb") or float("inf")
    for cores in (8, 192):
        side = cg.side_for(cores * (4 << 30) // 5, 32 << 20, cores)
        assert limit > cores * cg._BYTES_PER_ROW * side**3 / 2**20, f"cg-probe on {cores} cores"


@pytest.mark.parametrize(
    ("nodes", "mpi", "begins"),
    [
        (
            1,
            "intel",
            "mpiexec -hosts localhost -n 2 env LD_LIBRARY_PATH=/e/lib I_MPI_ROOT=/e FI_PROVIDER_PATH=/e/lib /e/bin/IMB-MPI1 ",
        ),
        (1, "mpich", "mpiexec -hosts localhost -n 2 env LD_LIBRARY_PATH=/e/lib /e/bin/IMB-MPI1 Allreduce -npmin 2 "),
        (2, "mpich", "env LD_LIBRARY_PATH=/e/lib /e/bin/IMB-MPI1 Allreduce -npmin 4 "),
    ],
)
def test_imb_of_a_wheel_is_started_by_its_own_mpiexec(nodes, mpi, begins, tmp_path) -> None:
    benchmark = BENCHMARKS.get("imb")
    cell = bench_cell("imb", {"mpi": mpi}, nodes=nodes, ranks_per_node=2)
    assert benchmark.by_launcher(cell) is (nodes > 1)
    prefix = [] if nodes > 1 else ["mpiexec"]
    assert " ".join(benchmark.command(cell, tmp_path, "/e/bin/python", prefix)).startswith(begins)
    assert benchmark.environment_of(cell) == {"intel": "imb", "mpich": "imb-mpich"}[mpi]
    system = bench_cell("imb", {"mpi": "system"}, ranks_per_node=2)
    assert benchmark.environment_of(system) is None and benchmark.by_launcher(system)


# What 2 ranks print that do not find each other: each is a world of one, twice the same table.
ALONE = """\
#    Intel(R) MPI Benchmarks 2021.11, MPI-1 part
# List of Benchmarks to run:
# Allreduce
# Benchmarking Allreduce
# #processes = {processes}
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
            0         1000         0.03         0.04         0.04
      4194304           10       744.61       757.80       751.20
# All processes entering MPI_Finalize
"""


@pytest.mark.parametrize(("processes", "wrong"), [(2, None), (1, "the cell has 2 ranks, its log tells of 1 processes")])
def test_ranks_that_did_not_find_each_other_are_told_by_the_log(processes, wrong, tmp_path) -> None:
    (tmp_path / "output.log").write_text(ALONE.format(processes=processes))
    (run,) = ingest([tmp_path / "output.log"], "imb")
    assert run.status == "ok"
    assert BENCHMARKS.get("imb").contradicts(bench_cell("imb", ranks_per_node=2), run) == wrong


def test_decks_have_names_where_they_are(tmp_path: Path, monkeypatch) -> None:
    probe, cell = BENCHMARKS.get("docking-probe"), bench_cell("docking-probe", {"deck": "bm2"})
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("TRANSECT_DECKS", raising=False)
    reason = probe.supports(cell)
    assert reason is not None and "bm2 is neither in TRANSECT_DECKS (not set)" in reason and "git clone" in reason
    assert probe.files(cell) == []
    (tmp_path / "bm2").mkdir()
    for name in ("ligand.in", "protein.in", "forcefield.in", "poses.in"):
        (tmp_path / "bm2" / name).touch()
    monkeypatch.setenv("TRANSECT_DECKS", str(tmp_path))
    assert probe.supports(cell) is None and probe.files(cell) == [tmp_path / "bm2"]
    flags = probe.flags(cell)
    assert flags[flags.index("--deck") + 1] == str(tmp_path / "bm2")


@pytest.mark.parametrize("options", [{}, {"deck": "bm1"}])
def test_a_deck_of_minibude_counts_wherever_it_was_found(options, tmp_path: Path, monkeypatch) -> None:
    benchmark, cell = BENCHMARKS.get("minibude"), bench_cell("minibude", options)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("TRANSECT_DECKS", raising=False)
    assert benchmark.files(cell) == []
    for place in ("decks/bm1", "data/bm1", "bin"):
        (tmp_path / place).mkdir(parents=True)
    program = tmp_path / "bin/omp-bude"
    program.touch(mode=0o700)
    assert benchmark.files(cell) == [tmp_path / "data/bm1"]
    monkeypatch.setenv("TRANSECT_DECKS", str(tmp_path / "decks"))
    (read,) = benchmark.files(cell)
    assert read == tmp_path / "decks/bm1" and str(read) in benchmark.command(cell, tmp_path, str(program), [])


def test_a_program_for_a_gpu_has_a_command_of_its_own() -> None:
    cells = [bench_cell(name, device=device) for name in ("babelstream", "minibude") for device in ("cpu", "cuda")]
    said = [BENCHMARKS.get(cell.benchmark).install_for(cell) for cell in cells]
    assert len({*said}) == 4 and ["cuda" in command for command in said] == [False, True, False, True]
    assert [command.count("sm_90") + command.count("cuda_arch") for command in said] == [0, 1, 0, 1]


GPUS = [
    ("NVIDIA H200", True),
    ("Tesla V100-SXM2-16GB", True),
    ("A100-SXM4-40GB", True),
    ("RTX A6000", True),
    ("GRID V100D-8Q", True),
    ("OMP CPU", False),
    ("OMP host device #1", False),
    ("OMP target device #0 (default)", False),
    ("Device name unavailable", False),
    ("cpu-haswell-AMD EPYC 9454P", False),
    ("", False),
]


@pytest.mark.parametrize(("device", "proof"), GPUS)
@pytest.mark.parametrize("name", ["minibude", "babelstream"])
def test_a_cell_on_a_gpu_needs_the_name_of_one_in_its_log(name, device, proof) -> None:
    run = Run(benchmark=name, file="output.log", line=1, status="ok", parameters={"device": device} if device else {})
    benchmark = BENCHMARKS.get(name)
    assert benchmark.contradicts(bench_cell(name), run) is None
    reason = benchmark.contradicts(bench_cell(name, device="cuda"), run)
    assert (reason is None) is proof and (proof or "it may have run on the host" in reason)
