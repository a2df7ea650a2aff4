"""A cell that wants more GPUs than the node shows is skipped, in the words of the rank that did not start."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from transect.domain.record import Cause, Status
from transect.engine.job import Result
from transect.engine.payload import execute
from transect.launch import Request

pytestmark = pytest.mark.env


@pytest.mark.parametrize(
    ("ranks", "shown", "message"),
    [(1, "", "1 rank needs 1 GPU, this node shows none"), (2, "0", "2 ranks need 2 GPUs, this node shows 0")],
)
def test_a_cell_without_its_gpus_is_skipped(tmp_path: Path, monkeypatch, ranks: int, shown: str, message: str) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", shown)
    job = SimpleNamespace(
        cell=SimpleNamespace(stage="train", id="x"),
        folder=tmp_path,
        log=tmp_path / "output.log",
        environment={},
        others={},
        image_of=lambda _: None,
        spec={"cell_limits": {"seconds": 600, "memory_mb": None}},
    )
    request = Request(command=["true"], ranks_per_node=ranks, rendezvous="tcp", gpus_per_rank=1)
    stage = SimpleNamespace(
        energy=False,
        who=lambda *_: "",
        prepare=lambda _: ("plain", request),
        collect=lambda _, outcome: Result.failed(Cause.CRASH, f"exit code {outcome.code}"),
    )
    result = execute(job, stage)[0]  # type: ignore[arg-type]
    assert (result.status, result.cause, result.message) == (Status.SKIPPED, Cause.UNSUPPORTED, message)
