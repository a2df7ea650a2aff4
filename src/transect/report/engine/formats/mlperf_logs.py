"""Training runs as MLPerf's logs, in the lines of MLCommons' `mllog` (:::MLLOG and a JSON object).

One file for each run, `results/SERIES/WORKLOAD/result_REPEAT.txt`, as submissions lay them out. As in MLPerf a run
ends where its target is reached: what was trained after that stands in the record alone. The durations are those
that were measured; the clock is set by the record's start and what it took to begin.

MLCommons' checker knows a benchmark by a file of rules, and stops without one. `rules/open_WORKLOAD.yaml` is that file:
beside those of the checker, in its `training_6.1.0/`, it says what a run of this workload has to hold.

Keys: mlperf_logging/mllog/constants.py of https://github.com/mlcommons/logging; what a log has to hold:
mlperf_logging/compliance_checker/training_6.1.0/common.yaml there.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Sequence
from functools import partialmethod
from pathlib import Path
from typing import Any

from transect import __version__
from transect.domain.errors import BadInput
from transect.domain.precisions import find_precision
from transect.report.engine.formats import REPORT_FORMATS, Contents, ReportFormat
from transect.report.engine.formats._runs import Run, as_name, read_runs
from transect.report.engine.report import Made
from transect.report.engine.text import clean

_FILE = "/".join(Path(__file__).parts[-5:])
# The names that MLPerf has for hyper-parameters, by ours.
_PARAMETERS = {
    "learning_rate": "opt_base_learning_rate",
    "momentum": "opt_momentum",
    "weight_decay": "opt_weight_decay",
    "warmup_steps": "opt_learning_rate_warmup_steps",
}
_PRECISIONS = {"float64": "fp64", "float32": "fp32", "float16": "fp16", "bfloat16": "bfloat16"}
_ADAM = {"beta1": "opt_adam_beta_1", "beta2": "opt_adam_beta_2", "epsilon": "opt_adam_epsilon"}


@REPORT_FORMATS.register("mlperf-logs")
class MlperfLogs(ReportFormat):
    """Training runs as MLPerf logs, for MLCommons' own parsers and checker."""

    place = "mlperf-logs/"
    needs: Sequence[str] = ()

    def contents(self, made: Made) -> Contents:
        """Write a log for every training that ended well and had a target."""
        left_out: list[str] = []
        files = {}
        for run in read_runs(made, left_out):
            if run.target is None:
                left_out.append(f"train/{run.record.cell_id}: it has no quality target, which MLPerf's runs have")
                continue
            workload = as_name(run.record.cell.workload or "workload")
            files[f"rules/open_{workload}.yaml"] = _rules(run, workload).encode()
            place = f"results/{as_name(run.series)}/{workload}/result_{run.record.cell.repeat}.txt"
            files[place] = _log(run).encode("utf-8", "replace")
        return Contents(files=files, left_out=left_out)


class _Lines:
    """Collects the lines of one log; each knows the line of ours that wrote it, as mllog's do."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def _add(self, kind: str, seconds: float, key: str, value: Any = None, **metadata: Any) -> None:
        frame = inspect.currentframe()
        caller = frame.f_back if frame else None
        event = {
            "namespace": "",
            # mllog has whole milliseconds; its readers take any number, and our runs are short.
            "time_ms": round(1e3 * seconds, 3),
            "event_type": kind,
            "key": key,
            "value": clean(value) if isinstance(value, str) else value,
            "metadata": {"file": _FILE, "lineno": caller.f_lineno if caller else 0, **metadata},
        }
        self.lines.append(f":::MLLOG {json.dumps(event, allow_nan=False)}\n")

    event = partialmethod(_add, "POINT_IN_TIME")
    start = partialmethod(_add, "INTERVAL_START")
    stop = partialmethod(_add, "INTERVAL_END")


def _log(run: Run) -> str:
    log = _Lines()
    _head(log, run)
    log.start(run.started, "init_start")
    log.stop(run.touched, "init_stop")
    log.start(run.touched, "run_start")
    last = run.reached or len(run.scores)
    for epoch in range(1, last + 1):
        begin = run.began + (run.epoch_ends[epoch - 2] if epoch > 1 else 0.0)
        # A rank's steps, then the evaluation: the slowest rank's steps may seem to take longer than the epoch.
        end = run.began + run.epoch_ends[epoch - 1]
        trained = min(begin + sum(run.of_epoch(run.steps, epoch)), end)
        log.start(begin, "block_start", first_epoch_num=epoch, epoch_count=1)
        log.start(begin, "epoch_start", epoch_num=epoch)
        log.stop(trained, "epoch_stop", epoch_num=epoch)
        log.start(trained, "eval_start", epoch_num=epoch)
        log.event(end, "eval_accuracy", run.scores[epoch - 1], epoch_num=epoch, metric=run.score)
        log.stop(end, "eval_stop", epoch_num=epoch)
        log.stop(end, "block_stop", first_epoch_num=epoch, epoch_count=1)
    log.stop(
        run.began + run.epoch_ends[last - 1],
        "run_stop",
        epoch_num=last,
        status="success" if run.reached else "aborted",
        epochs_of_the_record=len(run.scores),
    )
    return "".join(log.lines)


def _rules(run: Run, workload: str) -> str:
    """Return what MLCommons' checker asks of a workload's runs, in its own language.

    The name, which no list of MLPerf's has, the target, and that a run is a success only where it reached it.
    """
    better = "<=" if run.lower_is_better else ">="
    rules = [
        {"BEGIN": {"CODE": "s.update({'reached': False})"}},
        {"KEY": {"NAME": "submission_benchmark", "REQ": "EXACTLY_ONE", "CHECK": f"v['value'] == {workload!r}"}},
        {"KEY": {"NAME": "quality_target", "REQ": "EXACTLY_ONE", "CHECK": f"v['value'] == {run.target!r}"}},
        {"KEY": {"NAME": "global_batch_size", "REQ": "EXACTLY_ONE", "CHECK": "v['value'] > 0"}},
        {
            "KEY": {
                "NAME": "eval_accuracy",
                "REQ": "AT_MIN_ONE",
                "CHECK": "'epoch_num' in v['metadata']",
                "POST": f"s['reached'] = s['reached'] or v['value'] {better} {run.target!r}",
            }
        },
        {
            "KEY": {
                "NAME": "run_stop",
                "REQ": "EXACTLY_ONE",
                "CHECK": "v['metadata']['status'] == ('success' if s['reached'] else 'aborted')",
            }
        },
    ]
    # JSON is YAML; nothing in a name can end a string of either.
    return "".join(f"- {json.dumps(rule)}\n" for rule in rules)


def _head(log: _Lines, run: Run) -> None:
    """Write what describes a run, before its time begins."""
    record, at = run.record, run.started
    system = record.provenance.get("system")
    platform = system.get("name") if isinstance(system, dict) else None
    log.event(at, "cache_clear", False, reason="transect does not clear caches")
    log.event(at, "submission_benchmark", as_name(record.cell.workload or "workload"), transect=__version__)
    log.event(at, "submission_org", "none: not submitted to MLPerf")
    log.event(at, "submission_division", "open")
    log.event(at, "submission_status", "research")
    log.event(at, "submission_platform", str(platform or record.provenance.get("host") or "unknown"))
    log.event(at, "submission_entry", clean(f"train/{record.cell_id}"), ranks=record.cell.ranks)
    given = {
        "seed": run.seed,
        "global_batch_size": run.global_batch,
        "train_samples": run.train_samples,
        "eval_samples": run.eval_samples,
    }
    for key, value in given.items():
        if value is not None:
            log.event(at, key, value)
    log.event(at, "quality_target", run.target, metric=run.score)
    parameters = record.parameters
    if isinstance(parameters.get("optimiser"), str):
        log.event(at, "opt_name", parameters["optimiser"])
    names = _PARAMETERS | (_ADAM if "adam" in str(parameters.get("optimiser")) else {})
    for name, key in names.items():
        if isinstance(parameters.get(name), (int, float)):
            log.event(at, key, parameters[name])
    _parallel(log, run)


def _parallel(log: _Lines, run: Run) -> None:
    """Write how a run was divided, and in which precisions; what it does not do is 1, as MLPerf asks."""
    record, at = run.record, run.started
    value = record.details.get("layout")
    layout = value if isinstance(value, dict) else {}
    parts = {name: layout.get(name) for name in ("replicas", "model_parts", "micro_batches")}
    replicas, model_parts, pieces = (v if isinstance(v, int) and v > 0 else 1 for v in parts.values())
    log.event(at, "gradient_accumulation_steps", pieces)
    log.event(at, "micro_batch_size", math.ceil(run.global_batch / (replicas * pieces)))
    log.event(at, "pipeline_parallelism", model_parts)
    for kind in ("tensor", "context", "expert"):
        log.event(at, f"{kind}_parallelism", 1)
    log.event(at, "config_filename", clean(f"train/{record.cell_id}/spec.json"))
    try:
        precision = find_precision(record.cell.precision)
    except BadInput:
        return  # a plug-in's: nobody here knows what it is
    for place, name in (("linear", precision.multiplied), ("attn", precision.multiplied), ("comm", precision.array)):
        log.event(at, f"lowest_numerical_precision_in_{place}", _PRECISIONS[name])
