"""Which ranks share the data, and which share a model."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from transect.domain.errors import BadInput


@dataclass(frozen=True, slots=True)
class Share:
    """One of `count` equal parts of every batch."""

    number: int = 0
    count: int = 1


@dataclass(frozen=True, slots=True)
class Layout:
    """`replicas` of the model share each batch; `model_parts` ranks compute one replica together.

    A replica takes its share in `micro_batches`, one after another; a batch norm sees them, not the share.

    Ranks of one replica follow one another, so that those who talk most are near each other
    (D. Narayanan et al., "Efficient large-scale language model training on GPU clusters using
    Megatron-LM", 2021, section 3). Parameters that are only stored in parts, as FSDP does, are
    no model parts: each rank computes with all of them. `servers` come before all replicas: ranks that
    hold weights or pass them on, and compute no part of a batch. Of a replica's share each of the rank's
    `devices` computes an equal part, with a copy of the model of its own.

    `workers`: where ranks come and go, how many of them are there in each of equal spans of the training's steps. The
    batch is cut as if all were there; those who are compute the others' parts too.
    """

    replicas: int
    model_parts: int = 1
    micro_batches: int = 1
    servers: int = 0
    devices: int = 1
    workers: tuple[int, ...] = ()

    @property
    def copies(self) -> int:
        """Models that compute equal parts of a batch, each with its own statistics."""
        return self.replicas * self.devices

    @property
    def ranks(self) -> int:
        """World size."""
        return self.servers + self.replicas * self.model_parts

    def share(self, rank: int) -> Share | None:
        """Return the part of each batch that a rank computes: all ranks of a replica the same; a server none."""
        if rank < self.servers:
            return None
        return Share((rank - self.servers) // self.model_parts, self.replicas)

    def there(self, step: int, steps: int) -> int:
        """Return how many workers are there in one of so many steps: the first ones by their rank."""
        return self.workers[step * len(self.workers) // steps] if self.workers else self.replicas

    def check_steps(self, steps: int) -> None:
        """Raise BadInput when a training has fewer steps than spans."""
        if steps < len(self.workers):
            raise BadInput(f"{len(self.workers)} numbers of workers for a training of {steps} steps")

    def shares(self, rank: int) -> list[Share | None]:
        """Return the parts of a batch that a rank computes at one time or another."""
        if self.workers and rank >= self.servers:
            return [Share(number, self.replicas) for number in range(self.replicas)]
        return [self.share(rank)]

    def parts(self, rank: int, step: int, steps: int) -> range:
        """Return which parts of a step's batch a rank computes: none where it is a server, or is not there.

        >>> layout = Layout(3, servers=1, workers=(1, 3, 2))
        >>> [[list(layout.parts(rank, step, 3)) for rank in (1, 2, 3)] for step in range(3)]
        [[[0, 1, 2], [], []], [[0], [1], [2]], [[0, 2], [1], []]]
        """
        worker, there = rank - self.servers, self.there(step, steps)
        return range(worker, self.replicas, there) if 0 <= worker < there else range(0)

    def complaint(self, batch: int) -> str | None:
        """Return why a global batch cannot be cut like this, or None."""
        if batch % self.copies:
            return f"a global batch of {batch} cannot be cut in {self.copies} equal parts"
        if batch // self.replicas < self.micro_batches:
            return f"a replica's {batch // self.replicas} samples cannot be cut in {self.micro_batches} micro-batches"
        return None

    def micro(self, samples: int) -> list[slice]:
        """Cut a replica's samples: the first micro-batches have one more where they cannot be equal.

        >>> Layout(1, 2, 3).micro(8)
        [slice(0, 3, None), slice(3, 6, None), slice(6, 8, None)]
        """
        size, more = divmod(samples, self.micro_batches)
        ends = [number * size + min(number, more) for number in range(self.micro_batches + 1)]
        return [slice(a, b) for a, b in pairwise(ends)]
