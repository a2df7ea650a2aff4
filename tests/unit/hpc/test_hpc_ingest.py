"""Files and folders in, runs and tables out: nothing given is dropped."""

from __future__ import annotations

import csv
import errno
import io
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from transect.domain.errors import BadInput
from transect.hpc.base import PARSERS
from transect.hpc.ingest import ingest
from transect.hpc.table import CSV_COLUMNS, format_table, runs_from_json, to_json, write_csv

DATA = Path(__file__).resolve().parents[3] / "config/studies/quick-logs"


def test_a_folder_is_read_recursively_and_sorted(tmp_path: Path) -> None:
    for name in ("b/z.txt", "a/y.txt", "c.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes((DATA / "hpl-2.0-netlib.txt").read_bytes())
    runs = ingest([tmp_path])
    assert [Path(r.file).name for r in runs] == ["y.txt", "z.txt", "c.txt"]
    assert len(ingest([tmp_path / "c.txt", tmp_path])) == 3, "a file that is given twice is read once"


def test_loops_of_links_end(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "up").symlink_to(tmp_path)
    (tmp_path / "self").symlink_to("self")
    (tmp_path / "gone").symlink_to("nowhere")
    (tmp_path / "log").write_text("hello")
    runs = ingest([tmp_path])
    assert {Path(r.file).name for r in runs} == {"self", "gone", "log"}
    assert all(r.status == "no-result" for r in runs)


def test_a_path_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"missing\.log: no such"):
        ingest([tmp_path / "missing.log"])


def test_an_unknown_benchmark_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"'streem'.*'stream'"):
        ingest([tmp_path], benchmark="streem")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"\n\n  \n", "(blank)"),
        (b"hello world\nsecond\n", "the first line is: hello world"),
        (b"no line end", "no line end"),
        (bytes(range(256)) * 20, "control characters"),
        (b"\x1f\x8b123", "packed"),
        (b"\0" * 10_000, "zero"),
        (b"\x1b[31mred\x1b[0m\n", "the first line is: red"),
        (b"\xff\xfea\0b\0", "the first line is: ab"),
        (b"x" * 5_000_000, "xxxxxxxxxx"),
    ],
)
def test_what_is_not_a_benchmark_is_reported_with_its_reason(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    (run,) = ingest([path])
    assert (run.benchmark, run.status) == ("unknown", "no-result")
    assert reason in run.reason and len(run.reason) < 300


def test_unreadable_things_are_reported(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (run,) = ingest([tmp_path])
    assert run.reason.endswith("not a regular file")


@pytest.fixture
def nobody() -> Iterator[Path]:
    """A folder that anybody may write, for a test in which we are nobody in particular."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    list(PARSERS)  # imported while we may read them
    ours = os.geteuid()
    if ours == 0:
        os.seteuid(65534)
    yield folder
    os.seteuid(ours)
    for path in folder.iterdir():
        path.chmod(0o700)
    shutil.rmtree(folder)


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_may_not_be_read_is_reported(nobody: Path, kind: str) -> None:
    locked = nobody / "locked"
    locked.mkdir() if kind == "folder" else locked.write_text("x")
    locked.chmod(0)
    for paths in ([locked], [nobody]):
        (run,) = ingest(paths)
        assert run.file == str(locked) and run.reason.endswith(os.strerror(errno.EACCES))


def test_the_guess_can_be_overridden() -> None:
    path = DATA / "hpcc-1.5.0-two-ranks.txt"
    assert [r.benchmark for r in ingest([path])] == ["hpcc"]
    assert [(r.benchmark, r.status) for r in ingest([path], benchmark="hpl")][-1] == ("hpl", "ok")
    (nothing,) = ingest([DATA / "memory-bandwidth-probe.txt"], benchmark="hpl")
    assert nothing.benchmark == "hpl" and nothing.status == "no-result"


def test_file_names_that_are_not_text_survive(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.log")).write_text("x")
    assert runs_from_json(to_json(ingest([tmp_path])))


def test_json_and_csv_hold_every_run(tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text('="formula", with\nlines')
    runs = ingest([DATA, tmp_path])
    assert runs_from_json(to_json(runs)) == runs
    out = io.StringIO()
    write_csv(runs, out)
    rows = list(csv.DictReader(io.StringIO(out.getvalue())))
    assert tuple(rows[0]) == CSV_COLUMNS
    assert {row["file"] for row in rows} == {run.file for run in runs}
    assert len(rows) == sum(max(1, len(run.metrics)) for run in runs)
    table = format_table(runs)
    assert all(run.file in table for run in runs)


@pytest.mark.env
def test_a_plugin_folder_adds_a_parser(tmp_path: Path) -> None:
    import subprocess
    import sys

    (tmp_path / "mine.py").write_text(
        "from transect.hpc.base import PARSERS, Parser, Run\n"
        "@PARSERS.register('mine')\n"
        "class Mine(Parser):\n"
        "    benchmark = 'mine'\n"
        "    description = 'mine'\n"
        "    start_patterns = (r'MINE ',)\n"
        "    line_patterns = None\n"
        "    def parse(self, block):\n"
        "        text = [line.text for line in block]\n"
        "        if 'boom' in text: raise KeyError('boom')\n"
        "        yield Run(\n"
        "            file=block.file, line=block.first.number, benchmark='mine', status='ok')\n"
    )
    log = tmp_path / "log"
    log.write_text("x\nMINE 1\nvalue\n" + (DATA / "hpl-2.0-netlib.txt").read_text() + "MINE 2\nboom\n")
    code = (
        "import sys; from pathlib import Path; from transect.hpc.ingest import ingest\n"
        "print([(r.benchmark, str(r.status), r.line) for r in ingest([Path(sys.argv[1])])])"
    )
    env = {**os.environ, "TRANSECT_PLUGINS": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code, str(log)], env=env, capture_output=True, text=True, check=True)
    end = 3 + len((DATA / "hpl-2.0-netlib.txt").read_text().splitlines()) + 1
    assert done.stdout.startswith("[('mine', 'ok', 2), ('hpl', 'ok', ")
    assert done.stdout.rstrip().endswith(f"('mine', 'failed', {end})]")
