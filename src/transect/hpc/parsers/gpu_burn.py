"""gpu-burn: matrix products on every GPU for some time, each result compared with the first.

The rates are those of the last report before the end. A report counts products too, of matrices whose size
the log tells: how many there were in how long has to agree with the rate, as far as a rate of the moment can.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from transect.hpc.base import PARSERS, Proof, Run
from transect.hpc.draft import Draft
from transect.hpc.rules import Output, OutputParser, notes, rule, searched
from transect.hpc.text import Line
from transect.hpc.values import NUMBER, number

_SECONDS = re.compile(r"Burning for (\d{1,8}) seconds")
_DEVICE = re.compile(
    r"Initialized device \d{1,4} with \d{1,9} MB of memory \(\d{1,9} MB available, using \d{1,9} MB of it\)"
    r"(?:, using (FLOATS|DOUBLES)(, using Tensor Cores)?)?"
)
_DONE = re.compile(rf"(-?\d{{1,12}}) \( ?({NUMBER}) Gflop/s[^)]{{0,20}}\)")
# A rate is one of the moment, and the count lags behind it.
_ROOM = 3.0


@dataclass(kw_only=True)
class _Output(Output):
    report: re.Match[str] | None = None
    verdicts: dict[str, str] = field(default_factory=dict)

    def begins(self, text: str) -> bool:
        """Tell whether another start follows: `stdout` and what children print come in any order."""
        return bool(self.verdicts) and _SECONDS.match(text) is not None

    seconds = notes(_SECONDS, "seconds", int, wanted="")

    @rule(_DEVICE, wanted="")
    def device(self, match: re.Match[str], line: Line) -> None:
        if match[1]:
            self.facts["precision"] = "fp64" if match[1] == "DOUBLES" else "fp32"
        self.facts["tensor_cores"] = bool(match[2])

    size = notes(r"Results are (\d{1,12}) bytes each", "result_bytes", int)

    @rule(rf"({NUMBER})%\s+proc'd: ([^\n]{{1,2000}}?)\s+errors: ([^\n]{{1,2000}}?)(?:\s+temps: [^\n]{{0,400}})?$")
    def rates(self, match: re.Match[str], line: Line) -> None:
        if not line.cut:
            self.report = match

    @rule(r"GPU (\d{1,4}): (OK|FAULTY)\s*$")
    def verdict(self, match: re.Match[str], line: Line) -> None:
        self.verdicts[match[1]] = match[2]

    @rule(r"(?:No clients are alive|Couldn't init).*")
    def died(self, match: re.Match[str], line: Line) -> None:
        self.stops.append(match[0][:120])

    def runs(self) -> Iterator[Run]:
        yield _run(self.draft(), self.report, self.verdicts)


@PARSERS.register("gpu-burn")
class GpuBurn(OutputParser):
    """Reads the last report and the verdict of each GPU."""

    benchmark = "gpu-burn"
    description = "gpu-burn: matrix products on GPUs under load, and whether their results hold"
    validity_notes = Proof(
        identity="`Burning for … seconds`, `Initialized device … with … MB of memory`, a report (`…%  proc'd:`)",
        success="`GPU n: OK` for every GPU",
        failure="`FAULTY`, errors in a report, a rate that the number of products refutes",
    )
    programs = (r"gpu_burn", r"gpu-burn")
    output = _Output
    start_patterns = searched(_SECONDS, _DEVICE, re.compile(rf"{NUMBER}%\s+proc'd: "))
    also = (*start_patterns, r"Tested \d{1,4} GPUs")


def _run(draft: Draft, report: re.Match[str] | None, verdicts: dict[str, str]) -> Run:
    precision = str(draft.parameters.get("precision", ""))
    done = _DONE.findall(report[2]) if report is not None else []
    for place, (count, rate) in enumerate(done):
        tensor = draft.parameters.get("tensor_cores")
        # No line says to which precision tensor cores round.
        draft.add_metric(
            "gemm",
            rate,
            "GFLOP/s",
            phase=f"GPU {place}",
            precision=precision or None,
            registered=None if tensor or not number(rate) or not precision else "flops",
        )
        if count == "-1":
            draft.stops.append(f"GPU {place} died")
        assert report is not None
        draft.mark_invalid(_rate_refuted(draft, place, count, rate, report[1]))
    faulty = [f"GPU {name}" for name, word in verdicts.items() if word != "OK"]
    draft.mark_invalid(f"the log says: {', '.join(faulty)} FAULTY" if faulty else None)
    errors = re.findall(r"\d+", re.sub(r"\([^)]*\)", "", report[3])) if report is not None else []
    if any(int(digits) for digits in errors):
        draft.mark_invalid(f"results differ from the first: errors {' - '.join(errors)}")
    if not verdicts:
        draft.mark_incomplete("no verdict on the GPUs")
    elif not done:
        draft.mark_incomplete("no report with a rate")
    draft.parameters["gpus"] = max(len(verdicts), len(done))
    return draft.run()


def _rate_refuted(draft: Draft, place: int, count: str, rate: str, percent: str) -> str | None:
    """Say why a rate cannot be: the products of the whole time are far from what it gives."""
    size, seconds = draft.parameters.get("result_bytes"), draft.parameters.get("seconds")
    share, printed = number(percent), number(rate)
    if not (isinstance(size, int) and isinstance(seconds, int) and share and printed and int(count) > 0):
        return None
    order = (size / (8 if draft.parameters.get("precision") == "fp64" else 4)) ** 0.5
    mean = int(count) * 2 * order**3 / (seconds * share / 100) / 1e9
    if share < 50 or mean / _ROOM <= printed <= mean * _ROOM:
        return None
    return (
        f"GPU {place}: the log prints {rate} Gflop/s, but {count} products in {percent} % of {seconds} s are {mean:.4g}"
    )
