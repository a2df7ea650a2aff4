"""miniBUDE: version 1 and its ports, version 2 as text and as CSV.

The rate is recomputed with the program's own count (main.cpp of version 2; version 1 counts one
operation more for each atom): for each group of `ppwi` poses
27 ppwi + ligands (2 + 18 ppwi + proteins (10 + 30 ppwi)) + ppwi. Where the log does not hold the
deck, rates are compared with each other: an interaction has 30 + 10/ppwi operations and a few more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from transect.hpc.base import PARSERS, Parameter, Proof, Run, Series
from transect.hpc.draft import Draft
from transect.hpc.parsers._checks import differ
from transect.hpc.parsers._minibude_lines import CSV_HEAD, Result, Section, usage_error
from transect.hpc.rules import OutputParser
from transect.hpc.text import Line
from transect.hpc.values import contradiction, number

# It runs on one device. The fastest GPU of 2025 reaches 1.6e14 FLOP/s in single precision.
_HIGHEST_GFLOPS = 1e6
# Version 2 demands 0.025 %; version 1 judges nothing.
_TOLERATED_PERCENT, _WRONG_PERCENT = 0.025, 1.0
_INSTRUCTIONS = 25  # that the program counts for an interaction


def minibude_gflop(poses: int, ligands: int, proteins: int, ppwi: int, *, version: int = 2) -> float:
    """Operations of one iteration as the program counts them, in 10^9."""
    extra = 1 if version == 1 else 0
    per_group = 27 * ppwi + ligands * (2 + extra + 18 * ppwi + proteins * (10 + extra + 30 * ppwi)) + ppwi
    return per_group * (poses / ppwi) / 1e9


@dataclass(kw_only=True)
class _Output(Section):
    def runs(self) -> Iterator[Run]:
        """Yield a run per result, and one for results that were announced and never came."""
        for result in self.results:
            yield _run(self, result)
        done = len(self.results)
        expected = max(self.selected - self.skipped, 0)
        headed = bool(self.facts or self.version or self.columns or self.checked)
        lost = self.halved and bool(self.columns)
        if self.over or (done and done >= expected and not self.stops and not lost):
            return
        if not headed and not self.stops and not done:
            return
        draft = self.draft()
        draft.mark_incomplete(f"ends after {done}{f' of {expected}' if expected else ''} results")
        yield draft.run()


@PARSERS.register("minibude")
class MiniBude(OutputParser):
    """Reads a run for each number of poses per work-item."""

    benchmark = "minibude"
    description = "miniBUDE: version 1, version 2 (text, CSV), ports"
    validity_notes = Proof(
        identity="`miniBUDE:`, `Running C/OpenMP`, `Poses: 65536`, the head of its CSV, `- outcome: { valid:`, the refusal of an option that only it has",
        success="a rate, and energies that it calls valid (version 1: off by 1 % at most); rate, poses and time agree",
        failure="`valid: false`, energies off by more than 1 %, rates that contradict each other",
    )
    programs = (r"[a-z]{2,10}-bude", r"bude")
    output = _Output
    start_patterns = (
        r"miniBUDE[ \w]{0,20}:",
        r"Running C/Open(?:MP|ACC)",
        r"Poses[ \t]*:[ \t]+\d{1,12}[ \t]*(?=[\r\n]|\Z)",
        r"- (?:Total kernel|Kernel|Total) time:[ \t]+[\d.]{1,30}[ \t]*ms",
        rf"{CSV_HEAD}sum_ms,",
        r"# \(ppwi=\d{1,9},wgsize=",
        r"- outcome:[ \t]{1,40}\{ valid:",
        r"Unrecognized argument '--",
    )
    also = start_patterns

    def matches(self, line: Line) -> bool:
        """Take a refused option only when no other benchmark has it."""
        text = line.text.strip()
        return not text.startswith("Unrecognized") or usage_error(text)


def _run(section: _Output, result: Result) -> Run:
    values = result.values
    draft = section.draft(
        result.line,
        stops=[],
        parameters={**section.facts, **result.facts},
        samples={"iterations": Series(unit="ms", values=result.raw)} if result.raw else {},
    )
    draft.add_metric("gflops", values.get("gflops"), "GFLOP/s", registered="kernel_flops")
    draft.add_metric("gfinst", values.get("gfinst"), "GFInst/s")
    draft.add_metric("interactions", values.get("giga_interactions"), "billion/s")
    draft.add_metric("interactions", values.get("interactions"), "1/s")
    for name in ("total", "average", "minimum", "maximum", "deviation", "context"):
        draft.add_metric(f"{name}_time", values.get(f"{name}_time"), "ms")
    draft.metrics = [reading for reading in draft.metrics if abs(reading.value) < 1e300]
    if result.difference:
        draft.parameters["max_diff_%"] = result.difference
    _judge(draft, section, result)
    difference = number(result.difference)
    if (number(values.get("gflops", "")) or 0.0) > _HIGHEST_GFLOPS:
        draft.suspicions.append(
            f"gflops = {values['gflops']} GFLOP/s is above {_HIGHEST_GFLOPS:g}: one device of 2025"
            " reaches 1.6e5 in single precision"
        )
    if draft.ok and difference is not None and difference > _TOLERATED_PERCENT:
        draft.warnings.append(f"the largest difference is {result.difference} %")
    return draft.run()


def _judge(draft: Draft, section: _Output, result: Result) -> None:
    parameters, printed = draft.parameters, result.values.get("gflops")
    key = (str(parameters.get("ppwi", "")), str(parameters.get("wgsize", "")))
    if result.valid is False or section.checked.get(key) is False:
        why = "; ".join(section.failures[:2]) or f"valid: false, {result.difference or '?'} %"
        draft.mark_invalid(f"wrong energies: {why}")
    difference = number(result.difference) if result.difference else 0.0
    if difference is None or difference > _WRONG_PERCENT:
        draft.mark_invalid(f"wrong energies: off by {result.difference} %")
    if printed is None:
        draft.mark_incomplete("no GFLOP/s in the result")
    elif number(printed) is None:
        draft.mark_invalid(f"the rate is {printed} GFLOP/s")
    draft.mark_impossible()
    if draft.ok:
        draft.mark_invalid(_contradicted(section, result, parameters))


def _contradicted(section: _Output, result: Result, parameters: dict[str, Parameter]) -> str | None:
    values = result.values
    rate, ms = values["gflops"], values.get("average_time", "")
    poses, ligands, proteins, ppwi, iterations = (
        int(v) if isinstance(v := parameters.get(k), int) and v > 0 else 0
        for k in ("poses", "ligands", "proteins", "ppwi", "iterations")
    )
    if poses and ligands and proteins and ppwi and number(ms):
        contradictions = [
            contradiction(minibude_gflop(poses, ligands, proteins, ppwi, version=version) * 1e3, rate, ms, "GFLOP/s")
            for version in ((2,) if section.variant != "v1" else (2, 1))
        ]
        if all(contradictions):
            return f"{contradictions[0]} (times in ms)"
    total, mean = number(values.get("total_time", "")), number(ms)
    if total is not None and iterations:
        if mean is not None and differ(total, mean * iterations, 1e-3, 0.002 * iterations):
            return f"{iterations} iterations of {ms} ms are not {values['total_time']} ms"
        raw = math.fsum(result.raw[-iterations:])  # warm-ups come first
        if len(result.raw) >= iterations and differ(total, raw, 1e-3, 0.01):
            return f"the raw iterations sum to {raw:.6g} ms, not to {values['total_time']} ms"
    return _disproportionate(values, ppwi)


def _disproportionate(values: dict[str, str], ppwi: int) -> str | None:
    """Compare the three rates of a result, which count the same interactions."""
    giga, printed = number(values.get("giga_interactions", "")), values["gflops"]
    step = 1e-3  # digits after the point
    if giga is None and (plain := number(values.get("interactions", ""))) is not None:
        giga, step = plain / 1e9, 1e-9
    if not giga or giga <= 0:
        return None
    slack = 1.0 + 2 * step / giga + 1e-3
    instructions = number(values.get("gfinst", ""))
    if instructions is not None and differ(instructions, _INSTRUCTIONS * giga, slack - 1.0, 2e-3):
        return f"{values['gfinst']} GFInst/s are not {_INSTRUCTIONS} for each of {giga:g}e9 interactions/s"
    per_pair = (number(printed) or 0.0) / giga
    low, high = (30 + 10 / ppwi, 30 + 11 / ppwi) if ppwi else (30.0, 41.0)
    if low / slack <= per_pair <= high * 1.2 * slack:
        return None
    return (
        f"{printed} GFLOP/s over {giga:g}e9 interactions/s are {per_pair:.6g} operations each,"
        f" the program counts {low:g} to {high * 1.2:g}"
    )
