"""Federations and who computes them: groups that learn the same differ in nothing but that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from statistics import median

from transect.analysis.contrast import Contrast
from transect.analysis.groups import Group, blind_step, grouped, restarts_tell
from transect.analysis.labels import group_labels, word
from transect.analysis.quality import Score
from transect.domain.axes.federate import FederateCell
from transect.domain.options import Options
from transect.report.engine.context import Context
from transect.report.engine.finding import names
from transect.report.engine.text import clean, count, number

FederateGroup = Group[FederateCell]

STAGE, ROUND, TIME = "federate", "round_time", "simulated_time_to_quality"
# Who computes, which changes nothing of what is computed.
ENGINE = ("engine", "framework", "runtime")
WHO = (*ENGINE, "device", "nodes", "ranks_per_node", "threads", "network", "container")
# What an aggregation is, and how long a server waits; of the latter slowness tells no model where it waits for all.
HOW, WAITING = ("aggregation", "options"), ("buffer", "slowness", "rounds")
# What clients do besides plain local steps.
METHOD = ("method", "method_options")
# What is always told of a federation.
FEDERATION = ("partition", "clients", "cohort")
# On none of them hangs how long a turn takes.
_ANY = (*HOW, "partition", *WAITING)
_USUAL = {"aggregation": "fedavg", "partition": "iid", "method": "plain"}


def usable(groups: Iterable[FederateGroup]) -> list[FederateGroup]:
    """Return those with a right result."""
    return [group for group in groups if group.ok and not group.wrong]


def alike(groups: Iterable[FederateGroup], *axes: str) -> dict[Hashable, list[FederateGroup]]:
    """Gather groups that differ in these axes at most, the usual aggregation and partition first."""

    def place(group: FederateGroup) -> tuple[bool, ...]:
        return *(group.cell.get(axis) != usual for axis, usual in _USUAL.items()), bool(group.cell.options)

    return grouped(sorted(groups, key=place), lambda group: group.cell.apart_from(*axes))


def learned(context: Context, workload: str) -> list[FederateGroup]:
    """Return a group for each federation: that of whoever computed most of them, so that they are compared among each other."""
    every: Sequence[FederateGroup] = context.of(STAGE, workload)

    def who(group: FederateGroup) -> tuple[object, ...]:
        return tuple(group.cell.get(axis) for axis in WHO)

    right = usable(every)
    amounts = Counter(map(who, right))

    def place(group: FederateGroup) -> tuple[bool, int, int, str]:
        return group not in right, -amounts[who(group)], -len(group.ok), group.cell.id

    return [min(members, key=place) for members in alike(every, *WHO).values()]


def planned(context: Context, rule: str, groups: Iterable[FederateGroup]) -> list[Contrast]:
    """Return the planned contrasts of a rule among these groups."""
    ids = {id(group) for group in groups}
    return [made for made in context.contrasts.of(f"federated.{rule}") if {id(made.group), id(made.base)} <= ids]


def who_words(cell: FederateCell) -> str:
    """Name who computes: `loop with PyTorch on 2 processes`."""
    # The whole names of six would not fit a column.
    several = len(cell.runtimes) > 2
    by = [word("framework", cell.framework)] if cell.framework else []
    by += [name if several else word("runtime", name) for name in cell.runtimes]
    on = [count(cell.ranks, "process", "processes")] if cell.ranks > 1 else []
    on += [f"{cell.threads} threads"] if cell.threads > 1 else []
    place = f" on {' of '.join(on)}" if on else ""
    return clean(f"{cell.engine}{f' with {names(by, 9)}' if by else ''}{place}")


def how_words(cell: FederateCell) -> str:
    """Name an aggregation with its options: `fedavgm with momentum 0.9`."""
    return _with(cell.aggregation, cell.options)


def method_words(cell: FederateCell) -> str:
    """Name a method with its options: `fedprox with mu 0.5`."""
    return _with(cell.method, cell.method_options)


def rule_words(cell: FederateCell) -> str:
    """Name aggregation and method: `fedavg, fedprox`; plain steps go without saying."""
    return how_words(cell) if cell.method == "plain" else f"{how_words(cell)}, {method_words(cell)}"


def _with(name: str, options: Options) -> str:
    said = ", ".join(f"{option} {value}" for option, value in options)
    return clean(f"{name} with {said}" if said else name)


def waits_for(cell: FederateCell) -> str:
    """Say for how many updates the server waits before it makes a model."""
    return f"all {cell.cohort}" if cell.buffer is None else f"{cell.buffer} of {cell.cohort}"


def scopes(
    groups: Sequence[FederateGroup], *never: str, always: Sequence[str] = FEDERATION
) -> Callable[[FederateGroup], str]:
    """Return what says which federation a group is, and in what else it differs from the others, but for the axes in `never`."""
    usual = [axis for axis in always if axis not in never]
    labels = group_labels(groups, usual, (*HOW, *WHO, "ranks", "workload", *never))

    def words(group: FederateGroup) -> str:
        # What has no words is called by its id.
        said = labels[group.cell]
        return "" if said == group.cell.id else clean(said.replace(" · ", ", "))

    return words


def apart(group: FederateGroup, base: FederateGroup, name: str) -> float | None:
    """Return the median difference of a metric, repeat by repeat, each with itself; None without a common one."""
    mine, theirs = group.by_repeat(name), base.by_repeat(name)
    return median(found) if (found := [mine[n] - theirs[n] for n in mine.keys() & theirs.keys()]) else None


def apart_words(difference: float | None, score: Score) -> str:
    """Write a difference of scores: `3.2 points lower`."""
    if difference is None:
        return "no run of both"
    size = f"{100 * abs(difference):.1f} points" if score.is_share else number(abs(difference))
    return f"{size} {'lower' if difference < 0 else 'higher'}"


def in_every_run(group: FederateGroup, name: str) -> bool:
    """Whether each of its runs has the metric: one that did not reach a target has no time to it."""
    return bool(group.ok) and len(group.values(name)) == len(group.ok)


def of_own_models(group: FederateGroup) -> bool:
    """Whether scores are of each client's own model, which tell no update at which the target was reached."""
    return any("of" in (record.details.get("quality") or {}) for record in group.ok)


def blind_from(group: FederateGroup) -> int | None:
    """Return the update from which nothing tells whether some run follows the reference, or None."""
    steps = (blind_step(record) for record in group.ok if not restarts_tell(record))
    return min((step for step in steps if step is not None), default=None)


def blind_words(groups: Iterable[FederateGroup]) -> str:
    """Say from where on nothing tells whether they follow the reference; empty where single updates from it still do."""
    from_ = [step for group in groups if (step := blind_from(group)) is not None]
    cells = "one cell" if len(from_) == 1 else f"{len(from_)} cells"
    return f"{cells} cannot be told from the reference from update {min(from_)} on, or a later one" if from_ else ""


def races(groups: Iterable[FederateGroup], *axes: str) -> Iterator[list[FederateGroup]]:
    """Yield groups of one federation each that differ in these axes alone: of those with equal turns the one with most groups."""
    for members in alike(groups, *axes, *_ANY).values():
        raced = max(alike(members, *axes).values(), key=len)
        if len(raced) > 1:
            yield raced


def work_of(group: FederateGroup, groups: Sequence[FederateGroup]) -> str:
    """Say what those compute that race: the federation and the aggregation."""
    return f"{scopes(groups, *WAITING, *METHOD)(group)}, {rule_words(group.cell)}"
