"""Runtimes: who executes a model. One file each; the programs stand in `src/runners/`.

All runners keep one contract: docs/runner-contract.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from transect.domain.axes.infer import InferCell
from transect.domain.cell import GPU_PROVIDERS
from transect.domain.errors import unknown_name
from transect.domain.registry import Registry
from transect.runtimes._cuda import no_cuda_reason

__all__ = ["ONNX_PRECISIONS", "PROVIDERS", "RUNNERS", "RUNTIMES", "Runtime", "check_providers", "unsupported_run"]

# Of ONNX files: what an exporter or a conversion makes.
ONNX_PRECISIONS = ("fp32", "fp16", "int8-dynamic", "int8-static")

# Execution providers that some runtime knows; a plug-in's `providers` join them.
PROVIDERS = ("cpu", "cuda", "tensorrt", "openvino", "webgpu")

# Folder of the runner programs, one subfolder per runtime.
RUNNERS = Path(__file__).resolve().parents[2] / "runners"


class Runtime(Protocol):
    """Starts one runner program.

    `environment` is the folder under `envs/` it runs in. `uses_exporter` is true for runtimes of
    ONNX models; one that builds the model itself gets a JSON file {"workload", "weights"}.
    """

    environment: str
    uses_exporter: bool
    # Whether its program has the contract's mode `train`. What it cannot train, `trains_on(cell)`
    # says where there is one: None, or the reason.
    trains: bool = False

    def supports(self, cell: InferCell) -> str | None:
        """Return None, or the reason why the cell cannot run. Ask on the node that would run it."""
        ...

    def command(self, python: str, arguments: list[str]) -> list[str]:
        """Return the argument list of the runner.

        `python` is the environment's interpreter (a compiled runner stands beside it);
        `arguments` are the contract's.
        """
        ...

    def files(self, python: str) -> list[Path]:
        """Return files and folders that the program is made of, ONNX Runtime's library included.

        Their size is what serving with this runtime takes, without its language's own interpreter
        or virtual machine.
        """
        ...

    def tools(self) -> list[str]:
        """Return programs of the machine that the cell runs: their versions are part of its spec."""
        return []

    def code_files(self) -> list[Path]:
        """Return source files that the cell runs and its environment does not hold."""
        ...


RUNTIMES: Registry[Runtime] = Registry("runtime", "transect.runtimes")


def check_providers(names: Iterable[str], where: str) -> None:
    """Raise BadInput for an execution provider that no runtime knows; `where` is file and key."""
    own = (getattr(RUNTIMES.get(name), "providers", ()) for name in RUNTIMES)
    known = dict.fromkeys([*PROVIDERS, *(name for names in own for name in names)])
    for name in names:
        if name not in known:
            raise unknown_name("execution provider", name, known, where)


def unsupported_run(
    cell: InferCell, *, providers: tuple[str, ...] = ("cpu", "cuda"), precisions: tuple[str, ...] = ONNX_PRECISIONS
) -> str | None:
    """Return what keeps a runner with these providers and precisions from the cell, or None."""
    if cell.provider not in providers:
        return f"execution provider '{cell.provider}' is not one of this runtime's"
    if cell.precision not in precisions:
        return f"models run in {', '.join(precisions)}, not in {cell.precision}"
    return no_cuda_reason() if cell.provider in GPU_PROVIDERS else None
