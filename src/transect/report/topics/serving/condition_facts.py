"""Did runtimes run under equal conditions? What ONNX Runtime itself reports, compared."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from transect.analysis.groups import grouped
from transect.analysis.serving import REFERENCE, InferGroup, details_of, takes_onnx
from transect.runtimes.options import EQUAL

# Names of options and kernels in one sentence.
_SHOWN = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """How one runtime differed from most others, in words, and at how many points."""

    runtime: str
    what: str
    points: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Conditions:
    """What the records tell of all points at which several runtimes ran with options `equal`.

    `points` counts them, `silent` names runtimes that do not say what their session had or ran.
    `kernels` holds how many kernels a model has, at the points where all runtimes ran the same.
    """

    points: int
    runtimes: tuple[str, ...]
    silent: tuple[str, ...]
    differences: tuple[Difference, ...]
    kernels: tuple[int, ...]

    @property
    def equal(self) -> bool:
        """Whether nothing that is reported differs."""
        return not self.differences

    @property
    def seen(self) -> bool:
        """Whether at least two runtimes report what is compared."""
        return len(self.runtimes) - len(self.silent) > 1


def seen_options(group: InferGroup) -> dict[str, Any] | None:
    """Return the session options named in ONNX Runtime's log, or None."""
    given = [seen for seen in details_of(group, "session_options_seen") if isinstance(seen, dict)]
    return next(filter(None, given), None)


def kernels_of(group: InferGroup) -> dict[str, Any] | None:
    """Return the kernels that ONNX Runtime's profile names, or None."""
    given = [ran for ran in details_of(group, "kernels") if isinstance(ran, dict) and "digest" in ran]
    return given[0] if given else None


def conditions(groups: Iterable[InferGroup]) -> Conditions:
    """Compare the conditions of all runtimes of each point; only cells with options `equal` are meant to be equal."""
    able = [
        group
        for group in groups
        if group.ok and takes_onnx(group) and group.cell.options == EQUAL and group.cell.load is None
    ]
    alike = grouped(able, lambda group: group.cell.apart_from("runtime"))
    points = [members for members in alike.values() if len(members) > 1]
    beside = [group for members in points for group in members]
    runtimes = sorted({group.cell.runtime for group in beside})
    silent = {group.cell.runtime for group in beside if seen_options(group) is None or kernels_of(group) is None}
    found: Counter[tuple[str, str]] = Counter()
    kernels: set[int] = set()
    for members in points:
        told_kernels = [kernels_of(group) for group in members]
        same = {str(ran["digest"]) for ran in told_kernels if ran is not None}
        if len(same) == 1:
            count = next(ran for ran in told_kernels if ran is not None).get("count")
            if isinstance(count, int):
                kernels.add(count)
        found.update([*_other_options(members), *_other_kernels(members)])
    return Conditions(
        points=len(points),
        runtimes=tuple(runtimes),
        silent=tuple(sorted(silent)),
        differences=tuple(
            Difference(runtime=name, what=what, points=found[name, what]) for name, what in sorted(found)
        ),
        kernels=tuple(sorted(kernels)),
    )


def _usual(groups: Sequence[InferGroup], facts: Callable[[InferGroup], Any]) -> list[tuple[InferGroup, Any, Any]]:
    """Return each group with its facts and the usual ones, where the two differ.

    Usual is what most groups have; of a draw, what the reference has.
    """
    known = [(group, fact) for group in groups if (fact := facts(group)) is not None]
    amounts = Counter(_key(fact) for _, fact in known)
    if len(amounts) < 2:
        return []
    reference = next((_key(fact) for group, fact in known if group.cell.runtime == REFERENCE), "")
    usual = max(amounts, key=lambda key: (amounts[key], key == reference, key))
    kept = next(fact for _, fact in known if _key(fact) == usual)
    return [(group, fact, kept) for group, fact in known if _key(fact) != usual]


def _key(fact: Any) -> str:
    return json.dumps(fact, sort_keys=True, default=str)


def _other_options(groups: Sequence[InferGroup]) -> Iterable[tuple[str, str]]:
    for group, options, usual in _usual(groups, seen_options):
        keys = [key for key in sorted(options.keys() | usual) if options.get(key) != usual.get(key)]
        parts = [f"{key} {_value_text(options, key)} and not {_value_text(usual, key)}" for key in keys[:_SHOWN]]
        more = f" and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
        yield group.cell.runtime, f"had {', '.join(parts)}{more}"


def _value_text(options: dict[str, Any], key: str) -> str:
    return str(options[key]) if key in options else "unset"


def _other_kernels(groups: Sequence[InferGroup]) -> Iterable[tuple[str, str]]:
    def digest(group: InferGroup) -> str | None:
        ran = kernels_of(group)
        return None if ran is None else str(ran["digest"])

    ran = {id(group): kernels_of(group) or {} for group in groups}
    for group, _, usual in _usual(groups, digest):
        kernels = ran[id(group)]
        usual_kernels = next(listed for listed in ran.values() if str(listed.get("digest")) == usual)
        text = f"ran {kernels.get('count', 'other')} kernels and not {usual_kernels.get('count', 'those')}"
        names, others = (Counter(map(str, ran.get("names", ()))) for ran in (kernels, usual_kernels))
        extra, lacking = sorted(names - others), sorted(others - names)
        if extra:
            text += f", with {', '.join(extra[:_SHOWN])}"
        if lacking:
            text += f", without {', '.join(lacking[:_SHOWN])}"
        yield group.cell.runtime, text
