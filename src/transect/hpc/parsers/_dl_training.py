"""The state of one training, gathered from its log whichever program wrote that, and the run made of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from transect.domain.metrics import Direction
from transect.hpc.base import LogMetric, Normalised, Parameter, Run
from transect.hpc.block import Block
from transect.hpc.draft import Draft
from transect.hpc.parsers._learning import Samples, add_parameter, implausible
from transect.hpc.text import excerpt
from transect.hpc.values import contradiction, log_metric, number

HIGHER, LOWER, NEUTRAL = Direction.HIGHER, Direction.LOWER, Direction.NEUTRAL

# The first of these that appears in a log names its variant: the others print inside of it.
_VARIANTS = (
    "megatron",
    "hf-trainer",
    "fairseq",
    "dllogger",
    "neuron",
    "nvidia-bert-tensorflow",
    "mxnet",
    "torchtitan",
    "fsdp-example",
    "deepspeed",
    "tensorflow",
)
_SAMPLES = re.compile(r"(?:img|image|sample|sentence|sequence|example|seq)s?(?:/|_per_|\b)|ips$")
_NO_SAMPLES = re.compile(r"token|word|frame|char|mel|byte|flop|item|it/s|iter|step")
_RATE = re.compile(r"(?:^|[._\s])(?:\w*ips|throughput\w*|\w*throughput|fps)$|/s(?:ec)?$|per_sec", re.IGNORECASE)
Step = tuple[int, ...]


def hours(printed: str) -> float | None:
    """Read `1 day, 2:03:04.50` or `0:12:03.45` in seconds; None when it is something else."""
    match = re.fullmatch(r"(?:(\d{1,5}) days?, )?(\d{1,6}):(\d\d):(\d\d(?:\.\d{1,9})?)", printed)
    if match is None:
        return None
    return int(match[1] or 0) * 86400 + int(match[2]) * 3600 + int(match[3]) * 60 + float(match[4])


def rate_of(name: str, unit: str) -> tuple[str, str | None] | None:
    """Return unit and metric of the registry for a key that is a rate; None for other keys.

    A bare `throughput` without a unit may count anything: it is normalised by nobody.
    """
    if not _RATE.search(name) and not _RATE.search(unit):
        return None
    text = f"{unit} {name}".lower()
    if _NO_SAMPLES.search(text):
        return unit or "1/s", None
    return unit or "1/s", "samples_per_second" if _SAMPLES.search(text) else None


@dataclass(slots=True)
class Training:
    """One training, from its first line on."""

    line: int
    rank: int | None = None
    variants: set[str] = field(default_factory=set)
    version: str = ""
    parameters: dict[str, Parameter] = field(default_factory=dict)
    series: dict[str, Samples] = field(default_factory=dict)
    results: dict[str, LogMetric] = field(default_factory=dict)
    # Running averages: only the last one becomes a result.
    running: dict[str, tuple[str, str, Direction, str | None]] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)  # of DLLogger's metadata
    first_step: Step = ()
    last_step: Step = ()
    steps: int = 0
    planned: int | None = None
    planned_what: str = "steps"
    ended: str = ""
    expects_end: str = ""  # the line that should end it
    work: tuple[float, str, str, str] | None = None  # work, rate, time, unit: to be compared
    contradictions: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    reader: int = 0  # which reader took the last line: most logs are of one kind
    previous: str = ""  # the last line: logs of several handlers print all twice

    def begun(self) -> bool:
        return bool(self.steps or self.results or self.ended)

    def restarts(self, step: Step) -> bool:
        """Tell whether a step belongs to the next training: it counts from the start again."""
        if not self.last_step or len(step) != len(self.first_step):
            return bool(self.ended) and self.steps > 0
        return step <= self.first_step < self.last_step or (bool(self.ended) and step <= self.last_step)

    def at(self, step: Step, planned: int | None = None, what: str = "steps") -> None:
        """Note that a step was made, of as many as the line says."""
        self.steps += 1
        self.first_step = self.first_step or step
        self.last_step = max(self.last_step, step) if self.last_step else step
        if planned is not None:
            self.planned, self.planned_what = planned, what

    def point(self, name: str, printed: str, unit: str, direction: Direction, registered: str | None = None) -> None:
        self.series.setdefault(excerpt(name, 60), Samples(unit, direction, registered)).add(printed)

    def result(self, name: str, printed: str, unit: str, direction: Direction, registered: str | None = None) -> None:
        """Set a number that stands for the whole training; a later one takes its place."""
        metric = log_metric(excerpt(name, 60), printed, unit, direction)
        if metric is None:
            if (seconds := hours(printed)) is not None:
                metric = LogMetric(name=name, value=seconds, printed=printed, unit="s", direction=direction)
            else:
                if number(printed) is None:
                    self.contradictions.append(f"{excerpt(name, 60)} is {excerpt(printed, 40)}")
                return
        if registered is not None:
            # Rates count per second and times are in seconds, whatever their units are called.
            base = "s" if metric.unit == "s" else "1" if metric.unit == "1" else "1/s"
            value = Normalised(name=registered, value=metric.value, unit=base)
            metric = replace(metric, normalised=value)
        self.results[name] = metric

    def parameter(self, key: str, value: Parameter | None) -> None:
        add_parameter(self.parameters, key, value)


def _metrics(training: Training) -> list[LogMetric]:
    metrics = list(training.results.values())
    for name, samples in training.series.items():
        plain = Samples(samples.unit, samples.direction, None, samples.kept, samples.count, samples.last)
        several = plain.metrics(name)
        if several and samples.registered is not None:
            first = several[0]
            factor, base = {"ms": (1e-3, "s"), "s": (1.0, "s"), "1": (1.0, "1")}.get(samples.unit, (1.0, "1/s"))
            several[0] = replace(
                first, normalised=Normalised(name=samples.registered, value=first.value * factor, unit=base)
            )
        metrics += several
    out: list[LogMetric] = []
    taken: set[str] = set()
    for metric in metrics:  # a summary outranks the median of the steps
        again = metric.normalised is not None and metric.normalised.name in taken
        if metric.normalised is not None:
            taken.add(metric.normalised.name)
        out.append(replace(metric, normalised=None) if again else metric)
    return out


def finish(block: Block, training: Training) -> Run:
    counted = any(samples.registered == "samples_per_second" for samples in training.series.values())
    for name, (printed, unit, direction, registered) in training.running.items():
        # DeepSpeed's timer inside of Megatron leaves pipeline stages out: ten times what the batches
        # over their time are.
        training.result(name, printed, unit, direction, None if counted else registered)
    variant = next((v for v in _VARIANTS if v in training.variants), "")
    draft = Draft(
        block=block,
        line=training.line,
        variant=variant,
        version=training.version,
        parameters=dict(training.parameters),
        metrics=_metrics(training),
        samples={name: samples.series() for name, samples in training.series.items() if samples.kept},
        warnings=training.warnings[:10],
        stops=[block.take_trouble(), *training.errors[:3]],
    )
    others = sorted(training.variants - {variant})
    if others:
        draft.parameters["also_prints"] = others
    if training.last_step:
        draft.parameters["last_step"] = ", ".join(str(part) for part in training.last_step)
    if training.planned is not None:
        draft.parameters[f"planned_{training.planned_what}"] = training.planned
    if training.rank is not None:
        draft.parameters["rank"] = training.rank
    _judge(draft, training)
    for name, samples in training.series.items():
        draft.warnings += samples.warnings(name)
        if samples.broken and not samples.last_broken:
            draft.warnings.append(f"{name} was {samples.broken} in between")
    draft.warnings = draft.warnings[:20]
    return draft.run()


def _judge(draft: Draft, training: Training) -> None:
    done, planned = training.last_step, training.planned
    made = (done[0] if training.planned_what == "epochs" else done[-1]) if done else 0
    at = f"step {', '.join(map(str, done))}" if done else "the first step"
    short = planned is not None and made < planned and not training.ended
    if not training.ended and (short or training.expects_end or not training.begun()):
        of = f" of {planned} {training.planned_what}" if planned is not None else ""
        complete = planned is not None and not short and done and not training.expects_end
        if draft.stop or not complete:
            lacks = f", without '{training.expects_end}'" if training.expects_end else ""
            draft.mark_truncated(f"after {at}{of}" if done else f"before {at}", lacks=lacks)
    for name, samples in training.series.items():
        if samples.last_broken:
            draft.mark_invalid(f"{name} is {samples.broken} in the end")
    draft.mark_invalid(next(iter(training.contradictions), None))
    rates = (
        metric
        for metric in draft.metrics
        if metric.normalised is not None or metric.unit in ("s", "ms") or metric.unit.endswith(("/s", "/sec"))
    )
    draft.mark_impossible(rates, why=implausible)
    if draft.ok and training.work is not None:
        draft.mark_invalid(contradiction(*training.work))
    if draft.ok and not training.ended and planned is None:
        if draft.stop:
            draft.mark_truncated(f"after {at}")
        else:
            draft.warnings.append("the log does not say whether the training ended")
