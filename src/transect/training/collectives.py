"""Hierarchical reduction by chunks: in groups of ranks, then by a tree or a chain over their leaders.

A. A. Awan et al., "S-Caffe: co-designing MPI runtimes and Caffe for scalable deep learning on modern
GPU clusters", 2017, section 5: a group is a chain. Then both levels are one tree of ranks with rank 0
at its root. A chunk goes up it as soon as a rank has its children's, so with c chunks and a tree of depth
d a reduction takes about (c + d) times as long as one chunk takes from rank to rank, where one call for
the whole buffer would take c d times as long. Ranks of a node can instead add in memory that they share.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from transect.training.shared_sums import AHEAD, SharedGroup

Inner = Literal["chain", "shared"]
Upper = Literal["tree", "chain"]


class Links(NamedTuple):
    """A rank's neighbours in the tree, and its distance from rank 0, which has no parent, in messages."""

    parent: int | None
    children: tuple[int, ...]
    distance: int


# The place of a rank that sends no messages.
_NOBODY = Links(None, (), 0)
# One tag for each direction: chunks of one pair of ranks never overtake one another.
_UP, _DOWN = 1, 2


def links(rank: int, size: int, group: int, upper: Upper) -> Links:
    """Return a rank's neighbours among `size` ranks; a group is `group` ranks that follow one another.

    The last group may be smaller. The first rank of each is its leader. Within a group each rank's
    child is the next; of leaders it is the next leader (`chain`), or they form a binomial tree.

    >>> links(0, 8, 3, "chain")
    Links(parent=None, children=(1, 3), distance=0)
    >>> links(7, 8, 3, "chain")
    Links(parent=6, children=(), distance=3)
    """
    leaders = -(-size // group)
    group_number, place = divmod(rank, group)
    children = []
    if place + 1 < group and rank + 1 < size:
        children.append(rank + 1)
    parent: int | None = rank - 1
    if place == 0:
        above, below = _chain(group_number, leaders) if upper == "chain" else _binomial(group_number, leaders)
        parent = None if above is None else above * group
        children += [leader * group for leader in below]
    hops = group_number if upper == "chain" else group_number.bit_count()
    return Links(parent, tuple(children), hops + place)


def _chain(number: int, count: int) -> tuple[int | None, list[int]]:
    return (number - 1 if number else None), ([number + 1] if number + 1 < count else [])


def _binomial(number: int, count: int) -> tuple[int | None, list[int]]:
    """Return parent and children: a number's parent has its lowest bit cleared."""
    lowest = number & -number if number else 1 << count.bit_length()
    steps = (1 << bit for bit in range(lowest.bit_length() - 1))
    children = [number + step for step in steps if number + step < count]
    return (number - lowest if number else None), children


class Hierarchy:
    """How the ranks of a communicator reduce: `group` ranks to a leader, `chunk_bytes` at a time.

    `inner`: what a group is, ranks that follow one another in a chain of messages, or ranks of one
    node that add in memory that they share; `upper`: how leaders are joined. `comm` is one of mpi4py's
    that nobody else sends on meanwhile. All ranks must make it, call its methods alike, with contiguous
    buffers of the same size and dtype, and free it.
    """

    def __init__(self, comm: Any, *, group: int, chunk_bytes: int, upper: Upper, inner: Inner) -> None:
        from mpi4py import MPI

        self._chunk_bytes = chunk_bytes
        self._shared: SharedGroup | None = None
        self._owned: list[Any] = []
        if inner == "shared":
            node = comm.Split_type(MPI.COMM_TYPE_SHARED, key=comm.rank)
            mine = node.Split(node.rank // group, key=node.rank)
            # Rank 0 leads a group, and is the first of the leaders.
            comm = comm.Split(0 if mine.rank == 0 else MPI.UNDEFINED, key=comm.rank)
            self._shared = SharedGroup(mine, max(chunk_bytes, 8))
            self._owned = [communicator for communicator in (node, mine, comm) if communicator != MPI.COMM_NULL]
            group = 1
        self._comm = comm
        self._place = _NOBODY
        if comm != MPI.COMM_NULL:
            self._place = links(comm.rank, comm.size, group, upper)
        # A chunk's way to rank 0 and back: a rank that asked for it earlier would only wait. Ranks of
        # a group that shares memory do as their leader does.
        lag = 2 * self._place.distance
        self._lag: int = lag if self._shared is None else mine.bcast(lag)

    def reduce(self, flat: np.ndarray) -> None:
        """Turn rank 0's buffer into the sum over ranks; in the others partial sums may be left."""
        self._run(flat, up=True, down=False)

    def broadcast(self, flat: np.ndarray) -> None:
        """Give every rank what is in rank 0's buffer."""
        self._run(flat, up=False, down=True)

    def all_reduce(self, flat: np.ndarray) -> None:
        """Turn every rank's buffer into the sum over ranks, bit by bit that of rank 0.

        A chunk goes down as soon as it has arrived, while later ones still come up.
        """
        self._run(flat, up=True, down=True)

    def free(self) -> None:
        """Give memory and communicators back, but not the one that it was made of."""
        if self._shared is not None:
            self._shared.free()
        for communicator in self._owned:
            communicator.Free()

    def _run(self, flat: np.ndarray, *, up: bool, down: bool) -> None:
        if not flat.size:
            return
        chunks = self._chunks(flat)
        rising = _Rising(self._comm, self._place, chunks) if up else None
        falling = _Falling(self._comm, self._place, chunks) if down else None
        lag = self._lag if up else 0
        for number in range(len(chunks) + (lag if down else 0)):
            if rising is not None and number < len(chunks):
                if self._shared is not None:
                    self._shared.add(chunks[number], chunks[number + 1 : number + 1 + AHEAD])
                rising.step(number)
            if falling is not None and number >= lag:
                if rising is not None:
                    rising.sent(number - lag)
                falling.step(number - lag)
                if self._shared is not None:
                    self._shared.give(chunks[number - lag])
        for direction in (rising, falling):
            if direction is not None:
                direction.finish()

    def _chunks(self, flat: np.ndarray) -> list[np.ndarray]:
        """Cut it; the last one may be shorter."""
        length = max(1, self._chunk_bytes // flat.itemsize)
        return [flat[start : start + length] for start in range(0, flat.size, length)]


class _Rising:
    """Chunks on their way to rank 0. Of each child the next one is asked for in advance."""

    def __init__(self, comm: Any, place: Links, chunks: list[np.ndarray]) -> None:
        self._comm, self._place, self._chunks = comm, place, chunks
        # Two for each child: one to add from, one to receive into.
        self._spare = [np.empty((2, chunks[0].size), chunks[0].dtype) for _ in place.children]
        self._asked: list[Any] = [None] * len(place.children)
        self._sends: list[Any] = []
        for child in range(len(place.children)):
            self._ask(child, 0)

    def _ask(self, child: int, number: int) -> None:
        if number < len(self._chunks):
            target = self._spare[child][number % 2, : self._chunks[number].size]
            self._asked[child] = self._comm.Irecv(target, self._place.children[child], _UP)

    def step(self, number: int) -> None:
        chunk = self._chunks[number]
        for child, spare in enumerate(self._spare):
            self._asked[child].Wait()
            self._ask(child, number + 1)
            np.add(chunk, spare[number % 2, : chunk.size], out=chunk)
        if self._place.parent is not None:
            self._sends.append(self._comm.Isend(chunk, self._place.parent, _UP))

    def sent(self, number: int) -> None:
        if self._sends:
            self._sends[number].Wait()

    def finish(self) -> None:
        for request in self._sends:
            request.Wait()


class _Falling:
    """Chunks on their way from rank 0."""

    def __init__(self, comm: Any, place: Links, chunks: list[np.ndarray]) -> None:
        self._comm, self._place, self._chunks = comm, place, chunks
        self._sends: list[Any] = []

    def step(self, number: int) -> None:
        """Receive it, pass it on; those with the longest way below them come first."""
        chunk = self._chunks[number]
        if self._place.parent is not None:
            self._comm.Recv(chunk, self._place.parent, _DOWN)
        for child in reversed(self._place.children):
            self._sends.append(self._comm.Isend(chunk, child, _DOWN))

    def finish(self) -> None:
        for request in self._sends:
            request.Wait()
