"""Published claims on communication and memory, each compared with the cells that repeat its comparison.

Numbers of A. A. Awan et al., "S-Caffe" (PPoPP 2017), "OC-DNN" (HiPC 2018) and "HyPar-Flow" (ISC 2020). A claim
is a factor between two ways; here both ways run on one machine, in one study, on equal ranks with equal work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf, log, log1p

from transect.analysis.contrast import Contrast
from transect.analysis.contrasts import contrast
from transect.analysis.groups import Floors
from transect.analysis.parallelism import STEP, best_of, points, rivalries
from transect.analysis.scaling import TrainGroup
from transect.report.topics.parallel.exchange import HIERARCHICAL
from transect.report.topics.parallel.memory import PLAIN, per_sample
from transect.report.topics.parallel.words import scope_of, strategy_words
from transect.stats.comparisons import Confidence
from transect.stats.estimates import Estimate
from transect.stats.samples import Spread

MESSAGES = "communication_total_time"
_RIVALS = ("ddp", "horovod")
# What a GPU's cell and its CPU twin share.
_TWINS = ("workload", "framework", "strategy", "precision", "nodes", "ranks_per_node", "batch")
# A comparison, where one can be made, and what is compared.
Compared = tuple[Contrast | None, str]


class Judgement(StrEnum):
    """What the cells say of a claim."""

    REACHED = "as much as published, or more"
    LESS = "a gain, but less than published"
    NONE = "no gain at all"
    OPEN = "not decided"


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What claims are held against: trainings, and extrapolated speed-ups over one rank by ranks.

    `speed_up` gives the simulator's speed-up at a number of ranks and whether its network is one that no line
    describes, or None where nothing was simulated.
    """

    groups: Sequence[TrainGroup]
    floors: Floors
    speed_up: Callable[[int], tuple[float, bool] | None] = lambda ranks: None
    error: float | None = None
    asked: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """One published factor, what it was compared with there, and the comparisons that decide it here.

    One of `ranks` is decided by the simulator's speed-up on so many ranks.
    """

    key: str
    source: str
    factor: float
    what: str
    against: str
    differs: str
    needs: str
    compared: Callable[[Evidence], Iterable[Compared]] = lambda evidence: ()
    ranks: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What was found: `gain` is how many times better the claimed way is, with its interval.

    `compared` says what beside what; `reason` why it is decided, or is not.
    """

    claim: Claim
    reason: str
    judgement: Judgement = Judgement.OPEN
    confidence: Confidence = Confidence.INCONCLUSIVE
    gain: Estimate | None = None
    compared: str = "–"
    extrapolated: bool = False
    result: Contrast | None = None


def answers(evidence: Evidence) -> list[Answer]:
    """Answer every claim; one without cells is open and says what they would be."""
    return [_extrapolated(claim, evidence) if claim.ranks else _measured(claim, evidence) for claim in CLAIMS]


def _measured(claim: Claim, evidence: Evidence) -> Answer:
    """Answer by the comparison most in favour of the claim, a decided one before the others; lower is better.

    That less was gained, or nothing, holds where none of them may reach more.
    """
    results = [(result, compared) for result, compared in claim.compared(evidence) if result is not None]
    if not results:
        return Answer(claim=claim, reason=f"no cells: it needs {claim.needs}")
    reaching = [pair for pair in results if pair[0].shown and pair[0].ratio.inverse.low >= claim.factor]
    result, compared = min(reaching or results, key=lambda p: (not p[0].shown, p[0].ratio.value, p[0].group.cell.id))
    # As the best of several it is an upper limit, not what to expect.
    if len(results) > 1:
        compared += f" (the most {'that is shown ' if result.shown else ''}of {len(results)} comparisons)"
        result = replace(result, candidates=result.candidates * len(results))
    gain = result.ratio.inverse  # what has no interval may be anything
    most = max(each.ratio.inverse.high if each.ratio.spread is Spread.INTERVAL else inf for each, _ in results)
    judgement = Judgement.OPEN
    if reaching:
        judgement = Judgement.REACHED
    elif result.shown and most <= 1:
        judgement = Judgement.NONE
    elif result.shown and gain.low > 1 and most < claim.factor:
        judgement = Judgement.LESS
    return Answer(
        claim=claim,
        judgement=judgement,
        gain=gain,
        compared=compared,
        reason=result.reason,
        confidence=Confidence.INCONCLUSIVE if judgement is Judgement.OPEN else result.confidence,
        result=result,
    )


def _extrapolated(claim: Claim, evidence: Evidence) -> Answer:
    """Hold the simulator's speed-up, an extrapolation, beside the published one."""
    found = evidence.speed_up(claim.ranks)
    if found is None:
        return Answer(claim=claim, reason=f"no cells: it needs {claim.needs}")
    value, poor = found
    seen = (
        "nothing was predicted beforehand, so its error is not known"
        if evidence.error is None
        else f"predictions of cells that ran were {100 * evidence.error:.1f} % off in the mean"
    )
    seen += "; over a network whose probed messages lie on no line" if poor else ""
    # Nearer to the published factor than predictions were to measurements, it may be on either side.
    decides = not poor and evidence.error is not None and abs(log(value / claim.factor)) > log1p(evidence.error)
    judgement = Judgement.REACHED if value >= claim.factor else Judgement.LESS
    return Answer(
        claim=claim,
        reason=f"extrapolated, not measured: {seen}",
        judgement=judgement if decides else Judgement.OPEN,
        extrapolated=True,
        compared=f"simulated speed-up of {claim.ranks} replicas of a shared model over one, equal work for each",
        gain=Estimate(value=value, low=value, high=value, spread=Spread.SINGLE),
    )


def _where(group: TrainGroup) -> str:
    return f"{group.cell.workload}, {scope_of(group)}"


def _hierarchical(evidence: Evidence) -> Iterator[Compared]:
    """Compare the hierarchical strategy's messages with those of the best flat collective."""
    for members in points(evidence.groups):
        ways = (HIERARCHICAL, "mpi-allreduce")
        own, flat = (best_of((g for g in members if g.cell.strategy == way), MESSAGES) for way in ways)
        if own is not None and flat is not None:
            made = contrast(own, flat, evidence.floors, MESSAGES, varies="strategy", asked=evidence.asked)
            yield made, f"messages of a step, {strategy_words(own)} beside {strategy_words(flat)}; {_where(own)}"


def _hybrid(evidence: Evidence) -> Iterator[Compared]:
    """Compare the best hybrid with the best of DDP and Horovod."""
    for found in rivalries(evidence.groups, evidence.floors, _RIVALS, hybrid=True, asked=evidence.asked):
        words = f"step, {strategy_words(found.group)} beside {strategy_words(found.base)}; {_where(found.group)}"
        yield found, words


def _per_sample(evidence: Evidence, group: TrainGroup, base: TrainGroup, varies: str) -> Contrast | None:
    return contrast(group, base, evidence.floors, STEP, varies=varies, of=per_sample, asked=evidence.asked)


def _over_naive(evidence: Evidence) -> Iterator[Compared]:
    """Compare prefetching with fetching on demand, at equal batch and budget."""
    for naive in evidence.groups:
        if "naive" not in naive.cell.memory:
            continue
        same = naive.cell.apart_from("memory")
        prefetching = best_of(
            g
            for g in evidence.groups
            if g.cell.apart_from("memory") == same
            and g.cell.memory not in (PLAIN, "recompute")
            and "naive" not in g.cell.memory
        )
        if prefetching is not None:
            words = f"time per sample, {prefetching.cell.memory} beside {naive.cell.memory}; {_where(naive)}"
            yield _per_sample(evidence, prefetching, naive, "memory"), words


def _over_cpu(evidence: Evidence) -> Iterator[Compared]:
    """Compare a GPU whose memory does not suffice with the CPU, at equal batch."""
    for gpu in evidence.groups:
        if gpu.cell.device == "cpu" or gpu.cell.memory == PLAIN:
            continue
        rival = best_of(
            g
            for g in evidence.groups
            if g.cell.device == "cpu"
            and g.cell.memory == PLAIN
            and all(g.cell.get(axis) == gpu.cell.get(axis) for axis in _TWINS)
        )
        if rival is not None:
            words = f"time per sample, {gpu.cell.device} with {gpu.cell.memory} beside the CPU; {_where(gpu)}"
            yield _per_sample(evidence, gpu, rival, "device"), words


CLAIMS = (
    Claim(
        key="hierarchical",
        source="S-Caffe",
        factor=133,
        what="hierarchical reduce",
        against="Open MPI's reduce of that time, 160 GPUs (2.6x over MVAPICH2's)",
        differs="messages from GPU memory over a cluster's network there, from CPU memory here",
        needs=f"{HIERARCHICAL} and mpi-allreduce on equal ranks",
        compared=_hierarchical,
    ),
    Claim(
        key="over-cpu",
        source="OC-DNN",
        factor=5,
        what="training past a GPU's memory",
        against="the same training on CPUs",
        differs="another GPU beside another CPU there",
        needs="a GPU cell with memory managed or offloaded, and its CPU twin",
        compared=_over_cpu,
    ),
    Claim(
        key="over-naive",
        source="OC-DNN",
        factor=1.9,
        what="managed memory with prefetch and advice",
        against="managed memory as it comes, which brings each page when it is touched",
        differs="pages of a GPU there, activations in files or host memory here",
        needs="a memory that fetches when asked, a plug-in with naive in its name, beside one that prefetches, at equal "
        "budget; `tests/benchmarks/bench_out_of_core.py` holds both",
        compared=_over_naive,
    ),
    Claim(
        key="hybrid",
        source="HyPar-Flow",
        factor=1.6,
        what="data and model shared (ResNet-1001)",
        against="Horovod's data parallelism on equal nodes",
        differs="nodes of a cluster there, ranks of this machine here",
        needs="a hybrid (replicas of a pipeline) beside DDP or Horovod on equal ranks",
        compared=_hybrid,
    ),
    *(
        Claim(
            key=f"nodes-{nodes}",
            source="HyPar-Flow",
            factor=times,
            what=f"hybrid on {nodes} nodes",
            against="one node of the same",
            differs="measured there, extrapolated here",
            needs="a hybrid's profile and a network for the simulator",
            ranks=nodes,
        )
        for nodes, times in ((128, 110), (512, 481))
    ),
)
