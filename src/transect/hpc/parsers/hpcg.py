"""HPCG: the reference program 0.x to 3.1, Intel, Arm, NVIDIA (report, or `final = ... GF`), rocHPCG.

The rating is recomputed from the report's own operations and times as ReportResults.cpp does: all
operations at the convergence of the reference, over the total time plus a tenth of the setup and
optimisation time for each set; version 2.4 and before did not count the setup.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from transect.domain.metrics import Direction
from transect.hpc.base import PARSERS, Parser, Proof, Run
from transect.hpc.block import Block
from transect.hpc.draft import Draft
from transect.hpc.parsers._checks import differ, disagree, whole
from transect.hpc.parsers._hpcg_report import STARTS, TESTS, WANTS, Report, begins, read
from transect.hpc.values import number

_TIMES, _RATES = "Benchmark Time Summary", "GFLOP/s Summary"
_WORK, _BANDWIDTH = "Floating Point Operations Summary", "GB/s Summary"
_WITH_CONVERGENCE = "Total with convergence overhead"
_WITH_ALL = "Total with convergence and optimization phase overhead"
_KERNELS = ("DDOT", "WAXPBY", "SpMV", "MG", "SymGS")
_OFFICIAL_SECONDS = 1800
_PARAMETERS = (
    ("Machine Summary", "Distributed Processes", "ranks"),
    ("Machine Summary", "Threads per processes", "threads"),
    *(("Global Problem Dimensions", f"Global n{a}", f"Global n{a}") for a in "xyz"),
    *(("Processor Dimensions", f"np{a}", f"np{a}") for a in "xyz"),
    *(("Local Domain Dimensions", f"n{a}", f"n{a}") for a in "xyz"),
    ("Linear System Information", "Number of Equations", "Number of Equations"),
    ("Linear System Information", "Number of Nonzero Terms", "Number of Nonzero Terms"),
    (TESTS[2], "Reference CG iterations per set", "Reference CG iterations per set"),
    (TESTS[2], "Optimized CG iterations per set", "Optimized CG iterations per set"),
)
# Numbers have six digits; the derived ones are made of several.
_ROUNDED = 1e-3


@PARSERS.register("hpcg")
class Hpcg(Parser):
    """Reads the rating, its verdict and the report behind it."""

    benchmark = "hpcg"
    description = "HPCG: reference, Intel, Arm, NVIDIA and AMD builds"
    validity_notes = Proof(
        identity="the program's name and version, `HPCG result is`, a section of its report, the rates of a GPU build",
        success="the rating, by `HPCG result is VALID`; a GPU build without that word is `suspicious`",
        failure="`INVALID`, a test of the report that `FAILED` (before 3.0 not the count of iterations), a rating that operations and times refute",
    )
    programs = (r"x?hpcg(?:[\-_.][\w.\-]{1,40})?", r"rochpcg")
    start_patterns = STARTS
    line_patterns = WANTS

    def parse(self, block: Block) -> Iterator[Run]:
        """Yield a run per report."""
        report = Report(line=block.first.number)
        for line in block:
            text = line.text.strip()
            if begins(report, text):
                yield from _close(block, report)
                report = Report(line=line.number)
            read(report, line, text)
        yield from _close(block, report)


def _close(block: Block, report: Report) -> Iterator[Run]:
    line, rating = report.rating_line, report.rating
    if line and rating and differ(number(line) or 0.0, number(rating) or 0.0, 1e-4):  # of another run than the report
        yield _run(block, Report(line=report.line, rating_line=report.rating_line))
        report.rating_line = ""
    if report.begun() or report.rating_line or report.build or report.headed or report.cut:
        yield _run(block, report)


def _read_metrics(draft: Draft, report: Report) -> None:
    rating = report.rating or report.rating_line or report.gpu.get("final", ("", ""))[0]
    total = report.fact(_TIMES, "Total") or report.gpu_facts.get("Total Time", "")
    raw = report.fact(_RATES, "Raw Total", "Total") or report.gpu.get("total", ("", ""))[0]
    converged = report.fact(_RATES, _WITH_CONVERGENCE)
    setup = report.fact("Setup Information", "Setup Time")
    optimisation = report.fact(_TIMES, "Optimization phase")
    draft.add_metric("gflops", rating, "GFLOP/s", registered="sparse_flops")
    draft.add_metric("raw_total_gflops", raw, "GFLOP/s")
    draft.add_metric("with_convergence_overhead_gflops", converged, "GFLOP/s")
    draft.add_metric("hpcg24_rating", report.old_rating, "GFLOP/s")
    draft.add_metric("time", total, "s", registered="benchmark_time")
    draft.add_metric("optimization_time", optimisation, "s")
    draft.add_metric("setup_time", setup, "s")
    draft.add_metric("scaled_residual_mean", report.fact(TESTS[3], "Scaled residual mean"), "1", Direction.LOWER)
    for kernel in _KERNELS:
        rate = report.fact(_RATES, f"Raw {kernel}", kernel) or report.gpu.get(kernel, ("",))[0]
        draft.add_metric("kernel_gflops", rate, "GFLOP/s", phase=kernel)
        draft.add_metric("kernel_time", report.fact(_TIMES, kernel), "s", phase=kernel)
    for which in ("Read", "Write", "Total"):  # counted by a model, not measured
        printed = report.fact(_BANDWIDTH, f"Raw {which} B/W")
        draft.add_metric("model_bandwidth", printed, "GB/s", phase=which.lower())


def _run(block: Block, report: Report) -> Run:
    draft = Draft(
        block=block,
        line=report.line,
        version=report.version,
        warnings=report.notes,
        variant=report.variant or ("intel" if report.version.startswith("V") else "reference"),
    )
    _read_metrics(draft, report)
    _judge(draft, report)
    for section, key, name in _PARAMETERS:
        value = report.fact(section, key)
        if value:
            draft.parameters[name] = count if (count := whole(value)) is not None else value
    draft.parameters.update(report.gpu_facts)
    if report.build:
        draft.parameters["build"] = report.build
    if draft.ok and report.gpu and not (report.rating or report.rating_line):
        draft.suspicions.append("this build prints no VALID: its own checks are not in the log")
    if draft.ok and report.facts and not report.rating:
        draft.warnings.append(f"the report is cut; it ends with: {block.last_words()}")
    total = number(report.fact(_TIMES, "Total"))
    if total is not None and total < _OFFICIAL_SECONDS:
        draft.warnings.append(f"ran {total:g} s; an official result takes {_OFFICIAL_SECONDS} s or more")
    return draft.run()


def _judge(draft: Draft, report: Report) -> None:
    failed = [
        test
        for (section, key), value in report.facts.items()
        for test in TESTS
        if section == test and key == "Result" and value.startswith("FAILED")
    ]
    if report.invalid:
        draft.mark_invalid(": ".join(["HPCG result is INVALID", *([", ".join(failed)] if failed else [])]))
    if not report.ended():
        draft.mark_incomplete("ends before the rating")
    if failed and not (failed == [TESTS[2]] and report.version[:1] in ("0", "1", "2")):
        draft.mark_invalid(f"HPCG result is VALID, but FAILED: {', '.join(failed)}")
    if draft.ok and not any(metric.name == "gflops" for metric in draft.metrics):
        draft.mark_invalid(f"the rating is {report.rating or report.rating_line or report.gpu['final'][0]}")
    draft.mark_impossible()
    if draft.ok:
        draft.mark_invalid(_contradicted(report) or _contradicted_gpu(report))


def _value(report: Report, section: str, *keys: str) -> float:
    value = number(report.fact(section, *keys))
    return math.nan if value is None else value


def _contradicted(report: Report) -> str | None:
    """Recompute the rates from operations and times of the report."""
    total_s = _value(report, _TIMES, "Total")
    for kernel in (*_KERNELS, "Total"):
        rate = report.fact(_RATES, f"Raw {kernel}", kernel)
        work = _value(report, _WORK, f"Raw {kernel}", kernel)
        time_s = _value(report, _TIMES, kernel)
        if math.isfinite(work) and time_s > 0:
            why = disagree(f"rate of {kernel}", rate, work / time_s / 1e9, _ROUNDED, "GFLOP/s")
            if why is not None:
                return why
    rating = report.rating or report.rating_line
    printed = report.fact(_RATES, _WITH_ALL, "Total with Optimization phase overhead")
    if (value := number(printed)) is not None and rating:
        why = disagree("rating", rating, value, 1e-4, "GFLOP/s")
        if why is not None:
            return why
    work = _value(report, _WORK, _WITH_CONVERGENCE)
    per_set = _value(report, TESTS[2], "Optimized CG iterations per set")
    iterations = _value(report, TESTS[2], "Total number of optimized iterations")
    sets = iterations / per_set if per_set > 0 and math.isfinite(iterations) else 0.0
    setup = _value(report, "Setup Information", "Setup Time")
    optimisation = _value(report, _TIMES, "Optimization phase")
    if rating and sets and all(map(math.isfinite, (work, total_s, optimisation))):
        with_setup = optimisation + (setup if math.isfinite(setup) else 0.0)
        spans = [total_s + sets * extra / 10.0 for extra in (with_setup, optimisation)]
        derived = [work / span / 1e9 for span in spans if span > 0]
        # Of a quick run (QuickPath) the set-up that counts is less than the one that is printed.
        rating_value = number(rating) or 0.0
        inside = derived and min(derived) <= rating_value <= max(derived)
        if derived and not inside and all(differ(rating_value, rate, _ROUNDED) for rate in derived):
            return disagree("rating", rating, derived[0], _ROUNDED, "GFLOP/s")
    derived_size = math.prod(_value(report, "Global Problem Dimensions", f"Global n{a}") for a in "xyz")
    equations = report.fact("Linear System Information", "Number of Equations")
    if equations and math.isfinite(derived_size):
        return disagree("number of equations", equations, derived_size, 1e-9, "rows")
    return None


def _contradicted_gpu(report: Report) -> str | None:
    rates = {key: number(value) for key, (value, _) in report.gpu.items()}
    total, final = rates.get("total"), rates.get("final")
    if total is not None and final is not None and final > total * (1 + _ROUNDED):
        return f"the final rate of {final:g} GFLOP/s exceeds the raw rate of {total:g} GFLOP/s"
    grid = [int(n) for n in report.gpu_facts.get("process grid", "0x0x0").split("x")]
    ranks = math.prod(grid)
    for key, (printed, per_rank) in report.gpu.items():
        one_rank, all_ranks = number(per_rank), number(printed)
        # Both have one digit after the point.
        if one_rank is None or all_ranks is None or not ranks:
            continue
        if differ(one_rank * ranks, all_ranks, _ROUNDED, 0.1 * (ranks + 1)):
            return f"{key}: {per_rank} GFLOP/s on each of {ranks} ranks are not {printed} GFLOP/s"
    return None
