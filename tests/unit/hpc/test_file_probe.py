"""The probe of files: real ranks on a real file system, its log, what it refuses, and that it leaves nothing behind."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hpc_logs import FILES as LOG
from log_scan import scan
from probe_runs import prefix, start

from checkouts import ROOT
from factories import bench_cell
from transect.domain.record import Cause
from transect.hpc.benchmarks.base import BENCHMARKS
from transect.hpc.ingest import ingest
from transect.hpc.probes._files_store import Unusable, file_system, what_bounds
from transect.stages.ingest.result import result_of

PROGRAM = ["-m", "mpi4py", "-m", "transect.hpc.probes.files"]
QUICK = ["--seconds", "0.2", "--limit", "4194304"]
MIB = 1 << 20


@pytest.fixture(autouse=True)
def on_storage(tmp_path: Path) -> None:
    """Skip where tests write into memory."""
    if file_system(tmp_path) in ("tmpfs", "ramfs"):
        pytest.skip("the folder of the tests lies in memory")


@pytest.mark.parametrize("ranks", [1, 2])
def test_ranks_measure_leave_nothing_and_the_log_becomes_metrics(ranks: int, base_python: str, tmp_path: Path) -> None:
    folder = tmp_path / "with blanks"
    folder.mkdir()
    (folder / "a stranger's").write_text("untouched")
    benchmark = BENCHMARKS.get("file-probe")
    cell = bench_cell("file-probe", {"folder": str(folder), "limit": "4m", "seconds": 1}, ranks_per_node=ranks)
    assert benchmark.supports(cell) is None
    done = start(benchmark.command(cell, tmp_path, base_python, prefix(base_python, ranks)))
    assert done.returncode == 0, done.stderr
    assert [path.name for path in folder.iterdir()] == ["a stranger's"]
    (tmp_path / "output.log").write_text(done.stdout)
    (run,) = ingest(benchmark.logs(tmp_path))
    assert (run.status, run.reason) == ("ok", "")
    assert run.parameters["ranks"] == ranks
    assert int(str(run.parameters["easy_bytes"])) <= ranks * 4 * MIB
    # Neighbours may keep pages in memory, for as long as they like: that reading does not count, and the log says so.
    kept = {words.split(": ")[1] for words in done.stdout.splitlines() if words.startswith("warning: ")}
    few = {name for name, series in run.samples.items() if len(series.values) < 3}
    assert few <= {f"read-{each}-dropped" for each in kept}
    metrics = result_of([run], must_have=True).metrics
    labels = [metric.label or "" for metric in metrics]
    assert len(labels) == len(set(labels))
    assert {metric.name for metric in metrics} == {"storage_bandwidth", "metadata_rate"}
    phases = {metric.phase for metric in run.metrics}
    for kind in ("own", "shared"):
        assert {f"{does}-{kind}-files" for does in ("create", "stat", "read", "remove")} <= phases
        for pattern in ("easy", "hard", "random"):
            assert {f"write-{kind}-{pattern}-buffered-synced", f"read-{kind}-{pattern}-cached"} <= phases


def test_what_memory_may_have_given_is_no_rate_of_storage() -> None:
    (run,) = scan(LOG)
    assert (run.status, run.reason) == ("ok", "")
    counted = {metric.phase: metric.normalised.name for metric in run.metrics if metric.normalised is not None}
    assert counted["read-own-easy-direct"] == counted["write-shared-hard-buffered-synced"] == "storage_bandwidth"
    assert counted["stat-own-files"] == "metadata_rate"
    left_out = {str(metric.phase) for metric in run.metrics if metric.normalised is None}
    assert left_out == {"read-own-easy-cached", "write-own-easy-buffered-unsynced"}
    (of_a_cache,) = scan(LOG.replace("storage: all", "storage: writes"))
    counted = {metric.phase for metric in of_a_cache.metrics if metric.normalised is not None}
    assert "write-own-easy-direct-synced" in counted and not any(str(phase).startswith("read") for phase in counted)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("own-easy every record, every byte passed", "own-easy every record, every byte FAILED", "own-easy"),
        ("verify own-easy ", "verify own-easy every record, every byte FAILED\nverify own-easy ", "own-easy"),
        ("verify own-easy every record, every byte passed\n", "", "does not say that its results were right"),
        ("easy_bytes: ", "easy_bytes: 1", "write-own-easy"),
        ("synced_files: ", "synced_files: 1", "create-own-files-synced"),
        ("status: ok", "status: invalid: rank 1 read what nobody wrote", "what nobody wrote"),
    ],
)
def test_a_log_that_contradicts_itself_is_invalid(old: str, new: str, reason: str) -> None:
    assert old in LOG
    (run,) = scan(LOG.replace(old, new))
    assert run.status == "invalid" and reason in run.reason


BROKEN = """
import os, sys
import transect.hpc.probes._files_data as data
import transect.hpc.probes.files as probe

class Broken(data.DataSet):
    def write(self, pattern, way):
        seconds = super().write(pattern, way)
        if self._team.rank == self._team.size - 1 and (self.kind, pattern) == (KIND, PATTERN):
            place = self._offsets(pattern, self._team.rank)[0] + AT
            handle = os.open(self._path(pattern, self._team.rank), os.O_RDWR)
            byte = os.pread(handle, 1, place)
            os.pwrite(handle, bytes([byte[0] ^ 1]), place)
            os.close(handle)
        self._team.meet()
        return seconds

probe.DataSet = Broken
sys.exit(probe.main(sys.argv[1:]))
"""


@pytest.mark.parametrize(("kind", "pattern", "at"), [("own", "hard", 47007), ("shared", "random", 0)])
def test_one_wrong_bit_is_a_wrong_result(kind: str, pattern: str, at: int, base_python: str, tmp_path: Path) -> None:
    broken = BROKEN.replace("KIND", repr(kind)).replace("PATTERN", repr(pattern)).replace("AT", str(at))
    place = ["--folder", str(tmp_path / "place")]
    done = start([*prefix(base_python, 2), base_python, "-c", broken, *QUICK, *place])
    assert done.returncode == 1, done.stderr
    (tmp_path / "output.log").write_text(done.stdout)
    (run,) = scan(done.stdout)
    assert run.status == "invalid" and f"{kind}-{pattern}" in run.reason
    verdict = BENCHMARKS.get("file-probe").verdict(tmp_path, done.returncode)
    assert verdict is not None and verdict[0] is Cause.WRONG_RESULT and f"{kind}-{pattern}" in verdict[1]
    assert [path.name for path in tmp_path.iterdir()] == ["output.log"]


def test_ended_from_outside_it_leaves_no_files(base_python: str, tmp_path: Path) -> None:
    argv = [base_python, *PROGRAM, "--folder", str(tmp_path / "place"), "--seconds", "300", "--limit", "4194304"]
    kept = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(argv, env=kept, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        until = time.monotonic() + 120
        while not any(tmp_path.glob("place-*/*")) and time.monotonic() < until:
            assert running.poll() is None
            time.sleep(0.01)
        running.terminate()
        assert running.wait(120) != 0
    assert list(tmp_path.iterdir()) == []


FULL = """
import sys
import transect.hpc.probes.files as probe
probe.room = lambda path: 1 << 20
sys.exit(probe.main(sys.argv[1:]))
"""


def test_a_folder_that_cannot_be_used_is_told_in_words(base_python: str, tmp_path: Path) -> None:
    benchmark = BENCHMARKS.get("file-probe")
    cases = [
        ([base_python, *PROGRAM, "--folder", str(tmp_path / "none/place")], "expected a folder that can be written to"),
        ([base_python, "-c", FULL, "--folder", str(tmp_path / "place")], "1048576 bytes are free"),
    ]
    if Path("/dev/shm").is_dir() and file_system(Path("/dev/shm")) == "tmpfs":
        cases.append(([base_python, *PROGRAM, "--folder", "/dev/shm/place"], "expected a folder on storage"))
    for argv, words in cases:
        done = start([*argv, *QUICK])
        (tmp_path / "output.log").write_text(done.stdout)
        assert done.returncode == 3 and words in done.stdout, (done.stdout, done.stderr)
        # A launcher may make another code of it.
        for code in (done.returncode, 1):
            verdict = benchmark.verdict(tmp_path, code)
            assert verdict is not None and verdict[0] is Cause.BAD_INPUT and words in verdict[1]
        (run,) = scan(done.stdout)
        assert run.status == "invalid" and "unusable" in run.reason
        (tmp_path / "output.log").unlink()
        assert list(tmp_path.iterdir()) == []


def test_a_world_of_its_own_is_a_wrong_result(base_python: str, tmp_path: Path) -> None:
    done = start([base_python, *PROGRAM, *QUICK, "--ranks", "2", "--folder", str(tmp_path / "place")])
    assert done.returncode == 1 and "the cell has 2 ranks" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_file_systems_are_told_apart_by_the_mount_above_a_folder(tmp_path: Path) -> None:
    here = f"{os.major(tmp_path.stat().st_dev)}:{os.minor(tmp_path.stat().st_dev)}"
    mounts = tmp_path / "mountinfo"
    other = str(tmp_path).replace(" ", "\\040")
    mounts.write_text(
        f"1 0 {here} / / rw - ext4 /dev/a rw\n2 1 0:99 / {other} rw shared:1 - overlay none rw\n"
        f"3 1 {here} / /elsewhere rw - xfs /dev/b rw\n"
    )
    assert file_system(tmp_path, mounts) == "ext4", "the number of the device counts before the depth"
    mounts.write_text(f"1 0 0:98 / / rw - ext4 /dev/a rw\n2 1 0:99 / {other} rw shared:1 - zfs pool rw\n")
    assert file_system(tmp_path, mounts) == "zfs"
    assert file_system(tmp_path, tmp_path / "absent") == "unknown"
    assert what_bounds(tmp_path, "ext4")[0] == what_bounds(tmp_path, "lustre")[0] == "all"
    assert what_bounds(tmp_path, "zfs")[0] == what_bounds(tmp_path, "fuse.sshfs")[0] == "writes"
    with pytest.raises(Unusable, match="tmpfs keeps files in memory"):
        what_bounds(tmp_path, "tmpfs")


@pytest.mark.parametrize("name", ["Größe", "a b\\c", "no\u00a0break\u2028line", "re\rturn", "\udcff"])
def test_a_mount_of_any_name_is_found(name: str, tmp_path: Path) -> None:
    place, mounts = tmp_path / name, tmp_path / "mountinfo"
    place.mkdir()
    escaped = str(place).replace("\\", "\\134").replace(" ", "\\040")
    text = f"1 0 0:98 / / rw - ext4 /dev/a rw\n2 1 0:99 / {escaped} rw - tmpfs none rw\n"
    mounts.write_bytes(os.fsencode(text))
    assert file_system(place, mounts) == "tmpfs" and file_system(tmp_path, mounts) == "ext4"


def test_pages_that_were_dropped_are_gone(base_python: str, tmp_path: Path) -> None:
    code = (
        "import sys, numpy; from pathlib import Path; from transect.hpc.probes._files_store import drop; "
        "path = Path(sys.argv[1]); path.write_bytes(b'x' * 5_000_000); print(drop(numpy, path), path.stat().st_size)"
    )
    done = start([base_python, "-c", code, str(tmp_path / "file")])
    assert done.stdout.split() == ["True", "5000000"], done.stderr
    memory = Path("/dev/shm")
    if memory.is_dir() and file_system(memory) == "tmpfs":
        place = memory / f"transect-test-{os.getpid()}"
        try:
            assert start([base_python, "-c", code, str(place)]).stdout.split()[0] == "False"
        finally:
            place.unlink(missing_ok=True)


@pytest.mark.env
@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not on PATH")
@pytest.mark.parametrize("options", [{}, {"files": "shared", "direct": "yes"}])
def test_fio_runs_and_leaves_nothing(options: dict[str, int | float | str], tmp_path: Path) -> None:
    benchmark = BENCHMARKS.get("fio")
    folder = tmp_path / "a b:c"
    folder.mkdir()
    cell = bench_cell("fio", benchmark.smoke | options | {"block": "1m", "folder": str(folder)}, threads=2)
    assert benchmark.supports(cell) is None
    argv = benchmark.command(cell, tmp_path, str(benchmark.find(cell)), [])
    with (tmp_path / "output.log").open("w") as log:
        subprocess.run(argv, cwd=tmp_path, stdout=log, stderr=subprocess.STDOUT, check=True)
    assert list(folder.iterdir()) == []
    runs = ingest(benchmark.logs(tmp_path), benchmark.parser)
    assert [(run.status, run.reason) for run in runs] == [("ok", "")] * 4
    labels = [metric.label or "" for metric in result_of(runs, must_have=True).metrics]
    assert [label.split(" ", 1)[1] for label in labels] == [
        "write bandwidth",
        "read bandwidth",
        "random-read read bandwidth",
        "random-write write bandwidth",
    ]


@pytest.mark.parametrize("name", ["job1", "read", "", "with\nlines"])
def test_clones_of_a_job_of_fio_have_numbers_of_their_own(name: str, tmp_path: Path) -> None:
    jobs = [{"jobname": name, "read": {"io_bytes": rate, "bw_bytes": rate, "runtime": 1000}} for rate in (10**8, 10**9)]
    (tmp_path / "fio.json").write_text(json.dumps({"fio version": "fio-3.33", "jobs": jobs}, indent=1))
    metrics = result_of(ingest([tmp_path / "fio.json"], "fio"), must_have=True).metrics
    assert [metric.value for metric in metrics] == [1e8, 1e9]
    labels = [metric.label or "" for metric in metrics]
    assert len(set(labels)) == 2 and not any("\n" in label for label in labels)
