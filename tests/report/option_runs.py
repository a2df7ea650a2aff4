"""Runs of runtimes with other sets of session options."""

from __future__ import annotations

from typing import Any

from make_runtime_records import EQUAL, runs

from transect.domain.record import Record


def with_options(name: str, latency: float, options: str, **changed: Any) -> list[Record]:
    """Repeats with another set of options, on two threads."""
    given = {"session_options": {**EQUAL, "intra_op_num_threads": 2, **changed}}
    return runs(name, latency, options=options, threads=2, details=given)


def thesis_runs(equal: float = 1.01e-4, thesis: float = 2.1e-4) -> list[Record]:
    """Rust and C++ with equal options, with the thesis's, and Rust with one of them at a time."""
    return [
        *with_options("cpp", 1e-4, "equal"),
        *with_options("rust", equal, "equal"),
        *with_options("cpp", 1.02e-4, "language-defaults"),
        *with_options("rust", thesis, "thesis-rust", intra_op_num_threads=1, graph_optimization_level="basic"),
        *with_options("rust", 1.9e-4, "one-thread", intra_op_num_threads=1),
        *with_options("rust", 1.0102e-4, "basic", graph_optimization_level="basic"),
    ]
