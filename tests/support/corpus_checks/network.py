"""What a person read in real logs of network and kernel benchmarks, as single facts."""

from __future__ import annotations

import re

from corpus_facts import Check, Facts, Truth, parameters, same, status, values
from transect.hpc.base import LogMetric, Run

# The columns of OSU whose name is not the metric's.
OSU_COLUMNS = {"us": "", "MBs": "bandwidth", "msgs": "message_rate", "overlap_pct": "overlap", "overall_us": "overall"}
OSU_COLUMNS |= {f"{kind}{unit}": f"{kind}_latency" for kind in ("avg", "min", "max") for unit in ("", "_us")}
IMB_COLUMNS = {"tmin": "t_min", "tmax": "t_max", "tavg": "t_avg", "t_us": "t", "us": "t", "MBs": "bandwidth"}


def at(run: Run | None, name: str, size: int | None = None, phase: str = "") -> LogMetric | None:
    """Return the metric of a name (any latency when empty), size and phase."""
    for metric in run.metrics if run else []:
        named = metric.name == name or (not name and metric.name in ("latency", "avg_latency"))
        if named and (size is None or metric.size == size) and (not phase or metric.phase == phase):
            return metric
    return None


def pick(runs: list[Run], **wanted: object) -> list[Run]:
    return [r for r in runs if all(r.parameters.get(k) == v for k, v in wanted.items())]


def pairs_of(text: str) -> list[tuple[str, str]]:
    return re.findall(r"(\w+)=(-?[\d.]+(?:e[+-]?\d+)?)", text)


def rows(run: Run) -> int:
    return len({m.size for m in run.metrics if m.size is not None})


def osu(truth: Truth, text: str, runs: list[Run]) -> Facts:
    if "tests" in truth:
        return osu_many(truth, runs)
    run = runs[0]
    facts = [("number of runs", len(runs) == 1), *parameters(run, truth, "test")]
    version, _, kind = truth["version"].partition(" ")
    facts.append(("value version", run.version == version))
    if kind:
        facts.append(("value variant", run.variant == kind.lower()))
    for size, unit, value in re.findall(r"size(\d+)_(us|MBs)=([\d.]+)", text):
        facts.append((f"value size {size}", same(at(run, OSU_COLUMNS[unit], int(size)), value)))
    for size, pairs in re.findall(r"size(\d+):([^;]+)", text):
        for key, value in pairs_of(pairs):
            metric = at(run, OSU_COLUMNS.get(key, key), int(size))
            facts.append((f"value size {size} {key}", same(metric, value)))
    if found := re.search(r"last_row=(\d+):([\d.]+)", text):
        facts.append(("value last row", same(at(run, "", int(found[1])), found[2])))
        facts.append(("value last size", max(m.size or 0 for m in run.metrics) == int(found[1])))
    facts += parameters(run, truth, "pairs window=window_size sender_threads receiver_threads")
    if "rows" in truth:
        facts.append(("value rows", rows(run) == int(truth["rows"])))
    if "no_size_column" in truth:
        facts.append(("value no size", all(m.size is None for m in run.metrics)))
        for key in ("avg_us", "min_us", "max_us", "iterations"):
            facts.append((f"value {key}", same(at(run, OSU_COLUMNS.get(key, key)), truth[key])))
    cancelled = truth.get("status", "").startswith("cancelled")
    return facts + status(runs, "failed" if cancelled else "ok")


def osu_many(truth: Truth, runs: list[Run]) -> Facts:
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
    return facts + status(runs)


def imb(truth: Truth, text: str, runs: list[Run]) -> Facts:
    facts: Facts = []
    if "benchmarks" in truth:
        blocks = int(truth["benchmarks"].split()[0])
        facts.append(("value number of tables", len(runs) == blocks))
        whole = [r for r in runs if not str(r.parameters["test"]).startswith("Multi-")]
        facts.append(("value np", all(r.parameters.get("processes") == 8 for r in whole)))
        barrier = next(iter(pick(runs, test="Barrier")), None)
        for value in re.findall(r"Barrier tavg=([\d.]+)", text):
            facts.append(("value Barrier", same(at(barrier, "t_avg"), value)))
        for name, size, pairs in re.findall(r"([A-Z][\w-]+) (\d+):([^;]+)", text):
            for key, value in pairs_of(pairs):
                found = next(iter(pick(runs, test=name)), None)
                metric = at(found, IMB_COLUMNS[key], int(size))
                facts.append((f"value {name} {size} {key}", same(metric, value)))
        return facts + status(runs)
    run = runs[0]
    facts.append(("number of runs", len(runs) == 1))
    facts += parameters(run, truth, "test np=processes")
    for size, key, value in re.findall(r"bytes(\d+)_(us)=([\d.]+)", text):
        facts.append((f"value size {size}", same(at(run, IMB_COLUMNS[key], int(size)), value)))
    for size, pairs in re.findall(r"bytes(\d+):([^;]+)", text):
        for key, value in pairs_of(pairs):
            metric = at(run, IMB_COLUMNS[key], int(size))
            facts.append((f"value size {size} {key}", same(metric, value)))
    if found := re.search(r"max_MBs=([\d.]+) at (\d+)", text):
        best = max((m for m in run.metrics if m.name == "bandwidth"), key=lambda m: m.value)
        facts.append(("value maximum", same(best, found[1]) and best.size == int(found[2])))
    return facts + status(runs)


def nccl(truth: Truth, text: str, runs: list[Run]) -> Facts:
    facts: Facts = []
    if "validation:" in text:
        listed = text.partition("avg_busbw:")[2].partition(";")[0]
        for name, value in re.findall(r"(\w+)=([\d.]+)", listed):
            found = next(iter(pick(runs, op=name)), None)
            facts.append((f"value {name}", same(at(found, "avg_busbw"), value)))
            wanted = "invalid" if name == "hypercube" else "ok"
            facts.append((f"status {name}", found is not None and found.status == wanted))
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
        metric = at(run, "avg_busbw")
        facts.append(("value avg_busbw", metric is None if none else same(metric, found[1])))
    if found := re.search(r"(?:last_size=)?(\d{6,}) oop busbw=([\d.]+)", section):
        metric = at(run, "busbw", int(found[1]), "out-of-place")
        facts.append(("value busbw", same(metric, found[2])))
    if found := re.search(r'time printed "([^"]+)"', section):
        facts.append(("value time", any(m.printed == found[1] for m in run.metrics)))
    ends = {"cancelled": "failed", "failed": "failed", "incomplete": "truncated"}
    found = re.search(r"status=(\w+)", section)
    return facts + status([run], ends[found[1]] if found else "ok")


def graph500(truth: Truth, text: str, runs: list[Run]) -> Facts:
    facts = [("number of runs", len(runs) == 1)]
    facts += parameters(runs[0], truth, "scale=SCALE edgefactor nproc=num_mpi_processes")
    names = "median_TEPS harmonic_mean_TEPS max_TEPS construction_s=construction_time"
    return facts + values(runs[0], truth, names) + status(runs)


def npb(truth: Truth, text: str, runs: list[Run]) -> Facts:
    run = runs[0]
    facts = [("number of runs", len(runs) == 1)]
    facts += parameters(run, truth, "bench=benchmark class iterations threads")
    facts += values(run, truth, "time_s=time mops_total")
    if "version" in truth:
        facts.append(("value version", run.version == truth["version"]))
    return [*facts, ("status", run.status == "ok" and truth["verification"] == "SUCCESSFUL")]


CHECKS: dict[str, Check] = {"OSU": osu, "IMB": imb, "nccl-tests": nccl, "Graph500": graph500, "NPB": npb}
