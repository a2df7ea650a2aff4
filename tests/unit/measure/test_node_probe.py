"""What the doctor's probe finds on two nodes that share a folder and number processes alike."""

from __future__ import annotations

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from transect.measure.node_probe import gathered, probe, report_lines

pytestmark = pytest.mark.env


def order(folder: Path, scratch: Path) -> dict[str, object]:
    token = folder / "token"
    token.touch()
    return {
        "token": str(token),
        "results": str(folder),
        "interfaces": {"lo": "lo", "ib": "no-such"},
        "scratch": str(scratch),
        "programs": {
            "none": {"argv": [str(folder / "python")], "variables": {}},
            "told": {"argv": ["sh", "-c", "echo $WORD >&2; exit 3"], "variables": {"WORD": "lacking"}},
            "fine": {"argv": ["true"], "variables": {}},
        },
    }


def test_probes_at_the_same_time_with_the_same_process_id_both_write(tmp_path):
    asked, both = order(tmp_path, tmp_path), Barrier(2)

    def probed(_: int) -> str:
        both.wait()
        return str(probe(asked)["scratch"])

    with ThreadPoolExecutor(2) as pool:
        assert set(pool.map(probed, range(400))) == {""}
    assert not list(tmp_path.glob(".transect*"))


def test_a_probe_says_why(tmp_path):
    found = probe(order(tmp_path, tmp_path / "nowhere"))
    assert os.strerror(errno.ENOENT) in found["scratch"]
    assert found["token_seen"] and found["interfaces"] == {"lo": True, "ib": False}
    assert os.strerror(errno.ENOENT) in found["programs"].pop("none")
    assert found["programs"] == {"told": "lacking", "fine": ""}


def test_answers_of_many_environments_survive_srun(tmp_path):
    """Slurm hands on pieces of long lines: whole ones are in one piece, in any order, beside any words."""
    asked = order(tmp_path, tmp_path) | {"programs": {}}
    first = probe(asked) | {"programs": {f"environment {i}": "\x1b" * 120 for i in range(60)}}
    second = first | {"host": "other", "answer": "other-1", "scratch": 'why "not"\n[1]'}
    lines = [report_lines(facts).splitlines() for facts in (first, second)]
    assert max(len(line) for part in lines for line in part) < 1024
    mixed = [line for pair in zip(*lines, strict=True) for line in pair]
    printed = "\n".join(["slurmstepd: hello", '["', '["a"', "[1, 2]", *mixed])
    assert gathered(printed) == [first, second]
    assert gathered("\n".join(mixed[:-1])) == [first]
    assert gathered("") == []
