"""What a training's step is made of, and why a cell takes no part in the race to the target."""

from __future__ import annotations

from collections.abc import Sequence

from transect.analysis.groups import Group
from transect.analysis.quality import TIME, reaches_target
from transect.report.engine.finding import median
from transect.report.engine.text import count

PARTS = {"compute": "computing", "communication": "waiting for messages", "input": "loading batches"}


def step_shares(group: Group) -> dict[str, float]:
    """Return what share of its steps each part takes, those parts that are told; together at most 1.

    Waiting is that of all steps together, as the record has it: a few slow ones may be most of it, and a median does not
    see them. The others are medians.
    """
    step = median(group, "step_time")
    if not step:
        return {}
    shares = {part: value / step for part in PARTS if (value := median(group, f"{part}_time")) is not None}
    if (waited := median(group, "communication_share")) is not None:
        shares["communication"] = min(1.0, waited)
    working = sum(share for part, share in shares.items() if part != "communication")
    left = 1 - shares.get("communication", 0.0)
    less = min(1.0, left / working) if working else 1.0
    return {part: shares[part] * (1 if part == "communication" else less) for part in PARTS if part in shares}


def apart(groups: Sequence[Group]) -> list[tuple[str, list[Group]]]:
    """Return the groups that ran in no race to the target, by why not."""
    running = [g for g in groups if g.ok and not g.wrong]
    within = [g for g in running if not g.over_subscribed]
    late = [g for g in within if not reaches_target(g)]
    runs, reached = sum(len(group.ok) for group in late), sum(len(group.values(TIME)) for group in late)
    missed = f"target missed in {f'{runs - reached} of' if reached else 'all'} {count(runs, 'run')}"
    every = [
        ("more ranks than cores", [g for g in running if g.over_subscribed]),
        (missed, late),
        ("not checkable until the target", [g for g in within if reaches_target(g) and g.unverified]),
        ("wrong result", [g for g in groups if g.wrong and not g.diverged]),
        ("a loss that diverged", [g for g in groups if g.diverged]),
        ("failed or skipped", [g for g in groups if not g.ok and not g.wrong]),
    ]
    return [(why, members) for why, members in every if members]
