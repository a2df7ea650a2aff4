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
from transect.hpc.base import PARSERS, Parameter, Parser, Proof, Run
from transect.hpc.block import Block
from transect.hpc.draft import Draft
from transect.hpc.parsers._learning import ERRORS, LOGGED, Samples, is_error, without_prefix
from transect.hpc.rules import searched
from transect.hpc.text import Line, excerpt
from transect.hpc.values import UNCUT, number

_UNIT = r"(?:[Ii]mg|[Ii]mages|[Ss]amples|[Ss]entences|[Ss]equences|[Tt]okens)/sec"
_DEVICE = r"[\w/:.\-]{1,30}?"
_MODEL = re.compile(r"Model: {1,3}(\S.{0,120})$")
_BATCH = re.compile(r"Batch size: {1,3}(\d{1,9})\b")
_COUNT = re.compile(rf"Number of ({_DEVICE})s: {{1,3}}(\d{{1,9}})\b")
_ITERATION = re.compile(rf"Iter #(\d{{1,9}}): {{1,3}}({UNCUT}) ({_UNIT})(?P<per> per)?(?: ({_DEVICE}))?(?:,|\s|$)")
_EACH = re.compile(rf"({_UNIT}) per ({_DEVICE}): {{1,3}}({UNCUT})(?: ?\+-? ?({UNCUT}))?")
_TOTAL = re.compile(rf"Total ({_UNIT}) on (\d{{1,9}}) ({_DEVICE})\(s\): {{1,3}}({UNCUT})(?: ?\+-? ?({UNCUT}))?")
_RESULTS = (
    r"Number of (?:GPU|CPU|TPU|HPU|XPU|/gpu:\d|/cpu:\d)s: \d"
    r"|Iter #\d{1,9}: [^\n]{1,40}/sec"
    rf"|{_UNIT} per {_DEVICE}: |Total {_UNIT} on \d{{1,9}} "
)
_SAMPLES_UNITS = ("img", "images", "samples", "sentences", "sequences")


@dataclass(slots=True)
class _Output:
    """What one run has printed so far."""

    line: int
    parameters: dict[str, Parameter] = field(default_factory=dict)
    iterations: Samples = field(default_factory=lambda: Samples("img/sec", Direction.HIGHER))
    iterations_of_all: bool = False
    each: tuple[str, ...] | None = None  # unit, device, mean, spread
    total: tuple[str, ...] | None = None  # unit, devices, device, mean, spread
    ranks: int = 0  # how many ranks printed their own mean
    errors: list[str] = field(default_factory=list)

    def begun(self) -> bool:
        return bool(self.iterations.count or self.each or self.total)


@PARSERS.register("horovod")
class Horovod(Parser):
    """Reads the means, the spread of the iterations and the totals."""

    benchmark = "horovod"
    description = "Horovod's synthetic benchmarks: PyTorch, TensorFlow, Keras and their likes"
    proof = Proof(
        identity="`Model:` with a batch size soon after it, `Iter #0: … /sec`, `Img/sec per GPU:`, `Total img/sec on`",
        success="the total over all devices; a program for one device has only its mean",
        failure="a mean that its iterations refute, a total that the mean times the devices refutes, no number",
    )
    starts = (
        rf"{LOGGED}(?:"
        # One blank, and the batch size soon after: other programs print models of hardware.
        r"Model: [\w./:\-]{1,120}[ \t]{0,9}"
        r"(?=(?:\n[^\n]{0,200}){0,3}\n[^\n]{0,60}Batch size: \d|\Z)"
        rf"|{_RESULTS})",
    )
    wants = (
        *starts,
        *(f"{LOGGED}(?:{rule})" for rule in searched(_MODEL, _BATCH, _COUNT, _ITERATION, _EACH, _TOTAL)),
        rf"{LOGGED}Running (?:warmup|benchmark)",
        *ERRORS,
    )

    def parse(self, block: Block) -> Iterator[Run]:
        """Yield a run per total, and one for what breaks off before it."""
        output = _Output(line=block.first.number)
        for line in block:
            text = without_prefix(line.text)
            if output.total is not None and not _EACH.match(text) and not _COUNT.match(text):
                # The rest of the file may belong to anything.
                yield _finish(block, output)
                block.pushed_back = line
                return
            if _begins(output, text):
                yield _finish(block, output)
                output = _Output(line=line.number)
            _read(output, line, text)
        if output.begun() or output.parameters:
            yield _finish(block, output)


def _begins(output: _Output, text: str) -> bool:
    if not output.begun():
        return False
    match = _ITERATION.match(text)
    if match is not None:
        return output.each is not None or (match[1] == "0" and output.iterations.count > 0)
    return _MODEL.match(text) is not None or (output.each is not None and "Running" in text[:8])


def _read(output: _Output, line: Line, text: str) -> None:
    parameters = output.parameters
    if line.cut:
        return  # a number may have lost digits
    if (match := _ITERATION.match(text)) is not None:
        output.iterations.unit = match[3]
        output.iterations_of_all = match["per"] is None
        output.iterations.add(match[2])
    elif (match := _TOTAL.match(text)) is not None:
        output.total = (match[1], match[2], match[3], match[4], match[5] or "")
    elif (match := _EACH.match(text)) is not None:
        output.ranks += 1
        output.each = output.each or (match[1], match[2], match[3], match[4] or "")
    elif (match := _COUNT.match(text)) is not None:
        parameters.setdefault("device", match[1])
        parameters.setdefault("devices", int(match[2]))
    elif (match := _BATCH.match(text)) is not None:
        parameters.setdefault("batch_size", int(match[1]))
    elif (match := _MODEL.match(text)) is not None:
        parameters.setdefault("model", excerpt(match[1]))
    elif is_error(text) and len(output.errors) < 3:
        output.errors.append(excerpt(text))


def _read_metrics(draft: Draft, output: _Output) -> None:
    higher, lower = Direction.HIGHER, Direction.LOWER
    if output.each is not None:
        unit, _, mean, spread = output.each
        draft.reading("per_device", mean, unit, higher)
        draft.reading("per_device_spread", spread, unit, lower)
    if output.total is not None:
        unit, _, _, mean, spread = output.total
        counted = unit.split("/")[0].lower() in _SAMPLES_UNITS
        registered = "samples_per_second" if counted else None
        total = draft.reading("total", mean, "1/s", higher, registered=registered)
        if total is not None:
            draft.metrics[-1] = replace(total, unit=unit)
        draft.reading("total_spread", spread, unit, lower)


def _finish(block: Block, output: _Output) -> Run:
    draft = Draft(
        block=block,
        line=output.line,
        parameters=dict(output.parameters),
        variant="keras" if _leaves_first_out(output) else "synthetic",
        samples={"iterations": output.iterations.series()} if output.iterations.count else {},
        stops=[block.take_trouble(), *output.errors],
    )
    _read_metrics(draft, output)
    if output.total is not None:
        draft.parameters["devices"] = int(output.total[1])
        draft.parameters["device"] = output.total[2]
    draft.parameters["iterations"] = output.iterations.count
    if output.each is not None and output.each[3]:
        draft.warnings.append("the spread is 1.96 standard deviations of single iterations, no interval of the mean")
    if output.ranks > 1:
        draft.warnings.append(f"{output.ranks} ranks print their own rate: the first is kept")
    draft.warnings += output.iterations.warnings("iterations")
    _judge(draft, output)
    return draft.run()


def _judge(draft: Draft, output: _Output) -> None:
    if output.each is None and output.total is None:
        draft.ends(f"after {output.iterations.count} iterations, before the mean")
    for row in (output.each, output.total):
        for cell in row[-2:] if row else ():
            if cell and number(cell) is None:
                draft.refuse(f"not a number in the result: {cell}")
    draft.refuse_impossible()
    if draft.ok:
        draft.refuse(_contradicted(output))
    if draft.ok and output.total is None:
        devices = output.parameters.get("devices")
        if draft.stop:
            draft.ends("before the total")
        elif isinstance(devices, int) and devices >= 1:
            draft.lacks("no total")
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
