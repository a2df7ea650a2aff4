"""`transect launch` refuses what cannot be, before it starts anything."""

from __future__ import annotations

import pytest

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
        *(([*TORCH, "--grace", grace], "0 or more") for grace in ("nan", "-5", "inf", "-0.1")),
    ],
)
def test_bad_input_is_one_message(transect, monkeypatch, arguments, message):
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    code, _, err = transect("launch", *arguments, "--", "true")
    assert code == 2
    assert message in err and "Traceback" not in err
