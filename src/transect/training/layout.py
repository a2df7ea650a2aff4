"""Which ranks share the data, and which share a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Layout", "Share"]


class Share(NamedTuple):
    """One of `count` equal parts of every batch."""

    number: int = 0
    count: int = 1


@dataclass(frozen=True, slots=True)
class Layout:
    """`replicas` of the model share each batch; `model_parts` ranks compute one replica together.

    Ranks of one replica follow one another, so that those who talk most are near each other
    (D. Narayanan et al., "Efficient large-scale language model training on GPU clusters using
    Megatron-LM", 2021, section 3). Parameters that are only stored in parts, as FSDP does, are
    no model parts: each rank computes with all of them.
    """

    replicas: int
    model_parts: int = 1

    def __post_init__(self) -> None:
        """Raise ValueError unless both are at least 1."""
        if min(self.replicas, self.model_parts) < 1:
            raise ValueError(f"a layout has at least 1 replica of 1 part, not {self}")

    @property
    def ranks(self) -> int:
        """World size."""
        return self.replicas * self.model_parts

    def share(self, rank: int) -> Share:
        """Return the part of each batch that a rank computes: all ranks of a replica the same."""
        return Share(rank // self.model_parts, self.replicas)
