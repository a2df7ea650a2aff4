"""What differs between a cell's specification as planned and that of its last run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from transect.domain.paths import StudyPaths

# Keys that `differences` compares on their own, and keys for the runner, not for the payload.
# No parameters of the payload: compared as what they are.
_PARTS = {
    *("sources", "lock", "inputs", "environment", "fingerprint", "about", "cell_id", "cell_limits", "taken"),
    *("other_environments", "repeat_until", "pairs", "optional", "named"),
}
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason why a cell would run again.

    `kind` is one of missing, damaged, parameter, source, environment, input, limit, repeat_until.
    """

    kind: str
    text: str


def stored_sources(paths: StudyPaths, name: str) -> dict[str, str]:
    """Return the files, and their hashes, that a hash of sources stood for. Raises OSError and ValueError."""
    files: dict[str, str] = json.loads(paths.sources(name).read_text(encoding="utf-8"))
    return files


def differences(paths: StudyPaths, new: Mapping[str, Any], sources: Callable[[str], Mapping[str, str]]) -> list[Reason]:
    """Compare a cell's spec with the one of its last run; `sources` gives the files of the new one's sources."""
    try:
        old = json.loads(paths.spec(new["cell"]["stage"], new["cell_id"]).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    if old.get("fingerprint") == new["fingerprint"]:
        return []
    reasons = list(_parameters(old, new))
    if old.get("sources") != new["sources"]:
        reasons += _sources(paths, str(old.get("sources")), lambda: sources(new["sources"]))
    locks = [{side.get("environment"): side.get("lock"), **side.get("other_environments", {})} for side in (old, new)]
    names = sorted(name for name in locks[1] if name and locks[0].get(name) != locks[1][name])
    reasons += [Reason("environment", f"environment '{name}': its pins or what builds it changed") for name in names]
    for role in sorted(new["inputs"].keys() | old.get("inputs", {}).keys()):
        if old.get("inputs", {}).get(role) != new["inputs"].get(role):
            reasons.append(Reason("input", f"it takes its {role} from another cell"))
    return reasons or [Reason("parameter", "its specification changed")]


def _sources(paths: StudyPaths, old: str, new: Callable[[], Mapping[str, str]]) -> list[Reason]:
    try:
        before, now = stored_sources(paths, old), new()
    except (OSError, ValueError):
        return [Reason("source", "its source files changed")]
    changed = sorted(name for name in now.keys() | before.keys() if now.get(name) != before.get(name))
    return [Reason("source", name) for name in changed]


def other_inputs(now: Sequence[str], before: Sequence[str]) -> list[Reason]:
    """Compare checksums of inputs, `NAME CHECKSUM` each, with those that a record was made from."""
    names = dict.fromkeys(line.rpartition(" ")[0] for line in sorted(set(now) ^ set(before)))
    return [Reason("input", name) for name in names] or [Reason("missing", "the input of its last run is not known")]


def _flat(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inside in value.items():
            yield from _flat(inside, f"{place}.{key}" if place else str(key))
    else:
        yield place, value


def _parameters(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Reason]:
    # As JSON gives it back: a tuple becomes a list.
    specs = json.loads(json.dumps([old, dict(new)]))
    before, now = (dict(_flat({k: v for k, v in spec.items() if k not in _PARTS})) for spec in specs)
    for key in sorted(before.keys() | now.keys()):
        if before.get(key) != now.get(key):
            values = (str(side.get(key, "nothing"))[:_SHOWN] for side in (before, now))
            yield Reason("parameter", f"{key}: {' -> '.join(values)}")
