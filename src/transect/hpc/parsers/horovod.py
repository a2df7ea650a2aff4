"""Horovod's synthetic benchmarks for PyTorch, TensorFlow and Keras, and programs made from them.

`Img/sec per GPU: 1785.2 +-3.1`: the mean of the iterations and 1.96 times the standard deviation
of these samples (np.std). It is the spread of single iterations, no interval of the mean. Keras
leaves the first iteration out of both.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from transect.domain.metrics import Direction
from transect.hpc.base import PARSERS, Proof, Run
from transect.hpc.draft import Draft
from transect.hpc.parsers._learning import ERRORS, LOGGED, LoggedOutput, Samples
from transect.hpc.rules import OutputParser, notes, rule
from transect.hpc.text import Line
from transect.hpc.values import UNCUT, number

_UNIT = r"(?:[Ii]mg|[Ii]mages|[Ss]amples|[Ss]entences|[Ss]equences|[Tt]okens)/sec"
_DEVICE = r"[\w/:.\-]{1,30}?"
_MODEL = re.compile(r"Model: {1,3}(\S.{0,120})$")
_COUNT = re.compile(rf"Number of ({_DEVICE})s: {{1,3}}(\d{{1,9}})\b")
_ITERATION = re.compile(rf"Iter #(\d{{1,9}}): {{1,3}}({UNCUT}) ({_UNIT})(?P<per> per)?(?: ({_DEVICE}))?(?:,|\s|$)")
_EACH = re.compile(rf"({_UNIT}) per ({_DEVICE}): {{1,3}}({UNCUT})(?: ?\+-? ?({UNCUT}))?")
_RESULTS = (
    r"Number of (?:GPU|CPU|TPU|HPU|XPU|/gpu:\d|/cpu:\d)s: \d"
    r"|Iter #\d{1,9}: [^\n]{1,40}/sec"
    rf"|{_UNIT} per {_DEVICE}: |Total {_UNIT} on \d{{1,9}} "
)
_SAMPLES_UNITS = ("img", "images", "samples", "sentences", "sequences")


@dataclass(kw_only=True)
class _Output(LoggedOutput):
    """What one run has printed so far."""

    iterations: Samples = field(default_factory=lambda: Samples("img/sec", Direction.HIGHER))
    iterations_of_all: bool = False
    each: tuple[str, ...] | None = None  # unit, device, mean, spread
    total: tuple[str, ...] | None = None  # unit, devices, device, mean, spread
    ranks: int = 0  # how many ranks printed their own mean

    def begins(self, text: str) -> bool:
        if not (self.iterations.count or self.each or self.total):
            return False
        if (match := _ITERATION.match(text)) is not None:
            return self.each is not None or (match[1] == "0" and self.iterations.count > 0)
        return _MODEL.match(text) is not None or (self.each is not None and "Running" in text[:8])

    def is_behind(self, text: str) -> bool:
        """Tell whether it has its total: the rest of the file may belong to anything."""
        return self.total is not None and not _EACH.match(text) and not _COUNT.match(text)

    @rule(_ITERATION, behind=LOGGED)
    def iteration(self, match: re.Match[str], line: Line) -> None:
        self.iterations.unit = match[3]
        self.iterations_of_all = match["per"] is None
        self.iterations.add(match[2])

    @rule(rf"Total ({_UNIT}) on (\d{{1,9}}) ({_DEVICE})\(s\): {{1,3}}({UNCUT})(?: ?\+-? ?({UNCUT}))?", behind=LOGGED)
    def sum(self, match: re.Match[str], line: Line) -> None:
        self.total = (match[1], match[2], match[3], match[4], match[5] or "")

    @rule(_EACH, behind=LOGGED)
    def mean(self, match: re.Match[str], line: Line) -> None:
        self.ranks += 1
        self.each = self.each or (match[1], match[2], match[3], match[4] or "")

    @rule(_COUNT, behind=LOGGED)
    def devices(self, match: re.Match[str], line: Line) -> None:
        self.facts.setdefault("device", match[1])
        self.facts.setdefault("devices", int(match[2]))

    batch = notes(r"Batch size: {1,3}(\d{1,9})\b", "batch_size", int, behind=LOGGED)

    model = notes(_MODEL, "model", behind=LOGGED)

    def runs(self) -> Iterator[Run]:
        if not (self.iterations.count or self.each or self.total or self.facts):
            return
        draft = self.draft(
            variant="keras" if _leaves_first_out(self) else "synthetic",
            samples={"iterations": self.iterations.series()} if self.iterations.count else {},
            stops=[self.block.take_trouble(), *self.stops],
        )
        _read_metrics(draft, self)
        if self.total is not None:
            draft.parameters["devices"] = int(self.total[1])
            draft.parameters["device"] = self.total[2]
        draft.parameters["iterations"] = self.iterations.count
        if self.each is not None and self.each[3]:
            draft.warnings.append(
                "the spread is 1.96 standard deviations of single iterations, no interval of the mean"
            )
        if self.ranks > 1:
            draft.warnings.append(f"{self.ranks} ranks print their own rate: the first is kept")
        draft.warnings += self.iterations.warnings("iterations")
        _judge(draft, self)
        yield draft.run()


@PARSERS.register("horovod")
class Horovod(OutputParser):
    """Reads the means, the spread of the iterations and the totals."""

    benchmark = "horovod"
    description = "Horovod's synthetic benchmarks: PyTorch, TensorFlow, Keras and their likes"
    validity_notes = Proof(
        identity="`Model:` with a batch size soon after it, `Iter #0: … /sec`, `Img/sec per GPU:`, `Total img/sec on`",
        success="the total over all devices; a program for one device has only its mean",
        failure="a mean that its iterations refute, a total that the mean times the devices refutes, no number",
    )
    output = _Output
    start_patterns = (
        rf"{LOGGED}(?:"
        # One blank, and the batch size soon after: other programs print models of hardware.
        r"Model: [\w./:\-]{1,120}[ \t]{0,9}"
        r"(?=(?:\n[^\n]{0,200}){0,3}\n[^\n]{0,60}Batch size: \d|\Z)"
        rf"|{_RESULTS})",
    )
    also = (*start_patterns, rf"{LOGGED}Running (?:warmup|benchmark)", *ERRORS)


def _read_metrics(draft: Draft, output: _Output) -> None:
    if output.each is not None:
        unit, _, mean, spread = output.each
        draft.add_metric("per_device", mean, unit)
        draft.add_metric("per_device_spread", spread, unit, Direction.LOWER)
    if output.total is not None:
        unit, _, _, mean, spread = output.total
        counted = unit.split("/")[0].lower() in _SAMPLES_UNITS
        registered = "samples_per_second" if counted else None
        total = draft.add_metric("total", mean, "1/s", registered=registered)
        if total is not None:
            draft.metrics[-1] = replace(total, unit=unit)
        draft.add_metric("total_spread", spread, unit, Direction.LOWER)


def _judge(draft: Draft, output: _Output) -> None:
    if output.each is None and output.total is None:
        draft.mark_truncated(f"after {output.iterations.count} iterations, before the mean")
    for row in (output.each, output.total):
        for cell in row[-2:] if row else ():
            if cell and number(cell) is None:
                draft.mark_invalid(f"not a number in the result: {cell}")
    draft.mark_impossible()
    if draft.ok:
        draft.mark_invalid(_contradicted(output))
    if draft.ok and output.total is None:
        devices = output.facts.get("devices")
        if draft.stop:
            draft.mark_truncated("before the total")
        elif isinstance(devices, int) and devices >= 1:
            draft.mark_incomplete("no total")
        else:
            draft.warnings.append("no total over devices: this program prints one device only")


def _near(printed: str, value: float, slack: float = 1e-3) -> bool:
    """Compare with what a printed number of one or more decimals may stand for."""
    exact = number(printed)
    if exact is None:
        return False
    decimals = len(printed.partition(".")[2].split("e")[0])
    return math.isclose(exact, value, rel_tol=slack, abs_tol=1.1 * 10.0**-decimals)


def _contradicted(output: _Output) -> str | None:
    if output.each is not None and output.total is not None and output.ranks == 1:
        mean, total, count = output.each[2], output.total[3], int(output.total[1])
        # The printed mean is rounded: so is its product, `count` times as much.
        product = (number(mean) or 0.0) * count
        if not _near(total, product, 1e-3 + 0.06 * count / max(product, 1e-9)):
            return f"the total is {total}, but {count} devices of {mean} are {product:.6g}"
    if output.each is None or output.iterations_of_all or output.iterations.broken:
        return None
    kept, mean = output.iterations, output.each[2]
    if kept.count < 2 or kept.count > len(kept.kept) or output.ranks > 1:
        return None
    measured = kept.mean()
    if not _near(mean, measured) and not _leaves_first_out(output):
        return f"the mean is {mean}, but its {kept.count} iterations have {measured:.6g}"
    return None


def _leaves_first_out(output: _Output) -> bool:
    kept = output.iterations
    if output.each is None or len(kept.kept) < 3 or kept.count > len(kept.kept):
        return False
    return not _near(output.each[2], kept.mean()) and _near(output.each[2], kept.mean(1))
