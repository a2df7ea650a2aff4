"""Published claims on communication and memory, each compared with the cells that repeat its comparison.

Numbers of A. A. Awan et al., "S-Caffe" (PPoPP 2017), "OC-DNN" (HiPC 2018) and "HyPar-Flow" (ISC 2020). A claim
is a factor between two ways; here both ways run on one machine, in one study, on equal ranks with equal work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import log, log1p

from transect.analysis.contrast import Contrast
from transect.analysis.contrasts import contrast
from transect.analysis.groups import Floors
from transect.analysis.parallelism import STEP, best_of, points, rivalries
from transect.analysis.scaling import TrainGroup
from transect.report.topics.parallel.findings import scope_of, strategy_words
from transect.report.topics.parallel.out_of_core import PLAIN, per_sample
from transect.report.topics.parallel.overlapped import HIERARCHICAL
from transect.stats.comparisons import Confidence
from transect.stats.estimates import Estimate
from transect.stats.samples import Spread

MESSAGES = "communication_total_time"
_RIVALS = ("ddp", "horovod")
# What a GPU's cell and its CPU twin share, besides the batch.
_TWINS = ("workload", "framework", "strategy", "precision", "nodes", "ranks_per_node")


class Judgement(StrEnum):
    """What the cells say of a claim."""

    REACHED = "reached"
    LESS = "less"
    NONE = "no gain"
    OPEN = "open"


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
class Answer:
    """What was found: `gain` is how many times better the claimed way is, with its interval.

    `compared` says what beside what; `reason` why it is decided, or is not.
    """

    claim: Claim
    judgement: Judgement
    confidence: Confidence
    gain: Estimate | None
    compared: str
    reason: str
    extrapolated: bool = False
    result: Contrast | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """One published factor, what it was compared with there, and what decides it here."""

    key: str
    source: str
    factor: float
    what: str
    against: str
    differs: str
    needs: str
    answer: Callable[[Claim, Evidence], Answer]


def answers(evidence: Evidence) -> list[Answer]:
    """Answer every claim; one without cells is open and says what they would be."""
    return [claim.answer(claim, evidence) for claim in CLAIMS]


def _open(claim: Claim, reason: str, **more: object) -> Answer:
    empty = Answer(
        claim=claim,
        judgement=Judgement.OPEN,
        confidence=Confidence.INCONCLUSIVE,
        gain=None,
        compared="–",
        reason=reason,
    )
    return replace(empty, **more) if more else empty  # type: ignore[arg-type]


def _of(claim: Claim, result: Contrast, compared: str) -> Answer:
    """Answer by a comparison of the claimed way with its rival; lower is better."""
    ratio = result.ratio
    gain = ratio.inverse
    if not result.shown:
        return _open(claim, result.reason, gain=gain, compared=compared, result=result)
    judgement = Judgement.LESS
    if gain.low >= claim.factor:
        judgement = Judgement.REACHED
    elif gain.high <= 1:
        judgement = Judgement.NONE
    elif gain.high >= claim.factor:
        judgement = Judgement.OPEN
    return Answer(
        claim=claim,
        judgement=judgement,
        gain=gain,
        compared=compared,
        reason=result.reason,
        confidence=Confidence.INCONCLUSIVE if judgement is Judgement.OPEN else result.confidence,
        result=result,
    )


def _best(claim: Claim, results: Sequence[tuple[Contrast, str]]) -> Answer:
    """Answer by the comparison most in favour of the claim; a decided one comes before the others."""
    if not results:
        return _open(claim, f"no cells: it needs {claim.needs}")
    result, compared = min(results, key=lambda pair: (not pair[0].shown, pair[0].ratio.value, pair[0].group.cell.id))
    # As the best of several it is an upper limit, not what to expect.
    compared += f" (the most of {len(results)} comparisons)" if len(results) > 1 else ""
    return _of(claim, result, compared)


def _where(group: TrainGroup) -> str:
    return f"{group.cell.workload}, {scope_of(group)}"


def _hierarchical(claim: Claim, evidence: Evidence) -> Answer:
    """Compare the hierarchical strategy's messages with those of the best flat collective."""
    results = []
    for members in points(evidence.groups):
        hierarchical = best_of((g for g in members if g.cell.strategy == HIERARCHICAL), MESSAGES)
        flat = best_of((g for g in members if g.cell.strategy == "mpi-allreduce"), MESSAGES)
        if hierarchical is not None and flat is not None:
            result = contrast(hierarchical, flat, evidence.floors, MESSAGES, varies="strategy", asked=evidence.asked)
            if result is not None:
                compared = f"messages of a step, {strategy_words(hierarchical)} beside {strategy_words(flat)}; {_where(hierarchical)}"
                results.append((result, compared))
    return _best(claim, results)


def _hybrid(claim: Claim, evidence: Evidence) -> Answer:
    """Compare the best hybrid with the best of DDP and Horovod."""
    found = rivalries(evidence.groups, evidence.floors, _RIVALS, hybrid=True, asked=evidence.asked)
    return _best(
        claim,
        [
            (r.result, f"step, {strategy_words(r.best)} beside {strategy_words(r.rival)}; {_where(r.best)}")
            for r in found
        ],
    )


def _over_naive(claim: Claim, evidence: Evidence) -> Answer:
    """Compare prefetching with fetching on demand, at equal batch and budget."""
    results = []
    for naive in (g for g in evidence.groups if _is_naive(g)):
        same = naive.cell.apart_from("memory")
        rivals = [
            g
            for g in evidence.groups
            if g.cell.apart_from("memory") == same
            and g is not naive
            and g.cell.memory not in (PLAIN, "recompute")
            and not _is_naive(g)
        ]
        prefetching = best_of(rivals)
        if prefetching is None:
            continue
        result = contrast(
            prefetching, naive, evidence.floors, STEP, varies="memory", of=per_sample, asked=evidence.asked
        )
        if result is not None:
            compared = f"time per sample, {prefetching.cell.memory} beside {naive.cell.memory}; {_where(naive)}"
            results.append((result, compared))
    return _best(claim, results)


def _is_naive(group: TrainGroup) -> bool:
    return "naive" in group.cell.memory


def _over_cpu(claim: Claim, evidence: Evidence) -> Answer:
    """Compare a GPU whose memory does not suffice with the CPU, at equal batch."""
    results = []
    for gpu in (g for g in evidence.groups if g.cell.device != "cpu" and g.cell.memory != PLAIN):
        cpu = [
            g
            for g in evidence.groups
            if g.cell.device == "cpu"
            and g.cell.memory == PLAIN
            and g.cell.batch == gpu.cell.batch
            and all(g.cell.get(axis) == gpu.cell.get(axis) for axis in _TWINS)
        ]
        rival = best_of(cpu)
        result = (
            contrast(gpu, rival, evidence.floors, STEP, varies="device", of=per_sample, asked=evidence.asked)
            if rival
            else None
        )
        if result is not None:
            compared = f"time per sample, {gpu.cell.device} with {gpu.cell.memory} beside the CPU; {_where(gpu)}"
            results.append((result, compared))
    return _best(claim, results)


def _speed_up(ranks: int) -> Callable[[Claim, Evidence], Answer]:
    def answer(claim: Claim, evidence: Evidence) -> Answer:
        """Hold the simulator's speed-up, an extrapolation, beside the published one."""
        found = evidence.speed_up(ranks)
        if found is None:
            return _open(claim, f"no cells: it needs {claim.needs}")
        value, poor = found
        seen = (
            "nothing was predicted beforehand, so its error is not known"
            if evidence.error is None
            else f"predictions of cells that ran were {100 * evidence.error:.1f} % off in the mean"
        )
        # Nearer to the published factor than predictions were to measurements, it may be on either side.
        decides = not poor and evidence.error is not None and abs(log(value / claim.factor)) > log1p(evidence.error)
        seen += "; over a network whose probed messages lie on no line" if poor else ""
        judgement = Judgement.REACHED if value >= claim.factor else Judgement.LESS
        judgement = judgement if decides else Judgement.OPEN
        return _open(
            claim,
            f"extrapolated, not measured: {seen}",
            judgement=judgement,
            extrapolated=True,
            compared=f"simulated speed-up of {ranks} replicas of a shared model over one, equal work for each",
            gain=_alone(value),
        )

    return answer


def _alone(value: float) -> Estimate:
    return Estimate(value=value, low=value, high=value, spread=Spread.SINGLE)


CLAIMS = (
    Claim(
        key="hierarchical",
        source="S-Caffe",
        factor=133,
        what="hierarchical reduce",
        against="Open MPI's reduce of that time, 160 GPUs (2.6x over MVAPICH2's)",
        differs="messages from GPU memory over a cluster's network there, from CPU memory here",
        needs=f"{HIERARCHICAL} and mpi-allreduce on equal ranks",
        answer=_hierarchical,
    ),
    Claim(
        key="over-cpu",
        source="OC-DNN",
        factor=5,
        what="training past a GPU's memory",
        against="the same training on CPUs",
        differs="another GPU beside another CPU there",
        needs="a GPU cell with memory managed or offloaded, and its CPU twin",
        answer=_over_cpu,
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
        answer=_over_naive,
    ),
    Claim(
        key="hybrid",
        source="HyPar-Flow",
        factor=1.6,
        what="data and model shared (ResNet-1001)",
        against="Horovod's data parallelism on equal nodes",
        differs="nodes of a cluster there, ranks of this machine here",
        needs="a hybrid (replicas of a pipeline) beside DDP or Horovod on equal ranks",
        answer=_hybrid,
    ),
    Claim(
        key="nodes-128",
        source="HyPar-Flow",
        factor=110,
        what="hybrid on 128 nodes",
        against="one node of the same",
        differs="measured there, extrapolated here",
        needs="a hybrid's profile and a network for the simulator",
        answer=_speed_up(128),
    ),
    Claim(
        key="nodes-512",
        source="HyPar-Flow",
        factor=481,
        what="hybrid on 512 nodes",
        against="one node of the same",
        differs="measured there, extrapolated here",
        needs="a hybrid's profile and a network for the simulator",
        answer=_speed_up(512),
    ),
)
