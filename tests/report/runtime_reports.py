"""The names of `said_of_records` under which files of runtimes know them."""

from __future__ import annotations

from functools import partial

from said_of_records import Made as _Section
from said_of_records import findings, only, rows

__all__ = ["Made", "findings", "only", "rows"]

Made = partial(_Section, "runtimes")
