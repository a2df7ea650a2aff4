"""`transect doctor` on machines with and without a cluster."""

from __future__ import annotations

import pytest

from transect.cli.doctor import examine

pytestmark = pytest.mark.env

_LINES = "sbatch: error: one\nsbatch: error: two\nsbatch: fatal: no configuration source"
BROKEN = f"#!/bin/sh\necho '{_LINES}' >&2\nexit 1\n"
VERSION = "#!/bin/sh\necho slurm 22.05.8\n"
PING = "#!/bin/sh\necho Slurmctld is UP\n"


@pytest.mark.parametrize(
    ("programs", "state", "detail"),
    [
        ({"sbatch": BROKEN, "scontrol": BROKEN}, "no cluster", "/sbatch), no cluster"),
        ({"sbatch": VERSION}, "no cluster", "/sbatch), no cluster"),
        ({"sbatch": VERSION, "scontrol": PING}, "found", "slurm 22.05.8"),
        ({}, "missing", "use profiles/local"),
    ],
    ids=["no configuration", "half an installation", "a cluster", "none"],
)
def test_a_cluster_that_answers_is_told_from_commands_that_are_there(monkeypatch, tmp_path, programs, state, detail):
    for name, text in programs.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    (row,) = [program for program in examine()["programs"] if program["name"] == "slurm"]
    assert row["state"] == state and detail in row["detail"] and "\n" not in row["detail"]
