"""Which benchmarks a study compares: programming models of the docking kernel, and ways to run one of them."""

from __future__ import annotations

from transect.domain.mpi_libraries import OWN
from transect.domain.pairs import PairRule

# Whose kernel the others are set beside, by device.
_REFERENCE = {"cpu": "openmp", "cuda": "cuda"}
_DOCKING = {"benchmark": ("docking-probe",)}
# Of the sweeps each library is set beside Open MPI, or the MPI that the environment has.
_SWEEPS = "message-sweep", "message-sweep-torch"
_OPENMP = _DOCKING | {"options.implementation": ("openmp",)}

BENCH_PAIRS = (
    # Each model and compiler beside the reference.
    *(
        PairRule(
            metric="pose_time",
            rules=("docking.fastest",),
            varies=(
                *(f"options.{name}" for name in ("implementation", "compiler", "iterations", "warm_ups", "work_group")),
                "options.ppwi",
            ),
            differ=("options.implementation", "options.compiler"),
            base={"options.implementation": (model,), "options.compiler": (None,), "options.ppwi": (None,)},
            both=_DOCKING | {"device": (device,)},
        )
        for device, model in _REFERENCE.items()
    ),
    # Where the threads of OpenMP are, and how many.
    PairRule(
        metric="pose_time",
        rules=("docking.threads",),
        varies=("options.pin", "options.places"),
        base={"options.pin": (None,)},
        both=_OPENMP,
    ),
    PairRule(metric="pose_time", rules=("docking.threads",), varies=("threads",), base={"threads": (1,)}, both=_OPENMP),
    # How its loop is dealt out to them.
    PairRule(
        metric="pose_time",
        rules=("docking.schedule",),
        varies=("options.schedule", "options.chunk"),
        base={"options.schedule": ("static",), "options.chunk": (None,)},
        both=_OPENMP,
    ),
    PairRule(
        metric="pose_time",
        rules=("docking.poses",),
        varies=("options.ppwi",),
        base={"options.ppwi": (None,)},
        both=_DOCKING,
    ),
    PairRule(
        metric="operation_time",
        rules=("messages.library",),
        varies=("benchmark", "options.library", "options.mpi"),
        base={"benchmark": _SWEEPS[:1], "options.mpi": (None, OWN, "openmpi")},
        both={"benchmark": _SWEEPS},
    ),
)
