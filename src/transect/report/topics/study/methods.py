"""Section: how things were measured, how they were compared, and what each metric means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from transect.analysis.entries import metrics_in
from transect.domain.metrics import METRICS
from transect.report.engine.blocks import Column, Facts, Lead, Part, Prose, code, note, table, words
from transect.report.engine.context import Context
from transect.report.engine.finding import names
from transect.report.engine.text import count, percent

_MAX_SEEDS = 40
# How the values of two cells are set beside each other (`Contrast.by`).
_WAYS = {"turn": "turn by turn", "seed": "seed by seed", "run": "run by run", "": "without pairs"}

_LEAD = (
    "How numbers were measured, compared and confirmed. The rules follow Hoefler and Belli, Scientific benchmarking of parallel computing "
    "systems (SC'15), and MLPerf's time to quality."
)
# A rule, what of a study it is about (one of these, see `_held`; nothing: any study), and how it goes.
_RULES = (
    (
        "What is compared",
        "pairs",
        "Pairs that were planned before the study ran: two points that differ in one thing. Where both took turns, their "
        "launches are compared turn by turn; else seed by seed, or run by run. The estimate is the ratio of trimmed "
        "geometric means, of five pairs or more without the lowest and the highest fifth.",
    ),
    (
        "Which time decides",
        "train",
        "The time to the target, start by start; where a seed takes the same steps on both sides, the time of a step, of "
        "which there are hundreds, unless first steps, in which some compile, or what is before them, such as ranks that "
        "join, change the ratio by more than 5 %. It begins when libraries are loaded and the model is made. A step's time is that of the "
        "slowest process, after the warm-up steps.",
    ),
    (
        "Different, the same, or not known",
        "pairs",
        "Different: a two-sided t test of the ratio's logarithm at 5 %, its spread moderated by that of all pairs of its kind "
        "(Smyth 2004). The same: two one-sided tests show that the ratio lies within the margin. Anything else is not known, "
        "which is no sign that there is no difference.",
    ),
    (
        "Sure, likely",
        "pairs",
        "Sure: three quiet pairs or more on the same processors, still so after Holm's correction over all comparisons that "
        "the study's questions ask for, or a fact about every record. Likely: seen, but asked by nobody, in too few runs, or beside "
        "other programs. What was disturbed enters no comparison that has three others.",
    ),
    (
        "Middle and ends",
        "",
        "In tables the median of the runs, with a rank-based interval of 95 % or more from six runs on; below that the smallest and the "
        "largest value, called a range. Times are averaged arithmetically, rates harmonically, ratios never.",
    ),
    (
        "Right results",
        "train export infer retrain",
        "A trainer whose loss or weights leave their tolerance, an export or a runtime whose outputs differ, is left out of "
        "every comparison, however fast. So is a training that misses its target in one run, or whose check goes blind before it.",
    ),
    (
        "Parts of a step",
        "communication_time",
        "Waiting is when a process does nothing but wait for messages; what hides behind computing is not in it. Of each "
        "step the slowest process's parts are taken. What a library does not tell is left out, never zero.",
    ),
    (
        "Kinds of training",
        "train",
        "Cells that differ in input, precision, rule of the learning rate, or in what becomes of gradients, are never each "
        "other's base. Synthetic input has no quality: it says what real input costs.",
    ),
    (
        "Efficiency and the cost of distribution",
        "ranks",
        "Speed-up over the added processes, against the same framework on one, with the same batch (strong) or the same per process (weak). "
        "More than 100 % is flagged. With more processes than cores there is no claim.",
    ),
    (
        "Bounds and energy",
        "bench ingest energy",
        "A bound is the least time that benchmarks of this study allow; a cell below it shows that the bound is wrong. Drift: "
        "each cell's repeats in the last third of a stage's runs beside those in the first. The energy to the target is in "
        "proportion to the time to it.",
    ),
    (
        "Communication",
        "network",
        "Against the alpha-beta lower bound of an all-reduce, max(⌈log2 p⌉ α, 2 (p − 1)/p · n/β) for n bytes on p nodes (Chan et al., 2007); "
        "α and β are fitted to ping-pong between two nodes. A fit that misses its points by more than 20 % is called poor.",
    ),
    (
        "Runtimes",
        "infer",
        "Run is compared with Run; where one of two languages binds or copies inside of it, whole calls. A 95th percentile is given from 400 samples on, "
        "a 99th from 2,000.",
    ),
    (
        "Classifiers of tickets",
        "classify",
        "Two differ by the median of their differences within a seed. A difference is sure only where it also exceeds what another draw of the test "
        "tickets may do, 1.96 √(p (1 − p) / n) a side. Of several settings that with the best accuracy on validation stands for a classifier.",
    ),
)


def methods_body(context: Context) -> Iterator[Part]:
    """Explain the rules that this study's records came under, how often each was met, the seeds, and every metric that occurs."""
    yield Lead(_LEAD)
    held = _held(context)
    yield Facts(items=[(name, text) for name, about, text in _RULES if not about or held & {*about.split()}])
    yield Facts(items=list(_met(context)))
    given = {record.parameters.get("seed") for record in context.records}
    seeds = sorted(str(seed) for seed in given if seed is not None)
    if seeds:
        yield Prose(f"Seeds used: {names(seeds, _MAX_SEEDS)}.")
    used = metrics_in(context.records)
    metrics = [METRICS[name] for name in sorted(used & METRICS.keys())]
    columns: list[Column[Any]] = [
        code("Metric", lambda metric: metric.name),
        words("Meaning", lambda metric: metric.description),
        words("Unit", lambda metric: metric.unit),
        words("Better", lambda metric: metric.direction.value),
        words("Averaged", lambda metric: metric.mean.value),
    ]
    if metrics:
        yield table(metrics, columns, caption="Metrics in this study")
    yield note(
        "Every number stands in records.parquet beside this file, a row per record and metric; "
        "raw samples stay with the records."
    )


def _held(context: Context) -> set[str]:
    """Name what there is in a study that a rule may be about: its stages and metrics, and what is listed here."""
    cells = [group.cell for groups in context.groups.values() for group in groups]
    there = {
        "pairs": any(True for _ in context.contrasts),
        "ranks": any(cell.stage == "train" and cell.nodes * cell.ranks_per_node > 1 for cell in cells),
        "network": bool(context.network_fits),
        "energy": any("energy" in name for name in metrics_in(context.records)),
    }
    return {*context.stages, *metrics_in(context.records), *(name for name, found in there.items() if found)}


def _met(context: Context) -> Iterator[tuple[str, str]]:
    """Say in numbers what was done in this study: repeats, how pairs were set beside each other, what was left out."""
    runs = sorted({len(group.ok) for groups in context.groups.values() for group in groups if group.ok})
    if runs:
        cells = sum(bool(group.ok) for groups in context.groups.values() for group in groups)
        times = f"{runs[0]} to {runs[-1]} times" if len(runs) > 1 else count(runs[0], "time")
        yield "Repeats", f"{count(cells, 'cell')} with a right result, each {times}."
    told = [record.details.get("warmup_steps") for record in context.records]
    if warm_up := sorted({steps for steps in told if isinstance(steps, int)}):
        yield "Warm-up", f"The first {names(list(map(str, warm_up)), _MAX_SEEDS)} steps enter no median."
    made = list(context.contrasts)
    if not made:
        return
    ways = Counter(contrast.by for contrast in made)
    how = [f"{ways[by]} {words}" for by, words in _WAYS.items() if ways[by]]
    asked = sum(contrast.asked for contrast in made)
    of_these = f", {asked} of which the questions ask for" if asked < len(made) else ""
    yield "Pairs", f"{count(len(made), 'comparison')} of planned pairs{of_these}: {names(how, len(_WAYS))}."
    yield "Margin", f"What lies within {percent(context.analysis_plan.margin, 1)} is the same."
    levels = Counter(c.ratio.word for c in made if c.decision is not None and not c.barred)
    if levels:
        of_words = [f"{word} of {count(amount, 'comparison')}" for word, amount in levels.most_common()]
        yield "Intervals", f"{names(of_words, 9)}."
    left, noisy = sum(contrast.left_out for contrast in made), sum(not contrast.quiet for contrast in made)
    barred = sum(bool(contrast.barred) for contrast in made)
    yield (
        "Left out",
        f"{count(left, 'disturbed repeat')}, counted in each comparison that it was left out of; "
        f"{count(noisy, 'comparison')} had too few undisturbed ones, so that all entered, and {count(barred, 'comparison')} {'says' if barred == 1 else 'say'} nothing, such as of processes that share cores.",
    )
