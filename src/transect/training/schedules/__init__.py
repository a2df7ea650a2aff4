"""Schedules: how the learning rate changes from step to step. One file each, which says the rule in numpy.

The rates of all steps are computed before a training begins, so every framework and the reference follow the same
numbers.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator

from transect.domain.errors import BadInput
from transect.domain.options import Option, chosen_options, settings
from transect.domain.registry import Plugin, Registry

__all__ = ["SCHEDULES", "Schedule", "ScheduleChoice", "schedule_factors", "unusual_options"]

_FUNCTION = re.compile(r"(?P<file>.+\.py):(?P<function>[A-Za-z_]\w*)")
_WARMUP = MappingProxyType(
    {"warmup_steps": Option(default=0, min=0, description="first steps, in which the rate grows in equal parts")}
)


class Schedule(Plugin, ABC):
    """A rule for the learning rate of each step, as a share of the workload's own."""

    # By name; `warmup_steps` belongs to all schedules.
    options: Mapping[str, Option] = MappingProxyType({})

    def complaint(self, options: Mapping[str, Any]) -> str | None:
        """Return what is wrong with options that have the right types, or None."""
        return None

    @abstractmethod
    def factors(self, options: Mapping[str, Any], step: np.ndarray, steps: int) -> np.ndarray:
        """Return what the learning rate is multiplied by in each step, float64 like `step`.

        `step` counts from 0 to `steps` - 1, where `steps` are those of the whole training behind the warm-up.
        """


SCHEDULES: Registry[Schedule] = Registry("schedule", "transect.training.schedules", Schedule)


def _chosen(given: object) -> object:
    """Return a schedule as a mapping of its name and of all of its options. Raises BadInput."""
    chosen = given
    if isinstance(given, str):
        own = _FUNCTION.fullmatch(given)
        chosen = {"name": "function", **own.groupdict()} if own else {"name": given}
    if not (isinstance(chosen, dict) and isinstance(chosen.get("name"), str)):
        raise BadInput(f"schedule: expected a name, or a mapping of `name` and options, got {given!r}")
    name = SCHEDULES.named(chosen["name"])
    known = dict(SCHEDULES.get(name, "schedule").options) | _WARMUP
    options = {key: value for key, value in chosen.items() if key != "name"}
    whole = settings(known, chosen_options(f"schedule {name}", known, options, "schedule"))
    if (complaint := SCHEDULES.get(name).complaint(whole)) is not None:
        raise BadInput(f"schedule {name}: {complaint}")
    return {"name": name, **whole}


def unusual_options(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return a chosen schedule's name, and the options that are not what they are anyway."""
    known = dict(SCHEDULES.get(chosen["name"]).options) | _WARMUP
    return {key: value for key, value in chosen.items() if key == "name" or value != known[key].default}


# A name, FILE.py:NAME of a function, or a mapping of `name` and options; always kept as a mapping of all of them.
ScheduleChoice = Annotated[dict[str, Any], BeforeValidator(_chosen)]


def schedule_factors(chosen: Mapping[str, Any], steps: int) -> np.ndarray:
    """Return what the learning rate is multiplied by in each step of the training, float64 (steps,).

    In the first W = `warmup_steps` these are 1/W, 2/W, ..., 1; the schedule has the steps behind them.
    """
    warm = min(int(chosen["warmup_steps"]), steps)
    grown = np.arange(1, warm + 1) / max(1, int(chosen["warmup_steps"]))
    rest = steps - warm
    after = SCHEDULES.get(chosen["name"]).factors(chosen, np.arange(rest, dtype=np.float64), rest)
    return np.concatenate([grown, after])
