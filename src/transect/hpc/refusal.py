"""What makes an ok run doubtful, and who may refuse it: guessed limits never do by themselves."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from transect.domain.errors import BadInput
from transect.domain.metrics import metric
from transect.hpc.base import Run, RunStatus
from transect.hpc.values import LIMITS, doubtful

STRICT = "strict"
_MAX_COUNT = 20


@dataclass(frozen=True, slots=True)
class Refusal:
    """What is refused beyond what a log itself refutes.

    `strict` refuses every suspicious run. `limits` maps metrics of the registry to their lowest and highest
    value in the registry's unit; a run with a value outside is refused.
    """

    strict: bool = False
    limits: Mapping[str, tuple[float, float, str]] = field(default_factory=dict)

    def judged(self, run: Run) -> Run:
        """Return the run with its suspicions, as `invalid` where these rules refuse it."""
        if run.status is not RunStatus.OK:
            return run
        values = (doubtful(metric, LIMITS) for metric in run.metrics)
        found = [*run.suspicions, *(doubt for doubt in values if doubt is not None)]
        suspicions = list(dict.fromkeys(found))[:_MAX_COUNT]
        outside = next((why for metric in run.metrics if (why := doubtful(metric, self.limits))), None)
        if outside is not None:
            reason = f"the given limits refuse it: {outside}"
        elif self.strict and suspicions:
            reason = f"suspicious, and strict limits were asked for: {suspicions[0]}"
        elif suspicions != run.suspicions:
            return run.model_copy(update={"suspicions": suspicions})
        else:
            return run
        update = {"status": RunStatus.INVALID, "reason": reason, "suspicions": suspicions}
        return run.model_copy(update=update)


def checked_limits(given: object, where: str) -> dict[str, tuple[float, float, str]]:
    """Return limits by metric from `{metric: [lowest, highest]}`; null on a side: no limit there.

    Raises BadInput at `where` for another form, and naming the nearest metric for one that is not known.
    """
    if not isinstance(given, Mapping):
        raise BadInput(f"{where}: {given!r}: expected 'strict' or metrics with [lowest, highest]")
    found: dict[str, tuple[float, float, str]] = {}
    for name, ends in given.items():
        metric(str(name))
        right = isinstance(ends, (list, tuple)) and len(ends) == 2
        numbers = right and all(
            end is None or (isinstance(end, (int, float)) and not isinstance(end, bool) and end == end) for end in ends
        )
        if not numbers:
            raise BadInput(f"{where}: {name}: {ends!r}: expected [lowest, highest], two numbers or null")
        low = -math.inf if ends[0] is None else float(ends[0])
        high = math.inf if ends[1] is None else float(ends[1])
        if low > high:
            raise BadInput(f"{where}: {name}: the lowest, {low:g}, is above the highest, {high:g}")
        found[str(name)] = (low, high, "")
    return found


def refusal_of(given: str | None) -> Refusal:
    """Return the rules of `--limits`: nothing, `strict`, or a JSON file of limits.

    Raises BadInput for a file that cannot be read or holds something else.
    """
    if given is None:
        return Refusal()
    if given == STRICT:
        return Refusal(strict=True)
    try:
        limits = json.loads(Path(given).read_text(encoding="utf-8"))
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise BadInput(f"--limits {given!r}: expected 'strict' or a JSON file: {why}") from error
    except ValueError as error:
        raise BadInput(f"--limits {given!r}: no JSON: {error}") from error
    return Refusal(limits=checked_limits(limits, f"--limits {given!r}"))
