"""What any program's file of samples comes to: benchmarks, and of each the processes that were timed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict

from transect.domain.secrets import without_secrets

# What a file without samples is told with.
NO_SAMPLES = "the file has a single number of it and no samples"
# Units as programs call them, and ours; of the last ones nobody knows whether more or less is better.
UNITS = {"second": "s", "seconds": "s", "byte": "B", "bytes": "B", "integer": "1", "unit": "1"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Repeat:
    """One process that was timed: the middle of its samples, None where it failed. Times as ISO 8601, or empty."""

    value: float | None
    started: str = ""
    ended: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampled:
    """One benchmark of a file. `unit`: `s`, `B`, `1` or as the program says.

    `settings`: in which two are no like measurements. `doubt`: why nothing on it is confirmed. `skipped`: why it did not run.
    """

    program: str
    name: str
    unit: str
    repeats: Sequence[Repeat]
    parameters: tuple[tuple[str, str], ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    doubt: str = ""
    skipped: str = ""


class ReadFile(BaseModel):
    """What is taken of a file; what else is in it does not matter."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)


def text_of(value: object) -> str:
    """Return a text that can be published, without secrets; an escape in JSON may stand for half a character."""
    return str(without_secrets(str(value).encode("utf-8", "replace").decode()))
