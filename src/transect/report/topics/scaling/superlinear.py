"""What may be behind more than 100 % efficiency: each a rule over the two cells, none a proof."""

from __future__ import annotations

from collections.abc import Callable

from transect.analysis.bounds import Rates, step_bound
from transect.analysis.groups import Group
from transect.analysis.scaling import METRIC, Efficiency, ScalingKind

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
    causes = (rule(gain, rates) for rule in _RULES)
    return [cause for cause in causes if cause]


def _disturbed(gain: Efficiency, _: Rates) -> str:
    return "other processes disturbed the base" if gain.base.disturbed else ""


def _machines(gain: Efficiency, _: Rates) -> str:
    for fact in _MACHINE:
        before, now = ({repr(record.provenance.get(fact)) for record in group.ok} for group in (gain.base, gain.group))
        if not before & now:
            return f"the base ran on another machine: its {fact.replace('_', ' ')} differs"
    return ""


def _spread(gain: Efficiency, _: Rates) -> str:
    summary = gain.base.summary(METRIC)
    if summary is None or summary.count < _FEW:
        return f"the base has {0 if summary is None else summary.count} runs only"
    wide = (summary.high - summary.low) / summary.median
    return f"the base's runs lie {wide:.0%} apart".replace("%", " %") if wide > _WIDE else ""


def _input(gain: Efficiency, _: Rates) -> str:
    base_share, share = _share(gain.base, "input_time"), _share(gain.group, "input_time")
    if base_share is None or share is None or base_share - share <= _INPUT:
        return ""
    return f"the base spends {100 * base_share:.0f} % of a step on its input, these ranks {100 * share:.0f} %"


def _strategy(gain: Efficiency, _: Rates) -> str:
    base_strategy, strategy = gain.base.cell.strategy, gain.group.cell.strategy
    return f"the base takes another path: {base_strategy}, not {strategy}" if base_strategy != strategy else ""


def _cache(gain: Efficiency, _: Rates) -> str:
    """A rank's part of a strong-scaled step may fit a cache that the whole does not."""
    base_bytes, own_bytes = gain.base.detail("bytes_per_step"), gain.group.detail("bytes_per_step")
    if gain.kind is not ScalingKind.STRONG or not base_bytes or not own_bytes or own_bytes >= base_bytes:
        return ""
    share = f"{100 * (own_bytes / base_bytes):.0f} %"
    return f"a rank moves {share} of the base's bytes a step: they may fit a cache that the base's do not"


def _nodes(gain: Efficiency, _: Rates) -> str:
    more = gain.group.cell.nodes > gain.base.cell.nodes
    return "more nodes have more memory bandwidth and cache" if more else ""


def _slow(gain: Efficiency, rates: Rates) -> str:
    bound, batch = step_bound(gain.base, rates), gain.base.global_batch
    if bound is None or not batch:
        return ""
    share = gain.base_rate / bound.rate(batch)
    if share >= _SLOW:
        return ""
    return f"the base reaches {100 * share:.0f} % of its own bound: it leaves room that has nothing to do with ranks"


# Faults of the measurement before properties of the machine.
_RULES: tuple[Callable[[Efficiency, Rates], str], ...] = (
    _disturbed,
    _machines,
    _spread,
    _input,
    _strategy,
    _cache,
    _nodes,
    _slow,
)


def _share(group: Group, part: str) -> float | None:
    whole, part_time = group.summary("step_time"), group.summary(part)
    return None if whole is None or part_time is None or not whole.median else part_time.median / whole.median
