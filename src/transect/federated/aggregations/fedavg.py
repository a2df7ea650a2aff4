"""Federated averaging: the mean of the clients' models, weighted by their rows."""

from __future__ import annotations

from transect.federated.aggregations import AGGREGATIONS, Summed


@AGGREGATIONS.register("fedavg")
class FedAvg(Summed):
    """w += sum n_i d_i / sum n_i.

    H. B. McMahan et al., "Communication-efficient learning of deep networks from decentralized data", AISTATS 2017.
    """
