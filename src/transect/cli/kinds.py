"""Every kind of plug-in: its registry, and its name in the plural."""

from __future__ import annotations

from typing import Any

from transect.domain.registry import Registry
from transect.federated.aggregations import AGGREGATIONS
from transect.federated.engines import ENGINES
from transect.federated.methods import METHODS
from transect.hpc.base import PARSERS
from transect.hpc.benchmarks.base import BENCHMARKS
from transect.hpc.docking.base import PROGRAMMING_MODELS
from transect.launch import LAUNCHERS
from transect.launch.rendezvous import RENDEZVOUS
from transect.launch.wrapping import WRAPPERS
from transect.onnx_models.exporters import EXPORTERS
from transect.onnx_models.loaders import LOADERS
from transect.onnx_models.models import MODELS
from transect.planning.stage import STAGES
from transect.report.engine.formats import REPORT_FORMATS
from transect.runtimes import RUNTIMES
from transect.text.classifiers import CLASSIFIERS
from transect.text.formats import FORMATS
from transect.text.splitters import SPLITTERS
from transect.training.datasets import DATASETS
from transect.training.frameworks import FRAMEWORKS
from transect.training.losses import LOSSES
from transect.training.memory import MEMORIES
from transect.training.optimisers import OPTIMISERS
from transect.training.schedules import SCHEDULES
from transect.training.strategies import STRATEGIES
from transect.training.workloads import WORKLOADS

REGISTRIES: tuple[Registry[Any], ...] = (
    FRAMEWORKS,
    STRATEGIES,
    MEMORIES,
    WORKLOADS,
    DATASETS,
    LOSSES,
    OPTIMISERS,
    SCHEDULES,
    AGGREGATIONS,
    METHODS,
    ENGINES,
    MODELS,
    EXPORTERS,
    LOADERS,
    RUNTIMES,
    PARSERS,
    BENCHMARKS,
    PROGRAMMING_MODELS,
    FORMATS,
    SPLITTERS,
    CLASSIFIERS,
    LAUNCHERS,
    WRAPPERS,
    RENDEZVOUS,
    STAGES,
    REPORT_FORMATS,
)


def plural(kind: str) -> str:
    """Return a kind's name in the plural.

    >>> [plural(kind) for kind in ("strategy", "loss", "rendezvous", "stage")]
    ['strategies', 'losses', 'rendezvous', 'stages']
    """
    if kind.endswith("y"):
        return f"{kind[:-1]}ies"
    if kind.endswith("s"):
        return f"{kind}es" if kind.endswith("ss") else kind
    return f"{kind}s"
