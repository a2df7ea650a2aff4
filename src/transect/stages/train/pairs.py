"""Which trainings a study compares."""

from __future__ import annotations

from transect.domain.pairs import PairRule

_ALONE = {"strategy": ("single",), "nodes": (1,), "ranks_per_node": (1,)}
# Only who learns reaches a target.
_LEARNS = {"input": ("stored", "files")}
_SCRIPTS = {"strategy": ("torchrun", "mpirun")}
# Who comes and goes trains in another way: it has a pair of its own.
_STAYS = {"options.workers": (None,)}
_RANKS = ("strategy", "options", "nodes", "ranks_per_node", "network")
# In which a training differs that keeps its batch for each rank, and so does other work in a step.
_WEAK = (*_RANKS, "batch", "reduce", "learning_rate_rule")
_SENDS = (("mpi-sendrecv", "mpi-allreduce"), ("published-sendrecv", "published-allreduce"))

TRAIN_PAIRS = (
    # Frameworks beside each other, and each way of more ranks beside its framework alone: who is first to the target …
    PairRule(metric="time_to_quality", rules=("training.fastest",), varies=("framework",), both=_ALONE | _LEARNS),
    PairRule(
        metric="time_to_quality", rules=("training.fastest",), varies=_RANKS, base=_ALONE, side=_STAYS, both=_LEARNS
    ),
    # Batches of one training on one rank …
    PairRule(metric="time_to_quality", rules=("training.batch",), varies=("batch",), both=_ALONE | _LEARNS),
    # … scripts of a study's own beside each other on as many ranks …
    PairRule(metric="time_to_quality", rules=("training.fastest",), varies=("framework",), both=_SCRIPTS | _LEARNS),
    # … of ways to the same ranks one beside another, as they are near each other …
    PairRule(
        metric="time_to_quality",
        rules=("training.fastest",),
        varies=("strategy", "options"),
        first="strategy",
        both=_LEARNS,
        # Asynchronous updates have a pair of their own.
        neither={"strategy": ("single", "async")},
    ),
    # … and what a step takes, whether or not anybody reaches it.
    PairRule(
        metric="step_time", rules=("language",), varies=("framework",), base={"framework": ("numpy",)}, both=_ALONE
    ),
    PairRule(
        metric="step_time",
        rules=("training.scaling", "training.scaling.most", "distribution"),
        varies=_RANKS,
        base=_ALONE,
        side=_STAYS,
    ),
    PairRule(
        metric="samples_per_second",
        rules=("training.scaling", "rank.near-linear", "rank.stop"),
        varies=_WEAK,
        differ=("batch",),
        base=_ALONE,
        side=_STAYS,
    ),
    *(
        PairRule(
            metric="samples_per_second",
            rules=("rank.point-to-point",),
            # The published way leaves its rank 0 without work, and so has a smaller batch.
            varies=("strategy", "batch"),
            base={"strategy": (collective,)},
            side={"strategy": (direct,)},
        )
        for direct, collective in _SENDS
    ),
    PairRule(
        metric="time_to_quality",
        rules=("asynchronous",),
        varies=("strategy", "options", "nodes", "ranks_per_node"),
        base={"strategy": ("mpi-allreduce",)},
        side={"strategy": ("async",)} | _STAYS,
        both=_LEARNS,
    ),
    PairRule(
        metric="time_to_quality",
        rules=("asynchronous.workers",),
        varies=("options.workers",),
        base=_STAYS,
        both={"strategy": ("async",)} | _LEARNS,
    ),
    # Hyper-parameters of a cell beside the workload's own.
    PairRule(
        metric="time_to_quality",
        rules=("twin.hyperparameters",),
        varies=("hyperparameters",),
        base={"hyperparameters": ((),)},
        both=_LEARNS,
    ),
    # Another MPI library beside Open MPI, or the one that the environment has.
    PairRule(metric="step_time", rules=("twin.mpi",), varies=("options.mpi",), base={"options.mpi": (None, "openmpi")}),
    PairRule(metric="samples_per_second", rules=("twin.input",), varies=("input",), base={"input": ("synthetic",)}),
)
