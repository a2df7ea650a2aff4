"""Ranks that need not meet."""

from __future__ import annotations

from transect.launch.rendezvous import KERAS, NUMBERS, RENDEZVOUS, Rendezvous, World


@RENDEZVOUS.register("none")
class NoRendezvous(Rendezvous):
    """Nothing to set on one rank; several get their numbers."""

    strategies = dict.fromkeys(("numpy", "torch", "tensorflow", *KERAS, "mxnet", "go"), ("single",))

    def per_rank(self, world: World) -> dict[str, str]:
        """Numbers, where there is more than one rank."""
        return dict(NUMBERS) if world.ranks > 1 else {}
