"""What benchmarks that are our own probes have in common."""

from __future__ import annotations

import re
from abc import ABC
from pathlib import Path

from transect.domain.record import Cause
from transect.hpc.benchmarks.base import Benchmark

# How its last line begins says why it ended: a launcher may make another code of that of a rank.
_ENDED = re.compile(r"^(?:\[\d+\] )?(?:status|# End of message sweep): (invalid|lacks): (.+)$", re.MULTILINE)
_CAUSES = {"invalid": Cause.WRONG_RESULT, "lacks": Cause.MISSING_DEPENDENCY}
_MOST = 500  # characters of a record's message


class Probe(Benchmark, ABC):
    """A probe whose log says what is wrong with its results, or what it lacks."""

    def verdict(self, folder: Path, code: int) -> tuple[Cause, str] | None:
        """Return the cause and its words, of the log; None where it crashed before it could tell."""
        log = folder / "output.log"
        match = _ENDED.search(log.read_text(errors="replace")) if log.is_file() else None
        return (_CAUSES[match[1]], match[2][:_MOST]) if match else None
