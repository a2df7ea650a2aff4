"""What a sum of gradients without a mean does to the learning rate."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from transect.analysis.groups import grouped
from transect.analysis.labels import word
from transect.analysis.scaling import TrainGroup
from transect.report.engine.blocks import Chip, Part, digits, table, words
from transect.report.engine.finding import Finding, joined, names
from transect.report.engine.finding import median as median_of
from transect.report.engine.text import clean, count, number
from transect.report.topics.parallel.words import strategy_words
from transect.report.topics.ranks.published_series import GO_WITH_MPI, SUMMING
from transect.report.topics.ranks.series import replicas
from transect.stats.comparisons import Confidence
from transect.stats.samples import MIN_INTERVAL_VALUES

# A path is another one's when the two are so much nearer than each is to a third.
_NEARER = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class SumPath:
    """A training that sums gradients, the mean at the same rate, and the mean at `factor` times the rate.

    `to_scaled` and `to_mean` are the relative distances of the final losses, a value for each seed that all three have.
    `same`: in every seed it ends where the mean at the scaled rate does, and not where the mean does. `differs`: in every
    seed it ends as far from the scaled rate's end as from the mean's, or farther.
    """

    summed: TrainGroup
    mean: TrainGroup
    scaled: TrainGroup
    factor: int
    to_scaled: tuple[float, ...]
    to_mean: tuple[float, ...]
    same: bool
    differs: bool

    @property
    def name(self) -> str:
        """Who sums: `numpy, MPI all-reduce, sum with 4 replicas`."""
        how = "" if self.summed.cell.reduce == "mean" else ", sum"
        framework = word("framework", self.summed.cell.framework)
        return clean(f"{framework}, {strategy_words(self.summed)}{how} with {self.factor} replicas")


def sum_paths(groups: Iterable[TrainGroup]) -> list[SumPath]:
    """Return every sum over several replicas that has both twins, fewest replicas first."""
    # Trainings that were not compared with the reference, such as late updates, follow no known path.
    able = [g for g in groups if g.ok and not g.wrong and not g.kind.synthetic and g.values("equality_ratio")]
    found = []
    for members in grouped(able, _problem).values():
        factor = replicas(members[0])
        plain = [g for g in members if g.cell.reduce == "mean" and g.cell.strategy not in SUMMING]
        plain.sort(key=lambda group: (group.cell.strategy, group.cell.id))
        mean = next((g for g in plain if g.cell.learning_rate_rule == "none"), None)
        scaled = next((g for g in plain if _scaled_by(g) == factor), None)
        if factor < 2 or mean is None or scaled is None:
            continue
        sums = (g for g in members if g.cell.reduce == "sum" or g.cell.strategy in SUMMING)
        for summed in (g for g in sums if g.cell.learning_rate_rule == "none"):
            found.append(_path(summed, mean, scaled, factor))
    return sorted(found, key=lambda path: (path.factor, path.summed.cell.strategy, path.summed.cell.id))


def _problem(group: TrainGroup) -> Hashable:
    cell = group.cell
    same = (cell.workload, cell.framework, cell.precision, cell.device, cell.input, cell.hyperparameters)
    return (*same, group.global_batch, replicas(group))


def _scaled_by(group: TrainGroup) -> float | None:
    """How many times the workload's rate the linear rule takes from the first step on, or None."""
    if group.cell.learning_rate_rule != "linear" or not group.global_batch:
        return None
    for record in group.records:
        batch, warm = record.parameters.get("batch"), record.parameters.get("warmup_steps", 0)
        if isinstance(batch, int) and batch > 0 and not warm:
            return group.global_batch / batch
    return None


def _path(summed: TrainGroup, mean: TrainGroup, scaled: TrainGroup, factor: int) -> SumPath:
    ends, near, far = (group.by_repeat("final_loss") for group in (summed, scaled, mean))
    seeds = sorted(seed for seed in ends.keys() & near.keys() & far.keys() if near[seed] and far[seed])
    to_scaled, to_mean = (tuple(abs(ends[seed] / end[seed] - 1) for seed in seeds) for end in (near, far))
    pairs = list(zip(to_scaled, to_mean, strict=True))
    return SumPath(
        summed=summed,
        mean=mean,
        scaled=scaled,
        factor=factor,
        to_scaled=to_scaled,
        to_mean=to_mean,
        same=bool(pairs) and all(_NEARER * near <= far and far > 0 for near, far in pairs),
        differs=bool(pairs) and all(near >= far for near, far in pairs),
    )


def sums_finding(paths: list[SumPath], asked: bool) -> Finding:
    """Say what a sum without a mean is: the mean at as many times the rate as replicas add up."""
    same, unlike = [path for path in paths if path.same], [path for path in paths if path.differs]
    listed = names([path.name for path in same], 4)
    if len(same) == len(paths):
        claim = (
            f"summing without a mean multiplies the learning rate by the replicas and does nothing else: {listed} "
            f"{'ends' if len(same) == 1 else 'end'} where the mean at that many times the rate does, and not where the mean does."
        )
        confirmed = all(len(path.to_scaled) >= MIN_INTERVAL_VALUES for path in paths)
        confidence = Confidence.CONFIRMED if confirmed else Confidence.PROVISIONAL
    elif unlike:
        claim = f"{names([path.name for path in unlike], 4)} does not take the path of the mean at that many times the rate: look at its sum."
        confidence = Confidence.PROVISIONAL
    else:
        claim = "whether a sum without a mean is the mean at a larger rate cannot be told: in some seed the ends lie too close."
        confidence = Confidence.INCONCLUSIVE
    near, far = (max(paths, key=lambda path: path.factor).to_scaled, [d for p in paths for d in p.to_mean])
    return Finding(
        subject="claims" if asked else "study",
        kind="sum-rate",
        named=asked,
        confidence=confidence,
        claim=f"{GO_WITH_MPI}: {claim}" if asked else claim,
        short=claim.partition(": ")[0],
        evidence=joined(
            f"final losses, seed by seed: at most {number(max(d for p in paths for d in p.to_scaled))} of it from the "
            f"scaled rate's, at least {number(min(far))} from the mean's"
            if near and far
            else "no seed is common to all three",
            f"{count(len(paths), 'triple')} of equal starts and batches, up to {max(p.factor for p in paths)} replicas",
            "so its speed-up to a loss with more ranks is in part that of a larger rate",
        ),
    )


def sums_table(paths: list[SumPath]) -> Part:
    """List every sum beside its twins."""

    def ending(path: SumPath) -> Chip:
        if path.same:
            return Chip("the scaled rate's path", "good")
        return Chip("another path", "bad") if path.differs else Chip("cannot be told")

    return table(
        paths,
        [
            words("Workload", lambda row: row.summed.cell.workload),
            words("Sum", lambda row: f"{row.summed.cell.framework} {strategy_words(row.summed)}"),
            digits("Replicas", lambda row: row.factor),
            digits("Loss ends at", lambda row: median_of(row.summed, "final_loss")),
            digits("Mean at so many times the rate", lambda row: median_of(row.scaled, "final_loss")),
            digits("Mean at the rate", lambda row: median_of(row.mean, "final_loss")),
            digits("From the scaled rate's", lambda row: max(row.to_scaled, default=None)),
            digits("From the mean's", lambda row: max(row.to_mean, default=None)),
            digits("Seeds", lambda row: len(row.to_scaled)),
            words("", ending),
        ],
        caption="A sum beside the mean, and beside the mean at as many times the rate as replicas are added",
    )
