"""The network probe: real ranks under a real MPI, its log, and what it refuses."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hpc_logs import NETWORK as LOG
from log_scan import scan
from probe_runs import prefix, start

from transect.domain.cell import Cell
from transect.hpc.benchmarks.base import BENCHMARKS
from transect.hpc.ingest import ingest
from transect.stages.ingest.result import result_of

ROOT = Path(__file__).resolve().parents[3]
# Up to 1 KiB a size is measured whatever the budget, on a busy machine too.
SIZES = ["0", "4", "256", "1024"]
QUICK = ["--max-seconds", "0.2", "--sizes", *SIZES]


def network(**axes: object) -> Cell:
    return Cell.of(stage="bench", benchmark="network-probe", **axes)  # type: ignore[arg-type]


def test_two_ranks_measure_and_the_log_becomes_metrics(base_python: str, tmp_path: Path) -> None:
    benchmark = BENCHMARKS.get("network-probe")
    cell = network(ranks_per_node=2)
    argv = benchmark.command(cell, tmp_path, base_python, prefix(base_python, 2))
    done = start([*argv, *QUICK])
    assert done.returncode == 0, done.stderr
    (tmp_path / "output.log").write_text(done.stdout)
    (run,) = ingest(benchmark.logs(tmp_path))
    assert (run.status, run.reason) == ("ok", "")
    assert (run.parameters["ranks"], run.parameters["nodes"]) == (2, 1)
    assert {f"pingpong-{size}" for size in SIZES} <= set(run.samples)
    assert "allreduce-0" not in run.samples
    assert all(len(series.values) >= 3 for series in run.samples.values())
    metrics = result_of([run], must_have=True).metrics
    assert {m.name for m in metrics} == {"message_time", "allreduce_time", "network_latency", "network_bandwidth"}
    assert all(math.isfinite(m.value) and m.value > 0 for m in metrics)
    labels = [m.label for m in metrics]
    assert len(labels) == len(set(labels))
    (bandwidth,) = [m for m in metrics if m.label == "bandwidth_median 1024"]
    (time,) = [m for m in metrics if m.label == "pingpong_median 1024"]
    assert bandwidth.value == pytest.approx(1024 / time.value, rel=1e-3)


def test_one_rank_per_node_has_an_all_reduce_of_its_own(base_python: str) -> None:
    program = [base_python, "-m", "mpi4py", "-m", "transect.hpc.probes.network", *QUICK]
    node = ["-x", "SLURMD_NODENAME=a", *program, "--nodes", "2"]
    second_node = ["-n", "2", "-x", "SLURMD_NODENAME=b", *program, "--nodes", "2"]
    done = start([*prefix(base_python, 2), *node, ":", *second_node])
    assert done.returncode == 0, done.stderr
    (run,) = scan(done.stdout)
    assert (run.status, run.reason) == ("ok", "")
    assert (run.parameters["nodes"], run.parameters["pingpong_ranks"]) == (2, "0 and 3")
    assert any((m.name, m.size) == ("allreduce-nodes_median", 1024) for m in run.metrics)


def test_ranks_that_are_not_on_the_nodes_asked_for_make_no_result(base_python: str) -> None:
    program = [base_python, "-m", "transect.hpc.probes.network", *QUICK, "--nodes", "2"]
    done = start([*prefix(base_python, 2), *program])
    assert done.returncode != 0
    (run,) = scan(done.stdout)
    assert run.status == "invalid"
    assert "2 nodes" in run.reason and run.reason.endswith("on 1")


def test_one_rank_says_that_it_needs_another(base_python: str) -> None:
    done = start([base_python, "-m", "transect.hpc.probes.network"])
    assert done.returncode == 1
    assert "one rank has" in done.stdout


BROKEN = """
import sys
import transect.hpc.probes.network as probe

class Broken(probe._Case):
    def __init__(self, *given):
        super().__init__(*given)
        if self.label == "allreduce-1024" and self.comm.rank == 1:
            self.sent[7] += 1

probe._Case = Broken
sys.exit(probe.main(sys.argv[1:]))
"""


def test_a_wrong_sum_is_no_result(base_python: str) -> None:
    done = start([*prefix(base_python, 2), base_python, "-c", BROKEN, *QUICK])
    assert done.returncode != 0
    (run,) = scan(done.stdout)
    assert run.status == "invalid"
    assert "allreduce-1024" in run.reason


def test_sizes_that_would_take_too_long_are_left_out_and_named(base_python: str) -> None:
    program = [base_python, "-m", "transect.hpc.probes.network", "--max-seconds", "0"]
    done = start([*prefix(base_python, 2), *program])
    assert done.returncode == 0, done.stderr
    (run,) = scan(done.stdout)
    assert run.status == "ok"
    assert any("from 4096 B on" in warning for warning in run.warnings)


def test_it_supports_ranks_on_any_nodes_and_puts_itself_behind_the_launcher(tmp_path: Path) -> None:
    benchmark = BENCHMARKS.get("network-probe")
    assert benchmark.prefix_starts_ranks and not BENCHMARKS.get("hpcc").prefix_starts_ranks
    for cell in (network(nodes=2), network(ranks_per_node=2, network="1gbit")):
        assert benchmark.supports(cell) is None
    launcher = ["srun", "--nodes=2", "--ntasks=2"]
    argv = benchmark.command(network(nodes=2), tmp_path, "python", launcher)
    assert argv[:4] == [*launcher, "python"]
    assert argv[argv.index("--nodes") + 1] == "2"


def test_a_real_log_is_read_whole() -> None:
    (run,) = scan(LOG)
    assert (run.status, run.reason) == ("ok", "")
    assert sum(len(series.values) for series in run.samples.values()) == LOG.count("\nsample ")
    latency, message = run.metric("latency_median"), run.metric("pingpong_median")
    assert latency is not None and (latency.size, latency.phase) == (0, "latency")
    assert latency is not None and message is not None
    assert latency.value == message.value
    assert latency.direction == "lower"
