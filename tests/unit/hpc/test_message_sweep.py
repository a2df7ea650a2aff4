"""The message sweep: real ranks under a real MPI and gloo, its log, and what it refuses."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from factories import bench_cell
from transect.hpc.base import Run
from transect.hpc.benchmarks.base import BENCHMARKS
from transect.hpc.ingest import ingest
from transect.hpc.probes import messages
from transect.hpc.probes._messages_libraries import LIBRARIES
from transect.hpc.probes._messages_tests import TESTS
from transect.hpc.scan import Scanner
from transect.launch.launchers.mpiexec import mpiexec_prefix
from transect.planning.code_hash import closure
from transect.planning.stage import STAGES
from transect.stages.bench import run as bench
from transect.stages.ingest.result import result_of

ROOT = Path(__file__).resolve().parents[3]
# Ranks share cores here: they must not spin, and are not bound.
SHARED = ["--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]
QUICK = (("max_size", 4096), ("seconds", 1))
METRICS = {"latency": {"message_time"}, "bw": {"network_bandwidth"}, "iallreduce": {"collective_time", "overlap"}}

Result = subprocess.CompletedProcess[str]


def start(argv: list[str]) -> Result:
    keep = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    fixed = {"PYTHONPATH": str(ROOT / "src"), "OMPI_MCA_mpi_yield_when_idle": "1"}
    return subprocess.run(argv, env=keep | fixed, capture_output=True, text=True, timeout=600, check=False)


def prefix(python: str, ranks: int) -> list[str]:
    mpiexec = str(Path(python).parent / "mpiexec")
    return [*mpiexec_prefix(mpiexec), *SHARED, "-n", str(ranks)]


LAUNCH = [sys.executable, "-m", "transect", "launch", "--framework", "torch", "--strategy", "ddp", "--no-label"]


def options(**given: object) -> tuple[tuple[str, object], ...]:
    return tuple(sorted((dict(QUICK) | given).items()))


def scan(text: str, benchmark: str | None = None) -> list[Run]:
    return list(Scanner(benchmark).scan(io.BytesIO(text.encode()), "log"))


def check(done: Result, test: str, library: str, folder: Path, ranks: int = 2) -> Run:
    assert done.returncode == 0, done.stdout + done.stderr
    (folder / "output.log").write_text(done.stdout)
    (run,) = ingest(BENCHMARKS.get("message-sweep").logs(folder))
    assert (run.status, run.reason) == ("ok", "")
    assert (run.benchmark, run.variant) == ("message-sweep", library)
    assert (run.parameters["test"], run.parameters["ranks"]) == (TESTS[test].title, ranks)
    sizes = {one.size for one in run.metrics}
    assert sizes >= {4, 16, 64, 256, 1024}, "these are measured whatever the budget"
    assert {str(size) for size in sizes} == set(run.samples)
    assert all(len(series.values) >= 3 for series in run.samples.values())
    metrics = result_of([run], must_have=True).metrics
    assert {one.name for one in metrics} == METRICS.get(test, {"collective_time"})
    labels = [one.label for one in metrics]
    assert len(labels) == len(set(labels))
    return run


@pytest.mark.parametrize("test", messages.NAMES)
def test_two_ranks_of_mpi4py(test: str, base_python: str, tmp_path: Path) -> None:
    benchmark = BENCHMARKS.get("message-sweep")
    one = bench_cell("message-sweep", ranks_per_node=2, options=options(test=test))
    assert benchmark.supports(one) is None
    argv = benchmark.command(one, tmp_path, base_python, prefix(base_python, 2))
    run = check(start(argv), test, "mpi4py", tmp_path)
    assert "mpi4py" in str(run.parameters["library"])


def test_three_ranks_sum_and_gather_in_order(base_python: str, tmp_path: Path) -> None:
    for test in ("reduce", "allgather"):
        one = bench_cell("message-sweep", ranks_per_node=3, options=options(test=test, max_size=1024))
        argv = BENCHMARKS.get("message-sweep").command(one, tmp_path, base_python, prefix(base_python, 3))
        check(start(argv), test, "mpi4py", tmp_path, ranks=3)


@pytest.mark.parametrize("test", ["allgather", "bw"])
def test_two_ranks_of_gloo(test: str, torch_python: str, tmp_path: Path) -> None:
    benchmark = BENCHMARKS.get("message-sweep-torch")
    one = bench_cell("message-sweep-torch", ranks_per_node=2, options=options(test=test, max_size=1024))
    assert benchmark.supports(one) is None
    command = benchmark.command(one, tmp_path, torch_python, [])
    done = start([*LAUNCH, "--ranks-per-node", "2", "--", *command])
    run = check(done, test, "gloo", tmp_path)
    assert str(run.parameters["library"]).endswith("gloo")


def test_nccl_without_a_gpu_ends_in_words(torch_python: str) -> None:
    argv = [torch_python, "-m", "transect.hpc.probes.messages", "--library", "nccl"]
    done = start([*argv, "--max-size", "4"])
    if "sees none" not in done.stdout:
        pytest.skip("there is a GPU here")
    assert done.returncode == 1
    (run,) = scan(done.stdout)
    assert (run.status, run.variant) == ("invalid", "nccl")
    assert "nccl" in run.reason and "GPU" in run.reason


BROKEN = """
import sys
import transect.hpc.probes._messages_tests as tests
import transect.hpc.probes.messages as probe

class Broken(tests.Case):
    def __init__(self, library, test, size):
        super().__init__(library, test, size)
        if size == 64 and library.rank == 1:
            self._sent[7] += 1

tests.Case = Broken
sys.exit(probe.main(sys.argv[1:]))
"""


@pytest.mark.parametrize("test", ["allreduce", "allgather"])
def test_what_arrives_wrong_is_no_result(test: str, base_python: str) -> None:
    quick = ["--test", test, "--max-size", "256", "--seconds", "1"]
    done = start([*prefix(base_python, 2), base_python, "-c", BROKEN, *quick])
    assert done.returncode != 0
    (run,) = scan(done.stdout)
    assert run.status == "invalid"
    assert run.reason.endswith("wrong at 64 B")
    assert not result_of([run], must_have=True).metrics


@pytest.mark.parametrize(("test", "ranks"), [("allreduce", 1), ("latency", 3)])
def test_ranks_that_do_not_fit_are_told(test: str, ranks: int, base_python: str) -> None:
    program = [base_python, "-m", "transect.hpc.probes.messages", "--test", test]
    done = start([*prefix(base_python, ranks), *program])
    assert done.returncode != 0
    (run,) = scan(done.stdout)
    assert run.status == "invalid"
    assert f"{test} needs 2 ranks" in run.reason and f"not {ranks}" in run.reason


def test_sizes_that_would_take_too_long_are_left_out_and_named(base_python: str) -> None:
    program = [base_python, "-m", "mpi4py", "-m", "transect.hpc.probes.messages"]
    done = start([*prefix(base_python, 2), *program, "--seconds", "0"])
    assert done.returncode == 0, done.stderr
    (run,) = scan(done.stdout)
    assert run.status == "ok"
    assert any("left out from 4096 B on" in warning for warning in run.warnings)


def test_the_launch_gives_each_library_its_rendezvous(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bench, "ranks", lambda job, command, rendezvous: (rendezvous, command))
    for name, rendezvous in (("message-sweep", "mpi"), ("message-sweep-torch", "tcp"), ("network-probe", "mpi")):
        job = SimpleNamespace(cell=bench_cell(name, nodes=2), folder=tmp_path, python="python")
        told, command = bench.BenchRunner(STAGES.get("bench")).prepare(job)  # type: ignore[arg-type]
        assert told == rendezvous
        assert command[0] == "python"


# the log

TABLES = {
    "Allreduce Latency": """\
# Datatype: float32.
# Library: mpi4py 4.1.2, Open MPI v5.0.11
# Ranks: 2
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)        Iterations        Validation
4                       1.27              1.26              1.29                 3              Pass
16                      2.50              2.00              3.00                 3              Pass
# Samples 4 (us): 1.300 1.310 1.290
# Samples 16 (us): 3.000 3.000 3.000
# End of message sweep: ok
""",
    "Bandwidth": """\
# Datatype: uint8.
# Size      Bandwidth (MB/s)        Validation
64                     64.00              Pass
256                   128.00              Pass
# Samples 64 (us): 1.500 0.500 1.000
# Samples 256 (us): 2.000 2.000 2.000
# Sizes left out from 1024 B on: they do not fit into the time
# End of message sweep: ok
""",
    "Non-blocking Allreduce Latency": """\
# Datatype: float32.
# Size           Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)        Validation
1024                  120.00            100.00             50.00             60.00              Pass
# Samples 1024 (us): 50.000 55.000 60.000
# End of message sweep: ok
""",
}


def log(test: str) -> str:
    return f"# OSU-format message sweep (transect, mpi4py) {test} Test\n{TABLES[test]}"


CASES = [
    ("Allreduce Latency", lambda t: t, "ok", ""),
    ("Bandwidth", lambda t: t, "ok", ""),
    ("Non-blocking Allreduce Latency", lambda t: t, "ok", ""),
    ("Bandwidth", lambda t: "0: " + t.replace("\n", "\n0: "), "ok", ""),
    ("Allreduce Latency", lambda t: t.replace(" 1.27", "11.27"), "invalid", "not in order"),
    (
        "Allreduce Latency",
        lambda t: t.replace("3.000 3.000 3.000", "3.000 3.000"),
        "invalid",
        "16 B: 3 iterations and 2 samples",
    ),
    ("Allreduce Latency", lambda t: t.replace("3  ", "3 ", 1).replace("Pass", "Fail", 1), "invalid", "wrong at 4 B"),
    ("Allreduce Latency", lambda t: re.sub(r"# Samples 4 .*\n", "", t), "invalid", "no samples"),
    ("Allreduce Latency", lambda t: t.replace("Avg Latency", "Big Latency"), "no-result", "Big Latency"),
    ("Allreduce Latency", lambda t: re.sub(r"(?m)^\d.*\n", "", t), "no-result", "no table"),
    ("Bandwidth", lambda t: t.replace("128.00", "129.00"), "invalid", "give 128.00 MB/s"),
    ("Bandwidth", lambda t: t.replace("128.00", "-128.00"), "invalid", "256 B"),
    ("Non-blocking Allreduce Latency", lambda t: t.replace("60.00   ", "99.00   "), "invalid", "overlap of 60.00"),
    ("Bandwidth", lambda t: t.replace("sweep: ok", "sweep: invalid: it is"), "invalid", "it is"),
    ("Bandwidth", lambda t: t[: t.index("# Sizes")], "truncated", "no last line"),
    ("Bandwidth", lambda t: t[: t.index("# Sizes")] + "srun: error: n2: task 1: Killed\n", "failed", "Killed"),
]


@pytest.mark.parametrize(("test", "change", "status", "reason"), CASES)
def test_a_changed_log_is_caught(test: str, change, status: str, reason: str) -> None:
    (run,) = scan(change(log(test)))
    assert run.status == status, run.reason
    assert reason in run.reason


@pytest.mark.parametrize("test", TABLES)
def test_osu_s_parser_reads_the_same_table(test: str) -> None:
    mine = scan(log(test))[0]
    (theirs,) = scan(f"# OSU MPI {test} Test v7.3\n{TABLES[test]}", "osu")
    assert theirs.status == "ok", theirs.reason

    def numbers(run: Run) -> set[tuple[int | None, str, str]]:
        return {(m.size, m.printed, m.unit) for m in run.metrics if m.normalised}

    assert numbers(mine) <= numbers(theirs)


# the benchmarks


@pytest.mark.parametrize(
    ("name", "axes", "reason"),
    [
        ("message-sweep", {}, "one has nobody"),
        ("message-sweep", {"nodes": 2, "device": "cuda"}, "not of 'cuda'"),
        ("message-sweep", {"nodes": 2, "threads": 2}, "one thread per rank"),
        ("message-sweep", {"nodes": 3, "options": options(test="bw")}, "bw is between two ranks"),
        ("message-sweep", {"nodes": 2, "options": options(library="gloo")}, "one of mpi4py"),
        ("message-sweep", {"nodes": 2, "options": options(test="alltoall")}, "option test"),
        ("message-sweep", {"nodes": 2, "options": options(max_size=2)}, "from 4 on"),
        ("message-sweep", {"nodes": 2, "options": options(max_size=1 << 30)}, "at most 67108864"),
        ("message-sweep", {"nodes": 2, "options": options(seconds=0)}, "option seconds"),
        ("message-sweep-torch", {"nodes": 2, "options": options(library="horovod")}, "gloo, nccl"),
        ("message-sweep-torch", {"nodes": 2, "options": options(library="nccl")}, "of 'cuda'"),
        ("message-sweep-torch", {"nodes": 2, "device": "cuda"}, "gloo sends from the memory of"),
    ],
)
def test_it_refuses_what_it_cannot_measure(name: str, axes: dict, reason: str) -> None:
    assert reason in str(BENCHMARKS.get(name).supports(bench_cell(name, **axes)))


def test_names_that_are_written_twice_agree() -> None:
    assert tuple(TESTS) == messages.NAMES
    assert messages.LIBRARIES == LIBRARIES
    code = {path.name for file in BENCHMARKS.get("message-sweep").code_files() for path in closure(file)}
    assert {path.name for path in Path(messages.__file__).parent.glob("*messages*.py")} <= code
