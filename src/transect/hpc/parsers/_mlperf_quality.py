"""Which way MLPerf's qualities go, and what a run's own numbers say about its success."""

from __future__ import annotations

import re
from decimal import Decimal

from transect.domain.metrics import Direction
from transect.hpc.base import RunStatus
from transect.hpc.draft import Draft
from transect.hpc.parsers._mlperf_state import Evaluation, RunState
from transect.hpc.values import number

# Benchmarks whose `eval_accuracy` is an error rate, a loss or a distance: lower is better.
_ERRORS = re.compile(r"rnnt|rnn_speech|gpt3|llama|flux|cosmoflow|oc20|ocp$|open_?catalyst|retro|moe|mixtral|deepseek")
_LOWER = re.compile(r"error|wer|loss|perplexity|fid", re.IGNORECASE)
_HIGHER = re.compile(r"clip|map|bleu|bbox|segm|hit|lddt", re.IGNORECASE)
# The loosest target that any version of the closed division had (mlcommons/training_policies).
_TARGETS = {
    "resnet": 0.749,
    "ssd": 0.212,
    "maskrcnn": 0.339,
    "bert": 0.712,
    "dlrm": 0.80,
    "dlrm_dcnv2": 0.80,
    "rnnt": 0.058,
    "unet3d": 0.85,
    "minigo": 0.40,
    "ncf": 0.635,
    "gpt3": 2.69,
    "llama2_70b_lora": 0.925,
    "cosmoflow": 0.124,
    "deepcam": 0.82,
    "oc20": 0.036,
    "openfold": 0.8,
}
# Seconds: 31 years.
TIME_LIMIT = 1_000_000_000
# A quality is computed in float32 and compared there: a target printed in float64 is missed by this much.
_ROUNDING = 2.0**-22


def direction_of(benchmark: str, evaluation: Evaluation) -> Direction:
    """Tell which way a quality is better: by its own name, else by the benchmark."""
    for name in (evaluation.label, evaluation.key):
        if _LOWER.search(name):
            return Direction.LOWER
        if _HIGHER.search(name):
            return Direction.HIGHER
    if negated(benchmark, evaluation):
        return Direction.HIGHER
    return Direction.LOWER if _ERRORS.match(benchmark) else Direction.HIGHER


def negated(benchmark: str, evaluation: Evaluation) -> bool:
    """Tell whether an error rate is logged with its sign changed, so that higher is better.

    MLPerf HPC 1.0 has CosmoFlow submissions that log `eval_accuracy` so.
    """
    negative = evaluation.value is not None and evaluation.value < 0
    return negative and "accuracy" in evaluation.key and bool(_ERRORS.match(benchmark))


def _misses(benchmark: str, evaluation: Evaluation, target: float) -> bool:
    assert evaluation.value is not None
    room = _ROUNDING * abs(target)
    if negated(benchmark, evaluation):
        return -evaluation.value > abs(target) + room
    if direction_of(benchmark, evaluation) is Direction.LOWER:
        return evaluation.value > target + room
    return evaluation.value < target - room


def judge(draft: Draft, state: RunState, final: list[Evaluation], took: Decimal | None) -> None:
    """Climb the ladder; the draft's variant is the benchmark's name."""
    started = "run_start" in state.counts
    if not state.stopped:
        draft.mark_truncated("after run_start, without run_stop" if started else "before run_start")
    if not started:
        missing = "run_stop without run_start: the head of the log is missing"
        draft.set_status(RunStatus.TRUNCATED, missing)
    status = state.status
    if status is not None and status != "success":
        stop = f": {draft.stop}" if draft.stop else ""
        draft.set_status(RunStatus.FAILED, f"run_stop says status '{status}'{stop}")
    if took is None:
        zero = sorted({key for key in state.zero_times if key.startswith("run_")})
        what = f"the time of {' and '.join(zero)} is 0" if zero else "a time is broken"
        draft.mark_invalid(f"no time to train: {what}")
    else:
        span = f"run_stop minus run_start = {took:f} s"
        if not 0 < took < TIME_LIMIT:
            draft.mark_invalid(f"{span} is outside (0, {TIME_LIMIT:g}] s")
        if state.wall and (spent := number(state.wall)) is not None and spent + 2 < float(took):
            draft.mark_invalid(f"{span}, but the whole script took {state.wall} s (RESULT)")
    target = number(state.target) if state.target else None
    if draft.ok:
        _judge_quality(draft, status, final, target)


def _judge_quality(draft: Draft, status: str | None, final: list[Evaluation], target: float | None) -> None:
    benchmark = draft.variant
    claims = "run_stop says 'success'" if status else "run_stop without a status"
    for evaluation in final:
        name = f"{evaluation.key} {evaluation.label}".strip()
        if evaluation.value is None:
            draft.mark_invalid(f"{claims}, but the last {name} is {evaluation.printed or 'missing'}")
            return
        signed = "perplexity" in name or "loss" in name or negated(benchmark, evaluation)
        if evaluation.value < 0 and not signed:
            draft.mark_invalid(f"the last {name} = {evaluation.printed} is negative")
            return
        if evaluation.late:
            draft.suspicions.append(f"{name} = {evaluation.printed} was evaluated after run_stop")
    if target is not None and len(final) == 1 and _misses(benchmark, final[0], target):
        what = f"the last {final[0].key} {final[0].printed} misses the target {target:g}"
        draft.mark_invalid(f"{claims}, but {what}")
        return
    if status is None:
        reached = "" if target is None else "; the target was reached"
        draft.warnings.append(f"run_stop states no status{reached}")
    usual = _TARGETS.get(benchmark)
    if target is None and usual is not None and len(final) == 1:
        evaluation = final[0]
        # A share may be printed in percent, and then says nothing here.
        if _misses(benchmark, evaluation, usual) and (evaluation.value or 0) <= max(usual, 1):
            misses = f"misses the usual target {usual:g}"
            draft.suspicions.append(f"the last {evaluation.key} {evaluation.printed} {misses}")
    if not final:
        draft.warnings.append("no evaluation between run_start and run_stop")
