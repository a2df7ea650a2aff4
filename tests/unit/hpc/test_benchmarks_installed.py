"""Benchmarks that a system may have: their command lines, input files, and why they do not run."""

from __future__ import annotations

import configparser
import math
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factories import bench_cell
from transect.domain.cell import Cell
from transect.domain.errors import MissingDependency
from transect.domain.record import Cause
from transect.hpc.benchmarks import _files, _sizes, hpcg, hpl, minibude, osu
from transect.hpc.benchmarks._linpack import near_square
from transect.hpc.benchmarks.base import BENCHMARKS
from transect.measure import memory


def program(folder: Path, name: str, text: str = "") -> Path:
    """Put a program into a folder."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}")
    path.chmod(0o755)
    return path


@given(st.integers(1, 5000))
def test_process_grids_are_as_square_as_they_can_be(ranks: int) -> None:
    p, q = near_square(ranks)
    assert p * q == ranks and p <= q
    assert not any(ranks % divisor == 0 for divisor in range(p + 1, math.isqrt(ranks) + 1))


@given(st.integers(0, 1 << 50), st.floats(0.001, 0.999), st.integers(1, 1024))
def test_the_order_fills_its_share_of_memory_with_whole_blocks(given_bytes, share, nb) -> None:
    n = hpl.order_for(given_bytes, share, nb)
    assert n % nb == 0 and n >= nb
    assert n == nb or 8 * n * n <= given_bytes * share, "the matrix stays within its share"
    assert 8 * (n + nb) ** 2 > int(given_bytes * share) - 8, "one more block would not"


def test_memory_is_the_least_of_the_nodes_and_the_jobs(tmp_path: Path) -> None:
    groups = tmp_path / "sys/fs/cgroup/slurm/job_7/step_0"
    groups.mkdir(parents=True)
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text("MemTotal:       1024 kB\nMemFree: 1 kB\n")
    assert memory.node_memory(tmp_path) == 1 << 20
    (tmp_path / "proc/self/cgroup").write_text("0::/slurm/job_7/step_0\n")
    (groups / "memory.max").write_text("max\n")
    (groups.parent / "memory.max").write_text("4096\n")
    assert memory.node_memory(tmp_path) == 4096
    assert memory.node_memory(tmp_path / "nowhere") == 1 << 30


# Line by line what HPL_pdinfo.c of HPL 2.3 reads: the first word, or words, of each line.
HPL_DAT = "HPLinpack written HPL.out 6 1 960 1 192 0 1 2 3 16.0 1 2 1 4 1 2 1 1 1 1 1 1 2 64 0 0 1 8"


def test_hpl_dat_is_what_hpl_reads(tmp_path: Path) -> None:
    six = bench_cell("hpl", {"N": 960}, nodes=2, ranks_per_node=3)
    assert BENCHMARKS.get("hpl").command(six, tmp_path, "xhpl", []) == ["xhpl"]
    lines = (tmp_path / "HPL.dat").read_text().splitlines()
    assert " ".join(line.split()[0] for line in lines) == HPL_DAT


def test_hpl_takes_its_size_from_the_memory_of_all_nodes(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(_sizes, "node_memory", lambda: 16 << 30)
    monkeypatch.setattr(_sizes, "available_cores", lambda: 8)
    for nodes, share in ((1, 0.2), (4, 0.5)):
        options = {"memory_fraction": share, "NB": 100, "P": 4}
        asked = bench_cell("hpl", options, nodes=nodes, ranks_per_node=8)
        BENCHMARKS.get("hpl").command(asked, tmp_path, "xhpl", [])
        words = [line.split()[0] for line in (tmp_path / "HPL.dat").read_text().splitlines()]
        n = int(words[5])
        assert n % 100 == 0 and 0.98 < 8 * n * n / (nodes * share * (16 << 30)) <= 1
        assert (words[10], words[11]) == ("4", str(2 * nodes))
    # Two of eight cores solve a problem of a quarter of the memory, in the time that all take.
    BENCHMARKS.get("hpl").command(bench_cell("hpl", {"NB": 100}, ranks_per_node=2), tmp_path, "xhpl", [])
    n = int((tmp_path / "HPL.dat").read_text().splitlines()[5].split()[0])
    assert 0.95 < 8 * n * n / (0.2 * (4 << 30)) <= 1


def test_hpcg_dat_is_what_hpcg_reads(tmp_path: Path) -> None:
    asked = bench_cell("hpcg", {"nx": 16, "ny": 24, "nz": 32, "seconds": 5}, ranks_per_node=2, threads=2)
    assert BENCHMARKS.get("hpcg").command(asked, tmp_path, "xhpcg", []) == ["xhpcg"]
    # ReadHpcgDat.cpp: two lines are skipped, three numbers, the rest of the line, one number.
    lines = (tmp_path / "hpcg.dat").read_text().splitlines()
    assert lines[2:] == ["16 24 32", "5"] and len(lines) == 4
    assert hpcg.input_file(104, 104, 104, 60).splitlines()[2:] == ["104 104 104", "60"]


def test_hpcg_reports_are_found_before_its_residuals(tmp_path: Path) -> None:
    logs = BENCHMARKS.get("hpcg").logs
    assert logs(tmp_path) == [tmp_path / "output.log"]
    (tmp_path / "hpcg.dat").touch()
    (tmp_path / "hpcg20261120T1.txt").touch()
    assert [path.name for path in logs(tmp_path)] == ["hpcg20261120T1.txt"]
    (tmp_path / "HPCG-Benchmark_3.1_2026-11-20_20-28-31.txt").touch()
    (found,) = logs(tmp_path)
    assert found.name.startswith("HPCG-Benchmark_3.1")


SHELL = f"sh -c {_files._SCRIPT} transect"
PLACE = f"{os.uname().nodename}-{os.getpid()}"
COMMANDS = [
    (bench_cell("babelstream", {"elements": 2048, "precision": "float"}), "P --arraysize 2048 --numtimes 100 --float"),
    (bench_cell("babelstream", device="cuda"), "P --arraysize 134217728 --numtimes 100"),
    (
        bench_cell("imb", {"mpi": "system", "test": "Bcast", "max_bytes": 1, "iterations": 7}, nodes=2),
        "P Bcast -npmin 2 -msglog 0:0 -iter 7 -time 10",
    ),
    (bench_cell("stream", threads=4), "P"),
    (bench_cell("osu", {"test": "osu_bw", "max_bytes": 65536, "iterations": 50}, nodes=2), "P -m 65536 -i 50"),
    (bench_cell("osu", ranks_per_node=4), "P"),
    (
        bench_cell("nccl-tests", {"test": "sendrecv_perf", "max_bytes": "1G"}, ranks_per_node=8, device="cuda"),
        "P -b 8 -e 1G -f 2 -g 1",
    ),
    (
        bench_cell("minibude", {"deck": "/d", "iterations": 4, "poses": 1024, "ppwi": 2}, threads=2),
        "P -i 4 -n 1024 -p 2 --deck /d",
    ),
    (
        bench_cell("ior", {"folder": "/lustre/me", "api": "MPIIO", "block": "1g", "files": "shared"}, nodes=2),
        f"{SHELL} /lustre/me/transect-ior-{PLACE} -o P -a MPIIO -w -r -e -C -b 1g -t 1m",
    ),
    (
        bench_cell("onnxruntime-perf-test", {"model": "/m.onnx", "runs": 50, "dimensions": "N:16"}, threads=2),
        "P -m times -r 50 -x 2 -y 1 -o 99 -e cpu -I -S 1 -s -f N:16 /m.onnx",
    ),
    (
        bench_cell("mdtest", {"items": 30, "depth": 2, "branch": 3, "folder": "/f"}),
        f"{SHELL} /f/transect-mdtest-{PLACE} -d P -n 30 -i 3 -z 2 -b 3",
    ),
    (
        bench_cell("file-probe", {"folder": "/f", "limit": "2m", "seconds": 5}, ranks_per_node=3),
        f"{SHELL} /f/transect-file-probe-{PLACE} --folder "
        "P -m mpi4py -m transect.hpc.probes.files --ranks 3 --limit 2097152 --seconds 5",
    ),
    (bench_cell("io500", nodes=2), "P io500.ini"),
    (
        bench_cell("mdtest", {"folder": "/f"}, nodes=2),
        f"{SHELL} /f/transect-mdtest-{PLACE} -d P -n 1000 -i 3 -z 0 -b 1 -N 1",
    ),
]


@pytest.mark.parametrize(("asked", "argv"), COMMANDS, ids=lambda value: getattr(value, "id", ""))
def test_command_lines(asked: Cell, argv: str, tmp_path: Path) -> None:
    benchmark = BENCHMARKS.get(str(asked.benchmark))
    assert benchmark.supports(asked) is None
    assert " ".join(benchmark.command(asked, tmp_path, "P", [])) == argv


@pytest.mark.env
@pytest.mark.parametrize("name", ["ior", "mdtest"])
def test_files_go_to_the_payloads_own_scratch(name: str, tmp_path: Path) -> None:
    show = program(tmp_path, "show", 'for word in "$@"; do echo "$word"; done')
    argv = BENCHMARKS.get(name).command(bench_cell(name), tmp_path, str(show), [])

    def last(**variables: str) -> str:
        done = subprocess.run(argv, env=variables, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()[-1]

    folder = f"transect-{name}-{PLACE}"
    assert last(TMPDIR="/scratch/of a job") == f"/scratch/of a job/{folder}"
    assert last() == f"./{folder}"
    # Folders of one node do not reach another.
    argv = BENCHMARKS.get(name).command(bench_cell(name, nodes=2), tmp_path, str(show), [])
    assert last(TMPDIR="/scratch/of a job") == str(tmp_path / folder)


@pytest.mark.env
@pytest.mark.skipif(not os.path.ismount("/dev/shm"), reason="/dev/shm is no file system of its own")
@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("name", ["fio", "ior", "mdtest", "file-probe"])
def test_memory_is_no_storage(name: str, named: bool, tmp_path: Path) -> None:
    benchmark, shm = BENCHMARKS.get(name), "/dev/shm"
    show = program(tmp_path, "show", "echo it ran")
    cell = bench_cell(name, {"folder": shm} if named else {})
    argv = benchmark.command(cell, tmp_path, str(show), [])
    variables = os.environ | ({} if named else {"TMPDIR": shm})
    done = subprocess.run(argv, env=variables, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 3 and "it ran" not in done.stdout
    (tmp_path / "output.log").write_text(done.stdout)
    said = f"{shm} keeps files in memory: expected a folder on storage, see option folder"
    assert benchmark.verdict(tmp_path, 3) == (Cause.BAD_INPUT, said)
    assert not list(Path(shm).glob(f"transect-{name}-{PLACE}*"))


def test_io500_ini_is_what_io500_reads(tmp_path: Path) -> None:
    benchmark, read = BENCHMARKS.get("io500"), configparser.ConfigParser()
    benchmark.command(bench_cell("io500", nodes=2), tmp_path, "io500", [])
    read.read(tmp_path / "io500.ini")
    assert read["debug"]["stonewall-time"] == "300", "less is no valid run"
    assert read["global"]["datadir"] == f"{tmp_path}/transect-io500-{PLACE}"
    smoke = benchmark.smoke | {"folder": "/lustre/me"}
    benchmark.command(bench_cell("io500", smoke), tmp_path, "io500", [])
    read.read(tmp_path / "io500.ini")
    assert {name: dict(section) for name, section in read.items() if section} == {
        "global": {
            "datadir": f"/lustre/me/transect-io500-{PLACE}",
            "timestamp-datadir": "FALSE",
            "resultdir": "results",
        },
        "debug": {"stonewall-time": "1"},
        "ior-easy": {"blocksize": "64m"},
        "mdtest-easy": {"n": "200"},
        "ior-hard": {"segmentcount": "200"},
    }


REFUSED = [
    ("hpl", {"N": 0}, {}, "option N: expected a whole number from 1 on, found 0"),
    ("hpl", {"NB": "big"}, {}, "option NB: expected a whole number from 1 on, found 'big'"),
    ("hpl", {"memory_fraction": 1.5}, {}, "option memory_fraction: expected a number between"),
    ("hpl", {"P": 3}, {"ranks_per_node": 4}, "option P: expected a divisor of the 4 ranks, found 3"),
    ("hpcg", {"nx": 20}, {}, "option nx: expected a multiple of 8 from 16 on, found 20"),
    ("hpcg", {"nx": 16, "ny": 136}, {}, "no side more than 8 times as long"),
    ("hpcg", {"seconds": -1}, {}, "option seconds"),
    ("hpcg", {"memory_fraction": 2.0}, {}, "option memory_fraction: expected a number between"),
    ("hpcc", {"N": -5}, {}, "option N"),
    ("hpcc", {}, {"nodes": 2}, "on one node, not on 2"),
    ("hpcc", {}, {"threads": 2}, "ask for 2 ranks instead"),
    ("stream", {}, {"ranks_per_node": 2}, "2 ranks were asked for"),
    ("stream", {"program": "build/stream"}, {}, "option program: expected a name, or an absolute"),
    ("ior", {"block": "1.5m"}, {}, "option block: expected bytes such as"),
    ("ior", {"block": "1m", "transfer": "3k"}, {}, "expected a multiple of the transfer size 3k"),
    ("ior", {"api": "posix"}, {}, "option api: expected one of POSIX, MPIIO"),
    ("ior", {"files": "many"}, {}, "option files: expected one of per-process, shared, found"),
    ("ior", {"folder": "here"}, {}, "option folder: expected an absolute path, found 'here'"),
    ("mdtest", {"items": 5, "depth": 2, "branch": 3}, {}, "one or more for each of 13 directories"),
    ("fio", {"block": "1m", "transfer": "3k"}, {}, "expected a multiple of the transfer size 3k"),
    ("fio", {"direct": "maybe"}, {}, "option direct: expected one of no, yes, found 'maybe'"),
    ("fio", {"folder": "here"}, {}, "an absolute path, found 'here'"),
    ("fio", {}, {"nodes": 2}, "2 ranks were asked for"),
    ("io500", {"stonewall": 0}, {}, "option stonewall: expected a whole number from 1 on, found 0"),
    ("io500", {"folder": "here"}, {}, "an absolute path, found 'here'"),
    ("io500", {}, {"threads": 2}, "ask for 2 ranks instead"),
    ("file-probe", {"limit": "1.5g"}, {}, "option limit: expected bytes such as"),
    ("file-probe", {"seconds": 0}, {}, "option seconds"),
    ("file-probe", {"limit": "1m"}, {}, "option limit: expected 2m or more, found '1m'"),
    ("file-probe", {"folder": "here"}, {}, "an absolute path, found 'here'"),
    ("file-probe", {}, {"threads": 2}, "ask for 2 ranks instead"),
    ("mdtest", {"depth": 1000}, {}, "option depth"),
    ("mdtest", {}, {"threads": 2}, "ask for 2 ranks instead"),
    ("osu", {"test": "osu_latency"}, {"ranks_per_node": 3}, "osu_latency runs on exactly 2 ranks"),
    ("osu", {"test": "osu_mbw_mr"}, {"ranks_per_node": 3}, "on pairs of ranks, not on 3"),
    ("osu", {}, {}, "one has no partner"),
    ("osu", {"test": "../rm"}, {"nodes": 2}, "option test: expected the name of a test"),
    ("minibude", {"deck": "data/bm1"}, {}, "option deck: expected bm1, bm2 or an absolute path"),
    ("minibude", {"ppwi": "1;2"}, {}, "option ppwi: expected e.g. 4"),
    ("babelstream", {"iterations": 1}, {}, "option iterations: expected a whole number from 2 on"),
    ("babelstream", {"precision": "half"}, {}, "option precision: expected one of double, float"),
    ("babelstream", {}, {"ranks_per_node": 2}, "2 ranks were asked for"),
    ("imb", {}, {}, "one has no partner"),
    ("imb", {"mpi": "openmpi"}, {"ranks_per_node": 2}, "is linked by the ABI of MPICH and Intel MPI"),
    ("imb", {"test": "pingpong"}, {"ranks_per_node": 2}, "one of PingPong"),
    ("imb", {"test": "PingPing"}, {"ranks_per_node": 4}, "between two ranks; 4 were asked for"),
    ("imb", {"max_bytes": 1000}, {"nodes": 2}, "a power of 2, found 1000"),
    ("onnxruntime-perf-test", {}, {}, "option model: expected the absolute path of an ONNX file"),
    ("onnxruntime-perf-test", {"model": "/m.onnx"}, {"nodes": 2}, "2 ranks were asked for"),
    ("onnxruntime-perf-test", {"model": "/m.onnx", "dimensions": "N=1"}, {}, "expected e.g. batch:16"),
    ("nccl-tests", {}, {"nodes": 2}, "runs on cuda, not on 'cpu'"),
    ("nccl-tests", {"min_bytes": "1g"}, {"nodes": 2, "device": "cuda"}, "no more than max_bytes"),
    ("nccl-tests", {"test": "rm"}, {"nodes": 2, "device": "cuda"}, "option test"),
    ("message-sweep", {}, {}, "one has no partner"),
    ("message-sweep", {}, {"nodes": 2, "device": "cuda"}, "not of 'cuda'"),
    ("message-sweep", {}, {"nodes": 2, "threads": 2}, "one thread per rank"),
    ("message-sweep", {"test": "bw"}, {"nodes": 3}, "bw is between two ranks"),
    ("message-sweep", {"library": "gloo"}, {"nodes": 2}, "one of mpi4py"),
    ("message-sweep", {"test": "alltoall"}, {"nodes": 2}, "option test"),
    ("message-sweep", {"max_size": 2}, {"nodes": 2}, "from 4 on"),
    ("message-sweep", {"max_size": 1 << 30}, {"nodes": 2}, "at most 67108864"),
    ("message-sweep", {"compared_size": 100}, {"nodes": 2}, "a power of 4 of at most 67108864, found 100"),
    ("message-sweep", {"compared_size": 64, "max_size": 16}, {"nodes": 2}, "of at most 16, found 64"),
    ("message-sweep", {"seconds": 0}, {"nodes": 2}, "option seconds"),
    ("message-sweep-torch", {"library": "horovod"}, {"nodes": 2}, "gloo, nccl"),
    ("message-sweep-torch", {"library": "nccl"}, {"nodes": 2}, "of 'cuda'"),
    ("message-sweep-torch", {}, {"nodes": 2, "device": "cuda"}, "gloo sends from the memory of"),
    ("network-probe", {}, {}, "one has no partner"),
    ("network-probe", {}, {"nodes": 2, "device": "cuda"}, "not on 'cuda'"),
    ("network-probe", {}, {"nodes": 2, "threads": 2}, "one thread per rank"),
    ("docking-probe", {}, {"device": "cuda"}, "not on 'cuda'"),
    ("docking-probe", {}, {"nodes": 2}, "2 ranks were asked for"),
    ("docking-probe", {"implementation": "fortran"}, {}, "openmp, openmp-target, rust, found 'fortran'"),
    ("docking-probe", {"poses": 0}, {}, "a whole number from 1 on, found 0"),
    ("docking-probe", {"iterations": "many"}, {}, "option iterations"),
    ("docking-probe", {"pin": "yes"}, {}, "one of none, close, spread, cores, found 'yes'"),
    ("docking-probe", {"deck": "data/bm1"}, {}, "an absolute path, found 'data/bm1'"),
    ("docking-probe", {"deck": "$NO_SUCH_DECK/x"}, {}, "no variable of the environment fills in"),
    ("docking-probe", {"deck": "/nowhere"}, {}, "/nowhere lacks ligand.in"),
    ("docking-probe", {"implementation": "rust", "compiler": "gcc"}, {}, "option compiler: rust has none"),
    ("docking-probe", {"implementation": "numba", "schedule": "static"}, {}, "option schedule: numba has none"),
    ("docking-probe", {"implementation": "openmp", "ppwi": 3}, {}, "option ppwi: openmp has 1, 4, 8"),
    ("docking-probe", {"implementation": "openmp", "work_group": 8}, {}, "option work_group: openmp has none"),
    ("docking-probe", {"implementation": "opencl", "pin": "close"}, {}, "option pin: opencl pins no threads"),
    ("docking-probe", {"implementation": "go", "places": "threads"}, {}, "only pinned threads have places"),
    ("docking-probe", {"implementation": "cuda"}, {}, "runs on cuda, not on 'cpu'"),
    ("docking-probe", {"implementation": "openmp"}, {"device": "cuda"}, "runs on cpu, not on 'cuda'"),
    ("docking-probe", {"implementation": "openacc"}, {"threads": 2}, "one thread with gcc; 2 were asked for"),
]


@pytest.mark.parametrize(("name", "options", "axes", "reason"), REFUSED)
def test_what_cannot_run_is_refused_with_its_reason(name, options, axes, reason, tmp_path) -> None:
    refusal = BENCHMARKS.get(name).supports(bench_cell(name, options, **axes))
    assert refusal is not None and reason in refusal


def test_programs_are_found_under_their_other_names(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    stream = BENCHMARKS.get("stream")
    assert stream.find(bench_cell("stream")) is None
    pictures = program(tmp_path, "stream-im6.q16")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "stream").symlink_to(pictures)
    assert stream.find(bench_cell("stream")) is None, "ImageMagick's"
    there = program(tmp_path / "bin", "stream_c.exe")
    assert stream.find(bench_cell("stream")) == str(there)
    large = program(tmp_path / "opt", "stream.100M")
    assert stream.find(bench_cell("stream", {"program": str(large)})) == str(large)


def test_osu_tests_are_found_where_packages_hide_them(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(osu, "_PLACES", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    hidden = program(tmp_path / "pt2pt", "osu_bw")
    asked = bench_cell("osu", {"test": "osu_bw"}, nodes=2)
    assert BENCHMARKS.get("osu").find(asked) == str(hidden)
    shown = program(tmp_path / "bin", "osu_bw")
    assert BENCHMARKS.get("osu").find(asked) == str(shown)
    assert BENCHMARKS.get("osu").find(bench_cell("osu", nodes=2)) is None


def test_minibude_finds_the_deck_of_its_build(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("TRANSECT_DECKS", raising=False)
    bude = program(tmp_path / "build", "omp-bude")
    assert minibude._deck(bench_cell("minibude"), str(bude)) == []
    (tmp_path / "data" / "bm1").mkdir(parents=True)
    beside = ["--deck", str(tmp_path / "data/bm1")]
    assert minibude._deck(bench_cell("minibude"), str(bude)) == beside
    assert minibude._deck(bench_cell("minibude", {"deck": "bm1"}), str(bude)) == beside
    with pytest.raises(MissingDependency, match="bm2 is neither in TRANSECT_DECKS"):
        minibude._deck(bench_cell("minibude", {"deck": "bm2"}), str(bude))
    (tmp_path / "mine" / "bm2").mkdir(parents=True)
    monkeypatch.setenv("TRANSECT_DECKS", str(tmp_path / "mine"))
    asked = bench_cell("minibude", {"deck": "bm2"})
    assert minibude._deck(asked, str(bude)) == ["--deck", str(tmp_path / "mine/bm2")]
