"""Runtimes: who executes a model. One file each; the programs stand in `src/runners/`.

All runners keep one contract: docs/runner-contract.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from transect.domain.registry import Registry
from transect.runtimes._cuda import no_cuda_reason
from transect.stages.infer.cell import InferCell

__all__ = ["RUNNERS", "RUNTIMES", "Runtime", "unsupported_run"]

# Folder of the runner programs, one subfolder per runtime.
RUNNERS = Path(__file__).resolve().parents[2] / "runners"

_PROVIDERS = ("cpu", "cuda")


class Runtime(Protocol):
    """Starts one runner program.

    `environment` is the folder under `envs/` it runs in. `uses_exporter` is true for runtimes of
    ONNX models; one that builds the model itself gets a JSON file {"workload", "weights"}.
    """

    environment: str
    uses_exporter: bool

    def supports(self, cell: InferCell) -> str | None:
        """Return None, or the reason why the cell cannot run. Ask on the node that would run it."""
        ...

    def command(self, cell: InferCell, python: str, model: Path, arguments: list[str]) -> list[str]:
        """Return the argument list of the runner.

        `python` is the environment's interpreter (a compiled runner may stand beside it);
        `arguments` are all of the contract's but `--model`.
        """
        ...

    def code_files(self) -> list[Path]:
        """Return the source files that the cell runs: they are part of its fingerprint."""
        ...


RUNTIMES: Registry[Runtime] = Registry("runtime", "transect.runtimes")


def unsupported_run(cell: InferCell, *, cuda: bool = True) -> str | None:
    """Return what keeps any runner from the cell, or None; `cuda`: the runtime can use it."""
    provider = cell.provider or "cpu"
    if provider not in _PROVIDERS or (provider == "cuda" and not cuda):
        return f"execution provider '{provider}' is not one of this runtime's"
    if cell.precision != "fp32":
        return f"models run in fp32, not in {cell.precision}"
    return no_cuda_reason() if provider == "cuda" else None
