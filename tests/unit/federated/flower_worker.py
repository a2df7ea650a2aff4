"""Let Flower aggregate: `flower_worker.py IN.npz OUT.npz`, run in the environment `flower`.

IN has `updates` (rounds, n, d), `counts` (rounds, n) and `model` (d,); OUT has what each strategy comes to, by name:
for a robust rule the aggregate of the first round's updates, for an optimiser the models after each round.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
from flwr.app import ArrayRecord, MetricRecord, RecordDict
from flwr.server.strategy import aggregate as rules
from flwr.serverapp import strategy as strategies
from flwr.serverapp.strategy.multikrum import select_multikrum


def record(arrays: np.ndarray, count: int) -> RecordDict:
    return RecordDict({"arrays": ArrayRecord([arrays]), "metrics": MetricRecord({"num-examples": int(count)})})


def message(number: int, content: RecordDict) -> SimpleNamespace:
    return SimpleNamespace(
        content=content, has_error=lambda: False, metadata=SimpleNamespace(src_node_id=number), has_content=lambda: True
    )


def models(strategy, given) -> np.ndarray:
    """Return the server's models after each round, (rounds, d), of clients that send models."""
    model, found = given["model"], []
    for number, (updates, counts) in enumerate(zip(given["updates"], given["counts"], strict=True), start=1):
        records = ArrayRecord([model])
        strategy.current_arrays = (
            records if isinstance(strategy, strategies.FedAvgM) else {key: one.numpy() for key, one in records.items()}
        )
        replies = [
            message(client, record(model + update, count))
            for client, (update, count) in enumerate(zip(updates, counts, strict=True))
        ]
        arrays, _ = strategy.aggregate_train(number, replies)
        (model,) = arrays.to_numpy_ndarrays()
        found.append(model)
    return np.stack(found)


def main(source: str, target: str) -> None:
    given = dict(np.load(source))
    updates, counts = given["updates"][0], given["counts"][0]

    def sent() -> list:
        return [([update.copy()], int(count)) for update, count in zip(updates, counts, strict=True)]

    equal = [(arrays, 1) for arrays, _ in sent()]
    kept = select_multikrum([record(u, 1) for u in updates], num_malicious_nodes=2, num_nodes_to_select=9)
    adaptive = {"eta": 0.1, "tau": 0.01}
    found = {
        "fedavg": rules.aggregate(sent())[0],
        "median": rules.aggregate_median(sent())[0],
        "trimmed-mean": rules.aggregate_trimmed_avg(sent(), 2.5 / len(updates))[0],
        "krum": rules.aggregate_krum(sent(), 2, 0)[0],
        "multi-krum": rules.aggregate_krum(equal, 2, 9)[0],
        "multi-krum of records": rules.aggregate([(one["arrays"].to_numpy_ndarrays(), 1) for one in kept])[0],
        "bulyan": rules.aggregate_bulyan(sent(), 2, rules.aggregate_krum, to_keep=0)[0],
        "fedavgm": models(strategies.FedAvgM(server_learning_rate=0.7, server_momentum=0.9), given),
        "fedadagrad": models(strategies.FedAdagrad(**adaptive), given),
        "fedadam": models(strategies.FedAdam(**adaptive, beta_1=0.9, beta_2=0.99), given),
        "fedyogi": models(strategies.FedYogi(**adaptive, beta_1=0.9, beta_2=0.99), given),
    }
    np.savez(target, **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
