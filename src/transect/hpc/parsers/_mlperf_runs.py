"""Puts the events of MLPerf's training logs together to runs, and judges them.

A run's time to train is run_stop minus run_start (MLPerf training rules, "Run results"). The
quality is the last evaluation that was made up to run_stop.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from transect.hpc.base import Parameter, Run, Series
from transect.hpc.block import Block
from transect.hpc.draft import Draft
from transect.hpc.parsers._mlperf_events import MARK, events
from transect.hpc.parsers._mlperf_quality import TIME_LIMIT, direction_of, judge, negated
from transect.hpc.parsers._mlperf_state import Evaluation, RunState, read_other, take
from transect.hpc.values import number

HPC_BENCHMARKS = frozenset(("cosmoflow", "deepcam", "oc20", "open_catalyst", "opencatalyst", "ocp", "openfold"))
_BARE_NUMBER = re.compile(r"[-+]?\d")


def runs_of(block: Block, slug: str) -> Iterator[Run]:
    """Yield the runs of a block; those of a benchmark that is known to be HPC's or not, as such."""
    state = RunState(line=block.first.number, rank=block.first.rank)
    before: RunState | None = None  # over, but for what is logged late
    for line in block:
        if MARK not in line.text:
            read_other(state, line)
            continue
        for event in events(line):
            if state.starts_anew(event, line.rank):
                before, done = _closed(state, before)
                for run in done:
                    yield _finish(block, run, slug)
                state = RunState(line=line.number, rank=line.rank)
            take(state, event)
    if state.begun() or state.broken:
        before, done = _closed(state, before)
        for run in done:
            yield _finish(block, run, slug)
    if before is not None:
        yield _finish(block, before, slug)


def _closed(state: RunState, before: RunState | None) -> tuple[RunState, list[RunState]]:
    """Return the run that may go on, and those that cannot any more."""
    if before is not None and state.goes_on(before):
        before.errors = [*before.errors, *state.errors][:3]
        before.broken += state.broken
        if before.status in (None, "success") and state.status is not None:
            before.status = state.status  # one rank's abort outweighs another's success
        before.warnings = [
            *before.warnings,
            f"{sum(state.counts.values())} events after run_stop, from line {state.line} on",
        ][:20]
        return before, []
    return state, [before] if before is not None else []


def _final(state: RunState) -> list[Evaluation]:
    """Return the last evaluation up to run_stop, one of each key and label."""
    stop = state.times.get("run_stop")
    last: dict[tuple[str, str], Evaluation] = {}
    for evaluation in state.evaluations:
        in_time = not evaluation.late
        if evaluation.late and stop and evaluation.time is not None:
            in_time = evaluation.time <= stop[1]  # printed late, made in time
        evaluation.late = not in_time
        kept = last.get((evaluation.key, evaluation.label))
        if kept is None or kept.late or in_time:
            last[evaluation.key, evaluation.label] = evaluation
    return list(last.values())[:16]


def _add_metrics(draft: Draft, state: RunState, took: Decimal | None, final: list[Evaluation]) -> None:
    reached = state.stopped and state.status in (None, "success")
    for name, span in (
        ("time_to_train", took),
        ("staging_time", _span(state, "staging")),
        ("init_time", _span(state, "init")),
    ):
        if span is None or (name == "init_time" and span < 0):
            continue
        counts = name == "time_to_train" and reached and 0 < span < TIME_LIMIT
        draft.add_metric(name, f"{span:f}", "s", registered="time_to_quality" if counts else None)
    for evaluation in final:
        key, phase = evaluation.key, evaluation.label or None
        share = state.benchmark in ("resnet", "rgat", "gnn") and key == "eval_accuracy"
        fits = share and evaluation.value is not None and 0 <= evaluation.value <= 1
        way, registered = direction_of(state.benchmark, evaluation), "accuracy" if fits else None
        draft.add_metric(key, evaluation.printed, "1", way, registered=registered, phase=phase)
    for name, rate in state.rates.items():
        draft.metrics += rate.metrics(name, normalise=False)


def _span(state: RunState, name: str) -> Decimal | None:
    first, last = state.times.get(f"{name}_start"), state.times.get(f"{name}_stop")
    return last[1] - first[0] if first and last else None


def _finish(block: Block, state: RunState, slug: str) -> Run:
    if state.benchmark:
        known = state.benchmark in HPC_BENCHMARKS
        slug = "mlperf-hpc" if known else "mlperf-training"
    final, took = _final(state), _span(state, "run")
    draft = Draft(
        block=block,
        benchmark=slug,
        line=state.line,
        variant=state.benchmark,
        version=state.version,
        parameters=_parameters(state, final),
        warnings=list(state.warnings),
        stops=[block.take_trouble(), *state.errors],
    )
    _add_metrics(draft, state, took, final)
    judge(draft, state, final, took)
    if state.broken:
        draft.warnings.append(f"{state.broken} lines of MLPerf are cut or broken")
    for evaluation in final:
        if negated(state.benchmark, evaluation):
            draft.suspicions.append(f"the last {evaluation.key} {evaluation.printed} is taken as the negated error")
    others = [k for k in state.zero_times if not k.startswith("run_")]
    if others:
        draft.warnings.append(f"no time in the events {', '.join(sorted(set(others))[:5])}")
    samples = draft.samples
    for evaluation in state.evaluations:
        if evaluation.value is not None:
            name = f"{evaluation.key} {evaluation.label}".strip()
            samples.setdefault(name, Series(unit="1", values=[])).values.append(evaluation.value)
    for name, rate in state.rates.items():
        samples[name] = rate.series()
    draft.warnings, draft.suspicions = draft.warnings[:20], draft.suspicions[:20]
    return draft.run()


def _parameters(state: RunState, final: list[Evaluation]) -> dict[str, Parameter]:
    out: dict[str, Parameter] = {}
    if state.benchmark:
        out["benchmark"] = state.benchmark
    out["evaluations"] = state.evaluated
    if state.status:
        out["run_status"] = state.status
    if state.target:
        out["eval_target"] = state.target
    epoch = final[-1].epoch if final else ""
    if epoch and _BARE_NUMBER.match(epoch):
        out["last_epoch_num"] = epoch
        # Several benchmarks count training samples under this name.
        batch = state.parameters.get("global_batch_size")
        value = number(epoch) or 0.0
        samples = value >= 1000 and (not isinstance(batch, int) or value >= batch)
        out["epoch_num_counts"] = "samples" if samples else "epochs"
    if len(state.seeds) > 1:
        out["seeds"] = state.seeds
    for key, logged in state.parameters.items():
        out.setdefault(key, logged)
    return out
