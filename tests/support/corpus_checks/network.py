"""What a person read in real logs of network and kernel benchmarks, as single facts."""

from __future__ import annotations

import re
from collections.abc import Callable

from transect.hpc.base import LogMetric, Run

Facts = list[tuple[str, bool]]

OSU_COLUMNS = {
    "avg_us": "avg_latency",
    "min_us": "min_latency",
    "min": "min_latency",
    "us": "",
    "max_us": "max_latency",
    "max": "max_latency",
    "iterations": "iterations",
    "overall_us": "overall",
    "overall": "overall",
    "compute": "compute",
    "coll_init": "coll_init",
    "mpi_test": "mpi_test",
    "mpi_wait": "mpi_wait",
    "pure_comm": "pure_comm",
    "min_comm": "min_comm",
    "max_comm": "max_comm",
    "overlap_pct": "overlap",
    "MBs": "bandwidth",
    "msgs": "message_rate",
}
IMB_COLUMNS = {"tmin": "t_min", "tmax": "t_max", "tavg": "t_avg", "t_us": "t", "us": "t", "MBs": "bandwidth"}


def at(run: Run | None, name: str, size: int | None = None, phase: str = "") -> LogMetric | None:
    """Return the metric of a name (any latency when empty), size and phase."""
    for one in run.metrics if run else []:
        named = one.name == name or (not name and one.name in ("latency", "avg_latency"))
        if named and (size is None or one.size == size) and (not phase or one.phase == phase):
            return one
    return None


def same(one: LogMetric | None, printed: str) -> bool:
    return one is not None and abs(one.value - float(printed)) <= 1e-9 * abs(float(printed))


def pick(runs: list[Run], **wanted: object) -> list[Run]:
    return [r for r in runs if all(r.parameters.get(k) == v for k, v in wanted.items())]


def head(runs: list[Run], benchmark: str) -> Facts:
    return [("recognised", bool(runs) and all(r.benchmark == benchmark for r in runs))]


def pairs_of(text: str) -> list[tuple[str, str]]:
    return re.findall(r"(\w+)=(-?[\d.]+(?:e[+-]?\d+)?)", text)


def rows(run: Run) -> int:
    return len({m.size for m in run.metrics if m.size is not None})


def osu(truth: dict[str, str], text: str, runs: list[Run]) -> Facts:
    facts = head(runs, "osu")
    if "tests" in truth:
        return facts + osu_many(truth, runs)
    run = runs[0]
    facts.append(("number of runs", len(runs) == 1))
    facts.append(("value test", run.parameters.get("test") == truth["test"]))
    version, _, kind = truth["version"].partition(" ")
    facts.append(("value version", run.version == version))
    if kind:
        facts.append(("value variant", run.variant == kind.lower()))
    for size, unit, value in re.findall(r"size(\d+)_(us|MBs)=([\d.]+)", text):
        facts.append((f"value size {size}", same(at(run, OSU_COLUMNS[unit], int(size)), value)))
    for size, rest in re.findall(r"size(\d+):([^;]+)", text):
        for key, value in pairs_of(rest):
            one = at(run, OSU_COLUMNS[key], int(size))
            facts.append((f"value size {size} {key}", same(one, value)))
    if found := re.search(r"last_row=(\d+):([\d.]+)", text):
        facts.append(("value last row", same(at(run, "", int(found[1])), found[2])))
        facts.append(("value last size", max(m.size or 0 for m in run.metrics) == int(found[1])))
    for key, name in (
        ("pairs", "pairs"),
        ("window", "window_size"),
        ("sender_threads", "sender_threads"),
        ("receiver_threads", "receiver_threads"),
    ):
        if key in truth:
            facts.append((f"value {key}", str(run.parameters.get(name)) == truth[key]))
    if "rows" in truth:
        facts.append(("value rows", rows(run) == int(truth["rows"])))
    if "no_size_column" in truth:
        facts.append(("value no size", all(m.size is None for m in run.metrics)))
        for key in ("avg_us", "min_us", "max_us", "iterations"):
            facts.append((f"value {key}", same(at(run, OSU_COLUMNS[key]), truth[key])))
    cancelled = truth.get("status", "").startswith("cancelled")
    return [*facts, ("status", run.status == ("failed" if cancelled else "ok"))]


def osu_many(truth: dict[str, str], runs: list[Run]) -> Facts:
    tests = {name: pick(runs, test=name) for name in ("latency", "bw", "allreduce")}
    facts = [
        (f"value number of {name}", len(tests[name]) == int(count))
        for count, name in re.findall(r"(\d+) (latency|bw|allreduce)", truth["tests"])
    ]
    facts.append(("value version", {r.version for r in runs} == {"5.8"}))
    big = 4194304
    for key, (name, which, metric, size) in {
        "first_pair_latency_4MiB_us": ("latency", 0, "latency", big),
        "last_pair_latency_4MiB_us": ("latency", -1, "latency", big),
        "first_pair_bw_4MiB_MBs": ("bw", 0, "bandwidth", big),
        "last_pair_bw_4MiB_MBs": ("bw", -1, "bandwidth", big),
        "allreduce_iter5_1MiB_us": ("allreduce", -1, "avg_latency", 1048576),
    }.items():
        found = tests[name][which] if tests[name] else None
        facts.append((f"value {key}", same(at(found, metric, size), truth[key])))
    return [*facts, ("status", {r.status for r in runs} == {"ok"})]


def imb(truth: dict[str, str], text: str, runs: list[Run]) -> Facts:
    facts = head(runs, "imb")
    if "benchmarks" in truth:
        blocks = int(truth["benchmarks"].split()[0])
        facts.append(("value number of tables", len(runs) == blocks))
        whole = [r for r in runs if not str(r.parameters["test"]).startswith("Multi-")]
        facts.append(("value np", all(r.parameters.get("processes") == 8 for r in whole)))
        barrier = next(iter(pick(runs, test="Barrier")), None)
        for value in re.findall(r"Barrier tavg=([\d.]+)", text):
            facts.append(("value Barrier", same(at(barrier, "t_avg"), value)))
        for name, size, rest in re.findall(r"([A-Z][\w-]+) (\d+):([^;]+)", text):
            for key, value in pairs_of(rest):
                found = next(iter(pick(runs, test=name)), None)
                one = at(found, IMB_COLUMNS[key], int(size))
                facts.append((f"value {name} {size} {key}", same(one, value)))
        return [*facts, ("status", {r.status for r in runs} == {"ok"})]
    run = runs[0]
    facts.append(("number of runs", len(runs) == 1))
    facts.append(("value test", run.parameters.get("test") == truth["test"]))
    facts.append(("value np", str(run.parameters.get("processes")) == truth["np"]))
    for size, key, value in re.findall(r"bytes(\d+)_(us)=([\d.]+)", text):
        facts.append((f"value size {size}", same(at(run, IMB_COLUMNS[key], int(size)), value)))
    for size, rest in re.findall(r"bytes(\d+):([^;]+)", text):
        for key, value in pairs_of(rest):
            one = at(run, IMB_COLUMNS[key], int(size))
            facts.append((f"value size {size} {key}", same(one, value)))
    if found := re.search(r"max_MBs=([\d.]+) at (\d+)", text):
        best = max((m for m in run.metrics if m.name == "bandwidth"), key=lambda m: m.value)
        facts.append(("value maximum", same(best, found[1]) and best.size == int(found[2])))
    return [*facts, ("status", run.status == "ok")]


def nccl(truth: dict[str, str], text: str, runs: list[Run]) -> Facts:
    facts = head(runs, "nccl-tests")
    if "validation:" in text:
        listed = text.partition("avg_busbw:")[2].partition(";")[0]
        for name, value in re.findall(r"(\w+)=([\d.]+)", listed):
            found = next(iter(pick(runs, op=name)), None)
            facts.append((f"value {name}", same(at(found, "avg_busbw"), value)))
            status = "invalid" if name == "hypercube" else "ok"
            facts.append((f"status {name}", found is not None and found.status == status))
        hyper = pick(runs, op="hypercube")[0]
        facts.append(("value hypercube redop", hyper.parameters.get("redop") == ""))
        facts.append(("value out of bounds", "16 values" in hyper.reason))
        return [*facts, ("value number of tests", len(runs) == int(truth["ops"]))]
    if "8 processes each 1 rank" in text:
        done = [r for r in runs if r.metrics]
        facts.append(("value number of runs", len(runs) == 8 and len(done) == 1))
        facts.append(("status failed", sum(r.status == "failed" for r in runs) == 7))
        facts.append(("status", bool(done) and done[0].status == "invalid"))
        facts.append(("value rows", bool(done) and rows(done[0]) == 31))
        facts.append(("value avg_busbw", bool(done) and same(at(done[0], "avg_busbw"), "0")))
        absurd = at(done[0] if done else None, "algbw", 8589934592, "in-place")
        return [*facts, ("value algbw", same(absurd, "93725418.35"))]
    sections = re.split(r"(?:^|;)op=", text)[1:]
    facts.append(("value number of runs", len(runs) == len(sections)))
    for run, section in zip(runs, sections, strict=False):
        facts += nccl_section(run, section)
    return facts


def nccl_section(run: Run, section: str) -> Facts:
    name = re.split(r"[:;(]", section)[0]
    facts = [("value op", run.parameters.get("op") == name.removesuffix("_perf_mpi"))]
    if found := re.search(r"ranks=(\d+)", section):
        facts.append(("value ranks", run.parameters.get("ranks") == int(found[1])))
    if found := re.search(r"rows=(\d+)", section):
        facts.append(("value rows", rows(run) == int(found[1])))
    if found := re.search(r"avg_busbw=(NONE|[\d.]+)", section):
        none = found[1] == "NONE"
        one = at(run, "avg_busbw")
        facts.append(("value avg_busbw", one is None if none else same(one, found[1])))
    if found := re.search(r"(?:last_size=)?(\d{6,}) oop busbw=([\d.]+)", section):
        one = at(run, "busbw", int(found[1]), "out-of-place")
        facts.append(("value busbw", same(one, found[2])))
    if found := re.search(r'time printed "([^"]+)"', section):
        facts.append(("value time", any(m.printed == found[1] for m in run.metrics)))
    if found := re.search(r"status=(\w+)", section):
        status = {"cancelled": "failed", "failed": "failed", "incomplete": "truncated"}[found[1]]
    else:
        status = "ok"
    return [*facts, ("status", run.status == status)]


def graph500(truth: dict[str, str], text: str, runs: list[Run]) -> Facts:
    run = runs[0]
    facts = [*head(runs, "graph500"), ("number of runs", len(runs) == 1)]
    for key, name in (("scale", "SCALE"), ("edgefactor", "edgefactor"), ("nproc", "num_mpi_processes")):
        facts.append((f"value {key}", str(run.parameters.get(name)) == truth[key]))
    for key in ("median_TEPS", "harmonic_mean_TEPS", "max_TEPS"):
        facts.append((f"value {key}", same(at(run, key), truth[key])))
    facts.append(("value construction", same(at(run, "construction_time"), truth["construction_s"])))
    return [*facts, ("status", run.status == "ok")]


def npb(truth: dict[str, str], text: str, runs: list[Run]) -> Facts:
    run = runs[0]
    facts = [*head(runs, "npb"), ("number of runs", len(runs) == 1)]
    for key, name in (("bench", "benchmark"), ("class", "class"), ("iterations", "iterations"), ("threads", "threads")):
        if key in truth:
            expected = truth[key].split("(")[0]
            facts.append((f"value {key}", str(run.parameters.get(name)) == expected))
    facts.append(("value time", same(at(run, "time"), truth["time_s"])))
    facts.append(("value mops", same(at(run, "mops_total"), truth["mops_total"])))
    if "version" in truth:
        facts.append(("value version", run.version == truth["version"]))
    return [*facts, ("status", run.status == "ok" and truth["verification"] == "SUCCESSFUL")]


CHECKS: dict[str, Callable[[dict[str, str], str, list[Run]], Facts]] = {
    "OSU": osu,
    "IMB": imb,
    "nccl-tests": nccl,
    "Graph500": graph500,
    "NPB": npb,
}
