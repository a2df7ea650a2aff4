"""JAX's own way over processes: a collective over a mesh of one device per rank, by gloo on CPUs."""

from __future__ import annotations

import os
from typing import Any

from transect.domain.axes.train import TrainCell
from transect.training.frameworks import Trainer
from transect.training.strategies import STRATEGIES, Place, Strategy


@STRATEGIES.register("jax-data-parallel")
class JaxDataParallel(Strategy):
    """Reduces the flat gradient between backward and update, as `jax.lax.psum` does.

    Keras' `DataParallel` would have XLA divide the whole step, and batch norm would take its mean
    over all ranks. JAX's gloo listens where the host's name points to: no interface can be given.
    """

    rendezvous = "tcp"

    def supports(self, cell: TrainCell) -> str | None:
        if cell.framework != "keras-jax":
            return f"jax-data-parallel is a strategy of keras-jax, not of {cell.framework}"
        return None if cell.device == "cpu" else "its collectives work between CPUs"

    def join(self) -> Place:
        """Meet at MASTER_ADDR:MASTER_PORT, where rank 0 listens."""
        import jax

        place = Place(*(int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK")))
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        # Nothing may make the devices before the trainer has set their threads.
        jax.distributed.initialize(
            f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}",
            place.world_size,
            place.rank,
            initialization_timeout=120,
            cluster_detection_method="deactivate",
        )
        return place

    def start(self, trainer: Trainer) -> None:
        """Compile the reduction, of zeros; give all ranks the weights of rank 0."""
        import jax
        from jax.experimental import multihost_utils
        from jax.sharding import Mesh, NamedSharding, PartitionSpec

        mesh = Mesh(jax.devices(), "ranks")
        self._rows = NamedSharding(mesh, PartitionSpec("ranks"))
        self._jax, self._utils = jax, multihost_utils
        mean = self.operation == "mean"

        def add(row: Any) -> Any:
            flat = row[0]
            return jax.lax.pmean(flat, "ranks") if mean else jax.lax.psum(flat, "ranks")

        self._add = jax.jit(jax.shard_map(add, mesh=mesh, in_specs=PartitionSpec("ranks"), out_specs=PartitionSpec()))
        self.reduce(trainer)
        trainer.load(multihost_utils.broadcast_one_to_all(trainer.weights()))

    def reduce(self, trainer: Trainer) -> None:
        owner: Any = trainer
        local = owner.flat_gradient
        whole = self._jax.make_array_from_single_device_arrays(
            (self._jax.process_count(), local.size), self._rows, [local[None]]
        )
        owner.flat_gradient = self._add(whole).addressable_data(0).block_until_ready()

    def barrier(self) -> None:
        self._utils.sync_global_devices("barrier")

    def leave(self) -> None:
        self._jax.distributed.shutdown()

    def libraries(self) -> dict[str, str]:
        return {"jax.distributed": "gloo"}
