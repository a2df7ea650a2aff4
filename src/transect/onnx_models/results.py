"""What a payload returns: what it found, for the stage runner to put into the cell's record."""

from __future__ import annotations

import platform
import sys
import traceback
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from math import isfinite
from typing import Any

from transect.domain.errors import error_facts
from transect.domain.record import Cause, Status


def result(
    *,
    status: Status = Status.OK,
    cause: Cause | None = None,
    message: str = "",
    wrong: str = "",
    skipped: str | None = None,
    metrics: list[dict[str, Any]] | Mapping[str, float | None] | None = None,
    samples: dict[str, Any] | None = None,
    details: dict[str, Any] | None = None,
    libraries: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Make a result.

    `wrong` says what is wrong with a result, or nothing. `skipped`: the reason, which may be empty, why nothing supports
    it. Of metrics by name those that are no number are left out.
    """
    if wrong:
        status, cause, message = Status.FAILED, Cause.WRONG_RESULT, wrong
    elif skipped is not None:
        status, cause, message = Status.SKIPPED, Cause.UNSUPPORTED, skipped
    if isinstance(metrics, Mapping):
        metrics = [{"name": n, "value": v} for n, v in metrics.items() if v is not None and isfinite(v)]
    return {
        "status": status.value,
        "cause": cause.value if cause else None,
        "message": message,
        "metrics": metrics or [],
        "samples": samples or {},
        "details": details or {},
        "libraries": libraries or {},
    }


def versions(*names: str) -> dict[str, str]:
    """Return the versions of those distributions that are installed; `python` is Python itself."""
    found = {}
    for name in names:
        with suppress(PackageNotFoundError):
            found[name] = platform.python_version() if name == "python" else version(name)
    return found


def refused(error: BaseException, what: str = "") -> dict[str, Any]:
    """Return the result where a library cannot do a model, which is no crash of ours: the begin of its reason."""
    traceback.print_exception(error, file=sys.stderr)
    facts = error_facts(error)
    cause = Cause.UNSUPPORTED if facts["cause"] == Cause.CRASH.value else Cause(facts["cause"])
    # Exporters of torch append pages to what they say.
    message = (f"{what}: " if what else "") + " ".join(facts["message"].split())[:400]
    return result(status=Status.FAILED, cause=cause, message=message)
