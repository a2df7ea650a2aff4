"""Section: how things were measured, how they were compared, and what each metric means."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from transect.analysis.entries import metrics_in
from transect.domain.metrics import METRICS
from transect.report.engine.blocks import Column, Facts, Lead, Part, Prose, code, note, table, words
from transect.report.engine.context import Context
from transect.report.engine.finding import names

_MAX_SEEDS = 40

_RULES = (
    (
        "Middle and spread",
        "The median of the repeats. From six repeats on, a rank-based 95 % "
        "confidence interval that assumes no distribution; with two to five the smallest and largest "
        "value, called a range.",
    ),
    (
        "Noise floor",
        "The 95th percentile of the ratios between repeats of the same cell (A/A "
        "pairs), per workload and metric. Over-subscribed cells are left out, and disturbed runs as long as any cell has two others.",
    ),
    (
        "Different, the same, or open",
        "Each side's variance is moderated by that of all cells of its "
        "kind (Smyth 2004), and from five runs on a fifth is trimmed at either end (Yuen 1974). Different: a two-sided t test of "
        "the ratio's logarithm at 5 %. The same: two one-sided tests show that the ratio lies within the margin, 5 % unless the study says otherwise. "
        "Anything else is open. Where a study looked at its repeats and went on, each probability counts as often as it may have looked. "
        "Cliff's delta is the size of the effect by ranks. One run a side has no spread: it needs twice the noise floor, and is provisional.",
    ),
    (
        "Many comparisons",
        "Holm's correction over all comparisons that the findings rest on; the best of k stands for all pairs of k.",
    ),
    (
        "Confidence",
        "Confirmed: three runs a side or more, quiet, on the same processors within 12 hours of each other, and still so beside all other comparisons, or a fact about every record. With fewer than "
        "five runs a difference has to exceed the noise floor too. Nothing is confirmed where a quarter of all pairs of repeats differ by more than half. "
        "Provisional: seen, but in too few runs or under unequal conditions. Inconclusive: the data cannot decide. An answer "
        "has the lowest confidence of the findings that it is made of, and is partly inconclusive where some of them are inconclusive and others not.",
    ),
    ("Drift", "Cells that ran in the first and in the last third of a stage's runs, each beside itself."),
    (
        "Energy",
        "Of the training loop, from the hardware's counters of whole nodes, over all its samples; to the target in proportion to the time to it. "
        "No estimate stands where none can be read.",
    ),
    ("Averages", "Times arithmetically, rates harmonically, ratios never."),
    (
        "Time to quality",
        "From the first touch of the data to the target, evaluations included; "
        "libraries are loaded and the model is made before. A cell that misses the target in one "
        "repeat, or whose equality check goes blind before it without restarts that hold, is not ranked. A start that takes more epochs does so for all trainers: cells are "
        "compared repeat by repeat, over those that they share, and the noise is what is left "
        "of the ratios between repeats when their median over all cells is taken out.",
    ),
    ("Step time", "The slowest rank's time, after the warm-up steps."),
    (
        "Bound",
        "Roofline: the larger of operations over the peak rate and bytes over the memory "
        "bandwidth, both measured here with as many threads as the ranks of a node use together. "
        "Operations and bytes are the least that the model needs.",
    ),
    (
        "Parts of a step",
        "communication_time is what is waited: a rank does nothing but wait for "
        "messages. communication_total_time is how long messages are under way, hidden behind "
        "computing or not. overlap is the share of it that hides: 1 − waited / under way, summed over "
        "steps and ranks. Of the first two the slowest rank's are taken, per step. A library may tell "
        "none of them, or only some: what is not told is left out of every median, comparison and "
        "chart, and called not told, never zero.",
    ),
    (
        "Kinds of training",
        "Cells differ in kind by their input, precision, rule of the learning "
        "rate and by what becomes of gradients (mean or sum). Cells of different kinds are never each "
        "other's base and run in different races; a sum stands beside its mean twin only. Synthetic "
        "input (random numbers that lie on the device) has no quality, and its speed is not the "
        "workload's: it only says what real input costs, 1 − samples/s over the twin's.",
    ),
    (
        "Cost of distribution",
        "A step against the same framework's single on one rank: over the ranks "
        "where the global batch stayed (strong), as it is where it grew with them (weak). The parts "
        "are shares of that ideal: waited communication, computing and input beyond the base's, scaled "
        "alike. Called real above the noise floor only; a cell with more ranks than cores has "
        "numbers and no claim.",
    ),
    (
        "Communication",
        "The slowest rank's communication under way (or, where only that is told, "
        "waited), per step, against the alpha-beta lower bound of an all-reduce of the gradient: "
        "max(⌈log2 p⌉ α, 2 (p − 1)/p · n/β) for n bytes on p nodes (Chan et al., 2007). α and β are "
        "fitted to ping-pong between two nodes of the same network, t(n) = α + n/β, by least squares "
        "of log t. Messages within a node and additions count as free. A fit that misses its points "
        "by more than 20 % is called poor.",
    ),
    (
        "Efficiency",
        "Speed-up over the added ranks, against a base that is named: the same "
        "framework, kind of training, threads, network and global batch (strong), or the same batch per rank "
        "(weak). "
        "More than 100 % beyond the noise floor is flagged; what may be behind it is looked for in the records: a disturbed or uneven base, "
        "another machine, input or path, less data per rank, more nodes, a base far from its own bound. Cells with more ranks than cores have "
        "none.",
    ),
    (
        "Right results",
        "A trainer whose loss or weights leave their tolerance is a wrong result; an export or "
        "runtime whose outputs differ is left out of every ranking, however fast.",
    ),
    (
        "Tail latency",
        "A percentile needs twenty samples beyond it: a 95th is given from 400 samples on, a 99th from 2,000.",
    ),
    (
        "Ratios",
        "Verdicts, claims and evidence have one ratio of two sets of runs: that of their trimmed geometric means, "
        "of five runs or more without the lowest and the highest fifth, of fewer of all; run by run or seed by seed the same of the "
        "ratios. Its 95 % interval is that of the verdict's t test; where no repeats tell the noise it is the range. Who is ranked "
        "first is so by this too. Tables show medians beside it, whose ratio may be another one.",
    ),
    (
        "Ratios of runtimes",
        "Seconds beyond another runtime are what the ratio comes to, of that one's median. "
        "Run is compared with Run; where one of two languages binds or copies inside of it, the call "
        "end to end. Near means that the whole interval lies within 10 %.",
    ),
    (
        "Classifiers of tickets",
        "Two differ by the median of their differences within a seed, with a rank-based "
        "95 % interval from six seeds on; where it contains 0 nothing is told. A seed draws weights and the order of "
        "tickets, not the tickets: another draw of the test tickets may move an accuracy p by 1.96 √(p (1 − p) / n). A "
        "difference is confirmed only where it exceeds that too, as if each side were tested on tickets of its own. Of several "
        "settings of one classifier that with the best median accuracy on validation stands for it. A classifier without "
        "hyper-parameters draws nothing, and its one run stands for all seeds.",
    ),
)


def methods_body(context: Context) -> Iterator[Part]:
    """Explain the rules, the seeds, and every metric that occurs in this study."""
    yield Lead(
        "How numbers were measured, compared and confirmed. The rules follow Hoefler and Belli, Scientific benchmarking of parallel computing "
        "systems (SC'15), and MLPerf's time to quality."
    )
    yield Facts(items=list(_RULES))
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
