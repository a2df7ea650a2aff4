"""The picture of the first screen: what the first question of the study is about, workload by workload, the best first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from transect.analysis.groups import Group, grouped
from transect.analysis.kinds import compared, main_kind
from transect.analysis.labels import people_name, settings_of
from transect.analysis.quality import TIME, may_be_ranked, quality_target
from transect.analysis.scaling import TrainGroup
from transect.analysis.serving import RUN, WHOLE, base_point
from transect.report.engine.blocks import Part, words
from transect.report.engine.charts.chart import dot_chart
from transect.report.engine.charts.marks import Dot
from transect.report.engine.columns import MARKS, metric_columns, ranked
from transect.report.engine.context import Context
from transect.report.engine.finding import median
from transect.report.engine.text import clean, count, scale_for
from transect.report.topics.federated.facts import ENGINE, ROUND, races, work_of
from transect.report.topics.pictures.words import best_of, who_is_first

# Panels of the first screen, and rows of one.
MAX_PANELS, _MAX_ROWS = 4, 8
# The stage that rules are about, by the first part of their names; all others are about training.
_OF_RULES = {
    "serving": "infer",
    "runtime": "infer",
    "overhead": "infer",
    "docking": "bench",
    "retraining": "retrain",
    "federated": "federate",
}


@dataclass(frozen=True, slots=True)
class _Panel:
    """What one panel shows: groups that do the same work, and the metric; `missed`: no run got to the target."""

    about: str
    groups: Sequence[Group[Any]]
    metric: str
    what: str
    missed: str = ""


def front_body(context: Context) -> Iterator[Part]:
    """Draw the first panels of the first stage that the study asks about and has numbers of."""
    yield from panels(context, slice(MAX_PANELS))


def panels(context: Context, which: slice) -> Iterator[Part]:
    """Draw some of these panels: those that the first screen has no room for stand in the section."""
    asked = [rule.partition(".")[0] for question in context.questions for rule in question.answered_by]
    for stage in dict.fromkeys([*(_OF_RULES.get(name, "train") for name in asked), "train", *_OF_RULES.values()]):
        found = [panel for panel in _panels(context, stage) if len(ranked(panel.groups, panel.metric)) > 1]
        if found:
            # Where nobody got to the target is seen last.
            found.sort(key=lambda panel: bool(panel.missed))
            yield from (_drawn(context, panel, place) for place, panel in [*enumerate(found)][which])
            return


def main_groups(context: Context, workload: str) -> list[TrainGroup]:
    """Return the trainings of a workload that its verdict is about."""
    right = compared([group for group in context.of("train", workload) if group.ok and not group.wrong])
    return [group for group in right if group.kind == main_kind(right) and not group.kind.synthetic]


def _panels(context: Context, stage: str) -> Iterator[_Panel]:
    right: Iterable[Group[Any]] = [group for group in context.of(stage) if group.ok and not group.wrong]
    if stage == "bench":
        right = [group for group in right if group.values("pose_time")]
    about = grouped(right, lambda group: str(group.cell.workload or settings_of(group.cell).get("deck", "")))
    for name, groups in about.items():
        if stage == "bench" and all("schedule" in settings_of(group.cell) for group in groups):
            continue  # ways to deal out one kernel's work have a section of their own
        if stage == "train":
            groups = main_groups(context, name)
            reached, target = list(filter(may_be_ranked, groups)), quality_target(groups)
            if reached:
                yield _Panel(name, reached, TIME, f"time to {target}")
            else:
                yield _Panel(name, groups, "step_time", "time of a training step", f"no run reached {target}; ")
        elif stage == "infer":
            groups = base_point(groups)
            where = f"{name}, batch {groups[0].cell.batch}, {count(groups[0].cell.threads, 'thread')}"
            yield _Panel(where, groups, WHOLE if all(g.values(WHOLE) for g in groups) else RUN, "time of a call")
        elif stage == "bench":
            yield _Panel(f"docking, deck {name}", groups, "pose_time", "time per pose")
        elif stage == "federate":
            for raced in races([group for group in groups if group.cell.ranks == 1], *ENGINE):
                yield _Panel(f"{name}, {work_of(raced[0], groups)}", raced, ROUND, "time of an update of the server")
        else:
            yield _Panel(name, groups, "step_time", "time of a training step")


def _drawn(context: Context, panel: _Panel, place: int) -> Part:
    found = best_of(context, [group for group in panel.groups if not group.over_subscribed], panel.metric)
    by_pairs = {id(g): value for g, value in found.numbers(lambda g: median(g, panel.metric))} if found else {}

    def reached(group: Group[Any]) -> float:
        return by_pairs.get(id(group), median(group, panel.metric) or 0.0)

    every = sorted(ranked(panel.groups, panel.metric), key=reached)
    groups = _spread(every)
    others = [group for group in every if group not in groups]
    cells = [group.cell for group in (*groups, *others)]
    several = len({_head(group) for group in groups}) > 1
    scale = scale_for(map(reached, groups), "s")
    hidden = ("ranks", "threads", "nodes", "ranks_per_node") if several else ()

    def name(group: Group[Any]) -> str:
        return clean(people_name(group.cell, cells, never=hidden))

    def dot(group: Group[Any]) -> Dot:
        return Dot(
            label=name(group),
            value=reached(group) / scale.factor,
            points=[value / scale.factor for value in group.values(panel.metric)],
            style=context.style(group),
            right=f"{scale.text(reached(group))} {scale.unit}",
            hollow=group.over_subscribed,
            head=_head(group) if several else "",
        )

    title = "" if panel.missed else who_is_first(found, panel.groups)
    return dot_chart(
        groups,
        dot,
        [words("What", name), words("On", _head), *metric_columns(panel.metric, scale), MARKS],
        title=f"{panel.about}: {title or panel.missed + panel.what}",
        axis=f"{panel.what} ({scale.unit}), shorter is better",
        name=f"front-{place}",
        others=others,
        notes=[
            "Small dots: single runs. Symbol: their median; of who is paired with the best, that one's times the ratio.",
            f"{len(others)} more stand in the numbers." if others else "",
            "Hollow: processes share cores, so it claims nothing." if any(g.over_subscribed for g in groups) else "",
        ],
    )


def _head(group: Group[Any]) -> str:
    cell = group.cell
    if cell.device != "cpu":
        return "GPU" if cell.ranks == 1 else f"{cell.ranks} GPUs"
    return (
        count(cell.ranks, "process", "processes") if cell.threads == 1 else count(cell.threads * cell.ranks, "thread")
    )


def _spread(groups: Sequence[Group[Any]]) -> list[Group[Any]]:
    """Return the best under each head in turn, as many as have room, under their heads: those of the fewest cores first."""
    under = grouped(groups, _head)
    turns = max(map(len, under.values()), default=0)
    dealt = [members[turn] for turn in range(turns) for members in under.values() if turn < len(members)][:_MAX_ROWS]
    of_head = sorted(
        under.values(), key=lambda members: (members[0].cell.ranks * members[0].cell.threads, _head(members[0]))
    )
    return [group for members in of_head for group in members if group in dealt]
