"""The state of one MLPerf run, gathered from its events."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal

from transect.domain.metrics import Direction
from transect.hpc.base import Parameter
from transect.hpc.parsers._learning import Digits, Samples, add_parameter, is_error, literal
from transect.hpc.parsers._mlperf_events import Event
from transect.hpc.text import Line, excerpt
from transect.hpc.values import number

_EVALUATION = re.compile(
    r"(?:eval|val|validation)_(?:accuracy|error|wer|bleu|map|fid|clip|loss|perplexity|hit_rate|score)$"
    r"|average_lddt_ca$|avg_lddt_ca$"
)
_PROGRESS = re.compile(r"(?:epoch|block|eval)_(?:start|stop)$|train_(?:loop|epoch)$")
_OPENERS = ("cache_clear", "run_clear_caches", "init_start", "submission_benchmark", "run_start")
_NO_PARAMETER = re.compile(
    r"(?:cache_clear|run_clear_caches|weights_initialization|tracked_stats|throughput|deferred"
    r"|run_final|power_\w+|eval_target|quality_target)$|\w+_(?:start|stop)$|train_(?:loop|epoch)$"
)
# A rank repeats what another has logged within this time.
_REPEATED_S = 30
# And begins to set up within this time.
_SETUP_S = 600


@dataclass(slots=True)
class Evaluation:
    """One evaluation of the model during training."""

    key: str
    label: str
    printed: str
    value: float | None
    epoch: str
    time: Decimal | None
    late: bool  # after run_stop


@dataclass(slots=True)
class RunState:
    """One run, from its first event on."""

    line: int
    rank: int | None = None
    benchmark: str = ""
    version: str = ""
    times: dict[str, list[Decimal]] = field(default_factory=dict)  # key -> [first, last]
    counts: dict[str, int] = field(default_factory=dict)
    parameters: dict[str, Parameter] = field(default_factory=dict)
    seeds: list[str] = field(default_factory=list)
    evaluations: list[Evaluation] = field(default_factory=list)
    seen: set[tuple[str, ...]] = field(default_factory=set)
    deferred: dict[str, Evaluation] = field(default_factory=dict)
    evaluated: int = 0
    rates: dict[str, Samples] = field(default_factory=dict)
    status: str | None = None
    stopped: bool = False
    progressed: bool = False
    target: str = ""
    zero_times: list[str] = field(default_factory=list)
    broken: int = 0
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    wall: str = ""  # seconds of the line RESULT of run_and_time.sh

    def goes_on(self, before: RunState) -> bool:
        """Tell whether this is no run but what another rank, or a script, logged after run_stop.

        There is no run_start in it, and it stopped when the run before it did. What begins to set up
        after that, and never stops, is a run that died before its run_start.
        """
        stop = before.times.get("run_stop")
        if "run_start" in self.counts or not before.stopped or stop is None:
            return False
        if self.benchmark not in ("", before.benchmark):
            return False
        mine, set_up = self.times.get("run_stop"), self.times.get("init_start")
        if mine is None and set_up is not None and set_up[0] > stop[1]:
            return False
        return mine is None or abs(mine[1] - stop[1]) <= _REPEATED_S

    def begun(self) -> bool:
        return bool(self.counts)

    def starts_anew(self, event: Event, rank: int | None) -> bool:
        """Tell whether an event belongs to the next run, not to another rank of this one."""
        if event.key not in _OPENERS:
            return False
        if not (self.stopped or self.progressed):
            return self._died_in_setup(event)
        if event.zero_time:
            # An event without a time may stand anywhere. It belongs to the present run, unless that is over
            # and has its benchmark already: then to the next.
            return self.stopped and event.key == "submission_benchmark" and bool(self.benchmark)
        if self.stopped:
            if event.key == "submission_benchmark" and not self.benchmark:
                return False
            # A rank with a label may come late. Without one: the next of several files.
            last = self.times.get("run_stop")
            another_rank = rank is not None and rank != self.rank
            return not (another_rank and last and event.time is not None and event.time < last[1])
        before = self.times.get(event.key)
        if before is None or event.time is None:
            return False
        return event.time - before[1] > _REPEATED_S

    def _died_in_setup(self, event: Event) -> bool:
        """Tell whether the run ended before it made a step, and the setup begins once more.

        Ranks set up at about the same time: an error in between, or a long while, parts two runs.
        """
        before = self.times.get(event.key)
        if before is None or event.time is None or event.key == "run_start":
            return False
        return event.time - before[1] > (_REPEATED_S if self.errors else _SETUP_S)


def read_other(state: RunState, line: Line) -> None:
    """Take in a line that is no event: an error, or what the start script says at its end."""
    text = line.text.strip()
    if text.startswith("RESULT,"):
        cells = text.split(",")
        if len(cells) > 3 and cells[3].strip().isdigit():
            state.wall = cells[3].strip()[:18]
    elif is_error(text) and len(state.errors) < 3:
        state.errors.append(excerpt(text))


def take(state: RunState, event: Event) -> None:
    key = event.key
    if event.broken:
        state.broken += 1
        if not key:
            return
    state.counts[key] = state.counts.get(key, 0) + 1
    state.version = state.version or event.version
    state.benchmark = state.benchmark or event.benchmark
    if event.zero_time:
        state.zero_times.append(key)
    if event.time is not None:
        both = state.times.setdefault(key, [event.time, event.time])
        both[0], both[1] = min(both[0], event.time), max(both[1], event.time)
    if _PROGRESS.match(key):
        state.progressed = state.progressed or "run_start" in state.counts
    if key == "run_stop":
        _stop(state, event)
    elif key == "deferred":
        if (waiting := state.deferred.pop(event.settles, None)) is not None:
            waiting.printed = str(event.value)
            waiting.value = number(waiting.printed)
    elif _EVALUATION.match(key):
        _evaluate(state, event)
    elif key in ("throughput", "tracked_stats"):
        _rate(state, event)
    else:
        _parameter(state, event)


def _stop(state: RunState, event: Event) -> None:
    state.stopped = True
    status = event.metadata.get("status", event.value)
    if "success" in event.metadata:
        # 0.5: a boolean, or the word for it.
        truth = str(event.metadata["success"]).strip().lower()
        status = "success" if truth in ("true", "1") else "aborted"
    # An aborted rank outweighs the others.
    if isinstance(status, str) and not isinstance(status, Digits) and state.status in (None, "success"):
        state.status = excerpt(status, 60).lower()


def _evaluate(state: RunState, event: Event) -> None:
    epoch = ""
    for name in ("epoch_num", "samples_count", "epoch", "iteration", "step_num"):
        if isinstance(event.metadata.get(name), Digits):
            epoch = str(event.metadata[name])[:40]
            break
    counted = False
    for part, value in _parts(state, event.value).items():
        label = part or str(event.metadata.get("metric") or "")
        # The transformer of 0.6 quotes its numbers.
        settled = isinstance(value, Digits) or (isinstance(value, str) and number(value) is not None)
        if not settled and not event.settles:
            continue
        printed = str(value)[:60] if settled else ""
        signature = (event.key, label, epoch or str(event.time), printed, event.settles)
        if signature in state.seen:
            continue  # printed twice, or by several ranks
        state.seen.add(signature)
        evaluation = Evaluation(
            key=event.key,
            label=excerpt(label, 40),
            printed=printed,
            value=number(printed),
            epoch=epoch,
            time=event.time,
            late=state.stopped,
        )
        state.evaluated += not counted  # one evaluation, however many qualities it has
        counted = True
        if event.settles and not settled:
            state.deferred[event.settles] = evaluation
        state.evaluations.append(evaluation)


def _parts(state: RunState, value: object) -> dict[str, object]:
    """Return the values of one evaluation by their names, "" for the only one."""
    if isinstance(value, dict):
        inner = list(value.values())
        # Mask R-CNN of 0.6 in PyTorch: {"accuracy": {"BBOX": ..., "SEGM": ...}}.
        return inner[0] if len(inner) == 1 and isinstance(inner[0], dict) else value
    if isinstance(value, list):
        # Mask R-CNN of 0.6 in TensorFlow: its two accuracies without the names that PyTorch's gives them.
        mask = state.benchmark.startswith("mask") and len(value) == 2
        names = ("BBOX", "SEGM") if mask else [str(place) for place in range(1, len(value) + 1)]
        return dict(zip(names, value, strict=True))
    return {"": value}


def _rate(state: RunState, event: Event) -> None:
    values = event.value if isinstance(event.value, dict) else {event.key: event.value}
    for name, value in values.items():
        if isinstance(value, Digits) and re.search(r"throughput|per_sec|_sec$|ips$", name):
            label = excerpt(name, 60)
            state.rates.setdefault(label, Samples("1/s", Direction.HIGHER)).add(value[:60])


def _parameter(state: RunState, event: Event) -> None:
    key = event.key
    if key == "submission_benchmark" and isinstance(event.value, str):
        state.benchmark = excerpt(event.value, 60).lower()
    elif key in ("eval_target", "quality_target", "target_quality") and event.value is not None:
        state.target = str(event.value)[:40]
    if key in ("seed", "run_set_random_seed"):
        seed = excerpt(str(event.value), 40)
        if seed not in state.seeds:
            state.seeds.append(seed)
    if _NO_PARAMETER.match(key):
        return
    value = literal(event.value)
    before = state.parameters.get(key)
    if key == "global_batch_size" and before is not None and before != value:
        state.warnings = [*state.warnings, f"{key} is {before}, later {value}"][:20]
    add_parameter(state.parameters, key, value)
