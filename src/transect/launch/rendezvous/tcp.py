"""torch.distributed's `env://`: a TCP store on the first node."""

from __future__ import annotations

from transect.launch.rendezvous import NUMBERS, RENDEZVOUS, Rendezvous, World


@RENDEZVOUS.register("tcp")
class Tcp(Rendezvous):
    """MASTER_ADDR, MASTER_PORT and the variables of torchrun.

    Source: https://docs.pytorch.org/docs/stable/elastic/run.html#environment-variables
    """

    strategies = {  # noqa: RUF012 a constant
        "torch": ("ddp-gloo", "ddp-nccl", "fsdp", "torch-pipeline", "tensor-parallel", "spatial", "torchrun"),
        "keras-torch": ("ddp-gloo",),
        "keras-jax": ("jax-data-parallel",),
        "jax": ("jax-data-parallel",),
    }

    def common(self, world: World) -> dict[str, str]:
        """Where rank 0 listens."""
        return {"MASTER_ADDR": world.hosts[0], "MASTER_PORT": str(world.port)}

    def per_rank(self, world: World) -> dict[str, str]:
        """The rank's numbers."""
        return dict(NUMBERS)
