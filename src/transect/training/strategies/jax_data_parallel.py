"""JAX's own way over devices and processes: collectives over a mesh of all devices, by gloo between CPUs."""

from __future__ import annotations

import os
from typing import Any

from transect.domain.axes.train import TrainCell
from transect.domain.options import Option
from transect.training.frameworks import Framework, FusedTrainer, ModelPlan, Trainer
from transect.training.layout import Layout
from transect.training.strategies import STRATEGIES, Parts, Place, Strategy


@STRATEGIES.register("jax-data-parallel", "shard_map", "pmap")
class JaxDataParallel(Strategy):
    """Divides each batch among the devices of all ranks by `shard_map`, as users of JAX do.

    Of `jax` a step is one compiled program, from the batch to the new weights. With `keras-jax` the flat gradient
    is reduced between backward and update: Keras' `DataParallel` would have XLA divide the whole step, and
    batch norm would take its mean over all ranks. JAX's gloo listens where the host's name points to: no
    interface can be given.
    """

    rendezvous = "tcp"
    options = {  # noqa: RUF012 a constant
        "devices": Option(default=1, min=1, description="devices that a rank makes of its threads; 1 with keras-jax")
    }

    def supports(self, cell: TrainCell) -> str | None:
        if cell.framework not in ("jax", "keras-jax"):
            return f"jax-data-parallel is a strategy of jax and keras-jax, not of {cell.framework}"
        if cell.framework == "keras-jax" and self.settings(cell)["devices"] > 1:
            return "keras-jax computes on one device of each rank"
        return None if cell.device == "cpu" else "its collectives work between CPUs"

    def layout(self, cell: TrainCell) -> Layout:
        return Layout(cell.ranks, devices=int(self.settings(cell)["devices"]))

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

    def trainer(self, framework: Framework, plan: ModelPlan, cell: TrainCell) -> Trainer:
        if cell.framework != "jax":
            return framework.trainer(plan)
        from transect.training.frameworks._jax_sharded import ShardedJaxTrainer

        return ShardedJaxTrainer(plan, self.layout(cell).devices, self.operation)

    def start(self, trainer: Trainer) -> None:
        """Give all ranks the weights of rank 0; compile the reduction between backward and update, of zeros."""
        import jax
        from jax.experimental import multihost_utils

        self._jax, self._utils = jax, multihost_utils
        if self.framework == "keras-jax":
            self._compile()
            self.reduce(trainer)
        trainer.load(multihost_utils.broadcast_one_to_all(trainer.weights()))

    def _compile(self) -> None:
        import jax
        from jax.sharding import Mesh, NamedSharding, PartitionSpec

        mesh = Mesh(jax.devices(), "ranks")
        self._rows = NamedSharding(mesh, PartitionSpec("ranks"))
        mean = self.operation == "mean"

        def add(row: Any) -> Any:
            flat = row[0]
            return jax.lax.pmean(flat, "ranks") if mean else jax.lax.psum(flat, "ranks")

        self._add = jax.jit(jax.shard_map(add, mesh=mesh, in_specs=PartitionSpec("ranks"), out_specs=PartitionSpec()))

    def reduce(self, trainer: Trainer) -> None:
        owner: Any = trainer
        local = owner.flat_gradient
        whole = self._jax.make_array_from_single_device_arrays(
            (self._jax.process_count(), local.size), self._rows, [local[None]]
        )
        owner.flat_gradient = self._add(whole).addressable_data(0).block_until_ready()

    def step(self, trainer: Trainer, x: object, y: object, learning_rate: float) -> Parts:
        """Do one program, of which nothing tells when it communicates, or the steps in parts."""
        if self.framework == "keras-jax":
            return super().step(trainer, x, y, learning_rate)
        assert isinstance(trainer, FusedTrainer)
        loss = trainer.step(x, y, learning_rate)
        trainer.finish_step()
        return Parts(loss, float("nan"), float("nan"), float("nan"))

    def barrier(self) -> None:
        self._utils.sync_global_devices("barrier")

    def leave(self) -> None:
        self._jax.distributed.shutdown()

    def libraries(self) -> dict[str, str]:
        return {"jax.distributed": "gloo"}
