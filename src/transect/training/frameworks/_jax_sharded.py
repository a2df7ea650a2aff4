"""The same training over the devices of all ranks: each step is one program of XLA, which also communicates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from transect.training.frameworks import ModelPlan
from transect.training.frameworks._jax_setup import configure
from transect.training.frameworks._jax_trainer import JaxTrainer, Kind

_AXIS = "devices"


class ShardedJaxTrainer(JaxTrainer):
    """Functions of `JaxTrainer` under `shard_map`, over a mesh of all ranks' devices.

    Each device computes an equal part of the rank's part of a batch, and has the running statistics of its own
    parts: those of a rank are its first device's. The gradient becomes the mean over devices, or their sum: all
    weights side by side, in one collective.
    """

    def __init__(self, plan: ModelPlan, devices: int, operation: str) -> None:
        self.jax = jax = configure(plan.threads, plan.device, plan.precision)
        jax.config.update("jax_num_cpu_devices", devices)
        self._mesh = jax.sharding.Mesh(jax.devices(), _AXIS)
        self._devices, self._operation = devices, operation
        super().__init__(plan)

    def _spec(self, kind: Kind) -> Any:
        return self.jax.sharding.PartitionSpec(*(() if kind == "same" else (_AXIS,)))

    def _placing(self, kind: Kind) -> Any:
        return self.jax.sharding.NamedSharding(self._mesh, self._spec(kind))

    def compiled(
        self, function: Callable[..., Any], takes: tuple[Kind, ...], gives: tuple[Kind, ...], donated: tuple[int, ...]
    ) -> Callable[..., Any]:
        """Compile it for the mesh; what each device has of its own has the devices as its first axis."""
        tree = self.jax.tree

        def on_one(*given: Any) -> Any:
            own = [
                tree.map(lambda array: array[0], value) if kind == "own" else value
                for value, kind in zip(given, takes, strict=True)
            ]
            return tuple(
                tree.map(lambda array: array[None], value) if kind == "own" else value
                for value, kind in zip(function(*own), gives, strict=True)
            )

        # With the check JAX would sum gradients by itself, weight by weight, before `reduced` sees them.
        mapped = self.jax.shard_map(
            on_one,
            mesh=self._mesh,
            in_specs=tuple(map(self._spec, takes)),
            out_specs=tuple(map(self._spec, gives)),
            check_vma=False,
        )
        compiled: Callable[..., Any] = self.jax.jit(mapped, donate_argnums=donated)
        return compiled

    def reduced(self, flat: Any) -> Any:
        """Return the mean or sum over all devices."""
        lax = self.jax.lax
        return (lax.pmean if self._operation == "mean" else lax.psum)(flat, _AXIS)

    def batch(self, x: np.ndarray, y: np.ndarray) -> tuple[Any, Any]:
        """Make this rank's samples its part of arrays over the mesh."""
        place = self.jax.make_array_from_process_local_data
        return place(self._placing("part"), self.inputs(x)), place(self._placing("part"), y)

    def set_gradient(self, flat: np.ndarray) -> None:
        self.flat_gradient = self.placed(flat, "same")

    def placed(self, arrays: Any, kind: Kind) -> Any:
        """Bring arrays to every device of this rank."""
        place, placing = self.jax.make_array_from_process_local_data, self._placing(kind)

        def over(array: Any) -> Any:
            held = np.array(array)
            return place(placing, held if kind == "same" else np.stack([held] * self._devices))

        return self.jax.tree.map(over, arrays)

    def local(self, arrays: Any) -> Any:
        return self.jax.tree.map(lambda array: array.addressable_data(0), arrays)

    def local_own(self, arrays: Any) -> Any:
        return self.jax.tree.map(lambda array: array.addressable_data(0)[0], arrays)

    def number(self, loss: Any) -> float:
        """Return the mean over this rank's devices."""
        return float(np.mean([shard.data for shard in loss.addressable_shards]))
