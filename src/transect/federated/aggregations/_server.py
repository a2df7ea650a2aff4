"""What the servers' optimisers share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

import numpy as np

from transect.domain.options import Option
from transect.federated.aggregations import Settings, State, Summed


def server_rate(default: float = 1.0) -> Option:
    """Return the option of a server's learning rate."""
    return Option(default=default, min=0, description="the server's learning rate: what the change is multiplied by")


def momentum(default: float, description: str) -> Option:
    """Return the option of a share that is kept from round to round."""
    return Option(default=default, min=0, description=f"{description}; below 1")


def not_below_one(settings: Settings, *names: str) -> str | None:
    """Return the complaint about shares that are not below 1, or None."""
    wrong = [f"{name}: expected a number below 1, got {settings[name]}" for name in names if float(settings[name]) >= 1]
    return "; ".join(wrong) or None


class Adaptive(Summed):
    """m = beta_1 m + (1 - beta_1) D, v of the rule, w += server_rate m / (sqrt(v) + tau), with D the weighted mean.

    S. J. Reddi et al., "Adaptive federated optimization", ICLR 2021, algorithm 2: m begins at 0, v at tau^2 (the least
    that the paper allows), tau is added to the root, and no bias is corrected. The paper's D has equal weights; here
    rows weigh, as in FedAvg. It tunes rates for each task; the defaults are those of Flower. Flower 1.41 differs: v
    begins at 0, and its FedAdam multiplies the rate by sqrt(1 - beta_2^(t+1)) / (1 - beta_1^(t+1)) in round t from 1 on.
    """

    def complaint(self, settings: Settings, clients: int) -> str | None:
        """Return which beta is not below 1, or that tau is 0: a number that no client changes would be 0 / 0."""
        if float(settings["tau"]) == 0:
            return "tau: expected a number above 0, got 0"
        return not_below_one(settings, *(name for name in settings if name.startswith("beta_")))

    @abstractmethod
    def second_moment(self, settings: Settings, before: np.ndarray, squares: np.ndarray) -> np.ndarray:
        """Return v, float64 (d,), from that of before and the squares of the change."""

    def step(self, settings: Settings, model: np.ndarray, change: np.ndarray, state: State) -> np.ndarray:
        """Return the model after the server's step."""
        beta, tau = float(settings["beta_1"]), float(settings["tau"])
        first = beta * state.get("first", np.zeros_like(change)) + (1 - beta) * change
        second = self.second_moment(settings, state.get("second", np.full_like(change, tau**2)), change**2)
        state |= {"first": first, "second": second}
        return np.asarray(model + float(settings["server_rate"]) * first / (np.sqrt(second) + tau))


def adaptive_options(rate: float, beta_1: float, beta_2: float | None) -> Mapping[str, Option]:
    """Return the options of an `Adaptive` with these defaults; None: it has no beta_2."""
    second = {} if beta_2 is None else {"beta_2": momentum(beta_2, "the share of v that is kept")}
    return {
        "server_rate": server_rate(rate),
        "beta_1": momentum(beta_1, "the share of m that is kept"),
        **second,
        "tau": Option(default=1e-3, min=0, description="what is added to the root of v: the degree of adaptivity"),
    }
