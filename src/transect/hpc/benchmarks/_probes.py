"""What benchmarks that are our own probes have in common."""

from __future__ import annotations

import re
from abc import ABC
from pathlib import Path

from transect.domain.record import Cause
from transect.hpc.benchmarks.base import Benchmark

_WRONG = re.compile(r"^(?:\[\d+\] )?(?:status|# End of message sweep): invalid: (.+)$", re.MULTILINE)
_LACKING = 3  # what a probe returns that says why it could not begin
_MOST = 500  # characters of a record's message


class Probe(Benchmark, ABC):
    """A probe that ends with code 1 after it has said what is wrong with its results."""

    def verdict(self, folder: Path, code: int) -> tuple[Cause, str] | None:
        """Return a wrong result, in the words of the log; None where it crashed before it could tell."""
        log = folder / "output.log"
        # A launcher may make another code of that of a rank: the words count.
        match = _WRONG.search(log.read_text(errors="replace")) if log.is_file() else None
        return (Cause.WRONG_RESULT, match[1][:_MOST]) if match and code != _LACKING else None
