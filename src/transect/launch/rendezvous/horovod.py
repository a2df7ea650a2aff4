"""Horovod: its gloo controller with a key-value store over HTTP, or its MPI controller."""

from __future__ import annotations

import sys

from transect.launch.rendezvous import NUMBERS, RENDEZVOUS, Rendezvous, Service, World

_FRAMEWORKS = ("torch", "tensorflow", "keras", "keras-2", "mxnet")


@RENDEZVOUS.register("horovod")
class HorovodGloo(Rendezvous):
    """What `horovodrun --gloo` sets, and the store that it runs.

    Source: https://github.com/horovod/horovod/blob/master/horovod/runner/gloo_run.py
    """

    strategies = dict.fromkeys(_FRAMEWORKS, ("horovod-gloo",))
    numeric = True

    def common(self, world: World) -> dict[str, str]:
        """The controller and its store."""
        variables = {
            "HOROVOD_CONTROLLER": "gloo",
            "HOROVOD_CPU_OPERATIONS": "gloo",
            "HOROVOD_GLOO_RENDEZVOUS_ADDR": world.addresses[0],
            "HOROVOD_GLOO_RENDEZVOUS_PORT": str(world.port),
            # Of 30 s by itself, which go by while ranks are stopped as others have the turn; a cell has its own limit.
            "HOROVOD_GLOO_TIMEOUT_SECONDS": "86400",
        }
        interface = world.interface or ("lo" if world.nodes == 1 else "")
        return variables | ({"HOROVOD_GLOO_IFACE": interface} if interface else {})

    def per_rank(self, world: World) -> dict[str, str]:
        """The numbers by Horovod's names; `cross` is among the same local ranks of all nodes."""
        return {
            **NUMBERS,
            "HOROVOD_HOSTNAME": "{host}",
            "HOROVOD_RANK": "{rank}",
            "HOROVOD_SIZE": "{size}",
            "HOROVOD_LOCAL_RANK": "{local_rank}",
            "HOROVOD_LOCAL_SIZE": "{local_size}",
            "HOROVOD_CROSS_RANK": "{cross_rank}",
            "HOROVOD_CROSS_SIZE": "{cross_size}",
        }

    def services(self, world: World) -> list[Service]:
        """The store, on the first node, with our own Python: Horovod may be in a container."""
        # What it imports takes longer than the rest of a launch.
        from transect.launch import keystore

        address, port = world.addresses[0], str(world.port)
        return [
            Service(
                name="store",
                on="first-node",
                argv=(sys.executable, keystore.__file__, address, port),
                wait_for=f"{address}:{port}",
            )
        ]


@RENDEZVOUS.register("horovod-mpi")
class HorovodMpi(Rendezvous):
    """Horovod finds everything in MPI."""

    strategies = dict.fromkeys(_FRAMEWORKS, ("horovod-mpi",))
    mpi = True

    def common(self, world: World) -> dict[str, str]:
        """The controller."""
        return {"HOROVOD_CONTROLLER": "mpi", "HOROVOD_CPU_OPERATIONS": "mpi"}
