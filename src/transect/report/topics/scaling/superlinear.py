"""What may be behind more than 100 % efficiency: each a rule over the two cells, none a proof."""

from __future__ import annotations

from collections.abc import Iterator

from transect.analysis.bounds import Rates, step_bound
from transect.analysis.groups import Group
from transect.analysis.scaling import METRIC, Efficiency, ScalingKind
from transect.report.engine.text import percent

# Repeats that lie further apart than this share of their median are no base to count from.
_WIDE = 0.1
# Below this share of its own roofline a base leaves much that has nothing to do with ranks.
_SLOW = 0.25
# By how much more of its step a base has to spend on its input.
_INPUT = 0.05
_FEW = 3
_MACHINE = ("host", "cpu_model", "cores", "memory_bytes", "gpus")


def possible_causes(gain: Efficiency, rates: Rates) -> list[str]:
    """Return what about base and group may explain an efficiency above 100 %, the likeliest first.

    `rates` are those of the machine, for the base's distance from its roofline. Without any cause
    that can be seen in the records the list is empty.
    """
    return [*_faults(gain), *_properties(gain, rates)]


def _faults(gain: Efficiency) -> Iterator[str]:
    """Yield faults of the measurement."""
    base, group = gain.base, gain.group
    if base.disturbed:
        yield "other processes disturbed the base"
    for fact in _MACHINE:
        before, now = ({repr(record.provenance.get(fact)) for record in side.ok} for side in (base, group))
        if not before & now:
            yield f"the base ran on another machine: its {fact.replace('_', ' ')} differs"
            break
    summary = base.summary(METRIC)
    if summary is None or summary.count < _FEW:
        yield f"the base has {0 if summary is None else summary.count} runs only"
    elif (wide := (summary.high - summary.low) / summary.median) > _WIDE:
        yield f"the base's runs lie {percent(wide)} apart"
    base_share, share = _share(base, "input_time"), _share(group, "input_time")
    if base_share is not None and share is not None and base_share - share > _INPUT:
        yield f"the base spends {percent(base_share)} of a step on its input, these ranks {percent(share)}"


def _properties(gain: Efficiency, rates: Rates) -> Iterator[str]:
    """Yield properties of cells and machine."""
    base, group = gain.base, gain.group
    if base.cell.strategy != group.cell.strategy:
        yield f"the base takes another path: {base.cell.strategy}, not {group.cell.strategy}"
    base_bytes, own_bytes = base.detail("bytes_per_step"), group.detail("bytes_per_step")
    if gain.kind is ScalingKind.STRONG and base_bytes and own_bytes and own_bytes < base_bytes:
        share = percent(own_bytes / base_bytes)
        yield f"a rank moves {share} of the base's bytes a step: they may fit a cache that the base's do not"
    if group.cell.nodes > base.cell.nodes:
        yield "more nodes have more memory bandwidth and cache"
    bound, batch = step_bound(base, rates), base.global_batch
    if bound is not None and batch and (reached := gain.base_rate / bound.rate(batch)) < _SLOW:
        yield f"the base reaches {percent(reached)} of its own bound: it leaves room that has nothing to do with ranks"


def _share(group: Group, part: str) -> float | None:
    whole, part_time = group.summary("step_time"), group.summary(part)
    return None if whole is None or part_time is None or not whole.median else part_time.median / whole.median
