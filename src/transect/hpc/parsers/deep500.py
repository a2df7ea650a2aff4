"""Deep500: the training runner's progress bars (tqdm) and the metrics that it prints at the end.

TrainingAccuracy and TestAccuracy are of the last epoch, in per cent; -1 stands for "never measured"
(lv2/validation/metrics.py). A bar is rewritten in place: only its last state counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from transect.domain.metrics import Direction
from transect.hpc.base import PARSERS, Parameter, Proof, Run, Series
from transect.hpc.draft import Draft
from transect.hpc.parsers._checks import differ
from transect.hpc.rules import Output, OutputParser, keeps, rule
from transect.hpc.text import Line, excerpt
from transect.hpc.values import NUMBER, number

_BAR = re.compile(
    r"(Training \(epoch (\d{1,9})(?:/(\d{1,9}))?\)|Testing):\s*"
    r"(?:\d{1,3}%\|[^|]{0,400}\|\s*)?(\d{1,12})(?:/(\d{1,12}))?(?:it)?\s"
    r"\[([\d:]{4,12})(?:<[\d:?]{1,12})?,\s*(\?|\d{1,12}(?:\.\d{1,6})?)\s?(it/s|s/it)(?:,\s*([^\]]{0,400}))?"
)
_POSTFIX = re.compile(rf"(\w{{1,40}})=({NUMBER})(?:,|$)")
_NAMES = (
    "TrainingAccuracy|TestAccuracy|DatasetAccuracy|WallclockTime|L1Error|L2Error|MaxError"
    "|FrameworkOverhead|OperatorOverhead|CommunicationVolume"
)
_METRIC = re.compile(rf"({_NAMES}):\s*({NUMBER})(?:\s*(%|seconds|ms|us|ns))?\s*$")
_VERSION = re.compile(r"deep500==(\d[\w.]{0,20})")
_SECONDS = {"seconds": "s", "ms": "ms", "us": "us", "ns": "ns"}
_POSTFIXES = {
    "accuracy": ("test_accuracy", "%", Direction.HIGHER),
    "test_loss": ("test_loss", "1", Direction.LOWER),
    "batch_acc": ("batch_accuracy", "%", Direction.HIGHER),
    "loss_avg": ("training_loss", "1", Direction.LOWER),
}


@dataclass(kw_only=True, slots=True)
class _Bar:
    epoch: int | None  # None: a test
    done: int
    total: int
    seconds: int
    rate: str
    unit: str
    postfix: dict[str, str]


@dataclass(kw_only=True)
class _Training(Output):
    """One call of the training loop and the metrics that follow it."""

    epochs: int = 0
    bars: list[_Bar] = field(default_factory=list)
    open_bar: _Bar | None = None
    metrics: list[tuple[str, str, str]] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)

    def begins(self, text: str) -> bool:
        """Tell whether a bar, or a metric once more, belongs to the next training."""
        if not self.metrics or _VERSION.search(text, 0, 400):
            return False
        match = _METRIC.match(text)
        return _BAR.match(text) is not None or (
            match is not None and any(name == match[1] for name, _, _ in self.metrics)
        )

    def following(self, line: Line, text: str) -> _Training:
        return _Training(block=self.block, line=line.number, version=self.version)

    @rule(r".{0,380}?deep500==(\d[\w.]{0,20})", wanted="")
    def version_line(self, match: re.Match[str], line: Line) -> None:
        self.version = self.version or match[1]

    @rule(_BAR, wanted=r"(?:Training \(epoch |Testing:)")
    def bar(self, match: re.Match[str], line: Line) -> None:
        bar = _bar(match)
        if match[3]:
            self.epochs = max(self.epochs, int(match[3]))
        complete = bar.done >= bar.total
        self.open_bar = None if complete else bar
        if complete and bar.rate != "?":
            self.bars.append(bar)

    @rule(_METRIC, wanted=rf"(?:{_NAMES}):")
    def metric(self, match: re.Match[str], line: Line) -> None:
        self.metrics.append((match[1], match[2], match[3] or ""))

    @rule(rf"(?:{_NAMES}):\s*\S.*$", wanted="")
    def bad_metric(self, match: re.Match[str], line: Line) -> None:
        if len(self.bad) < 5:
            self.bad.append(excerpt(match[0]))

    error = keeps(
        r".*Error.*", "stops", wanted=r"(?:RuntimeError|ValueError|AssertionError|ImportError|KeyError|Traceback)\b"
    )

    def runs(self) -> Iterator[Run]:
        if not (self.bars or self.open_bar or self.metrics or self.bad or self.stops):
            return
        parameters: dict[str, Parameter] = {}
        trained = [bar for bar in self.bars if bar.epoch is not None]
        if self.epochs or trained:
            parameters["epochs"] = self.epochs or max(bar.epoch or 0 for bar in trained)
        if trained:
            parameters["batches_per_epoch"] = trained[0].total
        rates = [value for bar in trained if (value := _per_second(bar)) is not None]
        samples = {"training_rate": Series(unit="it/s", values=rates)} if rates else {}
        draft = self.draft(
            variant="training" if self.bars or self.open_bar else "metrics",
            parameters=parameters,
            samples=samples,
            warnings=[],
        )
        _add_metrics(draft, self)
        _judge(draft, self)
        yield draft.run()


def _bar(match: re.Match[str]) -> _Bar:
    seconds = 0
    for part in match[6].split(":"):
        seconds = seconds * 60 + int(part or "0")
    done = int(match[4])
    return _Bar(
        epoch=int(match[2]) if match[2] else None,
        done=done,
        total=int(match[5]) if match[5] else done,
        seconds=seconds,
        rate=match[7],
        unit=match[8],
        postfix=dict(_POSTFIX.findall((match[9] or "").strip())),
    )


@PARSERS.register("deep500")
class Deep500(OutputParser):
    """Reads training loops: rates and accuracies of the epochs, and the final metrics."""

    benchmark = "deep500"
    description = "Deep500: training loops and metrics of the meta-framework"
    validity_notes = Proof(
        identity="a bar `Training (epoch 1/9):` or `Testing:` with `test_loss=`, or the final metrics by name",
        success="the final metrics; where both are there, they agree with the last test's bar",
        failure="an accuracy outside [0, 100] %, never measured (-1) or no number",
    )
    output = _Training
    start_patterns = (
        r"Training \(epoch \d{1,9}(?:/\d{1,9})?\):",
        r"Testing:[ \t]+\d{1,3}%\|",
        r"(?:TrainingAccuracy|TestAccuracy|DatasetAccuracy|WallclockTime):[ \t]+-?\d",
        r"Requirement already satisfied[^\n]{0,60}: deep500==\d",
    )

    def matches(self, line: Line) -> bool:
        """Tell a bar of Deep500 from those of other programs by what it shows behind."""
        text = line.text.strip()
        return not text.startswith("Testing:") or "test_loss=" in text


def _per_second(bar: _Bar) -> float | None:
    value = number(bar.rate)
    if value is None or bar.unit == "it/s":
        return value
    return 1.0 / value if value > 0 else None


def _add_metrics(draft: Draft, training: _Training) -> None:
    lower = Direction.LOWER
    for name, printed, unit in training.metrics:
        if name.endswith("Accuracy") and number(printed) == -1.0:
            draft.warnings.append(f"{name} is -1: it was never measured")
        elif name.endswith("Accuracy"):
            draft.add_metric(name, printed, "%", registered=None if name == "TrainingAccuracy" else "accuracy")
        elif name == "WallclockTime":
            draft.add_metric(name, printed, _SECONDS.get(unit, "s"), registered="benchmark_time")
        else:
            draft.add_metric(name, printed, unit or "1", lower)
    tests = 0
    for bar in training.bars:
        phase = f"epoch {bar.epoch}" if bar.epoch is not None else f"test {tests}"
        which = "training" if bar.epoch is not None else "test"
        tests += bar.epoch is None
        draft.add_metric(f"{which}_rate", bar.rate, bar.unit, None if bar.unit == "it/s" else lower, phase=phase)
        draft.add_metric(f"{which}_time", str(bar.seconds), "s", phase=phase)
        for key, printed in bar.postfix.items():
            if key in _POSTFIXES:
                name, unit, way = _POSTFIXES[key]
                draft.add_metric(name, printed, unit, way, phase=phase)


def _judge(draft: Draft, training: _Training) -> None:
    metrics = draft.metrics
    if training.bad:
        draft.mark_invalid(f"no number: {training.bad[0]}")
    for name, printed, _ in training.metrics:
        if number(printed) is None:
            draft.mark_invalid(f"{name} is {printed}")
    for metric in metrics:
        if metric.unit == "%" and not 0.0 <= metric.value <= 100.0:
            draft.mark_invalid(f"{metric.name} = {metric.printed} % is not within [0, 100]")
    draft.mark_impossible()
    for bar in training.bars:
        if lost := next((f"{k}={v}" for k, v in bar.postfix.items() if number(v) is None), None):
            draft.mark_invalid(f"not a number: {lost}")
    final = [metric for metric in metrics if metric.name.endswith("Accuracy")]
    shown = [metric for metric in metrics if metric.name == "test_accuracy"]
    test = next((metric for metric in final if metric.name == "TestAccuracy"), None)
    # The bar shows three digits.
    if test is not None and shown and differ(test.value, shown[-1].value, 6e-3, 0.06):
        last = f"the last test shows {shown[-1].printed}"
        draft.mark_invalid(f"TestAccuracy is {test.printed}, but {last}")
    names = {name for name, _, _ in training.metrics}
    if any(name.endswith("Accuracy") for name in names) and not final:
        draft.mark_invalid("no accuracy was measured")
    half = "TrainingAccuracy" in names and "TestAccuracy" not in names and bool(shown)
    if not names or not metrics or half:
        done = sum(bar.epoch is not None for bar in training.bars)
        of = f" of {training.epochs}" if training.epochs else ""
        draft.mark_incomplete(f"ends after {done}{of} epochs, before the final metrics")
