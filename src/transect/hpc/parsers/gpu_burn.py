"""gpu-burn: matrix products on every GPU for some time, each result compared with the first.

The rates are those of the last report before the end. A report counts products too, of matrices whose size
the log tells: how many there were in how long has to agree with the rate, as far as a rate of the moment can.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from transect.domain.metrics import Direction
from transect.hpc.base import PARSERS, Parser, Proof, Run
from transect.hpc.block import Block
from transect.hpc.draft import Draft
from transect.hpc.rules import searched
from transect.hpc.values import NUMBER, number

_SECONDS = re.compile(r"Burning for (\d{1,8}) seconds")
_DEVICE = re.compile(
    r"Initialized device \d{1,4} with \d{1,9} MB of memory \(\d{1,9} MB available, using \d{1,9} MB of it\)"
    r"(?:, using (FLOATS|DOUBLES)(, using Tensor Cores)?)?"
)
_BYTES = re.compile(r"Results are (\d{1,12}) bytes each")
_REPORT = re.compile(
    rf"({NUMBER})%\s+proc'd: ([^\n]{{1,2000}}?)\s+errors: ([^\n]{{1,2000}}?)(?:\s+temps: [^\n]{{0,400}})?$"
)
_DONE = re.compile(rf"(-?\d{{1,12}}) \( ?({NUMBER}) Gflop/s[^)]{{0,20}}\)")
_WORD = re.compile(r"GPU (\d{1,4}): (OK|FAULTY)\s*$")
# A rate is one of the moment, and the count lags behind it.
_ROOM = 3.0


@PARSERS.register("gpu-burn")
class GpuBurn(Parser):
    """Reads the last report and the verdict of each GPU."""

    benchmark = "gpu-burn"
    description = "gpu-burn: matrix products on GPUs under load, and whether their results hold"
    proof = Proof(
        identity="`Burning for … seconds`, `Initialized device … with … MB of memory`, a report (`…%  proc'd:`)",
        success="`GPU n: OK` for every GPU",
        failure="`FAULTY`, errors in a report, a rate that the number of products refutes",
    )
    programs = (r"gpu_burn", r"gpu-burn")
    starts = searched(_SECONDS, _DEVICE, re.compile(rf"{NUMBER}%\s+proc'd: "))
    wants = (*starts, *searched(_BYTES, _WORD), r"Tested \d{1,4} GPUs", r"No clients are alive|Couldn't init")

    def parse(self, block: Block) -> Iterator[Run]:
        """Yield a run per `Burning for`."""
        draft = Draft(block=block, line=block.first.number)
        report: re.Match[str] | None = None
        told: dict[str, str] = {}
        for line in block:
            text = line.text.strip()
            if (seconds := _SECONDS.match(text)) is not None:
                # `stdout` and what its children print come in any order: the banner may stand behind them.
                if told:
                    yield _run(draft, report, told)
                    draft, report, told = (Draft(block=block, line=line.number), None, {})
                draft.parameters["seconds"] = int(seconds[1])
            elif (device := _DEVICE.match(text)) is not None:
                if device[1]:
                    draft.parameters["precision"] = "fp64" if device[1] == "DOUBLES" else "fp32"
                draft.parameters["tensor_cores"] = bool(device[2])
            elif (size := _BYTES.match(text)) is not None:
                draft.parameters["result_bytes"] = int(size[1])
            elif (found := _REPORT.match(text)) is not None and not line.cut:
                report = found
            elif (word := _WORD.match(text)) is not None:
                told[word[1]] = word[2]
            elif text.startswith(("No clients", "Couldn't")):
                draft.stops.append(text[:120])
        yield _run(draft, report, told)


def _run(draft: Draft, report: re.Match[str] | None, told: dict[str, str]) -> Run:
    precision = str(draft.parameters.get("precision", ""))
    done = _DONE.findall(report[2]) if report is not None else []
    for place, (count, rate) in enumerate(done):
        tensor = draft.parameters.get("tensor_cores")
        # What tensor cores round is told by no line.
        draft.reading(
            "gemm",
            rate,
            "GFLOP/s",
            Direction.HIGHER,
            phase=f"GPU {place}",
            precision=precision or None,
            registered=None if tensor or not number(rate) or not precision else "flops",
        )
        if count == "-1":
            draft.stops.append(f"GPU {place} died")
        assert report is not None
        draft.refuse(_rate_refuted(draft, place, count, rate, report[1]))
    faulty = [f"GPU {name}" for name, word in told.items() if word != "OK"]
    draft.refuse(f"the log says: {', '.join(faulty)} FAULTY" if faulty else None)
    errors = re.findall(r"\d+", re.sub(r"\([^)]*\)", "", report[3])) if report is not None else []
    if any(int(one) for one in errors):
        draft.refuse(f"results differ from the first: errors {' - '.join(errors)}")
    if not told:
        draft.lacks("no verdict on the GPUs")
    elif not done:
        draft.lacks("no report with a rate")
    draft.parameters["gpus"] = max(len(told), len(done))
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
