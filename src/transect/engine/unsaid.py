"""What Snakemake keeps to itself: a quiet profile silences its errors too."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any

from transect.domain.terminal import say


class Unsaid(logging.Handler):
    """Says Snakemake's errors until the first job begins, where its own profile has it silent.

    From then on runners say what becomes of their cells, and each attempt of a job would be an
    error more.
    """

    def __init__(self, quiet: Collection[Any]) -> None:
        super().__init__(logging.ERROR)
        self._logger = logging.getLogger("snakemake.logging")
        # Members of Snakemake's Quietness.
        if "ALL" in {getattr(kind, "name", "") for kind in quiet}:
            self._logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Say one error."""
        say(*(f"snakemake: {line}" for line in record.getMessage().splitlines() if line.strip()))

    def end(self) -> None:
        """Leave errors to others."""
        self._logger.removeHandler(self)
