"""MXNet's distributed key-value store: a scheduler, servers and workers of ps-lite."""

from __future__ import annotations

from transect.launch.rendezvous import NUMBERS, RENDEZVOUS, Rendezvous, Service, World


@RENDEZVOUS.register("dmlc")
class Dmlc(Rendezvous):
    """DMLC_* for the workers; one scheduler on the first node and one server on every node.

    The scheduler and the servers run the ranks' command: `import mxnet` never returns there.
    Source: https://mxnet.apache.org/api/faq/distributed_training
    """

    strategies = {"mxnet": ("kvstore-dist-sync",)}  # noqa: RUF012 the protocol's name for a constant
    # The scheduler's ZeroMQ binds to numbers only.
    numeric = True

    def common(self, world: World) -> dict[str, str]:
        """The scheduler's address and the numbers of workers and servers."""
        variables = {
            "DMLC_PS_ROOT_URI": world.addresses[0],
            "DMLC_PS_ROOT_PORT": str(world.port),
            "DMLC_NUM_WORKER": str(world.ranks),
            "DMLC_NUM_SERVER": str(world.nodes),
        }
        if world.interface:
            variables["DMLC_INTERFACE"] = world.interface
        elif world.nodes == 1:
            # Otherwise ps-lite looks for an interface that is not the loopback.
            variables["DMLC_NODE_HOST"] = world.addresses[0]
        return variables

    def per_rank(self, world: World) -> dict[str, str]:
        """The role. DMLC_RANK is left to ps-lite, which numbers workers itself."""
        return {**NUMBERS, "DMLC_ROLE": "worker", "DMLC_WORKER_ID": "{rank}"}

    def services(self, world: World) -> list[Service]:
        """Scheduler and servers."""
        return [
            Service(name="scheduler", on="first-node", variables={"DMLC_ROLE": "scheduler"}, ends=True),
            Service(name="server", on="every-node", variables={"DMLC_ROLE": "server"}, ends=True),
        ]
