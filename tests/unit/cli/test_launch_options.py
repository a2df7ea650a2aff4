"""`transect launch` refuses what cannot be, before it starts anything."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from checkouts import ROOT

TORCH = ["--framework", "torch", "--strategy", "ddp"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--framework", "troch", "--strategy", "ddp"], "'torch'?"),
        (["--framework", "torch", "--strategy", "dpd"], "Known: async, ddp, ddp-gloo"),
        (["--framework", "torch", "--strategy", "ddp-nccl"], "give --gpus-per-rank"),
        (["--framework", "torch", "--strategy", "single", "--ranks-per-node", "2"], "1 rank, not"),
        ([*TORCH, "--nodes", "2"], "neither a scheduler"),
        ([*TORCH, "--launcher", "srun"], "allocation"),
        ([*TORCH, "--module", "a;b"], "module 'a;b'"),
        ([*TORCH, "--launcher", "mpiexec", "--nodes", "2"], "neither a scheduler"),
        *(([*TORCH, option, "9" * 30], "1 to 1000000") for option in ("--nodes", "--ranks", "--ranks-per-node")),
        ([*TORCH, "--nodes", "2000", "--ranks-per-node", "2000"], "1000000 in all"),
        ([*TORCH, "--ranks", "20000"], "20000 ranks on one host"),
        *(([*TORCH, "--grace", grace], "0 or more") for grace in ("nan", "-5", "inf", "-0.1")),
    ],
)
def test_bad_input_is_one_message(transect, monkeypatch, arguments, message):
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    code, _, err = transect("launch", *arguments, "--", "true")
    assert code == 2
    assert message in err and "Traceback" not in err


@pytest.mark.env
def test_it_imports_neither_pydantic_nor_what_measures():
    code = (
        "import sys\nfrom transect.cli.main import app\n"
        "app(['launch', '--framework', 'numpy', '--strategy', 'single', '--dry-run', '--', 'true'], standalone_mode=False)\n"
        "print([name for name in ('pydantic', 'numpy', 'pandas', 'snakemake') if name in sys.modules])"
    )
    variables = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=variables)
    *script, imported = done.stdout.splitlines()
    assert script[-1].endswith(" true") and imported == "[]", done.stdout + done.stderr
