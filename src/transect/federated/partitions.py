"""Partitions: which rows each client has. A partition is a name, and for some a number behind it: `dirichlet-0.3`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from transect.domain.errors import BadInput
from transect.federated.draws import Purpose, bits, draw, shuffled, uniform

# As the data set says.
AS_GIVEN = "as-given"


@dataclass(frozen=True, kw_only=True, slots=True)
class Clients:
    """The rows of client c: `rows[starts[c]:starts[c + 1]]`; int64."""

    rows: np.ndarray
    starts: np.ndarray

    def __len__(self) -> int:
        return len(self.starts) - 1

    def of(self, client: int) -> np.ndarray:
        """Return a client's rows."""
        return self.rows[self.starts[client] : self.starts[client + 1]]

    @property
    def sizes(self) -> np.ndarray:
        """How many rows each has, (clients,)."""
        return np.diff(self.starts)


def grouped(owners: np.ndarray, clients: int) -> Clients:
    """Return which rows each client has, given each row's client, (n,). Raises BadInput for one that has none."""
    sizes = np.bincount(owners, minlength=clients)
    if len(sizes) > clients or not sizes.all():
        has = f"{np.count_nonzero(sizes)} have rows, and the highest number is {len(sizes) - 1}"
        raise BadInput(f"of {clients} clients {has}: expected rows for each")
    return Clients(rows=np.argsort(owners, kind="stable"), starts=np.concatenate([[0], np.cumsum(sizes)]))


def _iid(number: float, y: np.ndarray, clients: int, seed: int) -> np.ndarray:
    """Deal the rows out in a drawn order: sizes differ by one at most."""
    owners = np.empty(len(y), np.int64)
    owners[shuffled(seed, Purpose.PARTITION, len(y))] = np.arange(len(y)) % clients
    return owners


def _labels(number: float, y: np.ndarray, clients: int, seed: int) -> np.ndarray:
    """Sort the rows by class, cut them into so many pieces for each client, deal the pieces out (McMahan et al. 2017)."""
    pieces = clients * int(number)
    order = shuffled(seed, Purpose.PARTITION, len(y))
    order = order[np.argsort(y[order], kind="stable")]
    owners = np.empty(len(y), np.int64)
    for place, piece in enumerate(shuffled(seed, Purpose.PARTITION, pieces, 1)):
        owners[order[piece * len(y) // pieces : (piece + 1) * len(y) // pieces]] = place % clients
    return owners


# Shares of classes are drawn again until each client has a row.
_TRIES = 1000


def _dirichlet(number: float, y: np.ndarray, clients: int, seed: int) -> np.ndarray:
    """Give each client a share of each class, drawn from a Dirichlet distribution with that concentration.

    T.-M. H. Hsu et al., "Measuring the effects of non-identical data distribution", arXiv:1909.06335, by class as in
    M. Yurochkin et al., ICML 2019. The shares are numpy's draws: who needs the partition reads it, and does not draw it.
    """
    chance = int(draw(seed, Purpose.PARTITION, 0, 2)[0])
    for attempt in range(_TRIES):
        generator = np.random.default_rng([chance, attempt])
        owners = np.empty(len(y), np.int64)
        for label in np.unique(y):
            rows = np.flatnonzero(y == label)
            rows = rows[shuffled(seed, Purpose.PARTITION, len(rows), 3, int(label))]
            ends = np.cumsum(generator.dirichlet(np.full(clients, number)))
            owners[rows] = np.searchsorted(ends[:-1], (np.arange(len(rows)) + 0.5) / len(rows))
        if np.bincount(owners, minlength=clients).all():
            return owners
    raise BadInput(
        f"partition dirichlet-{number:g}: in {_TRIES} draws some of {clients} clients had none of {len(y)} rows: "
        "expected fewer clients, or a larger number"
    )


def _drawn(number: int, rows: int, clients: int, seed: int) -> Clients:
    """Let each client draw so many rows of all: several clients may have one, and a client may have it twice."""
    drawn = bits(seed, Purpose.PARTITION, number, np.arange(clients), 4)
    # The upper half of a product of 32 bits each: as even as a remainder, and no division.
    chosen = (drawn * np.uint64(rows)) >> np.uint64(32)
    return Clients(rows=chosen.astype(np.int64).reshape(-1), starts=np.arange(clients + 1) * number)


_Deal = Callable[[float, np.ndarray, int, int], np.ndarray]
# By name: how owners are dealt, the number's pattern, whether it needs classes.
_PARTITIONS: dict[str, tuple[_Deal, str, bool]] = {
    "iid": (_iid, "", False),
    "dirichlet": (_dirichlet, r"\d+(\.\d+)?|\.\d+", True),
    "labels": (_labels, r"[1-9]\d{0,2}", True),
}
_DRAWN = re.compile(r"drawn-([1-9]\d{0,5})")
EXPECTED = (
    "iid, dirichlet-A (A a number above 0), labels-K (K classes or so for each client), drawn-K (each draws K rows of "
    f"all), or {AS_GIVEN}"
)


def parsed(partition: str, where: str = "") -> tuple[str, float]:
    """Return a partition's name and number. Raises BadInput for one that there is not, with `where` it stands."""
    name, _, number = partition.partition("-")
    if partition == AS_GIVEN:
        return partition, 0.0
    if _DRAWN.fullmatch(partition):
        return name, float(number)
    if name in _PARTITIONS and re.fullmatch(_PARTITIONS[name][1], number):
        value = float(number or 0)
        if number == "" or value > 0:
            return name, value
    raise BadInput(f"{where}partition '{partition}': expected {EXPECTED}")


def dealt(partition: str, y: np.ndarray, clients: int, seed: int, given: np.ndarray | None = None) -> Clients:
    """Return each client's rows, given the classes y (n,), or targets of another kind (n, ...), of all rows.

    `given` is the client of each row as the data set has it. Raises BadInput where that is not possible.
    """
    name, number = parsed(partition)
    if name == "drawn":
        return _drawn(int(number), len(y), clients, seed)
    if clients > len(y):
        raise BadInput(f"{clients} clients, and {len(y)} rows: expected at least one for each")
    if name == AS_GIVEN:
        if given is None:
            raise BadInput(f"partition {AS_GIVEN}: the data set does not say which row belongs to which client")
        return grouped(given, clients)
    deal, _, by_class = _PARTITIONS[name]
    if by_class and (y.ndim != 1 or y.dtype.kind != "i"):
        raise BadInput(f"partition {partition}: the targets are no classes: expected iid or {AS_GIVEN}")
    return grouped(deal(number, y, clients, seed), clients)


def durations(clients: int, slowness: float, seed: int) -> np.ndarray:
    """Return how long a turn of each client takes, float64 (clients,): lognormal, with median 1 and sigma `slowness`."""
    first, second = (uniform(draw(seed, Purpose.SPEED, np.arange(clients), part)) for part in (0, 1))
    # Box and Muller.
    normal = np.sqrt(-2.0 * np.log(first)) * np.cos(2.0 * np.pi * second)
    taken: np.ndarray = np.exp(slowness * normal)
    return taken
