"""Which simulations a study compares: engines, ranks, aggregations, methods, partitions, and servers that wait for fewer."""

from __future__ import annotations

from transect.domain.pairs import PairRule

FEDERATE_PAIRS = (
    PairRule(
        metric="round_time",
        rules=("federated.engine",),
        varies=("engine", "framework", "runtime"),
        both={"ranks": (1,)},
    ),
    PairRule(metric="round_time", rules=("federated.ranks",), varies=("nodes", "ranks_per_node"), base={"ranks": (1,)}),
    PairRule(
        metric="accuracy",
        rules=("federated.aggregation",),
        varies=("aggregation", "options"),
        base={"aggregation": ("fedavg",)},
        both={"ranks": (1,)},
    ),
    PairRule(
        metric="accuracy",
        rules=("federated.method",),
        varies=("method", "method_options"),
        base={"method": ("plain",)},
        both={"ranks": (1,)},
    ),
    PairRule(metric="accuracy", rules=("federated.partition",), varies=("partition",), base={"partition": ("iid",)}),
    PairRule(
        metric="simulated_time_to_quality",
        rules=("federated.waiting",),
        varies=("buffer", "aggregation", "options", "rounds"),
        differ=("buffer",),
        base={"buffer": (None,)},
        both={"ranks": (1,)},
    ),
)
