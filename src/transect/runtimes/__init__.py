"""Runtimes: who executes a model. One file each; the programs stand in `src/runners/`.

All runners keep one contract: docs/runner-contract.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path

from transect.domain.axes.infer import InferCell
from transect.domain.axes.retrain import RELAY, RetrainCell
from transect.domain.cell import GPU_PROVIDERS
from transect.domain.errors import check_known
from transect.domain.names import only_meant
from transect.domain.paths import ROOT
from transect.domain.precisions import PRECISIONS
from transect.domain.registry import Plugin, Registry
from transect.runtimes._cuda import no_cuda_reason

__all__ = [
    "EVALUATION",
    "ONNX_PRECISIONS",
    "PROVIDERS",
    "RUNNERS",
    "RUNTIMES",
    "Runtime",
    "cannot_train",
    "check_onnx_precisions",
    "check_providers",
    "named_onnx_precision",
    "named_runtimes",
]

# Of ONNX files: what an exporter or a conversion makes.
ONNX_PRECISIONS = ("fp32", "fp16", "int8-dynamic", "int8-static")
_CALLED = {name: PRECISIONS[name].others if name in PRECISIONS else ("int8",) for name in ONNX_PRECISIONS}


def named_onnx_precision(given: str) -> str:
    """Return the name that is meant by what a person has typed, as `Registry.named` does."""
    return only_meant(given, _CALLED)


def check_onnx_precisions(names: Iterable[str], where: str) -> None:
    """Raise BadInput for all names that are none of them."""
    check_known("precision", names, ONNX_PRECISIONS, where, _CALLED)


# Execution providers that some runtime knows; a plug-in's own join them.
PROVIDERS = ("cpu", "cuda", "tensorrt", "openvino", "webgpu")

# Who runs `eval.onnx` on the final state, whoever made it.
EVALUATION = "python"

# Folder of the runner programs, one subfolder per runtime.
RUNNERS = ROOT / "src" / "runners"


class Runtime(Plugin, ABC):
    """Starts one runner program.

    One that builds the model itself, without an exporter, gets a JSON file {"workload", "weights"}.
    """

    # The folder under `envs/` that it runs in.
    environment: str
    # Whether it takes ONNX files; else it builds the model itself.
    uses_exporter: bool = True
    # Whether its program has the contract's level `train`.
    trains: bool = False
    # Whether what it trains by is the exported step's own graph, of which the inputs are all there is to know.
    uses_step: bool = True
    # Execution providers that it has.
    providers: tuple[str, ...] = ("cpu", "cuda")
    # Precisions that it has.
    precisions: tuple[str, ...] = ONNX_PRECISIONS

    @abstractmethod
    def command(self, python: str, arguments: list[str]) -> list[str]:
        """Return the argument list of the runner.

        `python` is the environment's interpreter (a compiled runner stands beside it);
        `arguments` are the contract's: the plan's file.
        """

    def library(self, python: str) -> Path | None:
        """Return ONNX Runtime's shared library that the program is to load, or None where it brings its own."""
        return None

    @abstractmethod
    def files(self, python: str) -> list[Path]:
        """Return files and folders that the program is made of, ONNX Runtime's library included.

        Their size is what serving with this runtime takes, without its language's own interpreter
        or virtual machine.
        """

    def supports(self, cell: InferCell) -> str | None:
        """Return None, or the reason why the cell cannot run. Ask on the node that would run it."""
        if cell.provider not in self.providers:
            return f"execution provider '{cell.provider}' is not one of this runtime's"
        if cell.precision not in self.precisions:
            return f"models run in {', '.join(self.precisions)}, not in {cell.precision}"
        return no_cuda_reason() if cell.provider in GPU_PROVIDERS else None

    def trains_on(self, cell: RetrainCell) -> str | None:
        """Return None, or the reason why it cannot do a retraining, where it `trains`."""
        return None

    def tools(self) -> list[str]:
        """Return programs of the machine that the cell runs: their versions are part of its spec."""
        return []


RUNTIMES: Registry[Runtime] = Registry("runtime", "transect.runtimes", Runtime)


def check_providers(names: Iterable[str], where: str) -> None:
    """Raise BadInput for execution providers that no runtime knows; `where` is file and key."""
    known = dict.fromkeys([*PROVIDERS, *(provider for name in RUNTIMES for provider in RUNTIMES.get(name).providers)])
    check_known("execution provider", names, known, where)


def named_runtimes(given: str) -> str:
    """Return runtimes that take turns, joined by `>`, by the names that are meant."""
    return RELAY.join(map(RUNTIMES.named, given.split(RELAY)))


def cannot_train(name: str, cell: RetrainCell) -> str | None:
    """Return the reason why a runtime cannot do its turn of a cell, or None. Ask on the node that would run it."""
    runtime = RUNTIMES.get(name)
    if not runtime.trains:
        return f"{name} runs models and does not train"
    return runtime.trains_on(cell) or (no_cuda_reason() if cell.provider in GPU_PROVIDERS else None)
