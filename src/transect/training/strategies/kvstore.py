"""MXNet's distributed key-value store, synchronous: workers push gradients to parameter servers."""

from __future__ import annotations

import os
from typing import Any

from transect.domain.axes.train import TrainCell
from transect.training.departure import end_process
from transect.training.frameworks import Trainer
from transect.training.layers import is_statistic
from transect.training.strategies import STRATEGIES, Place, Strategy


@STRATEGIES.register("kvstore-dist-sync", "kvstore", "dist_sync")
class KvstoreDistSync(Strategy):
    """Servers add the workers' gradients, one key an array; the update stays with the workers.

    That is gluon.Trainer with `update_on_kvstore=False`: after the backward pass each gradient is
    pushed and its sum pulled, those of the first layers with priority. Arrays of more than
    MXNET_KVSTORE_BIGARRAY_BOUND elements are cut in parts, one for each server.
    """

    rendezvous = "dmlc"

    def __init__(self) -> None:
        self._kv: Any = None
        self._mx: Any = None

    def supports(self, cell: TrainCell) -> str | None:
        """MXNet only, in float32: seen in 1.9.1, float64 arrays come back rounded to float32."""
        if cell.framework != "mxnet":
            return f"kvstore-dist-sync is a strategy of mxnet, not of {cell.framework}"
        if cell.precision != "fp32":
            return f"MXNet's key-value store adds in float32, the cell is in {cell.precision}"
        return None

    def join(self) -> Place:
        """Meet at DMLC_PS_ROOT_URI; ps-lite numbers the workers, whatever the launcher's numbers.

        In a scheduler or a server the import does not return: it serves, then ends the process.
        """
        try:
            import mxnet as mx
        except SystemExit as end:
            if os.environ.get("DMLC_ROLE") not in ("scheduler", "server"):
                raise
            # It has served: that is no fault, as it would be of a rank that trains.
            end_process(int(end.code or 0))
        self._mx, self._kv = mx, mx.kv.create("dist_sync")
        return Place(self._kv.rank, self._kv.num_workers, int(os.environ.get("LOCAL_RANK", "0")))

    def start(self, trainer: Trainer) -> None:
        weights = trainer.weights()
        # Trained weights come first: key k is the k-th gradient.
        names = sorted(weights, key=is_statistic)
        nd = self._mx.nd
        arrays = [nd.array(weights[name], dtype=weights[name].dtype) for name in names]
        self._kv.broadcast(list(range(len(names))), arrays, out=arrays)
        trainer.load({name: array.asnumpy() for name, array in zip(names, arrays, strict=True)})

    def reduce(self, trainer: Trainer) -> None:
        """Push, pull, divide by the number of workers, and wait until all is there."""
        owner: Any = trainer
        for key, gradient in enumerate(owner.gradients):
            self._kv.pushpull(key, gradient, out=gradient, priority=-key)
            if self.operation == "mean":
                gradient /= self._kv.num_workers
        self._mx.nd.waitall()

    def barrier(self) -> None:
        self._mx.nd.waitall()
        self._kv._barrier()

    def leave(self) -> None:
        """Close the store while all workers are there: it waits for them and ends the servers."""
        self._mx.nd.waitall()
        self._kv = None

    def libraries(self) -> dict[str, str]:
        return {"mxnet.kvstore": "dist_sync", "servers": os.environ.get("DMLC_NUM_SERVER", "?")}
