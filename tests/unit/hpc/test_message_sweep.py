"""The message sweep: real ranks under a real MPI and gloo, its log, and what it refuses."""

from __future__ import annotations

import re
import socket
import struct
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from types import SimpleNamespace

import pytest
from log_scan import made, scan
from probe_runs import Result, prefix, start

from factories import bench_cell
from transect.hpc.base import Run
from transect.hpc.benchmarks.base import BENCHMARKS
from transect.hpc.ingest import ingest
from transect.hpc.parsers.message_sweep import COMPARED
from transect.hpc.probes import messages
from transect.hpc.probes._messages_libraries import LIBRARIES
from transect.hpc.probes._messages_tests import TESTS
from transect.measure.turns import TURNS_VARIABLE
from transect.planning.code_hash import closure
from transect.planning.stage import STAGES
from transect.stages.bench import run as bench
from transect.stages.ingest.result import result_of

ROOT = Path(__file__).resolve().parents[3]
# Of larger sizes a busy machine leaves out what does not fit into the time.
QUICK = (("compared_size", 1024), ("max_size", 4096), ("seconds", 1))
METRICS = {"latency": {"message_time"}, "bw": {"network_bandwidth"}, "iallreduce": {"collective_time", "overlap"}}

LAUNCH = [sys.executable, "-m", "transect", "launch", "--framework", "torch", "--strategy", "ddp", "--no-label"]


def options(**given: object) -> tuple[tuple[str, object], ...]:
    return tuple(sorted((dict(QUICK) | given).items()))


def check(done: Result, test: str, library: str, folder: Path, ranks: int = 2) -> Run:
    assert done.returncode == 0, done.stdout + done.stderr
    (folder / "output.log").write_text(done.stdout)
    (run,) = ingest(BENCHMARKS.get("message-sweep").logs(folder))
    assert (run.status, run.reason) == ("ok", "")
    assert (run.benchmark, run.variant) == ("message-sweep", library)
    assert (run.parameters["test"], run.parameters["ranks"]) == (TESTS[test].title, ranks)
    sizes = {metric.size for metric in run.metrics}
    assert sizes >= {4, 16, 64, 256, 1024}, "these are measured whatever the budget"
    assert {str(size) for size in sizes} == set(run.samples) - {COMPARED}
    # One of these sizes again, by which libraries are compared.
    assert len(run.samples[COMPARED].values) == 50
    assert all(len(series.values) >= 3 for series in run.samples.values())
    metrics = result_of([run], must_have=True).metrics
    assert {metric.name for metric in metrics} == METRICS.get(test, {"collective_time"}) | {"operation_time"}
    labels = [metric.label for metric in metrics]
    assert len(labels) == len(set(labels))
    return run


@pytest.mark.parametrize("test", messages.NAMES)
def test_two_ranks_of_mpi4py(test: str, base_python: str, tmp_path: Path) -> None:
    benchmark = BENCHMARKS.get("message-sweep")
    cell = bench_cell("message-sweep", ranks_per_node=2, options=options(test=test))
    assert benchmark.supports(cell) is None
    argv = benchmark.command(cell, tmp_path, base_python, prefix(base_python, 2))
    run = check(start(argv), test, "mpi4py", tmp_path)
    assert "mpi4py" in str(run.parameters["library"])


def test_all_ranks_wait_for_their_turns(base_python: str) -> None:
    program = [*prefix(base_python, 2), base_python, "-m", "mpi4py", "-m", "transect.hpc.probes.messages"]
    program += ["--compared-size", "1024", "--max-size", "1024", "--seconds", "1"]
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        server.settimeout(120)
        address = f"127.0.0.1:{server.getsockname()[1]}:{'k' * 32}"
        running = pool.submit(start, program, **{TURNS_VARIABLE: address})
        ranks = [server.accept()[0] for _ in range(2)]
        assert [rank.recv(32, socket.MSG_WAITALL) for rank in ranks] == [b"k" * 32] * 2
        for count, word in ((3, b"r"), (5, b"d"), (0, b"d")):
            assert [rank.recv(1) for rank in ranks] == [word] * 2
            for rank in ranks:
                rank.sendall(struct.pack("<q", count))
        done = running.result()
    assert done.returncode == 0, done.stderr
    (run,) = scan(done.stdout)
    assert run.status == "ok" and len(run.samples[COMPARED].values) == 3 + 5
    [operation] = [metric for metric in run.metrics if metric.name == "operation"]
    assert (operation.size, operation.value) == (1024, pytest.approx(median(run.samples[COMPARED].values), abs=0.002))
    assert BENCHMARKS.get("message-sweep").iterations(run) == [v * 1e-6 for v in run.samples[COMPARED].values]


def test_three_ranks_sum_and_gather_in_order(base_python: str, tmp_path: Path) -> None:
    for test in ("reduce", "allgather"):
        cell = bench_cell("message-sweep", ranks_per_node=3, options=options(test=test, max_size=1024))
        argv = BENCHMARKS.get("message-sweep").command(cell, tmp_path, base_python, prefix(base_python, 3))
        check(start(argv), test, "mpi4py", tmp_path, ranks=3)


@pytest.mark.parametrize("test", ["allgather", "bw"])
def test_two_ranks_of_gloo(test: str, torch_python: str, tmp_path: Path) -> None:
    benchmark = BENCHMARKS.get("message-sweep-torch")
    cell = bench_cell("message-sweep-torch", ranks_per_node=2, options=options(test=test, max_size=1024))
    assert benchmark.supports(cell) is None
    command = benchmark.command(cell, tmp_path, torch_python, [])
    done = start([*LAUNCH, "--ranks-per-node", "2", "--", *command])
    run = check(done, test, "gloo", tmp_path)
    assert str(run.parameters["library"]).endswith("gloo")


def test_nccl_without_a_gpu_ends_in_words(torch_python: str) -> None:
    argv = [torch_python, "-m", "transect.hpc.probes.messages", "--library", "nccl"]
    done = start([*argv, "--max-size", "4"])
    if "sees none" not in done.stdout:
        pytest.skip("there is a GPU here")
    assert done.returncode == messages.LACKING
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
    # Nor is the compared size measured, for longer still.
    assert COMPARED not in run.samples and not BENCHMARKS.get("message-sweep").iterations(run)


def test_the_launch_gives_each_library_its_rendezvous(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bench, "ranks", lambda job, command, rendezvous, mpi: (rendezvous, command))
    for name, rendezvous in (("message-sweep", "mpi"), ("message-sweep-torch", "tcp"), ("network-probe", "mpi")):
        job = SimpleNamespace(cell=bench_cell(name, nodes=2), folder=tmp_path, python="python")
        found, command = bench.BenchRunner(STAGES.get("bench")).prepare(job)  # type: ignore[arg-type]
        assert found == rendezvous
        assert command[0] == "python"


# the log


def test_a_middle_that_its_iterations_do_not_give_is_no_result() -> None:
    log = made("sweep-allreduce").replace(
        "# End of message",
        "# Compared at 1024 B: 3.000 us\n# Turn of 2 (us): 2.000 2.500\n# Turn of 2 (us): 3.500 9.000\n# End of message",
    )
    (right,) = scan(log)
    assert (right.status, right.samples[COMPARED].values) == ("ok", [2.0, 2.5, 3.5, 9.0])
    (wrong,) = scan(log.replace("3.500 9.000", "9.500 9.000"))
    assert wrong.status == "invalid" and "the samples give 5.750 us" in wrong.reason
    (clipped,) = scan(log.replace("Turn of 2 (us): 2.000", "Turn of 3 (us): 2.000"))
    assert clipped.status == "invalid" and "1 turns have other numbers of values" in clipped.reason
    (cut,) = scan(log[: log.index("3.500")])
    assert cut.status == "truncated"


@pytest.mark.parametrize("test", ["allreduce", "bandwidth", "iallreduce"])
def test_osu_s_parser_reads_the_same_table(test: str) -> None:
    log = made(f"sweep-{test}")
    (mine,), (theirs,) = scan(log), scan(re.sub(r"# .*\) (.*)", r"# OSU MPI \1 v7.3", log, count=1), "osu")
    assert theirs.status == "ok", theirs.reason

    def numbers(run: Run) -> set[tuple[int | None, str, str]]:
        return {(m.size, m.printed, m.unit) for m in run.metrics if m.normalised}

    assert numbers(mine) <= numbers(theirs)


def test_names_that_are_written_twice_agree() -> None:
    assert tuple(TESTS) == messages.NAMES
    assert messages.LIBRARIES == LIBRARIES
    code = {path.name for file in BENCHMARKS.get("message-sweep").code_files() for path in closure(file)}
    assert {path.name for path in Path(messages.__file__).parent.glob("*messages*.py")} <= code
