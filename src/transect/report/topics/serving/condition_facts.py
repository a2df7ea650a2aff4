"""Did runtimes run under equal conditions? What ONNX Runtime itself reports, compared; and whether outputs are right."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from transect.analysis.groups import Group, grouped
from transect.analysis.serving import REFERENCE, InferGroup, details_of, takes_onnx
from transect.domain.record import Cause
from transect.runtimes.options import EQUAL

# Names of options and kernels in one sentence.
_SHOWN = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Conditions:
    """What the records tell of all points at which several runtimes ran with options `equal`.

    `points` counts them, `silent` names runtimes that do not say what their session had or ran. `differences` counts
    the points at which a runtime differed from most others, by its name and what differed in words.
    `kernels` holds how many kernels a model has, at the points where all runtimes ran the same.
    """

    points: int
    runtimes: list[str]
    silent: list[str]
    differences: dict[tuple[str, str], int]
    kernels: list[int]

    @property
    def seen(self) -> bool:
        """Whether at least two runtimes report what is compared."""
        return len(self.runtimes) - len(self.silent) > 1


def _seen_options(group: InferGroup) -> dict[str, Any] | None:
    """Return the session options named in ONNX Runtime's log, or None."""
    return next((seen for seen in details_of(group, "session_options_seen") if isinstance(seen, dict) and seen), None)


def kernels_of(group: InferGroup) -> dict[str, Any] | None:
    """Return the kernels that ONNX Runtime's profile names, or None."""
    return next((ran for ran in details_of(group, "kernels") if isinstance(ran, dict) and "digest" in ran), None)


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
    found = Counter(
        difference for members in points for difference in (*_other_options(members), *_other_kernels(members))
    )
    kernels = set()
    for members in points:
        told = [ran for group in members if (ran := kernels_of(group)) is not None]
        if len({str(ran["digest"]) for ran in told}) == 1 and isinstance(told[0].get("count"), int):
            kernels.add(told[0]["count"])
    return Conditions(
        points=len(points),
        runtimes=sorted({group.cell.runtime for group in beside}),
        silent=sorted(
            {group.cell.runtime for group in beside if _seen_options(group) is None or kernels_of(group) is None}
        ),
        differences={key: found[key] for key in sorted(found)},
        kernels=sorted(kernels),
    )


def _unusual(
    groups: Sequence[InferGroup], facts: Callable[[InferGroup], Any], key: Callable[[Any], str]
) -> Iterator[tuple[str, Any, Any]]:
    """Yield each runtime whose facts are not the usual ones, by their key, with both.

    Usual is what most groups have; of a draw, what the reference has.
    """
    known = [(group.cell.runtime, fact) for group in groups if (fact := facts(group)) is not None]
    alike = grouped(known, lambda pair: key(pair[1]))
    usual = max(alike, key=lambda k: (len(alike[k]), any(name == REFERENCE for name, _ in alike[k]), k), default="")
    for name, fact in known:
        if key(fact) != usual:
            yield name, fact, alike[usual][0][1]


def _other_options(groups: Sequence[InferGroup]) -> Iterator[tuple[str, str]]:
    for name, options, usual in _unusual(
        groups, _seen_options, lambda fact: json.dumps(fact, sort_keys=True, default=str)
    ):
        keys = [key for key in sorted(options.keys() | usual) if options.get(key) != usual.get(key)]
        parts = [f"{key} {options.get(key, 'unset')} and not {usual.get(key, 'unset')}" for key in keys[:_SHOWN]]
        more = f" and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
        yield name, f"had {', '.join(parts)}{more}"


def _other_kernels(groups: Sequence[InferGroup]) -> Iterator[tuple[str, str]]:
    for name, ran, usual in _unusual(groups, kernels_of, lambda fact: str(fact["digest"])):
        text = f"ran {ran.get('count', 'other')} kernels and not {usual.get('count', 'those')}"
        names, others = (Counter(map(str, kernels.get("names", ()))) for kernels in (ran, usual))
        for word, left in (("with", names - others), ("without", others - names)):
            text += f", {word} {', '.join(sorted(left)[:_SHOWN])}" if left else ""
        yield name, text


def worst(group: Group, name: str) -> float | None:
    """Return the largest value of a metric over all records, wrong ones included."""
    return max((value for record in group.records if (value := record.value(name)) is not None), default=None)


def gives_wrong_output(group: Group) -> bool:
    """Whether an output is known to differ: by its verdict, a class, or a number that is none."""
    agreement = min((v for r in group.records if (v := r.value("top1_agreement")) is not None), default=1.0)
    wrong = any(record.cause is Cause.WRONG_RESULT for record in group.records)
    turned = agreement < 1 and group.cell.precision == "fp32"
    return wrong or turned or (worst(group, "nonfinite_outputs") or 0) > 0
