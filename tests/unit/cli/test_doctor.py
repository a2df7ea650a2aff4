"""`transect doctor` on machines with and without a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from transect.cli.doctor import examine

pytestmark = pytest.mark.env

_LINES = "sbatch: error: one\nsbatch: error: two\nsbatch: fatal: no configuration source"
BROKEN = f"#!/bin/sh\necho '{_LINES}' >&2\nexit 1\n"
VERSION = "#!/bin/sh\necho slurm 22.05.8\n"
PING = "#!/bin/sh\necho Slurmctld is UP\n"


def slurm_row(monkeypatch: pytest.MonkeyPatch, folder: Path, **programs: str) -> dict[str, str]:
    for name, text in programs.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    (row,) = [one for one in examine()["programs"] if one["name"] == "slurm"]
    return row


@pytest.mark.parametrize(
    "programs",
    [{"sbatch": BROKEN, "scontrol": BROKEN}, {"sbatch": VERSION, "scontrol": BROKEN}, {"sbatch": VERSION}],
    ids=["no configuration", "no controller", "half an installation"],
)
def test_commands_without_a_cluster_are_told_in_one_line(monkeypatch, tmp_path, programs):
    row = slurm_row(monkeypatch, tmp_path, **programs)
    assert row["state"] == "no cluster"
    assert f"({tmp_path}/sbatch), no cluster" in row["detail"]
    assert "\n" not in row["detail"]


def test_a_cluster_that_answers_is_found_with_its_version(monkeypatch, tmp_path):
    row = slurm_row(monkeypatch, tmp_path, sbatch=VERSION, scontrol=PING)
    assert (row["state"], row["detail"]) == ("found", "slurm 22.05.8")


def test_a_machine_without_slurm_says_what_to_use(monkeypatch, tmp_path):
    row = slurm_row(monkeypatch, tmp_path)
    assert row["state"] == "missing" and row["detail"].endswith("use profiles/local")
