"""`transect check` ends with 1 when nothing of a grid would run, and says why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from transect.cli.main import app

STUDY = """
name: grids
train:
  repeats: 2
  grids:
    - {{workloads: [digits-cnn], frameworks: [torch], strategies: [single], precisions: [fp32{more}]}}
    - {{workloads: [digits-cnn], frameworks: [torch, {framework}], strategies: [single], precisions: [bf16]}}
    - {{workloads: [digits-cnn], frameworks: [numpy], strategies: [single], threads: [4000], where_it_fits: true}}
"""
CLUSTER = "{name: x, scheduler: slurm, launcher: srun, mpi_launcher: srun}"


def check(folder: Path, system: str = "{name: x}", *arguments: str, **words: str) -> tuple[int, str]:
    (folder / "study.yaml").write_text(STUDY.format(**{"more": "", "framework": "numpy"} | words))
    (folder / "system.yaml").write_text(system)
    command = ["check", str(folder / "study.yaml"), "--system", str(folder / "system.yaml"), *arguments]
    done = CliRunner().invoke(app, command)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


def test_a_grid_of_which_nothing_would_run_is_named_with_each_reason_once(tmp_path: Path) -> None:
    code, said = check(tmp_path)
    assert code == 1
    (line,) = (line for line in said.splitlines() if "no cell of it would run" in line)
    assert "train.grids.1: " in line
    assert line.count("torch trains in fp32 or fp64 or amp-bf16, not in bf16") == 1
    assert line.count("numpy trains in fp32 or fp64, not in bf16") == 1


def test_the_same_in_json(tmp_path: Path) -> None:
    code, said = check(tmp_path, "{name: x}", "--json")
    told = json.loads(said)
    assert (
        code == 1 and list(told["empty_grids"]) == ["train.grids.1"] and len(told["empty_grids"]["train.grids.1"]) == 2
    )


@pytest.mark.parametrize("precision", ["fp32", "fp64"])
def test_one_cell_that_would_run_is_enough(tmp_path: Path, precision: str) -> None:
    study = STUDY.replace("[bf16]", f"[bf16, {precision}]")
    (tmp_path / "study.yaml").write_text(study.format(more=", fp16", framework="numpy"))
    done = CliRunner().invoke(app, ["check", str(tmp_path / "study.yaml")])
    assert done.exit_code == 0 and "would be skipped" in done.output and "no cell of it" not in done.output


def test_what_a_clusters_nodes_have_is_not_known_here(tmp_path: Path) -> None:
    code, said = check(tmp_path, CLUSTER)
    assert code == 0 and "train.grids.1: no cell of it would run" in said
