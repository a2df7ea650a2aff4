"""The method `plain`."""

from __future__ import annotations

from transect.federated.methods import METHODS, Method


@METHODS.register("plain")
class Plain(Method):
    """Local steps of the workload's optimiser, nothing else."""
