"""How every check of the corpus compares what a person read with what the parsers found."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from transect.hpc.base import LogMetric, Run

Facts = list[tuple[str, bool]]
Truth = dict[str, str]
Check = Callable[[Truth, str, list[Run]], Facts]


def number(text: str) -> str:
    """Return the number that a person's words begin with, else what compares with nothing."""
    found = re.match(r"-?[\d.]+(?:[eE][-+]?\d+)?", text)
    return found[0] if found else "nan"


def same(found: LogMetric | None, expected: str, relative: float = 1e-9) -> bool:
    """Whether a metric is a number, as the log printed it or as it was read."""
    wanted = float(number(expected))
    return found is not None and abs(found.value - wanted) <= relative * abs(wanted)


def printed(found: LogMetric | None, expected: str) -> bool:
    """Whether a metric was printed as a person read it, to the letter."""
    return found is not None and found.printed == expected.split("(")[0]


def _named(names: str, truth: Truth) -> Iterator[tuple[str, str]]:
    """Yield the keys of `names` ("key=name key ...", "~" for a blank) that the truth has, with their names."""
    for word in names.split():
        key, _, name = word.partition("=")
        if key in truth:
            yield key, (name or key).replace("~", " ")


def values(run: Run, truth: Truth, names: str, right: Callable[[LogMetric | None, str], bool] = same) -> Facts:
    """Return a fact for each metric ("key=name:phase ...") of which a person read the value."""
    return [
        (f"value {key}", right(run.metric(name, phase or None), truth[key]))
        for key, (name, _, phase) in ((key, name.partition(":")) for key, name in _named(names, truth))
    ]


def parameters(run: Run, truth: Truth, names: str) -> Facts:
    """Return a fact for each parameter that a person read."""
    found = run.parameters
    return [(f"value {key}", str(found.get(name)) == truth[key].split("(")[0]) for key, name in _named(names, truth)]


def status(runs: list[Run], wanted: str = "ok") -> Facts:
    """Return the fact that all runs have a status."""
    return [("status", {str(run.status) for run in runs} == {wanted})]
