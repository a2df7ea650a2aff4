"""HPL-MxP, formerly HPL-AI: the reference program, NVIDIA, RIKEN and AMD (rocHPL-MxP).

NVIDIA prints two rates; the one to report includes the iterative refinement, the other only the
factorisation. `GFLOPS: AVG =` lines are component tests and no results. The rate is recomputed with
HPL's own count, (2/3 N + 3/2) N^2 operations, which all four use (e.g. driver.c of the reference).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from transect.domain.metrics import Direction
from transect.hpc.base import PARSERS, Parser, Proof, Run
from transect.hpc.block import Block
from transect.hpc.draft import Draft
from transect.hpc.parsers._checks import differ
from transect.hpc.parsers._hpl_mxp_lines import BANNER, RULES, Log, Test, begins, read
from transect.hpc.values import contradiction, number

_SLOPPY = {"1": "FP8", "2": "FP16"}
# Times are printed to 0.01 s, and the two phases have a small gap between them.
_GAP_RELATIVE, _GAP_SECONDS = 0.02, 0.1


def _operations(n: int) -> float:
    """Operations that HPL counts for order `n`, in 10^9."""
    return (2.0 / 3.0 * n + 1.5) * n * n / 1e9


@PARSERS.register("hpl-mxp")
class HplMxp(Parser):
    """Reads the rate to report, the rate of the factorisation and the residual."""

    benchmark = "hpl-mxp"
    description = "HPL-MxP (HPL-AI): the reference program, NVIDIA, RIKEN, AMD"
    validity_notes = Proof(
        identity="NVIDIA's banner and settings, `HPL-MxP Mixed-Precision Benchmark`, the reference program's times, RIKEN's and AMD's result lines",
        success="a rate and a passed check of the residual; rate, N and the times of the phases agree",
        failure="a `FAILED` check, a residual at or above its threshold, a rate that N and time refute",
    )
    programs = (r"hpl[\-_]?(?:mxp|ai)(?:\.sh)?", r"xhpl[\-_](?:mxp|ai)\w{0,20}", r"rochplmxp", r"run_rochplmxp")
    start_patterns = (
        r"HPL-(?:MxP|AI)-NVIDIA[ \t]+v?\d",
        r"\*{4,8}[ \t]*HPL[ \-](?:MxP|AI) (?:Settings|Result)",
        r"HPL-(?:AI|MxP) Mixed-Precision Benchmark",
        r"Time spent in conversion to single[ \t]*:",
        r"Effective operation per sec[ \t]*:",
        r"n=\d{1,15} b=\d{1,9} r=\d{1,9} c=\d{1,9}[ \t]*(?=[\r\n]|\Z)",
        r"# (?:iterative )?refinement: step=",
        r"\d{1,12}\.\d{1,12} sec\. \d{1,20}\.\d{1,12} GFlop/s resid =",
        r"HPL[_\-]AI[ \t]+W[RC]\w{1,18}[ \t]+\d",
        r"HPLMXP_pd?gesv\(\) (?:start|end) time",
    )
    line_patterns = (*start_patterns, *RULES, r"Backward error ", r"(?:tile|2dbc) (?:precomp|lazy|back_buffer) ")

    def parse(self, block: Block) -> Iterator[Run]:
        """Yield a run per solved system, and one for what the log announces but does not hold."""
        log, test = Log(line=block.first.number), Test(line=block.first.number)
        for line in block:
            text = line.text.strip()
            if (match := BANNER.match(text)) is not None:
                yield from self._close(block, log, test)
                yield from self._missing(block, log)
                log = Log(line=line.number, variant="nvidia", version=match[1])
                test = Test(line=line.number)
            elif begins(test, text):
                yield from self._close(block, log, test)
                test = Test(line=line.number)
            read(log, test, line, text)
            test.begun = test.begun or bool(test.rate or test.phases or test.shape or test.step)
        yield from self._close(block, log, test)
        yield from self._missing(block, log)

    def _close(self, block: Block, log: Log, test: Test) -> Iterator[Run]:
        if not (test.begun or test.rate or test.residual):
            return
        log.done += 1
        yield _result(block, log, test)

    def _missing(self, block: Block, log: Log) -> Iterator[Run]:
        """Yield a run for what was announced: a start without a test, or loops that never came."""
        at, of = (log.loop if log.loop[1] > log.loop[0] else log.test) if log.done else (0, 1)
        if log.done and of <= at and not log.stops:
            return
        draft = Draft(
            block=block,
            line=log.line,
            variant=log.variant,
            version=log.version,
            parameters=dict(log.settings),
            stops=log.stops[:3],
        )
        if log.variant or log.settings or draft.stop:
            draft.mark_incomplete(f"ends after {log.done} of {max(of, 1)} results")
            yield draft.run()


def _result(block: Block, log: Log, test: Test) -> Run:
    draft = Draft(
        block=block,
        line=test.line,
        variant=log.variant,
        version=log.version,
        parameters=dict(log.settings),
        stops=log.stops[:3],
    )
    draft.add_metric("gflops", test.rate, test.unit, registered="mixed_flops")
    draft.add_metric("gflops_per_gpu", test.per_gpu, "GFLOP/s")
    draft.add_metric("lu_gflops", test.lu_rate, "GFLOP/s")
    draft.add_metric("residual", test.residual, "1", Direction.LOWER, registered="residual")
    draft.add_metric("backward_error", test.backward, "1", Direction.LOWER)
    draft.add_metric("time", test.time, "s", registered="benchmark_time")
    for phase, printed in test.phases.items():
        draft.add_metric("phase_time", printed, "s", phase=phase)
    _judge(draft, log, test)
    for key, value in test.shape.items():
        plain = value.isdecimal() and key != "SLOPPY-TYPE"
        draft.parameters[key] = int(value) if plain else value
    sloppy = test.shape.get("SLOPPY-TYPE")
    if sloppy is not None:
        draft.parameters["precision"] = _SLOPPY.get(sloppy, sloppy)
    if log.loop[1] > 1:
        draft.parameters["test_loop"] = log.loop[0]
    return draft.run()


def _judge(draft: Draft, log: Log, test: Test) -> None:
    value, limit = number(test.residual), number(test.threshold)
    if test.verdict == "FAILED" or (test.residual and value is None):
        what = test.residual or test.backward
        draft.mark_invalid(f"residual check: {what} FAILED".replace(":  ", ": "))
    if test.rate and number(test.rate) is None:
        draft.mark_invalid(f"the rate is {test.rate}")
    draft.mark_impossible()
    if value is not None and limit is not None and test.verdict and value >= limit > 0:
        draft.mark_invalid(f"residual {test.residual} is not below {test.threshold}")
    if draft.ok and test.rate:
        draft.mark_invalid(_contradicted(log, test))
    if not test.complete():
        missing = "rate" if not test.rate else "residual check" if not test.verdict else "end"
        draft.mark_incomplete(f"no {missing} of the result")


def _contradicted(log: Log, test: Test) -> str | None:
    rate, n = number(test.rate) or 0.0, int(test.shape.get("N", "0"))
    if n and not log.warmup:
        if test.time and (why := contradiction(_operations(n), test.rate, test.time, test.unit)):
            return f"{why} (N = {n})"
        phases = [number(test.phases.get(k, "")) for k in ("LU", "Iterative Solver")]
        spent = math.fsum(p for p in phases if p is not None)
        implied = _operations(n) / rate if rate else math.inf
        if None not in phases and differ(implied, spent, _GAP_RELATIVE, _GAP_SECONDS):
            return (
                f"the log prints {test.rate} GFLOP/s, but N = {n} in {spent:.6g} s are"
                f" {_operations(n) / spent if spent else math.inf:.6g} GFLOP/s"
            )
    gpus = int(test.shape.get("P", "0")) * int(test.shape.get("Q", "0"))
    per_gpu = number(test.per_gpu)
    if per_gpu is not None and gpus and differ(per_gpu * gpus, rate, 1e-3):
        return f"{test.per_gpu} GFLOP/s per GPU on {gpus} GPUs are not {test.rate} GFLOP/s"
    return None
